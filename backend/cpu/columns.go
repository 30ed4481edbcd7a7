package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/kernels/pool"
)

func init() {
	composites[aten.Col2im] = true
	lowerings[aten.Col2im] = rounding(columnsToImage[float32], columnsToImage[float64])
}

// columnsToImage emits col2im. round is applied to the sums along rows.
func columnsToImage[T float32 | float64](c *call, round func([]T)) {
	pair := func(name string) [2]int {
		v := c.Ints(name)
		return [2]int{v[0], v[len(v)-1]}
	}
	g := &pool.Columns{In: pair("output_size"), Kernel: pair("kernel_size"), Dilation: pair("dilation"), Pad: pair("padding"), Stride: pair("stride")}
	for d := range g.Windows {
		g.Windows[d] = (g.In[d]+2*g.Pad[d]-g.Dilation[d]*(g.Kernel[d]-1)-1)/g.Stride[d] + 1
	}
	x, out, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	size, taps := g.In[0]*g.In[1], g.Kernel[0]*g.Kernel[1]*g.Windows[0]*g.Windows[1]
	c.emit(out.n/max(size, 1), c.l.grain(0.5*float64(size+taps)), []operand{out}, []operand{x}, func(lo, hi int) {
		w := workers.Get().(*worker)
		scratch := scratchOf[T](w, g.Scratch())
		for p := lo; p < hi; p++ {
			pool.ToImage(g, elementsOf[T](m, out, p, size), elementsOf[T](m, x, p, taps), scratch, round)
		}
		workers.Put(w)
	})
}
