package loris

import (
	"errors"
	"slices"
	"testing"
)

// steps runs a step over and over, on inputs of its number, and returns the elements
// of its results.
func steps(t *testing.T, s *Session, n int, step func(x, y *Tensor) *Tensor) (all []float32) {
	t.Helper()
	m := s.With()
	for i := range n {
		r := step(m.FromSlice([]float32{float32(i), 2}), m.FromSlice([]float32{3, float32(i)}))
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := r.Float32s(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v...)
	}
	return all
}

// TestMemoized holds steps with a memoised region to the same without, and counts how often the
// region's function is called.
func TestMemoized(t *testing.T) {
	const n = 10
	type function = func(in ...*Tensor) []*Tensor
	other := func(s *Session) *Tensor { return s.With().FromSlice([]float32{5, 7}) }
	for name, c := range map[string]struct {
		fn   func(s *Session) function
		step func(record function, x, y *Tensor) *Tensor
		want int // calls
	}{
		"pointwise": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(in[1]).Exp()} }
			},
			func(record function, x, y *Tensor) *Tensor { return record(x, y)[0].Add(x) }, 2,
		},
		"twice in a step": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Sub(in[1]).Sin()} }
			},
			func(record function, x, y *Tensor) *Tensor { return record(record(x, y)[0], y)[0] }, 4,
		},
		"one input twice": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Sub(in[1]).Cos(), in[1]} }
			},
			func(record function, x, y *Tensor) *Tensor {
				r, q := record(x, x), record(x, y)
				return r[0].Add(q[0]).Mul(q[1])
			}, 4,
		},
		"numbers and shapes as they come": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor {
					v, at := in[0].Sort()
					return []*Tensor{v.Mul(in[0].Numel()), at.Cast(F32)}
				}
			},
			func(record function, x, y *Tensor) *Tensor {
				r := record(x.Mul(y))
				return r[0].Sub(r[1])
			}, n, // the number is a node of its own
		},
		"another tensor": {
			func(s *Session) function {
				z := other(s)
				return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(z)} }
			},
			func(record function, x, y *Tensor) *Tensor { return record(x)[0].Add(y) }, n,
		},
		"random numbers": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Dropout(0.5), in[0].RandLike()} }
			},
			func(record function, x, y *Tensor) *Tensor {
				r := record(x)
				return r[0].Add(r[1]).Add(y.RandLike())
			}, n,
		},
		"a gradient": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor {
					v := in[0].Mul(in[1]).Tanh()
					return []*Tensor{v, Grad(v, in[0])[0]}
				}
			},
			func(record function, x, y *Tensor) *Tensor {
				r := record(x, y)
				return Grad(r[0].Mul(r[1]), y)[0]
			}, 2,
		},
		"by turns": {
			func(*Session) function {
				return func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Exp().Mul(in[0])} }
			},
			func() func(record function, x, y *Tensor) *Tensor {
				i := 0
				return func(record function, x, y *Tensor) *Tensor {
					if i++; i%2 == 0 {
						return record(x.Unsqueeze(0))[0].Sum(Dim(0))
					}
					return record(x.Mul(y))[0]
				}
			}(), 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain, memoized := newSession(t, WithSeed(3)), newSession(t, WithSeed(3))
			fn := c.fn(plain)
			want := steps(t, plain, n, func(x, y *Tensor) *Tensor { return c.step(fn, x, y) })
			called := 0
			fn = c.fn(memoized)
			b := Memoize(func(in ...*Tensor) []*Tensor {
				called++
				return fn(in...)
			})
			got := steps(t, memoized, n, func(x, y *Tensor) *Tensor { return c.step(b.Record, x, y) })
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			if called != c.want {
				t.Errorf("%d calls in %d steps, want %d", called, n, c.want)
			}
			if p, q := plain.Report().Compiles, memoized.Report().Compiles; p != q {
				t.Errorf("%d graphs were compiled, %d without memoising", q, p)
			}
		})
	}
}

