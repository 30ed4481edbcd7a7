package loris

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
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

// hardMatrices returns count matrices, some of them singular, with ties of pivots or with what is not finite.
func hardMatrices(count, rows, cols int) []float64 {
	rng, x := rand.New(rand.NewPCG(uint64(count*rows), uint64(cols))), make([]float64, count*rows*cols)
	hard := []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, math.NaN(), math.Inf(1), 0x1p-130}
	for i := range x {
		switch b := i / (rows * cols); {
		case b%6 == 2:
			x[i] = hard[rng.IntN(6)]
		case b%11 == 5:
			x[i] = hard[rng.IntN(len(hard))]
		default:
			x[i] = rng.NormFloat64()
		}
	}
	return x
}

// Matrices of a batch are factored in groups of some, and the rest one by one; the results are the same bits as
// those of each by itself.
func TestGroupsOfMatrices(t *testing.T) {
	const count = 21
	ctx := context.Background()
	// A call has a batch of matrices, or one, and right sides for each or for all.
	for name, call := range map[string]func(a, b *Tensor) []*Tensor{
		"factor": func(a, _ *Tensor) []*Tensor {
			lu, pivots, info := LinalgLUFactorEx(a)
			return []*Tensor{lu, pivots, info}
		},
		"solve": func(a, b *Tensor) []*Tensor { x, info := LinalgSolveEx(a, b); return []*Tensor{x, info} },
		"solve adjoint": func(a, b *Tensor) []*Tensor {
			lu, pivots, _ := LinalgLUFactorEx(a)
			return []*Tensor{LinalgLUSolve(lu, pivots, b, Adjoint(true))}
		},
		"inverse":     func(a, _ *Tensor) []*Tensor { x, info := LinalgInvEx(a); return []*Tensor{x, info} },
		"determinant": func(a, _ *Tensor) []*Tensor { return []*Tensor{LinalgDet(a)} },
		"triangle": func(a, b *Tensor) []*Tensor {
			return []*Tensor{a.LinalgSolveTriangular(b, true), a.LinalgSolveTriangular(b, false, Unitriangular(true)),
				a.LinalgSolveTriangular(b.Transpose(-2, -1), true, Left(false)), a.LinalgSolveTriangular(b.Transpose(-2, -1), false, Left(false), Unitriangular(true))}
		},
		"cholesky": func(a, _ *Tensor) []*Tensor {
			d := a.Mul(0.01).Add(With(As(a.DType())).Eye(a.Dim(-1)))
			lower, info := d.LinalgCholeskyEx()
			upper, _ := d.LinalgCholeskyEx(Upper(true))
			return []*Tensor{lower, upper, info}
		},
	} {
		for _, dtype := range []DType{F32, F64} {
			for _, n := range []int{1, 2, 3, 4, 7, 16, 17} {
				one := func(i int) func(*Tensor) *Tensor { return func(t *Tensor) *Tensor { return t.Select(0, i) } }
				a, b := FromSlice(hardMatrices(count, n, n), count, n, n).Cast(dtype), FromSlice(hardMatrices(count, n, 3), count, n, 3).Cast(dtype)
				for _, form := range []struct {
					what string
					a, b func(i int) func(*Tensor) *Tensor
					n    int
				}{
					{"batches", one, one, count},
					{"one right side", one, func(int) func(*Tensor) *Tensor { return one(4) }, count},
					{"one matrix", func(int) func(*Tensor) *Tensor { return one(1) }, one, count},
				} {
					x, y := a, b
					if form.what == "one right side" {
						y = one(4)(b)
					} else if form.what == "one matrix" {
						x = one(1)(a)
					}
					together := call(x, y)
					for i := range form.n {
						for k, want := range call(form.a(i)(a), form.b(i)(b)) {
							got := together[k]
							if got.Rank() > want.Rank() {
								got = got.Select(0, i)
							}
							sameBits(ctx, t, fmt.Sprint(name, " ", dtype, " ", n, " ", form.what, " ", i, " result ", k), got, want)
						}
					}
				}
			}
		}
	}
}

func sameBits(ctx context.Context, t *testing.T, what string, got, want *Tensor) {
	t.Helper()
	x, err := Read[float64](ctx, got.Cast(F64))
	y, other := Read[float64](ctx, want.Cast(F64))
	if err != nil || other != nil {
		t.Fatalf("%s: %v, %v", what, err, other)
	}
	for i, v := range y {
		if math.Float64bits(x[i]) != math.Float64bits(v) && (v == v || x[i] == x[i]) {
			t.Fatalf("%s: element %d is %v, by itself %v", what, i, x[i], v)
		}
	}
}

// The error of a batch names the first matrix that has no result, in a group or not.
func TestErrorOfGroups(t *testing.T) {
	for _, wrong := range []int{0, 9, 13, 20} {
		x := make([]float64, 21*9)
		for i := range x {
			if x[i] = 0; i%9%4 == 0 && i/9 != wrong {
				x[i] = 1
			}
		}
		a := FromSlice(x, 21, 3, 3)
		for name, r := range map[string]*Tensor{"inverse": LinalgInv(a), "cholesky": a.LinalgCholesky()} {
			_, err := Read[float64](context.Background(), r)
			if !errors.Is(err, ErrLinAlg) || !strings.Contains(err.Error(), fmt.Sprintf("batch element %d:", wrong)) {
				t.Errorf("%s with matrix %d singular: %v", name, wrong, err)
			}
		}
	}
}
