package kernels

import (
	"math"
	"testing"
)

// TestEqualSteps holds numbers in equal steps against the formula of each, from any element on and for
// all lengths around those of vectors.
func TestEqualSteps(t *testing.T) {
	checkSteps[uint8](t)
	checkSteps[int8](t)
	checkSteps[int16](t)
	checkSteps[int32](t)
	checkSteps[int64](t)
	checkLines[float32](t)
	checkLines[float64](t)
}

func checkSteps[T Number](t *testing.T) {
	t.Helper()
	for n := range 100 {
		for _, q := range [][3]int64{{0, 1, 0}, {-7, 3, 5}, {math.MaxInt64 - 9, 1 << 40, 1000}, {4, -129, 33}} {
			got := make([]T, n)
			ArangeInt(got, q[0], q[1], int(q[2]))
			for i, v := range got {
				if want := T(q[0] + (q[2]+int64(i))*q[1]); v != want {
					t.Fatalf("element %d of %d of %T, %v: %v, want %v", i, n, v, q, v, want)
				}
			}
		}
	}
}

func checkLines[T float32 | float64](t *testing.T) {
	t.Helper()
	checkSteps[T](t)
	inf := math.Inf(1)
	for n := range 70 {
		for _, q := range [][2]float64{{0, 1}, {-0.1, 0.3}, {1e300, -1e-300}, {0, math.Copysign(0, -1)}, {1, inf}, {math.NaN(), 2}, {5, 5}} {
			for _, lo := range []int{0, 1, n / 2, n} {
				got := make([]T, n-lo/2)
				ArangeFloat(got, q[0], q[1], lo)
				for i, v := range got {
					product := q[1] * float64(lo+i)
					if want := T(q[0] + product); !sameNumber(v, want) {
						t.Fatalf("element %d of %d of %T, %v: %v, want %v", i, n, v, q, v, want)
					}
				}
				lo = min(lo, n)
				got = make([]T, n-lo)
				Linspace(got, q[0], q[1], n, lo)
				for i, v := range got {
					step := (q[1] - q[0]) / float64(n-1)
					at := lo + i
					up, down := float64(at)*step, float64(n-1-at)*step
					want := T(q[1] - down)
					if at < n/2 || n == 1 {
						want = T(q[0] + up)
					}
					if n == 1 {
						want = T(q[0])
					}
					if !sameNumber(v, want) {
						t.Fatalf("element %d of %d from %v, %T: %v, want %v", at, n, q, v, v, want)
					}
				}
			}
		}
	}
}

// sameNumber tells zeros of different signs apart, but no NaN from another.
func sameNumber[T float32 | float64](x, y T) bool {
	return x != x && y != y || x == y && math.Signbit(float64(x)) == math.Signbit(float64(y))
}