// TestMemoizedInside records a memoised region inside another, inside a compiled function, and
// inside a Step, whose end its results do not survive.
func TestMemoizedInside(t *testing.T) {
	s := newSession(t)
	inner := Memoize(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Add(in[0])} })
	outer := Memoize(func(in ...*Tensor) []*Tensor { return inner.Record(inner.Record(in[0])[0]) })
	f := Compile(func(in ...*Tensor) []*Tensor { return outer.Record(in[0]) })
	v := NewVariable(s.With().FromSlice([]float32{1}))
	for i := range 4 {
		x := s.With().FromSlice([]float32{float32(i)})
		out, err := f.Call(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		wantFloats(t, out[0], float32(4*i))
		var dead *Tensor
		if err := s.Step(t.Context(), func() error {
			dead = outer.Record(v.Value())[0]
			v.Assign(dead)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := dead.Float32s(t.Context()); !errors.Is(err, ErrDead) {
			t.Errorf("a result of a Step gives %v", err)
		}
	}
	wantFloats(t, v.Value(), 256)
}

// TestMemoizedMistakes leaves the session usable.
func TestMemoizedMistakes(t *testing.T) {
	s := newSession(t)
	x, y := s.With().Ones(2), s.With().Ones(3)
	product := Memoize(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].MatMul(in[1])} })
	nothing := Memoize(func(in ...*Tensor) []*Tensor { return []*Tensor{nil} })
	for range 3 {
		for name, c := range map[string]struct {
			fn   func() []*Tensor
			want error
		}{
			"shapes":            {func() []*Tensor { return product.Record(x, y) }, ErrShape},
			"nil":               {func() []*Tensor { return product.Record(x, nil) }, ErrArg},
			"a nil result":      {func() []*Tensor { return nothing.Record(x) }, ErrArg},
			"unrelated session": {func() []*Tensor { return product.Record(x, newSession(t).With().Ones(2)) }, ErrSession},
		} {
			if _, err := TryValue(c.fn); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
	wantFloats(t, product.Record(x, x)[0], 2)
}

// TestUpdate checks that Update is Record between ValueIn and Assign.
func TestUpdate(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := s.With()
	a, b := NewVariable(m.FromSlice([]float32{1, 2})), NewVariable(m.FromSlice([]float32{3, 4}))
	calls := 0
	swap := Memoize(func(in ...*Tensor) []*Tensor {
		calls++
		return []*Tensor{in[1].Mul(in[2]), in[0].Mul(in[2])}
	})
	want := [2][]float32{{1, 2}, {3, 4}}
	for step := range 6 {
		if err := s.Step(ctx, func() error {
			swap.Update([]*Variable{a, b}, m.Scalar(float32(step+1)))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want[0], want[1] = want[1], want[0]
		for _, w := range want {
			w[0], w[1] = w[0]*float32(step+1), w[1]*float32(step+1)
		}
		wantFloats(t, a.Value(), want[0]...)
		wantFloats(t, b.Value(), want[1]...)
	}
	if calls > 3 {
		t.Errorf("the function was called %d times for 6 equal updates", calls)
	}
	twice := Memoize(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Add(1), in[1].Add(2)} })
	twice.Update([]*Variable{a, a})
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	wantFloats(t, a.Value(), want[0][0]+2, want[0][1]+2) // both see the value before
	for name, fn := range map[string]func(){
		"no variables":    func() { swap.Update(nil) },
		"a nil variable":  func() { swap.Update([]*Variable{nil}) },
		"too few results": func() { Memoize(func(in ...*Tensor) []*Tensor { return nil }).Update([]*Variable{a}) },
		"a nil input":     func() { swap.Update([]*Variable{a, b}, nil) },
		"another's shape": func() {
			Memoize(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Sum()} }).Update([]*Variable{a})
		},
		"of a closed fork": func() { closedUpdate(t, swap) },
	} {
		if err := Try(fn); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// closedUpdate updates variables of a session that is closed.
func closedUpdate(t *testing.T, m *Memoized) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	v := NewVariable(s.With().Ones(2))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Update([]*Variable{v, v})
}
