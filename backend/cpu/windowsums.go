package cpu

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/pool"
)

// addsWindows reports whether a convolution of single channels with filters of ones, as avg_pool and its gradient
// have, is computed as sums: a tile would have one column of many.
func (l *lowering) addsWindows(in *graph.Instr) bool {
	d := l.Program.Shape(in.Out).DType()
	if d != ir.F32 && d != ir.F64 || len(in.Args) > 2 {
		return false
	}
	g, _ := convGeometry(l.Program.Args(in))
	_, _, ok := windowSums(&g)
	return ok && g.Groups*g.CIn*g.COut == 1 && g.N > 0 && g.Dilation == [3]int{1, 1, 1} && l.isOnes(in.Args[1])
}

// windowSums returns the windows of a convolution that adds them up, of which few may be computed for nothing. Those of
// the gradient that lie apart are spread from one of their elements each; others are windows of it with what the
// padding leaves around them.
func windowSums(g *conv.Geometry) (w *pool.Windows, spread, ok bool) {
	switch {
	case !g.Transposed:
		w = &pool.Windows{In: g.In, Kernel: g.Kernel, Out: g.Out, Stride: g.Stride, Pad: g.Pad}
		return w, false, g.Stride[0]*g.Stride[1] <= 4 && g.Stride[2] <= g.Kernel[2]
	case g.Stride != [3]int{1, 1, 1}:
		return &pool.Windows{In: g.Out, Kernel: g.Kernel, Out: g.In, Stride: g.Stride, Pad: g.Pad}, true, true
	}
	w = &pool.Windows{In: g.In, Kernel: g.Kernel, Out: g.Out, Stride: g.Stride}
	for d, k := range g.Kernel {
		w.Pad[d] = k - 1 - g.Pad[d]
	}
	return w, false, min(w.Pad[0], w.Pad[1], w.Pad[2]) >= 0
}

// addWindows emits such a convolution.
func addWindows[T float32 | float64](c *call) {
	g, _ := convGeometry(c.Args)
	src, dst, m := c.dense(c.Operands[0]), c.result(), c.l.mem
	from, to := src.n/g.N, dst.n/g.N
	window := g.Kernel[0] * g.Kernel[1] * g.Kernel[2]
	w, spread, _ := windowSums(&g)
	add, work := pool.Sums[T], float64(to*g.Stride[0]*g.Stride[1]*window)/8+float64(from)/4
	if spread {
		add, work = pool.Spread[T], float64(from*window)
	}
	c.emit(g.N, c.l.grain(work), []operand{dst}, []operand{src}, func(lo, hi int) {
		add(w, elements[T](m, dst)[lo*to:hi*to], elements[T](m, src)[lo*from:hi*from])
	})
}

// isOnes reports whether the Program has a value as a constant of ones.
func (l *lowering) isOnes(id graph.ID) bool {
	p := l.Program
	i := slices.IndexFunc(p.Instrs, func(in graph.Instr) bool { return in.Out == id })
	if i < 0 || p.Instrs[i].Op != aten.Full {
		return false
	}
	v, ok := p.Args(&p.Instrs[i]).Get("fill_value").(float64)
	return ok && v == 1
}
