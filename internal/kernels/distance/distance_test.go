package distance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// kinds runs a test with all kernels that the processor has.
func kinds[T Float](t *testing.T, use func(k *kernels[T]), f func(t *testing.T)) {
	old := best[T]()
	defer use(old)
	for _, k := range available[T]() {
		use(k)
		t.Run(fmt.Sprintf("%s/%d", k.name, 8*sizeOf[T]()), f)
	}
}

func TestTiles(t *testing.T) {
	kinds(t, func(k *kernels[float32]) { best32 = k }, testTiles[float32])
	kinds(t, func(k *kernels[float64]) { best64 = k }, testTiles[float64])
}

// numbers returns n numbers, of which few are special.
func numbers[T Float](rng *rand.Rand, n int) []T {
	list := guarded.Slice[T](n)
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e-40, 0.5}
	for i := range list {
		if list[i] = T(rng.NormFloat64()); rng.IntN(60) == 0 {
			list[i] = T(special[rng.IntN(len(special))])
		}
	}
	return list
}

// packed packs all of a matrix.
func packed[T Float](src []T, n, depth, step, depthStep int) []T {
	dst := guarded.Slice[T](PackedLen[T](n, depth))
	panels := (n + Panel[T]() - 1) / Panel[T]()
	Pack(dst, src, n, depth, step, depthStep, panels/2, panels)
	Pack(dst, src, n, depth, step, depthStep, 0, panels/2)
	return dst
}

func testTiles[T Float](t *testing.T) {
	rng, room := rand.New(rand.NewPCG(1, 2)), guarded.Slice[T](Room)
	for _, d := range [][3]int{{1, 1, 1}, {4, 32, 3}, {5, 33, 64}, {9, 70, 17}, {3, 5, 0}, {6, 0, 4}, {11, 16, 40}} {
		n, m, depth := d[0], d[1], d[2]
		x, y, w := numbers[T](rng, n*depth), numbers[T](rng, m*depth), numbers[T](rng, n*m)
		got := guarded.Slice[T](n * m)
		panels := (m + Panel[T]() - 1) / Panel[T]()
		cols := packed(y, m, depth, depth, 1)
		for norm := range Norm(3) {
			for p := range panels {
				Distances(norm, got, x, cols, room, m, depth, p, n/2, n)
				Distances(norm, got, x, cols, room, m, depth, p, 0, n/2)
			}
			for i, v := range got {
				agree(t, fmt.Sprint(d, " norm ", norm, " element ", i), v, distance(norm, x[i/m*depth:][:depth], y[i%m*depth:][:depth]))
			}
		}
		sums := guarded.Slice[T](n * depth)
		xs, ys := packed(x, depth, n, 1, depth), packed(y, depth, m, 1, depth)
		for _, signs := range []bool{true, false} {
			for p := range (depth + Panel[T]() - 1) / Panel[T]() {
				Sums(signs, sums, w, xs, ys, room, n, m, depth, p, n/2, n)
				Sums(signs, sums, w, xs, ys, room, n, m, depth, p, 0, n/2)
			}
			for i, v := range sums {
				want := 0.0
				for j := range m {
					f, d := float64(w[i/depth*m+j]), float64(x[i]-y[j*depth+i%depth])
					if signs {
						d, f = sign(d)*f, 1
						if x[i] == y[j*depth+i%depth] || x[i]-y[j*depth+i%depth] != x[i]-y[j*depth+i%depth] {
							d = 0
						}
					}
					want += f * d
				}
				agree(t, fmt.Sprint(d, " signs ", signs, " element ", i), v, want)
			}
		}
	}
}

func sign(x float64) float64 {
	if x < 0 {
		return -1
	}
	return 1
}

func distance[T Float](norm Norm, x, y []T) float64 {
	acc := 0.0
	for p := range x {
		switch d := math.Abs(float64(x[p] - y[p])); norm {
		case Manhattan:
			acc += d
		case Euclidean:
			acc += d * d
		default:
			acc = max(acc, d)
		}
	}
	if norm == Euclidean {
		return math.Sqrt(acc)
	}
	return acc
}

func agree[T Float](t *testing.T, what string, got T, want float64) {
	t.Helper()
	if g := float64(got); math.IsNaN(g) != math.IsNaN(want) || math.IsInf(want, 0) && g != want || math.Abs(g-want) > 1e-4*(1+math.Abs(want)) {
		t.Fatalf("%s is %v, want %v", what, g, want)
	}
}

// TestPairs holds the norms of rows and those after them to be Distances' bits.
func TestPairs(t *testing.T) {
	kinds(t, func(k *kernels[float32]) { best32 = k }, testPairs[float32])
	kinds(t, func(k *kernels[float64]) { best64 = k }, testPairs[float64])
}

func testPairs[T Float](t *testing.T) {
	rng, room := rand.New(rand.NewPCG(3, 4)), guarded.Slice[T](Room)
	for _, d := range [][2]int{{0, 3}, {1, 3}, {2, 1}, {5, 0}, {17, 9}, {33, 64}, {70, 5}, {101, 3}} {
		n, depth := d[0], d[1]
		x := numbers[T](rng, n*depth)
		cols, panels := packed(x, n, depth, depth, 1), (n+Panel[T]()-1)/Panel[T]()
		all, got := guarded.Slice[T](n*n), guarded.Slice[T](n*(n-1)/2)
		for norm := range Norm(3) {
			for i := range got {
				got[i] = -1
			}
			for p := range panels {
				Distances(norm, all, x, cols, room, n, depth, p, 0, n)
				Pairs(norm, got, x, cols, room, n, depth, p, n/3, n)
				Pairs(norm, got, x, cols, room, n, depth, p, 0, n/3)
			}
			at := 0
			for i := range n {
				for j := i + 1; j < n; j++ {
					if v, want := got[at], all[i*n+j]; v != want && (v == v || want == want) {
						t.Fatalf("%v norm %d: rows %d and %d: %v, want %v", d, norm, i, j, v, want)
					}
					at++
				}
			}
		}
	}
}
