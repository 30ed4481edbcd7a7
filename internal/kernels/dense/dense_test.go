package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
	"github.com/loris-ml/loris/internal/parallel"
)

var orders = []int{1, 2, 7, 15, 16, 17, 33, 64, 100}

// eachKernel runs a test with every kernel that the processor has; its results are the same bits.
func eachKernel(t *testing.T, f func(t *testing.T) [][]float64) {
	old := use
	defer func() { use = old }()
	var want [][]float64
	for _, use = range available() {
		t.Run(fmt.Sprint("kernels", int(use)), func(t *testing.T) {
			got := f(t)
			if want == nil {
				want = got
			}
			for i := range want {
				for j, v := range want[i] {
					if math.Float64bits(got[i][j]) != math.Float64bits(v) {
						t.Fatalf("result %d: element %d is %v, another kernel's %v", i, j, got[i][j], v)
					}
				}
			}
		})
	}
}

// newMatrix and matrixOf make matrices in memory of their own.
func newMatrix(rows, cols int) *Matrix { return (*Room)(nil).New(rows, cols) }

func matrixOf(x []float64, rows, cols int) *Matrix { return (*Room)(nil).From(x, rows, cols) }

// random returns a matrix whose memory ends where none may be touched.
func random(rows, cols int) *Matrix {
	rng, m := rand.New(rand.NewPCG(uint64(rows), uint64(cols))), newMatrix(rows, cols)
	m.Data = guarded.Slice[float64](len(m.Data))
	for i := range rows {
		for j := range m.row(i) {
			m.at(i, j)[0] = rng.Float64() - 0.5
		}
	}
	return m
}

func copied(m *Matrix) *Matrix {
	c := *m
	c.Data = append([]float64(nil), m.Data...)
	return &c
}

// definite returns a matrix that has a factor of Cholesky's.
func definite(n int) *Matrix {
	a := random(n, n)
	p := Product(a, a.Transposed())
	for i := range n {
		p.at(i, i)[0] += 0.1
	}
	return p
}

// multiplied is the product by its definition.
func multiplied(a, b *Matrix) *Matrix {
	c := newMatrix(a.Rows, b.Cols)
	for i := range a.Rows {
		for j := range b.Cols {
			for k := range a.Cols {
				c.at(i, j)[0] += a.at(i, k)[0] * b.at(k, j)[0]
			}
		}
	}
	return c
}

func near(t *testing.T, what string, got, want *Matrix) {
	t.Helper()
	for i := range want.Rows {
		for j, v := range want.row(i) {
			if d := math.Abs(got.at(i, j)[0] - v); !(d <= 1e-9*math.Max(1, math.Abs(v))) {
				t.Fatalf("%s: element %d, %d is %v, want %v", what, i, j, got.at(i, j)[0], v)
			}
		}
	}
}

func TestProduct(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, s := range [][3]int{{1, 1, 1}, {5, 3, 17}, {4, 16, 16}, {7, 40, 33}, {3, 0, 5}, {0, 4, 4}} {
			a, b := random(s[0], s[1]), random(s[1], s[2])
			c := Product(a, b)
			near(t, fmt.Sprint(s), c, multiplied(a, b))
			all = append(all, c.Data)
		}
		return all
	})
}

func TestLU(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range orders {
			for _, s := range [][2]int{{n, n}, {n, n/2 + 1}, {n/3 + 1, n}} {
				a := random(s[0], s[1])
				k := min(s[0], s[1])
				f, pivots := copied(a), make([]int, k)
				LU(f, pivots)
				l, u := newMatrix(s[0], k), newMatrix(k, s[1])
				for i := range s[0] {
					for j := range s[1] {
						switch v := f.at(i, j)[0]; {
						case i > j:
							l.at(i, j)[0] = v
							if math.Abs(v) > 1 {
								t.Fatalf("%v: factor %v", s, v)
							}
						default:
							u.at(i, j)[0] = v
						}
					}
					if i < k {
						l.at(i, i)[0] = 1
					}
				}
				for i, p := range pivots {
					x, y := a.row(i), a.row(p)
					for j, v := range x {
						if i != p {
							x[j], y[j] = y[j], v
						}
					}
				}
				near(t, fmt.Sprint(s), multiplied(l, u), a)
				all = append(all, f.Data)
			}
		}
		return all
	})
}

func TestLUOfSingular(t *testing.T) {
	a := newMatrix(20, 20)
	for i := range 20 {
		a.at(i, 3)[0], a.at(i, 17)[0] = float64(i), 1
	}
	LU(a, make([]int, 20))
	for i := range 20 {
		for j, v := range a.row(i) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("element %d, %d is %v", i, j, v)
			}
		}
	}
}

func TestCholesky(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range orders {
			a := definite(n)
			l := copied(a)
			for i := range n { // what is above the diagonal is not read
				for j := i + 1; j < n; j++ {
					l.at(i, j)[0] = math.NaN()
				}
			}
			if order := Cholesky(l); order != 0 {
				t.Fatalf("%d: the minor of order %d is said not to be positive", n, order)
			}
			near(t, fmt.Sprint(n), multiplied(l, l.Transposed()), a)
			all = append(all, l.Data)
			for _, bad := range []int{0, n / 2, n - 1} {
				b := copied(a)
				b.at(bad, bad)[0] = -1
				if order := Cholesky(b); order != bad+1 {
					t.Fatalf("%d with a negative element %d: order %d", n, bad, order)
				}
			}
		}
		return all
	})
}

