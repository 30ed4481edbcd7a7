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
