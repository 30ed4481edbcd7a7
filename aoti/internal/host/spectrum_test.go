//go:build linux && cgo

package host

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/ir"
)

// diagonal puts numbers on the diagonal of a matrix.
func diagonal(x []float64) matrix {
	m := newMatrix(len(x), len(x))
	for i, v := range x {
		m.set(i, i, v)
	}
	return m
}

func near(t *testing.T, what string, got, want matrix) {
	t.Helper()
	allowed := 1e-13 * math.Sqrt(dot(want.a, want.a))
	for i := range want.a {
		if !(math.Abs(got.a[i]-want.a[i]) <= allowed) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got.a[i], want.a[i])
			return
		}
	}
}

func orthogonal(t *testing.T, what string, m matrix) {
	t.Helper()
	near(t, what, multiply(m.transposed(), m), identity(m.cols, m.cols))
}

// someMatrix is random, and of low rank if rank is less than its sides.
func someMatrix(rng *rand.Rand, rows, cols, rank int) matrix {
	x, y := newMatrix(rows, rank), newMatrix(rank, cols)
	for _, m := range []matrix{x, y} {
		for i := range m.a {
			m.a[i] = rng.NormFloat64()
		}
	}
	return multiply(x, y)
}

// rowsIn is the one matrix of a result.
func rowsIn(t *testing.T, h *tensor) matrix {
	t.Helper()
	a, err := load[float64](h)
	if err != nil {
		t.Fatal(err)
	}
	return matrix{a.dims[0], a.dims[1], a.data}
}

func TestEigenvectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ n, rank int }{{1, 1}, {2, 2}, {5, 5}, {6, 3}, {20, 20}} {
		m := someMatrix(rng, c.n, c.n, c.rank)
		m = multiply(m, m.transposed())
		h, err := save(array[float64]{m.a, []int{c.n, c.n}}, ir.F64)
		if err != nil {
			t.Fatal(err)
		}
		outs, err := linalgEigh(values{"A": h, "UPLO": "U", "compute_v": 1})
		release(h)
		if err != nil {
			t.Fatal(err)
		}
		w, q := numbers(t, outs[0]), rowsIn(t, outs[1])
		for i := range w[1:] {
			if w[i] > w[i+1] {
				t.Errorf("%v is not in order", w)
			}
		}
		orthogonal(t, "vectors", q)
		near(t, "product", multiply(multiply(q, diagonal(w)), q.transposed()), m)
		release(outs[0])
		release(outs[1])
	}
}

func TestSingularValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ rows, cols, rank int }{{1, 1, 1}, {4, 4, 4}, {6, 3, 3}, {3, 6, 3}, {7, 5, 2}, {5, 7, 2}, {4, 4, 1}} {
		m := someMatrix(rng, c.rows, c.cols, c.rank)
		h, err := save(array[float64]{m.a, []int{c.rows, c.cols}}, ir.F64)
		if err != nil {
			t.Fatal(err)
		}
		for _, full := range []int{0, 1} {
			outs, err := linalgSVD(values{"A": h, "full_matrices": full, "compute_uv": 1})
			if err != nil {
				t.Fatal(err)
			}
			u, s, w := rowsIn(t, outs[0]), numbers(t, outs[1]), rowsIn(t, outs[2])
			orthogonal(t, "left vectors", u)
			orthogonal(t, "right vectors", w.transposed())
			d := newMatrix(u.cols, w.rows)
			for i, x := range s {
				d.set(i, i, x)
				if i > 0 && x > s[i-1] || x < 0 {
					t.Errorf("%v is not in order", s)
				}
			}
			near(t, "product", multiply(multiply(u, d), w), m)
			for _, o := range outs {
				release(o)
			}
		}
		release(h)
	}
}

// A matrix without an inverse is told of, or is an error if the op is to check.
func TestSingularMatrix(t *testing.T) {
	h := tensorOf(t, ir.F64, []float64{1, 2, 2, 4}, 2, 2)
	outs, err := linalgInverse(values{"A": h})
	if err != nil {
		t.Fatal(err)
	}
	if info := numbers(t, outs[1]); info[0] != 2 {
		t.Errorf("info %v", info)
	}
	if _, err := checkErrors(values{"info": outs[1], "api_name": "linalg.inv"}); !errors.Is(err, errSingular) {
		t.Errorf("%v", err)
	}
	release(outs[0])
	release(outs[1])
	if _, err := linalgInverse(values{"A": h, "check_errors": 1}); !errors.Is(err, errSingular) {
		t.Errorf("%v", err)
	}
	if _, err := linalgCholesky(values{"self": h, "check_errors": 1}); !errors.Is(err, errSingular) {
		t.Errorf("%v", err)
	}
}
