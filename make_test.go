package loris

import (
	"reflect"
	"testing"
)

// Functions of the package make in the default session what a Maker makes there.
func TestPackageLevelMakers(t *testing.T) {
	ctx := t.Context()
	m := With()
	for _, c := range []struct {
		name      string
		own, made func() *Tensor
	}{
		{"Zeros", func() *Tensor { return Zeros(2, 3) }, func() *Tensor { return m.Zeros(2, 3) }},
		{"Ones", func() *Tensor { return Ones(2, 3) }, func() *Tensor { return m.Ones(2, 3) }},
		{"Full", func() *Tensor { return Full(2.5, 3) }, func() *Tensor { return m.Full(2.5, 3) }},
		{"Arange", func() *Tensor { return Arange(1, 9, 3) }, func() *Tensor { return m.Arange(1, 9, 3) }},
		{"Linspace", func() *Tensor { return Linspace(0, 1, 5) }, func() *Tensor { return m.Linspace(0, 1, 5) }},
		{"Eye", func() *Tensor { return Eye(3) }, func() *Tensor { return m.Eye(3) }},
		{"Scalar", func() *Tensor { return Scalar(true) }, func() *Tensor { return m.Scalar(true) }},
		{"FromSlice", func() *Tensor { return FromSlice([]int8{1, 2}, 2, 1) }, func() *Tensor { return m.FromSlice([]int8{1, 2}, 2, 1) }},
		{"FromBytes", func() *Tensor { return FromBytes([]byte{1, 2}, MakeShape(U8, 2)) },
			func() *Tensor { return m.FromBytes([]byte{1, 2}, MakeShape(U8, 2)) }},
		{"Rand", func() *Tensor { return Rand(5) }, func() *Tensor { return m.Rand(5) }},
		{"Randn", func() *Tensor { return Randn(5) }, func() *Tensor { return m.Randn(5) }},
		{"Uniform", func() *Tensor { return Uniform(2, 3, 5) }, func() *Tensor { return m.Uniform(2, 3, 5) }},
		{"Normal", func() *Tensor { return Normal(2, 3, 5) }, func() *Tensor { return m.Normal(2, 3, 5) }},
		{"RandInt", func() *Tensor { return RandInt(-4, 9, 5) }, func() *Tensor { return m.RandInt(-4, 9, 5) }},
		{"RandPerm", func() *Tensor { return RandPerm(5) }, func() *Tensor { return m.RandPerm(5) }},
		{"Bernoulli", func() *Tensor { return Bernoulli(0.5, 9) }, func() *Tensor { return m.Bernoulli(0.5, 9) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := func(fn func() *Tensor) (Shape, []byte) {
				Default().SetSeed(11) // for those that draw
				x := fn()
				if x.Session() != Default() {
					t.Error("not in the default session")
				}
				all, err := Fetch(ctx, x)
				if err != nil {
					t.Fatal(err)
				}
				return x.Shape(), all[0]
			}
			s, got := values(c.own)
			if shape, want := values(c.made); s != shape || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v %x, the maker makes %v %x", s, got, shape, want)
			}
		})
	}
}

// Random numbers lie where they must, with about the moments they should have.
func TestDistributions(t *testing.T) {
	const n = 4096
	m := newSession(t, WithSeed(3)).With()
	zeros := m.Zeros(n)
	for _, c := range []struct {
		name         string
		x            *Tensor
		low, high    float64
		mean, spread float64
	}{
		{"rand", m.Rand(n), 0, 1, 0.5, 0.2887},
		{"randn", m.Randn(n), -8, 8, 0, 1},
		{"uniform", m.Uniform(2, 4, n), 2, 4, 3, 0.5774},
		{"normal", m.Normal(2, 3, n), -22, 26, 2, 3},
		{"randint", m.RandInt(-2, 3, n).Cast(F32), -2, 2, 0, 1.4142},
		{"bernoulli", m.Bernoulli(0.25, n), 0, 1, 0.25, 0.433},
		{"rand like", zeros.RandLike(), 0, 1, 0.5, 0.2887},
		{"randn like", zeros.RandnLike(), -8, 8, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sum, squares float64
			for _, f := range floats(t, c.x) {
				v := float64(f)
				if v < c.low || v > c.high {
					t.Errorf("%v is not from %v to %v", v, c.low, c.high)
				}
				sum += v
				squares += (v - c.mean) * (v - c.mean)
			}
			// Five standard errors.
			if mean := sum / n; mean < c.mean-5*c.spread/64 || mean > c.mean+5*c.spread/64 {
				t.Errorf("the mean is %v, want about %v", mean, c.mean)
			}
			if v := squares / n / (c.spread * c.spread); v < 0.8 || v > 1.2 {
				t.Errorf("the variance is %v of what it should be", v)
			}
		})
	}
}
