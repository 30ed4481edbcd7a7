package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// ulps returns the distance of got from want in units of float32's last place.
func ulps(got float32, want float64) float64 {
	switch {
	case math.IsNaN(want):
		if got != got {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(want, 0) || math.Abs(want) > math.MaxFloat32:
		if float64(got) == want || math.IsInf(float64(got), 0) && math.Signbit(want) == math.Signbit(float64(got)) {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

var functions = []struct {
	name  string
	apply func(x []float32)
	want  func(x float64) float64
	ulps  float64
	// Results below the smallest normal number may be 0.
	flush bool
	// Below least results are small and may be off by a unit of the operand.
	least float64
}{
	{"sigmoid", apply(Sigmoid), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 1.5, true, lowest},
	{"tanh", apply(Tanh), math.Tanh, 1.6, false, lowest},
	{"silu", apply(SiLU), func(x float64) float64 {
		if math.IsInf(x, -1) {
			return math.NaN()
		}
		return x / (1 + math.Exp(-x))
	}, 2, true, lowest},
	{"gelu", apply(GELU), func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }, 2.5, false, -1},
	{"gelu by tanh", apply(GELUTanh), func(x float64) float64 {
		return x / (1 + math.Exp(-2*math.Sqrt2/math.SqrtPi*(x+0.044715*x*x*x)))
	}, 2.5, true, -1},
	{"hardswish", apply(HardSwish), func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }, 4, true, 0},
}

var lowest = math.Inf(-1)

func apply(k Kind) func([]float32) {
	return func(x []float32) { Apply(Activation{Kind: k}, x) }
}

func TestFunctions(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-8, -1e-8, 1e-30, 88.7, -87.4, -103, 0.3465, -0.3466, 9.2, -9.2, float32(math.NaN())}
	special := len(x)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		x = append(x, float32(rng.NormFloat64()*10), float32(rng.NormFloat64()/10))
	}
	eachLevel(t, func(t *testing.T) {
		for _, f := range functions {
			y := append([]float32(nil), x...)
			f.apply(y)
			for i, v := range x {
				want := f.want(float64(v))
				if f.flush && math.Abs(want) < 0x1p-125 && y[i] >= -0x1p-125 && y[i] <= 0x1p-125 {
					continue
				}
				if float64(v) < f.least && math.Abs(float64(y[i])-want) <= math.Abs(float64(v))*0x1p-24 {
					continue
				}
				if e := ulps(y[i], want); e > f.ulps {
					t.Fatalf("%s(%v) = %v, want %v: %.2f ulp", f.name, v, y[i], want, e)
				}
			}
			// Results do not depend on where an element is.
			for n := range special {
				z := append([]float32(nil), x[n:special]...)
				f.apply(z)
				for i := range z {
					if math.Float32bits(z[i]) != math.Float32bits(y[n+i]) {
						t.Fatalf("%s(%v) is %v or %v, depending on the place", f.name, x[n+i], z[i], y[n+i])
					}
				}
			}
		}
	})
}

func TestInfinities(t *testing.T) {
	inf := float32(math.Inf(1))
	eachLevel(t, func(t *testing.T) {
		for _, f := range []struct {
			k        Kind
			low, top float32
		}{{Sigmoid, 0, 1}, {Tanh, -1, 1}} {
			x := []float32{-inf, inf}
			Apply(Activation{Kind: f.k}, x)
			if x[0] != f.low || x[1] != f.top {
				t.Errorf("function %d of the infinities is %v", f.k, x)
			}
		}
	})
}

