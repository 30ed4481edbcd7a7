package executor_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// cached returns an upload of a number that the data cache keeps.
func cached(t testing.TB, s *executor.Session) *executor.Tensor {
	t.Helper()
	x := newTensor()
	if err := s.UploadCached(ctx, x, ir.MakeShape(ir.U8, 1), s.Device(), []byte{3}); err != nil {
		t.Fatal(err)
	}
	return x
}

// Sessions have one lock from when the graph of one gets nodes of the other, and no sooner.
func TestSessionsJoinByPendingTensorsAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		joined bool
		use    func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor
	}{
		{"data", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			return binaryOp(f, aten.Mul, own, x)
		}},
		{"data twice", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			y := newTensor()
			f.BinaryNumber(aten.Sub, y, binaryOp(f, aten.Mul, x, x), 3.0, false)
			return y
		}},
		{"data in a list", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			y := newTensor()
			f.Call1(aten.Cat, y, []any{[]*executor.Tensor{own, x}, 0}, nil)
			sum := newTensor()
			f.Call1(aten.Prod, sum, []any{y}, nil)
			return sum
		}},
		{"value", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			return binaryOp(f, aten.Mul, own, value(f, v))
		}},
		{"value's handle", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			return binaryOp(f, aten.Mul, own, value(s, v))
		}},
		{"assignment", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			y := binaryOp(f, aten.Mul, own, value(f, v))
			v.Assign(y)
			mark(t, f)
			want(t, value(s, v), 6)
			return value(f, v)
		}},
		{"reading both", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			y := binaryOp(f, aten.Mul, own, own)
			if _, err := f.FetchTensors(ctx, y, x, own); err != nil {
				t.Fatal(err)
			}
			return binaryOp(f, aten.Add, y, own)
		}},
		{"initial value", false, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			w := s.NewVariable(binaryOp(s, aten.Mul, x, x))
			return binaryOp(f, aten.Sub, value(f, w), value(f, v))
		}},
		{"pending", true, func(t *testing.T, s, f *executor.Session, own, x *executor.Tensor, v *executor.Variable) *executor.Tensor {
			return binaryOp(f, aten.Sub, binaryOp(s, aten.Mul, x, x), x)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, executor.Config{})
			f := s.Fork()
			x := floats(t, s, []float32{3}, 1)
			v := s.NewVariable(floats(t, s, []float32{3}, 1))
			y := c.use(t, s, f, floats(t, f, []float32{2}, 1), x, v)
			if y.Session() == f || c.joined {
				want(t, y, 6)
			}
			if s.Joined(f) != c.joined {
				t.Errorf("joined: %v", !c.joined)
			}
			if other := s.Fork(); other.Joined(f) || other.Joined(s) {
				t.Error("a fork has joined others at once")
			}
		})
	}
}

// Sessions have leaves of their own for what both use. Once they have joined, gradients take them
// for one, by whichever handle.
func TestGradientsOfSessionsThatJoin(t *testing.T) {
	s := newSession(t, executor.Config{})
	f := s.Fork()
	x := floats(t, s, []float32{3}, 1)
	v := s.NewVariable(floats(t, s, []float32{5}, 1))
	inS := binaryOp(s, aten.Mul, x, value(s, v))
	inF := binaryOp(f, aten.Mul, x, value(f, v))
	if s.Joined(f) {
		t.Fatal("the sessions have joined already")
	}
	y := binaryOp(s, aten.Mul, inS, inF) // (x·v)²
	for i, g := range gradOf(s, y, x, value(s, v), value(f, v)) {
		if w := []float32{2 * 3 * 25, 2 * 9 * 5, 2 * 9 * 5}[i]; read(t, g)[0] != w {
			t.Errorf("gradient %d is %v, not %v", i, read(t, g)[0], w)
		}
	}
}

// same is want for any goroutine.
func same(t *testing.T, x *executor.Tensor, want float32) {
	b, err := x.Fetch(ctx)
	if err != nil || math.Float32frombits(binary.LittleEndian.Uint32(b)) != want {
		t.Errorf("got %v (%v), want %v", b, err, want)
	}
}

// Forks record with the same data and variables, take gradients and join, all at once.
func TestSessionsApartAtOnce(t *testing.T) {
	s := newSession(t, executor.Config{})
	x := floats(t, s, []float32{3}, 1)
	v := s.NewVariable(floats(t, s, []float32{5}, 1))
	forks := make([]*executor.Session, 4)
	results := make([]*executor.Tensor, len(forks))
	for i := range forks {
		forks[i] = s.Fork()
	}
	errs := make([]error, len(forks))
	var wg sync.WaitGroup
	for i, f := range forks {
		wg.Go(func() {
			for range 20 {
				y := binaryOp(f, aten.Mul, binaryOp(f, aten.Mul, x, value(f, v)), binaryOp(f, aten.Mul, x, cached(t, f)))
				results[i] = gradOf(f, y, value(f, v))[0]
				b, err := results[i].Fetch(ctx)
				if err == nil && len(b) != 4 {
					err = fmt.Errorf("%d bytes", len(b))
				}
				if err == nil {
					err = f.MarkStep(ctx)
				}
				if errs[i] = err; err != nil {
					return
				}
			}
			results[i] = binaryOp(f, aten.Mul, x, value(f, v)) // pending
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("fork %d: %v", i, err)
		}
	}
	for i := range forks { // each joins the next, from both sides at once
		a, b := i, (i+1)%len(forks)
		wg.Go(func() { same(t, binaryOp(forks[a], aten.Add, results[a], results[b]), 30) })
		wg.Go(func() { same(t, binaryOp(forks[b], aten.Sub, results[b], results[a]), 0) })
	}
	wg.Wait()
	for _, f := range forks {
		if !f.Joined(forks[0]) || f.Joined(s) {
			t.Error("the forks have one lock, their parent another")
		}
	}
}
