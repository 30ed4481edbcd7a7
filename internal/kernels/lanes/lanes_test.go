package lanes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/dense"
	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// eachKernel runs a test with every kernel that the processor has.
func eachKernel(t *testing.T, f func(t *testing.T)) {
	if !Available() {
		t.Skip("no vectors for groups")
	}
	old := use
	defer func() { use = old }()
	for _, use = range available() {
		t.Run(use.name, f)
	}
}

var special = []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, -3, math.NaN(), math.Inf(1), math.Inf(-1), 0x1p-1070, -0x1p-1074, 0x1p1023}

// matrices returns those of a group, of n elements: usual ones, ones with ties, zeros and what is not finite, and a mixture.
func matrices(seed uint64, n int) (list [Width][]float64) {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	for l := range list {
		list[l] = make([]float64, n)
		for i := range list[l] {
			switch kind := (uint64(l) + seed) % 5; {
			case kind == 0:
				list[l][i] = special[rng.IntN(len(special))]
			case kind == 1:
				list[l][i] = special[rng.IntN(7)]
			case kind == 2 && rng.IntN(4*n) == 0:
				list[l][i] = special[rng.IntN(len(special))]
			default:
				list[l][i] = rng.NormFloat64()
			}
		}
	}
	return list
}

// grouped returns a group in memory that ends where none may be touched.
func grouped(list [Width][]float64) []float64 {
	g := guarded.Slice[float64](Width * len(list[0]))
	for l, x := range list {
		for i, v := range x {
			Block(g, i)[l] = v
		}
	}
	return g
}

func same(t *testing.T, what string, group []float64, lane int, want []float64) {
	t.Helper()
	for i, v := range want {
		if got := Block(group, i)[lane]; math.Float64bits(got) != math.Float64bits(v) && (got == got || v == v) {
			t.Fatalf("%s: element %d of matrix %d is %v, want %v", what, i, lane, got, v)
		}
	}
}

// TestFactor holds factors, determinants and solutions to those of one matrix at a time.
func TestFactor(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, s := range [][2]int{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {8, 8}, {16, 16}, {2, 5}, {5, 2}, {7, 16}, {16, 9}, {0, 3}, {3, 0}} {
			rows, cols := s[0], s[1]
			for seed := range uint64(40) {
				list, count := matrices(seed, rows*cols), min(rows, cols)
				a, pivots, info := grouped(list), guarded.Slice[float64](Width*count), guarded.Slice[float64](Width)
				Factor(a, rows, cols, pivots, info)
				for l, x := range list {
					what := fmt.Sprint(s, " ", seed)
					p, det, zero := make([]int, count), 1.0, 0.0
					dense.SmallLU(x, rows, cols, p)
					same(t, what, a, l, x)
					for i, row := range p {
						if got := Block(pivots, i)[l]; got != float64(row+1) {
							t.Fatalf("%s: pivot %d of matrix %d is %v, want %d", what, i, l, got, row+1)
						}
						if x[i*cols+i] == 0 && zero == 0 {
							zero = float64(i + 1)
						}
						if det *= x[i*cols+i]; row != i {
							det = -det
						}
					}
					same(t, what+" info", info, l, []float64{zero})
					if rows == cols {
						d := guarded.Slice[float64](Width)
						Determinant(a, rows, pivots, d)
						same(t, what+" determinant", d, l, []float64{det})
					}
				}
			}
		}
	})
}

func TestSolve(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 3, 4, 7, 16} {
			for _, cols := range []int{0, 1, 2, 3, 4, 5, 8, 17} {
				for i, form := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
					for _, transposed := range []bool{false, true} {
						seed := uint64(i + 4*n)
						triangles, sides, row, col := matrices(seed, n*n), matrices(seed+1, n*cols), n, 1
						if transposed {
							row, col = 1, n
						}
						x := grouped(sides)
						Solve(grouped(triangles), n, row, col, x, cols, form[0], form[1])
						for l, want := range sides {
							dense.SmallSolve(triangles[l], n, row, col, want, cols, form[0], form[1])
							same(t, fmt.Sprint(n, cols, form, transposed), x, l, want)
						}
						for l, y := range matrices(seed+1, n*cols) {
							sides[l] = transpose(y, n, cols)
						}
						rows := grouped(sides)
						SolveRows(grouped(triangles), n, row, col, rows, cols, form[0], form[1])
						for l := range sides {
							want := make([]float64, n*cols)
							for i := range want {
								want[i] = Block(x, i)[l]
							}
							same(t, fmt.Sprint(n, cols, form, transposed, " rows"), rows, l, transpose(want, n, cols))
						}
					}
				}
			}
		}
	})
}

