package executor_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// training is a variable that a Step doubles.
type training struct {
	t *testing.T
	f *fake
	s *executor.Session
	v *executor.Variable
}

func newTraining(t *testing.T) *training {
	tr := &training{t: t, f: newFake(t)}
	tr.s = newSession(t, executor.Config{Device: fakeDevice(0)})
	tr.v = tr.variable(1)
	return tr
}

// variable returns one whose data a Step has made, so that it may be donated.
func (tr *training) variable(x float32) *executor.Variable {
	v := tr.s.NewVariable(floatsOn(tr.t, tr.s, fakeDevice(0), x))
	tr.step(func() error {
		v.Assign(tr.double(value(tr.s, v)))
		return nil
	})
	tr.wait()
	return v
}

func (tr *training) double(x *executor.Tensor) *executor.Tensor {
	return binaryOp(tr.s, aten.Add, x, x)
}

func (tr *training) step(fn func() error) {
	tr.t.Helper()
	if err := tr.s.Step(ctx, fn); err != nil {
		tr.t.Fatal(err)
	}
}

// train is the plain step. The donated data is garbage when it returns.
func (tr *training) train() {
	tr.t.Helper()
	tr.step(func() error {
		tr.v.Assign(tr.double(value(tr.s, tr.v)))
		return nil
	})
	if err := tr.s.WaitDeviceOps(ctx); err != nil {
		tr.t.Fatal(err)
	}
}

// wait ends the work in flight and forgets the donations until here.
func (tr *training) wait() []int {
	tr.t.Helper()
	if err := tr.s.WaitDeviceOps(ctx); err != nil {
		tr.t.Fatal(err)
	}
	return tr.f.donations()
}

func TestStepDonatesTheOldValue(t *testing.T) {
	tr := newTraining(t)
	for range 3 {
		tr.train()
	}
	if got := tr.wait(); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("donations %v, want one in each step", got)
	}
	want(t, value(tr.s, tr.v), 16)
	// The handle that want made has escaped: the value is the user's, too.
	tr.train()
	if got := tr.wait(); !slices.Equal(got, []int{0}) {
		t.Errorf("donations %v after the value was read, want none", got)
	}
	want(t, value(tr.s, tr.v), 32)
}

// Whether the old value may be overwritten is no reason to compile the step
// again: at first it is the caller's, later the Step's own, and the caller's again
// when it has been read.
func TestDonationCompilesOnce(t *testing.T) {
	tr := &training{t: t, f: newFake(t)}
	tr.s = newSession(t, executor.Config{Device: fakeDevice(0)})
	tr.v = tr.s.NewVariable(floatsOn(t, tr.s, fakeDevice(0), 1))
	for range 3 {
		tr.train()
	}
	want(t, value(tr.s, tr.v), 8)
	for range 2 {
		tr.train()
	}
	if got := tr.wait(); !slices.Equal(got, []int{0, 1, 1, 0, 1}) {
		t.Errorf("donations %v, want them in all steps but the first and that after the reading", got)
	}
	if n := tr.f.compiles.Load(); n != 1 {
		t.Errorf("%d compilations, want 1", n)
	}
	want(t, value(tr.s, tr.v), 32)
}

// A variable keeps its value when the step that should have replaced it fails,
// if nothing can have overwritten it.
func TestFailureOfAStepThatDonates(t *testing.T) {
	tests := map[string]struct {
		began bool
		step  func(tr *training) // fails later
	}{
		"while it runs": {true, func(tr *training) {
			tr.f.running = failOnce("out of order")
			tr.step(func() error {
				tr.v.Assign(tr.double(value(tr.s, tr.v)))
				return nil
			})
		}},
		"before, since an input failed": {false, func(tr *training) {
			tr.f.running = failOnce("the other device is out of order")
			x := floatsOn(tr.t, tr.s, fakeDevice(1), 1)
			bad := binaryOp(tr.s, aten.Add, x, x)
			here := newTensor()
			if err := tr.s.Copy(ctx, here, bad, fakeDevice(0)); err != nil {
				tr.t.Fatal(err)
			}
			tr.step(func() error {
				tr.v.Assign(binaryOp(tr.s, aten.Add, value(tr.s, tr.v), here))
				return nil
			})
		}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTraining(t)
			c.step(tr)
			if err := tr.s.WaitDeviceOps(ctx); err == nil {
				t.Error("nobody got the error")
			}
			_ = tr.s.WaitDeviceOps(ctx) // of the other device
			if _, err := value(tr.s, tr.v).Fetch(ctx); (err != nil) != c.began {
				t.Errorf("the variable gives %v", err)
			}
			tr.v.Assign(floatsOn(t, tr.s, fakeDevice(0), 3))
			tr.train()
			want(t, value(tr.s, tr.v), 6)
		})
	}
}

