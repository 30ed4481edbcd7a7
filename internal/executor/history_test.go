package executor_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

func gradOf(s *executor.Session, y *executor.Tensor, wrt ...*executor.Tensor) []*executor.Tensor {
	return s.Grad(newTensor, []*executor.Tensor{y}, nil, wrt)
}

// Reading a value, at any place of a step, changes no gradient.
func TestReadingChangesNoGradient(t *testing.T) {
	// y = (x²)·x³ by way of h = x² and k = h·x; dy/dx = 5x⁴, dy/dh = k + h·x.
	for mask := range 1 << 4 {
		s := newSession(t, executor.Config{})
		x := floats(t, s, []float32{2}, 1)
		look := func(i int, y *executor.Tensor) *executor.Tensor {
			if mask>>i&1 == 1 {
				read(t, y)
			}
			return y
		}
		h := look(0, binaryOp(s, aten.Mul, x, x))
		k := look(1, binaryOp(s, aten.Mul, h, x))
		y := look(2, binaryOp(s, aten.Mul, h, k))
		g := gradOf(s, y, x, h, k)
		look(3, h)
		second := gradOf(s, g[0], x)
		want(t, g[0], 80)
		want(t, g[1], 16)
		want(t, g[2], 4)
		want(t, second[0], 160)
		want(t, gradOf(s, y, x)[0], 80) // after all of that
	}
}

// A step is where gradients end.
func TestGradientsEndWithTheStep(t *testing.T) {
	s := newSession(t, executor.Config{})
	x := floats(t, s, []float32{3}, 1)
	h := binaryOp(s, aten.Mul, x, x)
	want(t, h, 9)
	mark(t, s)
	y := binaryOp(s, aten.Mul, h, x)
	g := gradOf(s, y, x, h)
	want(t, g[0], 9)
	want(t, g[1], 3)
}

// Trimming a graph that has grown too large changes no gradient either.
func TestTrimmingChangesNoGradient(t *testing.T) {
	s := newSession(t, executor.Config{TrimNodes: 10})
	x := floats(t, s, []float32{1}, 1)
	y := x
	for range 64 {
		y = binaryOp(s, aten.Mul, y, x)
	}
	if s.Report().Trims == 0 {
		t.Fatal("the graph was not trimmed")
	}
	want(t, gradOf(s, y, x)[0], 65)
}

// When the step has become far too large the graph is dropped, and a gradient
// that would have to pass says so. It is none of the next step's business.
func TestGradientOfAStepTooLarge(t *testing.T) {
	d, err := ir.ParseDevice("null")
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, executor.Config{Device: d, TrimNodes: 20_000})
	x := floats(t, s, []float32{1}, 1)
	v := s.NewVariable(x)
	y := value(s, v)
	for range 300_000 {
		y = binaryOp(s, aten.Mul, y, x)
	}
	mustPanic(t, executor.ErrGraphDropped, func() { gradOf(s, y, x) })
	v.Assign(y)
	mark(t, s)
	gradOf(s, binaryOp(s, aten.Mul, value(s, v), x), x)
}

// A variable is a leaf of its own, whatever tensor it was given.
func TestGradientOfAVariable(t *testing.T) {
	for name, given := range map[string]func(s *executor.Session) *executor.Tensor{
		"data": func(s *executor.Session) *executor.Tensor { return floats(t, s, []float32{2}, 1) },
		"pending": func(s *executor.Session) *executor.Tensor {
			x := floats(t, s, []float32{1}, 1)
			return binaryOp(s, aten.Add, x, x)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, executor.Config{})
			x := given(s)
			u, v := s.NewVariable(x), s.NewVariable(x)
			for step := range 3 {
				// y = u²·v·x, which the given tensor reaches by three ways at first.
				a, b := value(s, u), value(s, v)
				y := binaryOp(s, aten.Mul, binaryOp(s, aten.Mul, a, a), binaryOp(s, aten.Mul, b, x))
				if step == 1 {
					read(t, y)
				}
				g := gradOf(s, y, value(s, u), value(s, v), x)
				want(t, g[0], 16)
				want(t, g[1], 8)
				if step == 0 {
					want(t, g[2], 32) // the variables were made of it in this step
				} else {
					want(t, g[2], 8)
				}
				u.Assign(binaryOp(s, aten.Add, a, gradOf(s, y, b)[0]))
				u.Assign(binaryOp(s, aten.Sub, value(s, u), gradOf(s, y, b)[0]))
				mark(t, s)
			}
		})
	}
}

