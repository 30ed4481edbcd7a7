package loris

import (
	"context"
	"math"
	"testing"
)

// Reflections of matrices that are large enough for blocks are applied as the elements of their
// product are, also where the last of a square matrix has a factor, which geqrf does not make.
func TestOrmqrOfLargeMatrices(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{40, 65, 160} {
		for _, other := range []int{1, 15, 200} {
			a, tau := With(As(F64)).Randn(n, n).Geqrf()
			// H = 1 - 2vv'/v'v with v = 1 in the last place changes a sign.
			tau = tau.SelectScatter(With(As(F64)).Scalar(2), 0, n-1)
			q := a.LinalgHouseholderProduct(tau)
			for _, left := range []bool{true, false} {
				for _, transposed := range []bool{true, false} {
					x, m := With(As(F64)).Randn(n, other), q
					if transposed {
						m = q.Transpose(0, 1)
					}
					want := m.MatMul(x)
					if !left {
						x = x.Transpose(0, 1)
						want = x.MatMul(m)
					}
					off, err := Read[float64](ctx, a.Ormqr(tau, x, Left(left), Transposed(transposed)).Sub(want).Abs().Amax())
					if err != nil || !(off[0] < 1e-11*math.Sqrt(float64(n))) {
						t.Errorf("%d by %d, left %v, transposed %v: off by %v, %v", n, other, left, transposed, off, err)
					}
				}
			}
		}
	}
}

// Triangles are cut into four from 32 rows on; what is on the other side of the diagonal is not read.
func TestCholeskyInverse(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 2, 31, 32, 33, 65, 130} {
		for _, upper := range []bool{false, true} {
			x := With(As(F64)).Randn(2, n, n)
			a := x.MatMul(x.Transpose(1, 2)).Add(With(As(F64)).Eye(n).Mul(float64(n)))
			factor := a.LinalgCholesky(Upper(upper))
			noise := With(As(F64)).Full(7, 2, n, n)
			if upper {
				factor = factor.Add(noise.Tril(DiagonalOffset(-1)))
			} else {
				factor = factor.Add(noise.Triu(DiagonalOffset(1)))
			}
			off, err := Read[float64](ctx, a.MatMul(factor.CholeskyInverse(Upper(upper))).Sub(With(As(F64)).Eye(n)).Abs().Amax())
			if err != nil || !(off[0] < 1e-13*math.Sqrt(float64(n))) {
				t.Errorf("%d, upper %v: off by %v, %v", n, upper, off, err)
			}
		}
	}
}

// What lu_unpack gives multiplies to the matrix, exactly where one triangle is a permutation's, also for
// matrices that are not square and in both dtypes.
func TestLUUnpack(t *testing.T) {
	ctx := context.Background()
	for _, dtype := range []DType{F32, F64} {
		for _, s := range [][2]int{{1, 1}, {2, 5}, {5, 2}, {20, 20}, {17, 40}, {40, 17}} {
			for _, batch := range []int{0, 1, 3} {
				a := With(As(dtype)).Randn(batch, s[0], s[1])
				lu, pivots := LinalgLUFactor(a)
				p, l, u := LUUnpack(lu, pivots)
				k := min(s[0], s[1])
				for what, off := range map[string]*Tensor{
					"product":  p.MatMul(l).MatMul(u).Sub(a),
					"lower":    l.Sub(lu.Narrow(2, 0, k).Tril(DiagonalOffset(-1)).Add(With(As(dtype)).Eye(s[0]).Narrow(1, 0, k))),
					"permuted": p.MatMul(p.Transpose(1, 2)).Sub(With(As(dtype)).Eye(s[0])),
				} {
					v, err := Read[float64](ctx, off.Cast(F64).Flatten())
					for _, x := range v {
						if !(math.Abs(x) < 1e-4) || what == "lower" && x != 0 {
							t.Fatalf("%v %v, batch of %d: %s off by %v, %v", dtype, s, batch, what, x, err)
						}
					}
				}
			}
		}
	}
}

// Matrices of some hundred rows are factored by large products on all goroutines.
func TestSolveOfLargeMatrices(t *testing.T) {
	ctx := context.Background()
	for _, dtype := range []DType{F32, F64} {
		for _, n := range []int{200, 320} {
			with := With(As(dtype))
			a := with.Randn(n, n).Mul(0.5 / math.Sqrt(float64(n))).Add(with.Eye(n).Mul(2.0))
			b := with.Randn(n, 70)
			sign, logabs := a.Slogdet()
			spectrum, _ := a.LinalgEig()
			q, r := LinalgQR(a)
			s := a.MatMul(a.Transpose(0, 1))
			l := s.LinalgCholesky()
			for what, off := range map[string]*Tensor{
				"solution":         a.MatMul(LinalgSolve(a, b)).Sub(b),
				"sign":             sign.Sub(1.0),
				"sum of logs":      spectrum.Abs().Log().Sum().Sub(logabs).Div(float64(n)),
				"exponential":      a.Neg().MatrixExp().MatMul(a.MatrixExp()).Sub(with.Eye(n)),
				"product of QR":    q.MatMul(r).Sub(a),
				"product of roots": l.MatMul(l.Transpose(0, 1)).Sub(s),
			} {
				v, err := Read[float64](ctx, off.Abs().Amax().Cast(F64))
				if err != nil || !(v[0] < map[DType]float64{F32: 2e-3, F64: 1e-10}[dtype]) {
					t.Errorf("%v, %d rows: %s off by %v, %v", dtype, n, what, v, err)
				}
			}
		}
	}
}