// In each of these the old value can still be reached when the step ends, so it
// must not be donated. The fake backend fails the test if donated data is read.
func TestDonationIsLegal(t *testing.T) {
	tests := map[string]func(tr *training){
		"a handle from outside": func(tr *training) {
			h := value(tr.s, tr.v)
			tr.train()
			want(tr.t, h, 2)
		},
		"a handle that is kept": func(tr *training) {
			var h *executor.Tensor
			tr.step(func() error {
				h = value(tr.s, tr.v)
				tr.s.Keep(h)
				tr.v.Assign(tr.double(h))
				return nil
			})
			want(tr.t, h, 2)
		},
		"a kept handle of a pending value": func(tr *training) {
			var h *executor.Tensor
			tr.step(func() error {
				tr.v.Assign(tr.double(value(tr.s, tr.v)))
				h = value(tr.s, tr.v)
				tr.s.Keep(h)
				return nil
			})
			tr.train()
			want(tr.t, h, 4)
		},
		"a kept value whose handle is taken again": func(tr *training) {
			var y, h *executor.Tensor
			tr.step(func() error {
				y = tr.double(value(tr.s, tr.v))
				tr.v.Assign(y)
				tr.s.Keep(y)
				h = value(tr.s, tr.v)
				return nil
			})
			if _, err := h.Fetch(ctx); !errors.Is(err, executor.ErrDead) {
				tr.t.Errorf("the handle of a pending value of a Step is alive: %v", err)
			}
			tr.train()
			want(tr.t, y, 4)
		},
		"two variables of one value": func(tr *training) {
			u := tr.variable(1)
			tr.step(func() error {
				y := tr.double(value(tr.s, tr.v))
				tr.v.Assign(y)
				u.Assign(y)
				return nil
			})
			tr.train()
			want(tr.t, value(tr.s, u), 4)
			want(tr.t, value(tr.s, tr.v), 8)
		},
		"one variable assigned to another": func(tr *training) {
			u := tr.variable(1)
			tr.step(func() error {
				u.Assign(value(tr.s, tr.v))
				return nil
			})
			tr.train()
			want(tr.t, value(tr.s, u), 2)
		},
		"a fork in the middle of its own Step": func(tr *training) {
			g := tr.s.Fork()
			var y *executor.Tensor
			err := g.Step(ctx, func() error {
				h := value(g, tr.v)
				tr.train()
				y = binaryOp(g, aten.Add, h, h)
				g.Keep(y)
				return nil
			})
			if err != nil {
				tr.t.Fatal(err)
			}
			want(tr.t, y, 4)
		},
		"a fork that uses a pending tensor of the Step": func(tr *training) {
			g := tr.s.Fork()
			var y *executor.Tensor
			tr.step(func() error {
				h := tr.double(value(tr.s, tr.v))
				y = binaryOp(g, aten.Add, h, h)
				tr.v.Assign(h)
				return nil
			})
			tr.train()
			want(tr.t, y, 8)
		},
		"a fork that assigns": func(tr *training) {
			g := tr.s.Fork()
			tr.step(func() error {
				h := value(tr.s, tr.v)
				err := g.Step(ctx, func() error {
					x := value(g, tr.v)
					tr.v.Assign(binaryOp(g, aten.Mul, x, x))
					return nil
				})
				tr.s.Keep(h)
				return err
			})
			want(tr.t, value(tr.s, tr.v), 4)
		},
		"a Step that failed": func(tr *training) {
			var y *executor.Tensor
			fail := errors.New("no")
			err := tr.s.Step(ctx, func() error {
				y = tr.double(value(tr.s, tr.v))
				return fail
			})
			if !errors.Is(err, fail) {
				tr.t.Errorf("Step returned %v", err)
			}
			tr.train()
			if _, err := y.Fetch(ctx); !errors.Is(err, executor.ErrDead) {
				tr.t.Errorf("a tensor of a Step that failed: %v", err)
			}
		},
		"a Step whose end failed": func(tr *training) {
			var y *executor.Tensor
			tr.f.compiling = failOnce("no compiler today")
			err := tr.s.Step(ctx, func() error {
				h := value(tr.s, tr.v)
				y = binaryOp(tr.s, aten.Mul, h, h)
				tr.v.Assign(y)
				return nil
			})
			if err == nil {
				tr.t.Error("the Step did not fail")
			}
			mark(tr.t, tr.s) // nothing is left of the Step
			tr.train()
			if _, err := y.Fetch(ctx); !errors.Is(err, executor.ErrDead) {
				tr.t.Errorf("a tensor of a Step that has ended: %v", err)
			}
			want(tr.t, value(tr.s, tr.v), 4)
		},
		"a sync in the middle": func(tr *training) {
			tr.step(func() error {
				y := tr.double(value(tr.s, tr.v))
				want(tr.t, y, 4)
				z := tr.double(y)
				tr.v.Assign(z)
				want(tr.t, z, 8)
				tr.v.Assign(tr.double(value(tr.s, tr.v)))
				return nil
			})
			want(tr.t, value(tr.s, tr.v), 16)
		},
		"a hook that holds tensors back": func(tr *training) {
			var back *executor.Tensor
			s := newSession(tr.t, executor.Config{Device: fakeDevice(0), Hooks: executor.Hooks{
				ShouldSyncTensor: func(t *executor.Tensor) bool { return t != back },
			}})
			hooked := &training{t: tr.t, f: tr.f, s: s}
			hooked.v = hooked.variable(1)
			hooked.step(func() error {
				h := value(s, hooked.v)
				back = binaryOp(s, aten.Mul, h, h)
				s.Keep(back)
				hooked.v.Assign(hooked.double(h))
				return nil
			})
			y := back
			back = nil
			want(tr.t, y, 4)
		},
	}
	for name, fn := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTraining(t)
			fn(tr)
			tr.wait()
		})
	}
}

