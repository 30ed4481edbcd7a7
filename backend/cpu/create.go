package cpu

import (
	"github.com/loris-ml/loris/internal/aten"
	elems "github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/philox"
)

func init() {
	lowerings[aten.Full] = lowerFull
	lowerings[aten.Arange] = widened(func(c *call) { aranges.of(c.Shapes[0].DType())(c) })
	lowerings[aten.Linspace] = lowerLinspace
	for _, op := range []ir.Op{aten.TrilIndices, aten.TriuIndices} {
		composites[op] = true
		lowerings[op] = func(c *call) {
			if c.Shapes[0].DType() == ir.I32 {
				triangleIndices[int32](c)
			} else {
				triangleIndices[int64](c)
			}
		}
	}
	lowerings[aten.Uniform] = lowerUniform
	lowerings[aten.Normal] = widened(lowerNormal)
	lowerings[aten.Randint] = widened(func(c *call) { randints.of(c.Shapes[0].DType())(c) })
	composites[aten.Randperm] = true
	lowerings[aten.Randperm] = widened(func(c *call) { permutes.of(c.Shapes[0].DType())(c) })
}

var (
	aranges = numbers(arangeInt[uint8], arangeInt[int8], arangeInt[int16], arangeInt[int32], arangeInt[int64],
		arangeFloat[float32], arangeFloat[float64])
	randints = numbers(randint[uint8], randint[int8], randint[int16], randint[int32], randint[int64], randint[float32], randint[float64])
	permutes = numbers(permute[uint8], permute[int8], permute[int16], permute[int32], permute[int64], permute[float32], permute[float64])
)

// lowerFull makes a constant of one element and expands it.
func lowerFull(c *call) {
	d := c.Shapes[0].DType()
	c.Results = append(c.Results, c.l.Constant(ir.MakeShape(d), elems.AppendNumber(nil, d, c.Get("fill_value"))).Expand(c.Shapes[0].Dims()))
}

// fill emits a step that makes the elements of out from their numbers.
func fill[T any](c *call, out operand, nanos float64, reads []operand, f func(dst []T, lo int)) {
	m, unit := c.l.mem, c.l.tune.unit
	c.emit((out.n+unit-1)/unit, c.l.grain(float64(unit)*nanos), []operand{out}, reads, func(lo, hi int) {
		lo *= unit
		f(elements[T](m, out)[lo:min(hi*unit, out.n)], lo)
	})
}

func arangeInt[T kernels.Number](c *call) {
	_, start := c.Number("start")
	_, step := c.Number("step")
	fill(c, c.result(), 1, nil, func(dst []T, lo int) { kernels.ArangeInt(dst, start, step, lo) })
}

func arangeFloat[T kernels.Number](c *call) {
	start, _ := c.Number("start")
	step, _ := c.Number("step")
	fill(c, c.result(), 1, nil, func(dst []T, lo int) { kernels.ArangeFloat(dst, start, step, lo) })
}

func triangleIndices[T int32 | int64](c *call) {
	rows, out, m := c.Int("row"), c.result(), c.l.mem
	t := kernels.Triangle{Cols: c.Int("col"), Offset: c.Int("offset"), Upper: c.Instr.Op == aten.TriuIndices}
	c.emit(rows, c.l.grain(float64(t.Cols)), []operand{out}, nil, func(lo, hi int) {
		at := elements[T](m, out)
		kernels.Places(at[:len(at)/2], at[len(at)/2:], t, lo, hi)
	})
}

// lowerLinspace computes in f64 and converts, f32 as it goes.
func lowerLinspace(c *call) {
	start, startInt := c.Number("start")
	end, endInt := c.Number("end")
	s := c.Shapes[0]
	if !s.DType().IsFloat() {
		start, end = float64(startInt), float64(endInt)
	}
	n := c.Int("steps")
	if s.DType() == ir.F32 {
		fill(c, c.result(), 0.3, nil, func(dst []float32, lo int) { kernels.Linspace(dst, start, end, n, lo) })
		return
	}
	wide := &call{c.Inner(nil, []ir.Shape{s.WithDType(ir.F64)}), c.l}
	fill(wide, wide.result(), 2, nil, func(dst []float64, lo int) { kernels.Linspace(dst, start, end, n, lo) })
	c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], s.DType()))
}

// seed returns the seed operand and the offset of a random op. The seed is read
// when the step runs.
func (c *call) seed() (operand, uint64) { return c.dense(c.Operands[0]), uint64(c.Int("offset")) }

func lowerUniform(c *call) {
	// A narrow float has as many random bits as its significand, so that no
	// value is rounded up to 1.
	bits := 24
	switch c.Shapes[0].DType() {
	case ir.F16:
		bits = 11
	case ir.BF16:
		bits = 8
	}
	widened(func(c *call) {
		seed, offset := c.seed()
		out, m := c.result(), c.l.mem
		reads := []operand{seed}
		if c.Shapes[0].DType() == ir.F64 {
			fill(c, out, 2, reads, func(dst []float64, lo int) {
				philox.UniformF64(dst, uint64(elements[int64](m, seed)[0]), offset, int64(lo))
			})
			return
		}
		fill(c, out, 0.5, reads, func(dst []float32, lo int) {
			philox.UniformBits(dst, uint64(elements[int64](m, seed)[0]), offset, int64(lo), bits)
		})
	})(c)
}

func lowerNormal(c *call) {
	seed, offset := c.seed()
	out, m := c.result(), c.l.mem
	reads := []operand{seed}
	if c.Shapes[0].DType() == ir.F64 {
		fill(c, out, 5, reads, func(dst []float64, lo int) {
			philox.NormalF64(dst, uint64(elements[int64](m, seed)[0]), offset, int64(lo))
		})
		return
	}
	fill(c, out, 5, reads, func(dst []float32, lo int) {
		philox.NormalF32(dst, uint64(elements[int64](m, seed)[0]), offset, int64(lo))
	})
}

func randint[T kernels.Number](c *call) {
	seed, offset := c.seed()
	_, low := c.Number("low")
	_, high := c.Number("high")
	m := c.l.mem
	fill(c, c.result(), 4, []operand{seed}, func(dst []T, lo int) {
		philox.IntsBelow(dst, uint64(elements[int64](m, seed)[0]), offset, int64(lo), uint64(high-low), low)
	})
}

func permute[T kernels.Number](c *call) {
	seed, offset := c.seed()
	out, m := c.result(), c.l.mem
	words, spare := c.l.temp(ir.I64, out.n), c.l.temp(ir.I64, out.n)
	c.emit(1, 1, []operand{out, words, spare}, []operand{seed}, func(_, _ int) {
		seed, w := uint64(elements[int64](m, seed)[0]), elements[uint64](m, words)
		philox.Uint64s(w, seed, offset, 0)
		kernels.Permute(elements[T](m, out), w, elements[uint64](m, spare), func(i int) uint64 { return philox.Uint64(seed, offset, int64(i)) })
	})
}