// An assigned value that is read in the middle of the step is the same leaf
// before and after.
func TestGradientOfAnAssignedValue(t *testing.T) {
	for _, look := range []bool{false, true} {
		s := newSession(t, executor.Config{})
		x := floats(t, s, []float32{3}, 1)
		v := s.NewVariable(floats(t, s, []float32{0}, 1))
		h := binaryOp(s, aten.Mul, x, x)
		v.Assign(h)
		before := value(s, v)
		y := binaryOp(s, aten.Mul, before, x)
		if look {
			want(t, h, 9)
		}
		after := value(s, v)
		z := binaryOp(s, aten.Mul, binaryOp(s, aten.Mul, after, after), y)
		// z = v³·x, with v = x²
		for _, w := range []*executor.Tensor{before, after, value(s, v)} {
			want(t, gradOf(s, z, w)[0], 3*81*3)
		}
		want(t, gradOf(s, z, x)[0], 7*729)
		want(t, gradOf(s, z, h)[0], 3*81*3)
	}
}

// A handle of a variable's value that was taken in the step of the assignment is
// a tensor of its own afterwards, whether or not the value was read in that step,
// and where. One that was taken later stays the variable's.
func TestGradientOfAnEarlierHandle(t *testing.T) {
	for mask := range 1 << 3 {
		s := newSession(t, executor.Config{})
		x := floats(t, s, []float32{3}, 1)
		v := s.NewVariable(floats(t, s, []float32{0}, 1))
		h := binaryOp(s, aten.Mul, x, x)
		look := func(i int) {
			if mask>>i&1 == 1 {
				want(t, h, 9)
			}
		}
		look(0)
		v.Assign(h)
		look(1)
		early := value(s, v)
		look(2)
		want(t, gradOf(s, binaryOp(s, aten.Mul, value(s, v), x), early)[0], 3)
		mark(t, s)
		late := value(s, v)
		for range 2 {
			y := binaryOp(s, aten.Mul, value(s, v), x)
			g := gradOf(s, y, early, late)
			want(t, g[0], 0)
			want(t, g[1], 3)
			mark(t, s)
		}
	}
}

func TestForksSeeHistoriesOfEachOther(t *testing.T) {
	s := newSession(t, executor.Config{})
	g := s.Fork()
	x := floats(t, s, []float32{3}, 1)
	h := binaryOp(s, aten.Mul, x, x)
	want(t, h, 9)
	y := binaryOp(g, aten.Mul, h, x)
	want(t, gradOf(g, y, x)[0], 27)
}

// A value so large that the histories of the step are dropped with its own can be used all the same.
// Nothing is computed: the graph is only recorded.
func TestVariableBeyondHistories(t *testing.T) {
	newFake(t)
	s := newSession(t, executor.Config{Device: fakeDevice(0), NoOp: true})
	x := newTensor()
	s.CallOn(s.Device(), aten.Full, x, []any{[]int{1 << 29}, 1.0, ir.F32})
	v := s.NewVariable(x)
	for range 2 {
		y, z := newTensor(), newTensor()
		v.Value(s, y)
		s.Binary(aten.Mul, z, y, y)
		if got := z.Shape().Numel(); got != 1<<29 {
			t.Fatalf("%d elements", got)
		}
	}
}