func TestClamps(t *testing.T) {
	for _, c := range []struct {
		a    Activation
		want []float64
	}{
		{Activation{}, []float64{-4, -1, 0, 0.5, 7}},
		{Activation{Kind: ReLU}, []float64{0, 0, 0, 0.5, 7}},
		{Activation{Kind: LeakyReLU, Alpha: 0.5}, []float64{-2, -0.5, 0, 0.5, 7}},
		{Activation{Kind: HardTanh, Alpha: -1, Beta: 6}, []float64{-1, -1, 0, 0.5, 6}},
		{Activation{Kind: HardSigmoid}, []float64{0, 2.0 / 6, 0.5, 3.5 / 6, 1}},
	} {
		x := []float64{-4, -1, 0, 0.5, 7}
		lo, hi, clamp := c.a.Clamp()
		for i, v := range x {
			if clamp && min(max(v, lo), hi) != c.want[i] {
				t.Errorf("%+v: %v is outside %v to %v", c.a, v, lo, hi)
			}
		}
		Apply(c.a, x)
		for i, v := range x {
			if v != c.want[i] {
				t.Errorf("%+v: element %d is %v, want %v", c.a, i, v, c.want[i])
			}
		}
	}
}

func TestHalf(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	var f []float32
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range all {
		f = append(f, half.BF16ToF32(all[i]), half.F16ToF32(all[i]), math.Float32frombits(rng.Uint32()))
	}
	f = f[:len(f)-3] // no multiple of the lanes
	eachLevel(t, func(t *testing.T) {
		b, h := make([]BF16, len(all)), make([]F16, len(all))
		for i, v := range all {
			b[i], h[i] = BF16(v), F16(v)
		}
		got := make([]float32, len(all)-1)
		Load(got, b[1:])
		for i, v := range got {
			if want := half.BF16ToF32(all[i+1]); math.Float32bits(v) != math.Float32bits(want) {
				t.Fatalf("bfloat16 %#x is %v, want %v", all[i+1], v, want)
			}
		}
		Load(got, h[1:])
		for i, v := range got {
			if want := half.F16ToF32(all[i+1]); math.Float32bits(v) != math.Float32bits(want) {
				t.Fatalf("binary16 %#x is %v, want %v", all[i+1], v, want)
			}
		}
		b, h = make([]BF16, len(f)), make([]F16, len(f))
		Store(b, f)
		Store(h, f)
		for i, v := range f {
			if want := half.F32ToBF16(v); uint16(b[i]) != want {
				t.Fatalf("%v becomes bfloat16 %#x, want %#x", v, b[i], want)
			}
			if want := half.F32ToF16(v); uint16(h[i]) != want {
				t.Fatalf("%v becomes binary16 %#x, want %#x", v, h[i], want)
			}
		}
	})
}

func TestLSTM(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, units := range []int{4, 8, 16} {
		const rows = 3
		n, step := rows*units, units+5
		gates, c := make([]float64, 4*n), make([]float64, n)
		for i := range gates {
			gates[i] = rng.NormFloat64() * 3
		}
		for i := range c {
			c[i] = rng.NormFloat64()
		}
		g32, c32, h32 := make([]float32, 4*n), make([]float32, n), make([]float32, n+2*5)
		h := make([]float64, len(h32))
		convert(g32, gates)
		convert(c32, c)
		LSTM(gates, h, c, units, step)
		start := append([]float32(nil), c32...)
		eachLevel(t, func(t *testing.T) {
			copy(c32, start)
			LSTM(g32, h32, c32, units, step)
			near(t, h32, h, 1e-6)
			near(t, c32, c, 2e-6)
		})
	}
}

func TestGRU(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for _, units := range []int{4, 8, 16} {
		const rows = 3
		fromStep, step := units+2, units+5
		gates, from := make([]float64, 4*rows*units), make([]float64, 2*fromStep+units)
		for i := range gates {
			gates[i] = rng.NormFloat64() * 3
		}
		for i := range from {
			from[i] = rng.NormFloat64()
		}
		h := make([]float64, 2*step+units)
		g32, from32, h32 := make([]float32, len(gates)), make([]float32, len(from)), make([]float32, len(h))
		convert(g32, gates)
		convert(from32, from)
		start := append([]float32(nil), g32...)
		GRU(gates, from, h, units, rows, fromStep, step)
		eachLevel(t, func(t *testing.T) {
			copy(g32, start)
			clear(h32)
			GRU(g32, from32, h32, units, rows, fromStep, step)
			near(t, h32, h, 2e-6)
		})
	}
}

