package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/kernels/linalg"
)

func init() {
	for _, op := range linalg.Ops() {
		if op != aten.FftLine { // which has kernels of its own
			lowerings[op] = lowerFactor
			composites[op] = op.Spec().Composite()
		}
	}
}

// lowerFactor shares the matrices or lines of a batch among the processors.
func lowerFactor(c *call) {
	f, m := linalg.New(c.Args, c.Shapes), c.l.mem
	f.Limiter = c.l.limiter
	var in, out []operand
	var inSizes, outSizes []int
	for _, v := range c.Operands {
		in, inSizes = append(in, c.dense(v)), append(inSizes, v.Size())
	}
	for i, s := range c.Shapes {
		if c.unused(i) {
			f.Unwanted(i)
		}
		out, outSizes = append(out, c.result()), append(outSizes, s.DType().Size())
	}
	raw := func(os []operand, sizes []int) [][]byte {
		b := make([][]byte, len(os))
		for i, o := range os {
			b[i] = m.bufs[o.buf][o.off*sizes[i] : (o.off+o.n)*sizes[i]]
		}
		return b
	}
	c.emit(f.Batch, c.l.grain(f.Nanos), out, in, func(lo, hi int) { f.Run(raw(in, inSizes), raw(out, outSizes), lo, hi) })
}