// transpose returns the columns of x, which has so many rows and columns.
func transpose(x []float64, rows, cols int) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i%cols*rows+i/cols] = v
	}
	return y
}

func TestExchange(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 5, 16} {
			for row := range n {
				list, p := matrices(uint64(row), n*3), guarded.Slice[float64](Width)
				for l := range p {
					p[l] = float64(1 + (l*7+row)%n)
				}
				x := grouped(list)
				Exchange(x, 3, row, n, p)
				for l, want := range list {
					if other := int(p[l]) - 1; other != row {
						dense.SwapRows(want, 3, row, other)
					}
					same(t, fmt.Sprint(n, row), x, l, want)
				}
			}
		}
	})
}

func TestCholesky(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		for n := range 17 {
			for seed := range uint64(20) {
				var list [Width][]float64
				for l := range list {
					list[l] = definite(seed+uint64(l), n)
				}
				what, a := fmt.Sprint(n, seed), grouped(list)
				if !Cholesky(a, n) {
					t.Fatalf("%s: no factor", what)
				}
				for l, x := range list {
					dense.SmallCholesky(x, n)
					want, upper := make([]float64, n*n), make([]float64, n*n)
					for i := range n {
						for j := i; j < n; j++ {
							want[i*n+j], upper[i*n+j] = x[j*n+i], Block(a, i*n+j)[l]
						}
					}
					if !slices.Equal(upper, want) {
						t.Fatalf("%s: factor %d is %v, want %v", what, l, upper, want)
					}
				}
				for _, wrong := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
					if n > 0 {
						list[seed%Width] = definite(seed, n)
						list[seed%Width][n*n-1] = wrong
						if Cholesky(grouped(list), n) {
							t.Errorf("%s: a factor with the last element %v", what, wrong)
						}
					}
				}
			}
		}
	})
}

// definite returns a symmetric matrix that has a factor of Cholesky's.
func definite(seed uint64, n int) []float64 {
	rng, x := rand.New(rand.NewPCG(seed, 3)), make([]float64, n*n)
	for i := range n {
		for j := range i {
			x[i*n+j] = rng.Float64() - 0.5
			x[j*n+i] = x[i*n+j]
		}
		x[i*n+i] = float64(n) + rng.Float64()
	}
	return x
}

// TestMove holds groups to the matrices that they are of, with what is between them left as it is.
func TestMove(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		moves(t, func(bits uint64) float64 { return math.Float64frombits(bits) })
		moves(t, func(bits uint64) float32 { return math.Float32frombits(uint32(bits)) })
		moves(t, func(bits uint64) int32 { return int32(bits) })
	})
}

func moves[T Number](t *testing.T, number func(bits uint64) T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		for _, gap := range []int{0, 1, 5} {
			stride := n + gap
			size := max((Width-1)*stride+n, 0)
			src, dst := guarded.Slice[T](size), guarded.Slice[T](size)
			for i := range src {
				src[i], dst[i] = number(rng.Uint64()), 1
			}
			group := guarded.Slice[float64](Room(n))
			Gather(group, src, stride, n)
			Scatter(dst, group, stride, n)
			for i, v := range src {
				l, k := i/max(stride, 1), i%max(stride, 1)
				if k >= n {
					v = 1
				} else if got := Block(group, k)[l]; got != float64(v) && v == v {
					t.Fatalf("%T: element %d of %d of matrix %d is %v, want %v", v, k, n, l, got, v)
				}
				if dst[i] != v && v == v {
					t.Fatalf("%T: element %d of matrices of %d, %d apart, became %v, want %v", v, i, n, stride, dst[i], v)
				}
			}
			if n == 0 {
				continue
			}
			Gather(group, src[:n], 0, n)
			for k, v := range src[:n] {
				if got := Block(group, k)[Width-1]; got != float64(v) && v == v {
					t.Fatalf("%T: element %d of one matrix is %v, want %v", v, k, got, v)
				}
			}
		}
	}
}

// TestScatterRounds holds conversions to Go's.
func TestScatterRounds(t *testing.T) {
	eachKernel(t, func(t *testing.T) {
		group, to := guarded.Slice[float64](Width*Width), make([]float32, Width)
		for i, v := range append(special, math.Pi, 0x1p-140*math.Pi, 0x1.ffffffp127) {
			for l := range Width {
				group[l] = v
			}
			Scatter(to, group, 1, 1)
			for _, got := range to {
				if want := float32(v); math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
					t.Fatalf("%d: %v became %v, want %v", i, v, got, want)
				}
			}
		}
	})
}