// near fails where elements differ by more than eps.
func near(t *testing.T, got []float32, want []float64, eps float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= eps) {
			t.Fatalf("element %d is %v, want %v", i, got[i], w)
		}
	}
}

func TestScale(t *testing.T) {
	for _, n := range []int{0, 1, 8, 16, 37, 64} {
		src := make([]float32, n)
		for i := range src {
			src[i] = float32(i) - 3
		}
		eachLevel(t, func(t *testing.T) {
			dst := make([]float32, n+1)
			Scale(dst, src, 0.5)
			for i := range src {
				if dst[i] != src[i]*0.5 {
					t.Errorf("%d elements: element %d is %v", n, i, dst[i])
				}
			}
			if dst[n] != 0 {
				t.Errorf("%d elements: one beyond was written", n)
			}
		})
	}
}

func TestGreater(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	best := []float32{1, 1, 1, nan, inf, inf, 2, nan}
	at := []int32{5, 5, 5, 5, -1, -1, 5, 5}
	x := []float32{1, 2, nan, 7, inf, 3, 1, nan}
	wantBest := []float32{1, 2, nan, nan, inf, 3, 2, nan}
	wantAt := []int32{5, 9, 9, 5, 9, 9, 5, 9}
	for range 2 { // more than one vector, and a rest
		best, at, x = append(best, best...), append(at, at...), append(x, x...)
		wantBest, wantAt = append(wantBest, wantBest...), append(wantAt, wantAt...)
	}
	eachLevel(t, func(t *testing.T) {
		n := len(x) - 1
		b, a := append([]float32(nil), best...), append([]int32(nil), at...)
		Greater(b[:n], a[:n], x[:n], 9)
		for i := range n {
			if a[i] != wantAt[i] || b[i] != wantBest[i] && b[i] == b[i] {
				t.Errorf("element %d is %v at %d, want %v at %d", i, b[i], a[i], wantBest[i], wantAt[i])
			}
		}
		if a[n] != at[n] {
			t.Error("an element beyond was changed")
		}
	})
}

// searched are rows of more than one vector and a rest, with all kinds of special values.
func searched() (best []float32, at []int32, x []float32) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1, 2}
	for i := range 16*7 - 5 {
		best = append(best, special[i%7])
		at = append(at, int32(i%3)-1)
		x = append(x, special[(i*i+i/7)%7])
	}
	return best, at, x
}

func TestGreaterAlong(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{0, 7, 8, 31, 100} {
			best, at, x := searched()
			b, a := append([]float32(nil), best...), append([]int32(nil), at...)
			GreaterAlong(b[:n], a[:n], x[:n], -7, 3)
			for i := range n {
				if x[i] > best[i] || x[i] != x[i] || at[i] < 0 {
					best[i], at[i] = x[i], int32(3*i-7)
				}
			}
			for i := range best {
				if a[i] != at[i] || math.Float32bits(b[i]) != math.Float32bits(best[i]) {
					t.Errorf("%d elements: element %d is %v at %d, want %v at %d", n, i, b[i], a[i], best[i], at[i])
				}
			}
		}
	})
}

func TestMost(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{0, 7, 8, 31, 100} {
			best, _, x := searched()
			b := append([]float32(nil), best...)
			Most(b[:n], x[:n])
			for i := range best {
				if i < n && (x[i] > best[i] || x[i] != x[i]) {
					best[i] = x[i]
				}
				if math.Float32bits(b[i]) != math.Float32bits(best[i]) {
					t.Errorf("%d elements: element %d is %v, want %v", n, i, b[i], best[i])
				}
			}
		}
	})
}