// A number that is shared through the data cache stays what it is.
func TestSharedDataIsNeverDonated(t *testing.T) {
	tr := newTraining(t)
	number := func() *executor.Tensor {
		x := newTensor()
		tr.s.Scalar("scalar", x, 7.0, ir.F32)
		return x
	}
	v := tr.s.NewVariable(number())
	mark(t, tr.s)
	for range 3 {
		tr.step(func() error {
			v.Assign(tr.double(value(tr.s, v)))
			return nil
		})
	}
	y := binaryOp(tr.s, aten.Add, number(), number())
	want(t, y, 14)
	want(t, value(tr.s, v), 56)
	table := func() *executor.Tensor {
		x := newTensor()
		if err := tr.s.UploadCached(ctx, x, ir.MakeShape(ir.F32, 1), fakeDevice(0), []byte{0, 0, 0x80, 0x3f}); err != nil {
			t.Fatal(err)
		}
		return x
	}
	w := tr.s.NewVariable(table())
	for range 2 {
		tr.step(func() error {
			w.Assign(tr.double(value(tr.s, w)))
			return nil
		})
	}
	want(t, table(), 1)
	want(t, value(tr.s, w), 4)
}

// An error takes back every assignment of the Step, in whatever way it was made.
func TestFailedStepTakesAssignmentsBack(t *testing.T) {
	fail := errors.New("no")
	tests := map[string]func(tr *training){
		"pending": func(tr *training) { tr.v.Assign(tr.double(value(tr.s, tr.v))) },
		"twice": func(tr *training) {
			tr.v.Assign(tr.double(value(tr.s, tr.v)))
			tr.v.Assign(tr.double(value(tr.s, tr.v)))
		},
		"data": func(tr *training) { tr.v.Assign(floatsOn(tr.t, tr.s, fakeDevice(0), 9)) },
		"synced in the middle": func(tr *training) {
			y := tr.double(value(tr.s, tr.v))
			tr.v.Assign(y)
			want(tr.t, y, 4)
			want(tr.t, value(tr.s, tr.v), 4)
		},
	}
	for name, assign := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTraining(t)
			err := tr.s.Step(ctx, func() error {
				assign(tr)
				return fail
			})
			if !errors.Is(err, fail) {
				t.Fatalf("Step returned %v", err)
			}
			want(t, value(tr.s, tr.v), 2)
			mustPanicWith(t, "oops", func() {
				_ = tr.s.Step(ctx, func() error {
					assign(tr)
					panic("oops")
				})
			})
			want(t, value(tr.s, tr.v), 2)
			tr.train()
			want(t, value(tr.s, tr.v), 4)
		})
	}
}

func mustPanicWith(t *testing.T, v any, fn func()) {
	t.Helper()
	defer func() {
		if r := recover(); r != v {
			t.Errorf("panic %v, want %v", r, v)
		}
	}()
	fn()
}

func TestStepsDoNotNest(t *testing.T) {
	tr := newTraining(t)
	tr.step(func() error {
		if err := tr.s.Step(ctx, func() error { return nil }); !errors.Is(err, executor.ErrNestedStep) {
			t.Errorf("Step inside Step: %v", err)
		}
		if err := tr.s.MarkStep(ctx); !errors.Is(err, executor.ErrNestedStep) {
			t.Errorf("MarkStep inside Step: %v", err)
		}
		return nil
	})
}