func TestSolve(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range orders {
			for _, cols := range []int{1, 19} {
				for form := range 4 {
					upper, unit := form&1 != 0, form&2 != 0
					a, want := random(n, n), random(n, cols)
					triangle := newMatrix(n, n)
					for i := range n {
						a.at(i, i)[0] += 3
						for j := range n {
							if i == j || (j > i) == upper {
								triangle.at(i, j)[0] = a.at(i, j)[0] / 4
							}
							a.at(i, j)[0] /= 4
						}
						if unit {
							triangle.at(i, i)[0] = 1
							a.at(i, i)[0] = math.NaN() // is not read
						}
					}
					x := multiplied(triangle, want)
					Solve(a, x, upper, unit)
					near(t, fmt.Sprint(n, cols, upper, unit), x, want)
					all = append(all, x.Data)
				}
			}
		}
		return all
	})
}

func TestExp(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range []int{1, 5, 16, 30} {
			for _, size := range []float64{0.001, 0.1, 0.5, 1, 4, 30} {
				a := random(n, n)
				norm := a.norm()
				for i := range a.Data {
					a.Data[i] *= size / norm
				}
				// eᵃ·e⁻ᵃ is one, and the trace of a the logarithm of the determinant.
				minus, one := newMatrix(n, n), newMatrix(n, n)
				minus.add(a, -1)
				var trace, log float64
				for i := range n {
					one.at(i, i)[0] = 1
					trace += a.at(i, i)[0]
				}
				e := Exp(a, false)
				f := copied(e)
				LU(f, make([]int, n))
				for i := range n {
					log += math.Log(math.Abs(f.at(i, i)[0]))
				}
				if math.Abs(log-trace) > 1e-9*max(1, size) {
					t.Errorf("%d of norm %v: the determinant is e to %v, want %v", n, size, log, trace)
				}
				if size <= 4 {
					near(t, fmt.Sprint(n, size), multiplied(e, Exp(minus, false)), one)
				}
				all = append(all, e.Data)
			}
		}
		return all
	})
	a := newMatrix(2, 2)
	a.Data[0] = math.Inf(1)
	if e := Exp(a, false); e.Data[0] == e.Data[0] {
		t.Errorf("of infinity: %v", e.Data[0])
	}
}

// TestLargeProducts checks factors and solutions of matrices whose products are package gemm's, and that
// goroutines change nothing.
func TestLargeProducts(t *testing.T) {
	const n = 330
	a := random(n, n)
	for i := range n {
		a.at(i, i)[0] += 20
	}
	var want [][]float64
	for _, l := range []*parallel.Limiter{nil, parallel.NewLimiter(2)} {
		f, x, pivots := copied(a), copied(a), make([]int, n)
		f.room, x.room = &Room{Limiter: l}, &Room{Limiter: l}
		LU(f, pivots)
		for i, p := range pivots {
			if i != p {
				SwapRows(x.Data, x.Stride, i, p)
			}
		}
		Solve(f, x, false, true)
		Solve(f, x, true, false)
		near(t, "a⁻¹·a", x, one(n))
		b := Product(a, a.Transposed())
		c := copied(b)
		c.room = &Room{Limiter: l}
		if order := Cholesky(c); order != 0 {
			t.Fatalf("order %d", order)
		}
		near(t, "l·lᵀ", Product(c, c.Transposed()), b)
		q, tau := copied(a), make([]float64, n)
		q.room = &Room{Limiter: l}
		QR(q, tau)
		orthogonal(t, "q", Q(q, tau, n))
		got := [][]float64{f.Data, x.Data, c.Data, q.Data}
		for i := range want {
			if !slices.Equal(want[i], got[i]) {
				t.Errorf("result %d is another on two goroutines", i)
			}
		}
		want = got
	}
}

// TestExpOfSlope holds the exponential of a matrix of two blocks to that of one that isn't quite of that form.
func TestExpOfSlope(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range []int{17, 40} {
			for _, size := range []float64{0.01, 0.2, 0.9, 2, 5, 20} {
				a := random(2*n, 2*n)
				for i := range n {
					clear(a.row(n + i)[:n])
					copy(a.row(n + i)[n:], a.row(i))
				}
				for i, norm := 0, a.norm(); i < len(a.Data); i++ {
					a.Data[i] *= size / norm
				}
				if _, is := a.dual(); !is {
					t.Fatal("the form is not seen")
				}
				e, singles := Exp(a, false), Exp(a, true)
				a.at(2*n-1, 0)[0] = 1e-300
				if _, is := a.dual(); is {
					t.Fatal("the form is seen where it is not")
				}
				near(t, fmt.Sprint(n, size), e, Exp(a, false))
				for i, v := range singles.Data {
					if math.Abs(v-e.Data[i]) > 0x1p-27*e.norm() {
						t.Fatalf("%d, %v: element %d to be rounded is %v, want %v", n, size, i, v, e.Data[i])
					}
				}
				all = append(all, e.Data, singles.Data)
			}
		}
		return all
	})
}
