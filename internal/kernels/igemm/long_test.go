package igemm

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
)

// TestLong compares each loop for 64-bit numbers with sums that wrap around, over sizes that fill
// panels and do not.
func TestLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 13))
	for _, l := range longs {
		for _, d := range [][3]int{{1, 1, 1}, {3, 0, 5}, {13, 1100, 40}, {12, 2, 16}, {2, 3, 8}, {13, 7, 33}, {25, 64, 70}, {5, 33, 16}} {
			m, k, n := d[0], d[1], d[2]
			x, y, want := make([]int64, m*k), make([]int64, k*n), make([]int64, m*n)
			for _, s := range [][]int64{x, y} {
				for i := range s {
					s[i] = int64(rng.Uint64())
				}
			}
			for i := range m {
				for j := range n {
					for p := range k {
						want[i*n+j] += x[i*k+p] * y[p*n+j]
					}
				}
			}
			rows, cols := (m+l.MR-1)/l.MR, (n+l.NR-1)/l.NR
			a, b := make([]int64, kernels.PackedLen(m, k, l.MR)), make([]int64, kernels.PackedLen(n, k, l.NR))
			kernels.Pack(a, x, l.MR, m, k, 0, k, 1, 0, rows)
			kernels.Pack(b, y, l.NR, n, k, 0, 1, n, 0, cols)
			got := make([]int64, m*n)
			for i := range got {
				got[i] = -1
			}
			l.Mul(used(), got, a, b, m, n, k, 0, rows, 0, cols)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s, %v: element %d is %d, want %d", l.name, d, i, got[i], want[i])
				}
			}
		}
	}
}
