package cpu

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/kernels/pool"
)

// spreadWindows emits a transposed convolution of single channels with filters of ones, which the gradient
// of avg_pool is, as sums. It reports whether it is one, with windows that lie apart: where they begin at
// all positions the tiles of the convolution are as good.
func spreadWindows[T float32 | float64](c *call) bool {
	g, _ := convGeometry(c)
	ones := [3]int{1, 1, 1}
	if !g.Transposed || g.Groups*g.CIn*g.COut != 1 || g.Stride == ones || g.Dilation != ones || len(c.Operands) > 2 || c.Epilogue != nil || !c.isOnes(1) {
		return false
	}
	w := &pool.Windows{In: g.Out, Kernel: g.Kernel, Out: g.In, Stride: g.Stride, Pad: g.Pad}
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	from, to := src.n/g.N, dst.n/g.N
	work := float64(from * g.Kernel[0] * g.Kernel[1] * g.Kernel[2])
	c.emit(g.N, c.l.grain(work), []operand{dst}, []operand{src}, func(lo, hi int) {
		pool.Spread(w, elements[T](m, dst)[lo*to:hi*to], elements[T](m, src)[lo*from:hi*from])
	})
	return true
}

// sumWindows emits a convolution of single channels with filters of ones, as avg_pool has, as sums: a tile
// would have one column of many. It reports whether it is one of which few sums are computed for nothing.
func sumWindows[T float32 | float64](c *call) bool {
	g, _ := convGeometry(c)
	if g.Transposed || g.Groups*g.CIn*g.COut != 1 || g.Dilation != [3]int{1, 1, 1} || len(c.Operands) > 2 || c.Epilogue != nil || g.N == 0 || !c.isOnes(1) {
		return false
	}
	apart := g.Stride[0] * g.Stride[1]
	if apart > 4 || g.Stride[2] > g.Kernel[2] {
		return false
	}
	w := &pool.Windows{In: g.In, Kernel: g.Kernel, Out: g.Out, Stride: g.Stride, Pad: g.Pad}
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	from, to := src.n/g.N, dst.n/g.N
	work := float64(to*apart*g.Kernel[0]*g.Kernel[1]*g.Kernel[2])/8 + float64(from)/4
	c.emit(g.N, c.l.grain(work), []operand{dst}, []operand{src}, func(lo, hi int) {
		pool.Sums(w, elements[T](m, dst)[lo*to:hi*to], elements[T](m, src)[lo*from:hi*from])
	})
	return true
}

// isOnes reports whether the Program has an operand as a constant of ones.
func (c *call) isOnes(operand int) bool {
	p, id := c.l.Program, c.Instr.Args[operand]
	i := slices.IndexFunc(p.Instrs, func(in graph.Instr) bool { return in.Out == id })
	if i < 0 || p.Instrs[i].Op != aten.Full {
		return false
	}
	v, ok := p.Args(&p.Instrs[i]).Get("fill_value").(float64)
	return ok && v == 1
}