// TestGreatestOf has greatest elements of every type looked for in rows that vectors do not divide, which
// lie at the ends of their memory.
func TestGreatestOf(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	checkGreatest(t, []float64{nan, inf, -inf, 0, math.Copysign(0, -1), 1, 2})
	checkGreatest(t, []float32{float32(nan), float32(inf), 0, 1, 2})
	checkGreatest(t, []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 32, -1 << 32})
	checkGreatest(t, []int32{0, 1, -1, math.MaxInt32, math.MinInt32, 7})
	checkGreatest(t, []uint8{0, 1, 255, 128})
}

func checkGreatest[T Number](t *testing.T, special []T) {
	t.Helper()
	same := func(a, b T) bool {
		return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b)) || a != a && b != b
	}
	eachLevel(t, func(t *testing.T) {
		for n := range 40 {
			for _, step := range []int32{0, 3} {
				best, at, x := make([]T, n+1), make([]int32, n+1), make([]T, n)
				for i := range best {
					best[i], at[i] = special[i%len(special)], int32(i%3)-1
				}
				for i := range x {
					x[i] = special[(i*i+i/7)%len(special)]
				}
				most, greater, places := slices.Clone(best), slices.Clone(best), slices.Clone(at)
				MostOf(most[:n], x)
				GreaterOf(greater[:n], places[:n], x, -7, step)
				for i := range best {
					want, first, place := best[i], best[i], at[i]
					if i < n && (x[i] > want || x[i] != x[i]) {
						want = x[i]
					}
					if i < n && (x[i] > first || x[i] != x[i] || place < 0) {
						first, place = x[i], int32(i)*step-7
					}
					if !same(most[i], want) || !same(greater[i], first) || places[i] != place {
						t.Fatalf("%d of %T, step %d, element %d: %v, %v at %d; want %v, %v at %d", n, x, step, i, most[i], greater[i], places[i], want, first, place)
					}
				}
			}
		}
	})
}

// TestGreaterEach holds groups against each by itself.
func TestGreaterEach(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 3, 4, 8, 24} {
			for groups := range 4 {
				best, at, x := guarded.Slice[int32](groups*n), guarded.Slice[int32](groups*n), guarded.Slice[int32](max(groups-1, 0)*(n+2)+n)
				for i := range best {
					best[i], at[i] = rng.Int32N(9), rng.Int32N(3)-1
				}
				for i := range x {
					x[i] = rng.Int32N(9)
				}
				want, places := slices.Clone(best), slices.Clone(at)
				for g := range groups {
					GreaterOf(want[g*n:][:n], places[g*n:][:n], x[g*(n+2):][:n], 7+5*int32(g), 0)
				}
				GreaterEach(best, at, x, n, n+2, 7, 5)
				if !slices.Equal(best, want) || !slices.Equal(at, places) {
					t.Errorf("%d groups of %d: %v at %v, want %v at %v", groups, n, best, at, want, places)
				}
			}
		}
	})
}

func TestHalves(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 15, 16, 33, 70} {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(i + 1)
			}
			even, odd := make([]float32, (n+1)/2+1), make([]float32, n/2+1)
			Halves(even[:(n+1)/2], odd[:n/2], x)
			for i := range x {
				if half := [][]float32{even, odd}[i%2]; half[i/2] != x[i] {
					t.Errorf("%d elements: %d is %v", n, i, half[i/2])
				}
			}
			if even[(n+1)/2] != 0 || odd[n/2] != 0 {
				t.Errorf("%d elements: one beyond was written", n)
			}
		}
	})
}

func TestAdd(t *testing.T) {
	for _, n := range []int{0, 1, 8, 16, 37, 64} {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = float32(i)-3, 1/float32(i+1)
		}
		eachLevel(t, func(t *testing.T) {
			dst := make([]float32, n+1)
			Add(dst[:n], x, y)
			for i := range x {
				if dst[i] != x[i]+y[i] {
					t.Errorf("%d elements: element %d is %v", n, i, dst[i])
				}
			}
			if dst[n] != 0 {
				t.Errorf("%d elements: one beyond was written", n)
			}
		})
	}
}
