package dense

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// inRooms are computations whose results are numbers of a square matrix of n rows.
var inRooms = map[string]func(r *Room, x []float64, n int) []float64{
	"LU": func(r *Room, x []float64, n int) []float64 {
		m, pivots := r.From(x, n, n), make([]int, n)
		LU(m, pivots)
		return m.Data
	},
	"Cholesky": func(r *Room, x []float64, n int) []float64 {
		m := r.From(x, n, n)
		m = Product(m, m.Transposed())
		Cholesky(m)
		return m.Data
	},
	"Solve": func(r *Room, x []float64, n int) []float64 {
		m, b := r.From(x, n, n), r.From(x, n, n)
		Solve(m, b, true, false)
		return b.Data
	},
	"QR": func(r *Room, x []float64, n int) []float64 {
		m, tau := r.From(x, n, n), make([]float64, n)
		QR(m, tau)
		q := Q(m, tau, n)
		MultiplyQ(m, tau, q, true)
		return append(m.Data, q.Data...)
	},
	"Exp":      func(r *Room, x []float64, n int) []float64 { return Exp(r.From(x, n, n), false).Data },
	"Singular": func(r *Room, x []float64, n int) []float64 { return decomposed(Singular(r.From(x, n, n), true, true)) },
	"Singular values": func(r *Room, x []float64, n int) []float64 {
		return decomposed(Singular(r.From(x, n, n), false, false))
	},
	"SingularOfSingles": func(r *Room, x []float64, n int) []float64 {
		return decomposed(SingularOfSingles(r.From(x, n, n), true, false))
	},
	"Symmetric": func(r *Room, x []float64, n int) []float64 {
		m := r.From(x, n, n)
		m.Mirror(false)
		values, v, _ := Symmetric(m, true)
		return append(slices.Clone(values), v.Data...)
	},
	"General": func(r *Room, x []float64, n int) []float64 {
		re, im, v, _ := General(r.From(x, n, n), true, epsilon)
		return slices.Concat(re, im, v.Data)
	},
}

func decomposed(values []float64, u, v *Matrix, _ bool) []float64 {
	values = slices.Clone(values)
	for _, m := range []*Matrix{u, v} {
		if m != nil {
			values = append(values, m.Data...)
		}
	}
	return values
}

// TestRoom checks that what was in the memory of a Room before changes no result, and that from the second
// time on small matrices need none beside it.
func TestRoom(t *testing.T) {
	for name, f := range inRooms {
		for _, n := range []int{1, 2, 17, 33, 70, 150} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				x := make([]float64, n*n)
				random(n, n).To(x)
				want := slices.Clone(f(nil, x, n))
				var r Room
				for range 3 {
					if got := f(&r, x, n); !slices.EqualFunc(got, want, alike) {
						t.Fatal("results are others than in new memory")
					}
					if r.asked == 0 {
						t.Fatal("no memory was taken")
					}
					r.Reset()
					for i := range r.kept {
						r.kept[i] = math.NaN()
					}
				}
				if n <= 70 {
					kept := len(r.kept)
					if f(&r, x, n); r.asked > kept {
						t.Errorf("%d numbers were asked for, %d kept", r.asked, kept)
					}
				}
			})
		}
	}
}

func alike(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
