package loris

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/loris-ml/loris/internal/memlimit"
)

// released are the ways to have x + 1, whose elements are computed or being computed.
var released = map[string]func(ctx context.Context, s *Session, x *Tensor) (*Tensor, error){
	"recorded": func(ctx context.Context, s *Session, x *Tensor) (*Tensor, error) {
		y := x.Add(1)
		return y, s.MarkStep(ctx)
	},
	"synced": func(ctx context.Context, s *Session, x *Tensor) (*Tensor, error) {
		y := x.Add(1)
		return y, y.Sync(ctx)
	},
	"called": func(ctx context.Context, s *Session, x *Tensor) (*Tensor, error) {
		out, err := Compile(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Add(1)} }).Call(ctx, x)
		if err != nil {
			return nil, err
		}
		return out[0], nil
	},
	"kept": func(ctx context.Context, s *Session, x *Tensor) (y *Tensor, err error) {
		return y, s.Step(ctx, func() error {
			y = x.Add(1).Keep()
			return nil
		})
	},
}

// What else may look at the elements of a released tensor finds them unchanged, whatever is computed next.
func TestReleasedElementsStayForOthers(t *testing.T) {
	const n = 1 << 12
	for way, make := range released {
		for use, f := range map[string]func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error){
			"recorded before": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				z := y.Mul(1)
				return func() (*Tensor, error) { return z, nil }
			},
			"discarded before": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				z := y.Mul(1).Keep().Discard()
				return func() (*Tensor, error) { return z, nil }
			},
			"assigned": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				v := NewVariable(s.With().Zeros(n))
				v.Assign(y)
				return func() (*Tensor, error) { return v.Value(), s.MarkStep(ctx) }
			},
			"initial value": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				v := NewVariable(y)
				return func() (*Tensor, error) { return v.Value(), nil }
			},
			"in a fork": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				other := s.Fork()
				z := other.With().Zeros(n).Add(y)
				return func() (*Tensor, error) { return z, other.MarkStep(ctx) }
			},
			"input of a call": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				out, err := Compile(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(1)} }).Call(ctx, y)
				return func() (*Tensor, error) {
					if err != nil {
						return nil, err
					}
					return out[0], nil
				}
			},
			"copied": func(ctx context.Context, s *Session, y *Tensor) func() (*Tensor, error) {
				z, err := y.To(ctx, Ref)
				return func() (*Tensor, error) { return z, err }
			},
		} {
			t.Run(way+"/"+use, func(t *testing.T) {
				s, ctx := newSession(t), context.Background()
				y, err := make(ctx, s, s.With().Full(6.0, n))
				if err != nil {
					t.Fatal(err)
				}
				then := f(ctx, s, y)
				y.Release()
				for range 4 { // takes memory that was given back
					if err := s.With().Full(-1.0, n).Add(0.5).Wait(ctx); err != nil {
						t.Fatal(err)
					}
				}
				z, err := then()
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range floats(t, z) {
					if v != 7 {
						t.Fatalf("element %d is %v", i, v)
					}
				}
			})
		}
	}
}

// A loop that releases its results computes all of them in the same memory.
func TestReleasedMemoryIsUsedAgain(t *testing.T) {
	const n = 1 << 16
	for way, make := range released {
		t.Run(way, func(t *testing.T) {
			s, ctx := newSession(t), context.Background()
			x := s.With().Full(6.0, n)
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // nothing is found dropped
			var before int64
			for i := range 20 {
				if i == 4 {
					before = memlimit.Held()
				}
				y, err := make(ctx, s, x)
				if err != nil {
					t.Fatal(err)
				}
				if i%2 == 0 {
					err = y.Wait(ctx)
				} else {
					_, err = y.Float32s(ctx)
				}
				if err != nil {
					t.Fatal(err)
				}
				y.Release()
				if _, err := y.Float32s(ctx); !errors.Is(err, ErrReleased) {
					t.Fatal(err)
				}
			}
			if more := memlimit.Held() - before; more > 4*n {
				t.Errorf("%d bytes more are held after 16 results of %d", more, 4*n)
			}
		})
	}
}

// Pending tensors that variables wait for stay, and who reads a tensor meanwhile reads on.
func TestReleaseBeforeTheElementsAreNeeded(t *testing.T) {
	s, ctx := newSession(t), context.Background()
	x := s.With().Full(6.0, 4)
	initial, assigned := x.Add(1), x.Add(2)
	v, w := NewVariable(initial), NewVariable(s.With().Zeros(4))
	w.Assign(assigned)
	initial.Release()
	assigned.Release()
	unused := x.Add(3)
	unused.Release()
	before := v.Value().Add(w.Value()) // the variables are usable
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	wantFloats(t, before, 15, 15, 15, 15)
	wantFloats(t, v.Value(), 7, 7, 7, 7)
	wantFloats(t, w.Value(), 8, 8, 8, 8)
	if _, err := unused.Float32s(ctx); !errors.Is(err, ErrReleased) {
		t.Error(err)
	}
	y := x.Add(1)
	err := y.ex().Read(ctx, func(b []byte) error {
		before := slices.Clone(b)
		y.Release()
		for range 4 {
			if err := s.With().Full(-1.0, 4).Add(0.5).Wait(ctx); err != nil {
				return err
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the elements changed")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := y.Wait(ctx); !errors.Is(err, ErrReleased) {
		t.Error(err)
	}
	defer func() {
		if e, ok := recover().(*OpError); !ok || !errors.Is(e, ErrReleased) {
			t.Error(e)
		}
	}()
	y.Add(1)
}

// Readers that come before the release see the tensor's elements, and later ones its error.
func TestReleaseBesideReaders(t *testing.T) {
	s, ctx := newSession(t), context.Background()
	x := s.With().Full(6.0, 1<<14)
	for range 50 {
		y := x.Add(1)
		if err := y.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				got, err := y.Float32s(ctx)
				if errors.Is(err, ErrReleased) {
					return
				}
				if err != nil {
					t.Error(err)
				}
				for i, v := range got {
					if v != 7 {
						t.Errorf("element %d is %v", i, v)
						return
					}
				}
			})
		}
		y.Release()
		if err := s.With().Full(-1.0, 1<<14).Add(0.5).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		group.Wait()
	}
}
