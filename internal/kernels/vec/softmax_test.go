package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSoftmaxColumns(t *testing.T) {
	t.Run("f32", func(t *testing.T) { testSoftmaxColumns[float32](t, 3e-7) })
	t.Run("f64", func(t *testing.T) { testSoftmaxColumns[float64](t, 4e-16) })
}

func testSoftmaxColumns[A Float](t *testing.T, eps float64) {
	const stride = 90
	for _, cols := range []int{1, 16, 21, 32, 64, 77} {
		rng := rand.New(rand.NewPCG(1, 1))
		rows := 37
		x := make([]A, rows*stride)
		for i := range x {
			x[i] = A(rng.NormFloat64() * 5)
			if i%stride == 3 || rng.IntN(5) == 0 {
				x[i] = A(math.Inf(-1)) // column 3 holds nothing else
			}
		}
		eachLevel(t, func(t *testing.T) {
			y := append([]A(nil), x...)
			most, sum, shrink := make([]A, cols), make([]A, cols), make([]A, cols)
			for i := range most {
				most[i] = A(math.Inf(-1))
			}
			const first = 11
			SoftmaxColumns(y, first, cols, stride, 0.5, most, sum, shrink)
			half := append([]A(nil), most...)
			SoftmaxColumns(y[first*stride:], rows-first, cols, stride, 0.5, most, sum, shrink)
			for c := range cols {
				top, total := math.Inf(-1), 0.0
				for r := range rows {
					top = max(top, float64(x[r*stride+c])*0.5)
				}
				base := top
				if math.IsInf(top, -1) {
					base = 0
				}
				for r := range rows {
					e := math.Exp(float64(x[r*stride+c])*0.5 - base)
					total += e
					if r < first {
						e = math.Exp(float64(x[r*stride+c])*0.5 - float64(max(half[c], -1e30)))
					}
					if got := float64(y[r*stride+c]); math.Abs(got-e) > eps {
						t.Fatalf("%d columns: element (%d, %d) is %v, want %v", cols, r, c, got, e)
					}
				}
				if float64(most[c]) != top || math.Abs(float64(sum[c])-total) > 8*eps*total {
					t.Errorf("%d columns: column %d: greatest %v and sum %v, want %v and %v", cols, c, most[c], sum[c], top, total)
				}
				if want := math.Exp(float64(max(half[c], -1e30)) - base); math.Abs(float64(shrink[c])-want) > eps && !math.IsInf(top, -1) {
					t.Errorf("%d columns: column %d shrinks by %v, want %v", cols, c, shrink[c], want)
				}
			}
			if y[cols] != x[cols] {
				t.Errorf("%d columns: an element beyond was changed", cols)
			}
		})
	}
}

// TestSoftmaxGradientColumns has columns without probabilities, which stay without gradients, and scores that
// are hidden or so small that nothing is left of them.
func TestSoftmaxGradientColumns(t *testing.T) {
	t.Run("f32", func(t *testing.T) { testSoftmaxGradientColumns[float32](t, 2e-7) })
	t.Run("f64", func(t *testing.T) { testSoftmaxGradientColumns[float64](t, 4e-16) })
}

func testSoftmaxGradientColumns[A Float](t *testing.T, eps float64) {
	const rows, stride, scale = 19, 90, 0.5
	for _, cols := range []int{1, 8, 16, 21, 32, 77} {
		rng := rand.New(rand.NewPCG(1, 3))
		x, g := make([]A, rows*stride), make([]A, rows*stride)
		for i := range x {
			x[i], g[i] = A(rng.NormFloat64()*5), A(rng.NormFloat64())
			switch rng.IntN(9) {
			case 0:
				x[i] = A(math.Inf(-1))
			case 1:
				x[i] = -5000
			}
		}
		base, mean := make([]A, cols), make([]A, cols)
		for i := range base {
			base[i], mean[i] = A(8+rng.Float64()), A(rng.NormFloat64())
			if i%5 == 3 {
				base[i] = A(math.Inf(1))
			}
		}
		eachLevel(t, func(t *testing.T) {
			p, d := slices.Clone(x), slices.Clone(g)
			SoftmaxGradientColumns(p, d, rows, cols, stride, scale, base, mean)
			for i := range x {
				r, c := i/stride, i%stride
				if c >= cols {
					if p[i] != x[i] || d[i] != g[i] {
						t.Fatalf("%d columns: element (%d, %d) beyond was changed", cols, r, c)
					}
					continue
				}
				e := math.Exp(float64(x[i])*scale - float64(base[c]))
				slope := e * float64(g[i]-mean[c])
				if math.Abs(float64(p[i])-e) > 8*eps*e+1e-40 || math.Abs(float64(d[i])-slope) > 8*eps*math.Abs(slope)+1e-38 {
					t.Fatalf("%d columns: element (%d, %d) is %v with gradient %v, want %v and %v", cols, r, c, p[i], d[i], e, slope)
				}
			}
		})
	}
}

func TestDot(t *testing.T) {
	x, y := make([]float64, 41), make([]float64, 41)
	x32, y32 := make([]float32, 41), make([]float32, 41)
	for i := range x { // sums are exact
		x[i], y[i] = float64(i%7-3), float64(i*5%11)
		x32[i], y32[i] = float32(x[i]), float32(y[i])
	}
	eachLevel(t, func(t *testing.T) {
		want := 0.0
		for n := range len(x) + 1 {
			if got, got32 := Dot(x[:n], y), Dot(x32[:n], y32); got != want || float64(got32) != want {
				t.Errorf("%d elements: %v and %v, want %v", n, got, got32, want)
			}
			if n < len(x) {
				want += x[n] * y[n]
			}
		}
	})
}
