package loris

import (
	"errors"
	"testing"
)

// TestNodesOutliveTheirStep uses, after further steps of as many ops, what was recorded in or beside a Step:
// the memory of its nodes is that of further steps only where nothing can use them.
func TestNodesOutliveTheirStep(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name string
		// before is called before the Step, inside in it, and the result is read after further steps.
		before, inside func(s *Session, x *Tensor) *Tensor
		want           float32
	}{
		{name: "kept", inside: func(_ *Session, x *Tensor) *Tensor { return x.Mul(3).Keep() }, want: 6},
		{name: "kept and consumed", inside: func(_ *Session, x *Tensor) *Tensor {
			y := x.Mul(3).Keep()
			_ = y.Add(1)
			return y
		}, want: 6},
		{name: "recorded before", before: func(_ *Session, x *Tensor) *Tensor { return x.Mul(5) }, want: 10},
		{name: "recorded before and consumed", before: func(_ *Session, x *Tensor) *Tensor {
			y := x.Mul(5)
			_ = y.Add(1)
			return y
		}, want: 10},
		{name: "recorded before and discarded", before: func(_ *Session, x *Tensor) *Tensor { return x.Mul(5).Discard() }, want: 10},
		{name: "of a fork", inside: func(s *Session, x *Tensor) *Tensor { return s.Fork().With().Ones(2).Add(x.Mul(3)) }, want: 7},
		{name: "a variable of the Step", inside: func(_ *Session, x *Tensor) *Tensor {
			v := NewVariable(x.Mul(3))
			return v.Value().Keep()
		}, want: 6},
		{name: "a loop", inside: func(s *Session, x *Tensor) *Tensor {
			last, _ := Scan(func(carry, _ []*Tensor) ([]*Tensor, []*Tensor) {
				return []*Tensor{carry[0].Add(1)}, nil
			}, []*Tensor{x}, nil, ScanLength(4))
			return last[0].Keep()
		}, want: 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			m := s.With()
			x := m.FromSlice([]float32{2, 2})
			w := NewVariable(m.Zeros(2))
			total := float32(0)
			step := func(by float32, more func()) {
				t.Helper()
				err := s.Step(ctx, func() error {
					y := m.Ones(2)
					for range 5 {
						y = y.Mul(1)
					}
					w.Assign(w.Value().Add(y.Mul(by)))
					more()
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				total += by
			}
			for range 3 {
				step(1, func() {})
			}
			var y *Tensor
			if c.before != nil {
				y = c.before(s, x)
			}
			step(2, func() {
				if c.inside != nil {
					y = c.inside(s, x)
				}
			})
			for range 3 {
				step(4, func() {})
			}
			wantFloats(t, y, c.want, c.want)
			wantFloats(t, w.Value(), total, total)
		})
	}
}

// TestDeadTensorOfARecycledStep uses a dead tensor, whose node's memory a later step has, in all ways.
func TestDeadTensorOfARecycledStep(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	w := NewVariable(m.Ones(2))
	var dead []*Tensor
	for range 4 {
		if err := s.Step(ctx, func() error {
			v := w.Value()
			w.Assign(v.Add(1))
			dead = append(dead, v, v.Mul(3), w.Value(), w.Value().Neg())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, y := range dead {
		if _, err := y.Float32s(ctx); !errors.Is(err, ErrDead) {
			t.Errorf("tensor %d: reading it is error %v", i, err)
		}
		if err := Try(func() { y.Add(1) }); !errors.Is(err, ErrDead) {
			t.Errorf("tensor %d: an op on it is error %v", i, err)
		}
	}
	wantFloats(t, w.Value(), 5, 5)
}

// TestReadBesideSteps reads tensors of a Step on another goroutine while it ends.
func TestReadBesideSteps(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	w := NewVariable(m.Ones(8))
	out := make(chan *Tensor, 64)
	done := make(chan error)
	go func() {
		var err error
		for y := range out {
			v, e := y.Float32s(ctx)
			switch {
			case e == nil:
				for _, x := range v {
					if x != 3*v[0]/3 || x < 3 {
						err = errors.New("a value of another step")
					}
				}
			case !errors.Is(e, ErrDead):
				err = e
			}
		}
		done <- err
	}()
	for range 200 {
		if err := s.Step(ctx, func() error {
			v := w.Value()
			w.Assign(v.Add(1))
			out <- v.Mul(3)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	close(out)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
