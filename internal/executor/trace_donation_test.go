package executor_test

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
)

// doubled returns a compiled function that doubles the variable and returns its
// input.
func (tr *training) doubled() func() *executor.Tensor {
	tr.t.Helper()
	x := floatsOn(tr.t, tr.s, fakeDevice(0), 7)
	f, err := tr.s.Trace(ctx, []*executor.Tensor{x}, newTensor, func(in []*executor.Tensor) ([]*executor.Tensor, error) {
		tr.v.Assign(tr.double(value(tr.s, tr.v)))
		return []*executor.Tensor{tr.double(in[0])}, nil
	}, false)
	if err != nil {
		tr.t.Fatal(err)
	}
	return func() *executor.Tensor {
		tr.t.Helper()
		out, err := f.Call(ctx, []*executor.Tensor{x}, newTensor)
		if err != nil {
			tr.t.Fatal(err)
		}
		return out[0]
	}
}

func TestCompiledFunctionsDonateTheOldValue(t *testing.T) {
	tr := newTraining(t)
	call := tr.doubled()
	tr.wait()
	for range 3 {
		want(t, call(), 14)
	}
	if got := tr.wait(); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("donations %v, want one in each call", got)
	}
	want(t, value(tr.s, tr.v), 16)
	call()
	if got := tr.wait(); !slices.Equal(got, []int{0}) {
		t.Errorf("donations %v after the value was read, want none", got)
	}
	call()
	tr.train() // steps and calls take turns
	call()
	if got := tr.wait(); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("donations %v, want one in each call and step", got)
	}
	want(t, value(tr.s, tr.v), 256)
	if n := tr.f.compiles.Load(); n != 2 {
		t.Errorf("%d compilations, want that of the step and that of the function", n)
	}
}

// In each of these the old value can still be reached after the call.
func TestDonationInCallsIsLegal(t *testing.T) {
	tests := map[string]func(tr *training, call func() *executor.Tensor){
		"a handle from outside": func(tr *training, call func() *executor.Tensor) {
			h := value(tr.s, tr.v)
			call()
			want(tr.t, h, 2)
		},
		"a Step that has read it": func(tr *training, call func() *executor.Tensor) {
			var y *executor.Tensor
			tr.step(func() error {
				h := value(tr.s, tr.v)
				call()
				y = tr.double(h)
				tr.s.Keep(y)
				return nil
			})
			want(tr.t, y, 4)
		},
		"a Step of a fork that has read it": func(tr *training, call func() *executor.Tensor) {
			g := tr.s.Fork()
			var y *executor.Tensor
			err := g.Step(ctx, func() error {
				h := value(g, tr.v)
				call()
				y = binaryOp(g, aten.Add, h, h)
				g.Keep(y)
				return nil
			})
			if err != nil {
				tr.t.Fatal(err)
			}
			want(tr.t, y, 4)
		},
		"another variable that has it": func(tr *training, call func() *executor.Tensor) {
			u := tr.variable(1)
			tr.step(func() error {
				u.Assign(value(tr.s, tr.v))
				return nil
			})
			call()
			want(tr.t, value(tr.s, u), 2)
		},
		"another function that has it as a constant": func(tr *training, call func() *executor.Tensor) {
			h := value(tr.s, tr.v)
			f, err := tr.s.Trace(ctx, nil, newTensor, func([]*executor.Tensor) ([]*executor.Tensor, error) {
				return []*executor.Tensor{tr.double(h)}, nil
			}, false)
			if err != nil {
				tr.t.Fatal(err)
			}
			call()
			out, err := f.Call(ctx, nil, newTensor)
			if err != nil {
				tr.t.Fatal(err)
			}
			want(tr.t, out[0], 4)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tr := newTraining(t)
			call := tr.doubled()
			test(tr, call)
			want(t, value(tr.s, tr.v), 4)
		})
	}
}

// A variable that a failed call may have overwritten has the error until it is
// assigned again, one that it cannot have keeps its value.
func TestFailureOfACallThatDonates(t *testing.T) {
	for name, reached := range map[string]bool{"nothing has the old value": false, "a handle has the old value": true} {
		t.Run(name, func(t *testing.T) {
			tr := newTraining(t)
			call := tr.doubled()
			tr.wait()
			if reached {
				value(tr.s, tr.v)
			}
			tr.f.running = failOnce("out of order")
			call()
			if err := tr.s.WaitDeviceOps(ctx); err == nil {
				t.Error("nobody got the error")
			}
			if _, err := value(tr.s, tr.v).Fetch(ctx); (err == nil) != reached {
				t.Errorf("the variable gives %v", err)
			}
			tr.v.Assign(floatsOn(t, tr.s, fakeDevice(0), 3))
			call()
			want(t, value(tr.s, tr.v), 6)
		})
	}
}
