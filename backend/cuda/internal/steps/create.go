package steps

import (
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

func init() {
	lowerings[aten.Full] = full
	lowerings[aten.Arange] = arange
	lowerings[aten.Linspace] = linspace
	lowerings[aten.Uniform], lowerings[aten.Normal], lowerings[aten.Randint] = random, random, random
}

// full is one element, read as often as the result has elements.
func full(c *call) {
	s := c.Shapes[0]
	v := c.l.Constant(ir.MakeShape(s.DType()), elements.AppendNumber(nil, s.DType(), c.Get("fill_value")))
	c.Results = append(c.Results, v.As(s, v.View.Expand(s.Dims())))
}

// series writes a loop that computes the elements of a vector from their numbers.
type series struct {
	nest
	c     *call
	d     ir.DType // that is computed in
	index loop.Value
}

// series starts such a loop.
func (c *call) series(d ir.DType, n int) *series {
	s := &series{c: c, d: d}
	s.begin()
	s.g.Rows, s.g.Cols = 1, n
	s.index = s.cast(s.add(loop.Instr{Code: loop.Index, DType: ir.I64}), d)
	return s
}

// param reads a number that the source shall not have.
func (s *series) param(f float64, i int64) loop.Value {
	var number any = i
	if s.d == ir.F64 {
		number = f
	}
	v := s.c.l.Constant(ir.MakeShape(s.d), elements.AppendNumber(nil, s.d, number))
	return s.load(s.arg(v, axes{}, false))
}

// finish stores an element in the result.
func (s *series) finish(x loop.Value) {
	out := s.c.Result()
	d := out.DType()
	if s.k.Instrs[x].Result() != loop.ComputeDType(d) {
		x = s.apply(aten.Cast, loop.ComputeDType(d), x)
	}
	s.store(s.arg(out, axes{col: 1}, true), x)
	s.emit(s.c, d)
}

// arange is start + i·step, in f64 or i64.
func arange(c *call) {
	d := ir.I64
	if c.Shapes[0].DType().IsFloat() {
		d = ir.F64
	}
	s := c.series(d, c.Shapes[0].Numel())
	start, step := s.param(c.Number("start")), s.param(c.Number("step"))
	s.finish(s.apply(aten.Add, d, start, s.apply(aten.Mul, d, s.index, step)))
}

// linspace counts from the start in the first half and from the end in the second.
func linspace(c *call) {
	start, startInt := c.Number("start")
	end, endInt := c.Number("end")
	if !c.Shapes[0].DType().IsFloat() {
		start, end = float64(startInt), float64(endInt)
	}
	n := c.Int("steps")
	step := 0.0
	if n > 1 {
		step = (end - start) / float64(n-1)
	} else {
		end = start
	}
	s := c.series(ir.F64, n)
	by := s.param(step, 0)
	up := s.apply(aten.Add, ir.F64, s.param(start, 0), s.apply(aten.Mul, ir.F64, s.index, by))
	back := s.apply(aten.Sub, ir.F64, s.param(float64(n-1), 0), s.index)
	down := s.apply(aten.Sub, ir.F64, s.param(end, 0), s.apply(aten.Mul, ir.F64, back, by))
	first := s.apply(aten.Lt, ir.Bool, s.index, s.param(float64(n/2), 0))
	s.finish(s.apply(aten.Where, ir.F64, first, up, down))
}

// random makes narrow floats that have no generator of their own from f32.
func random(c *call) {
	s := c.Shapes[0]
	g := emit.Random{Op: c.Instr.Op, DType: s.DType(), N: s.Numel(), Offset: int64(c.Int("offset"))}
	if c.Instr.Op == aten.Randint {
		_, g.Low = c.Number("low")
		_, g.High = c.Number("high")
	}
	seed := c.Dense(c.Operands[0])
	c.kernels(g.Plan(c.l.opt.Limits), 1, c.Result(), seed)
}
