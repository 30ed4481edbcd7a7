package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCummaxRows holds rows of adjoining elements, which floats have a loop for, against the same rows as columns.
func TestCummaxRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	cummaxRows(t, func() float32 {
		return []float32{0, float32(math.Copysign(0, -1)), 1, 2, -3, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[rng.IntN(8)]
	})
	cummaxRows(t, func() float32 { return rng.Float32() })
	cummaxRows(t, func() uint8 { return uint8(rng.Uint32()) })
	cummaxRows(t, func() int64 { return rng.Int64N(5) - 2 })
}

func cummaxRows[T Number](t *testing.T, element func() T) {
	t.Helper()
	for n := 1; n < 40; n++ {
		const rows = 39 // more than go along together
		x, turned := make([]T, rows*n), make([]T, rows*n)
		for i := range x {
			x[i] = element()
			turned[i%n*rows+i/n] = x[i]
		}
		for _, least := range []bool{false, true} {
			values, wantValues := make([]T, rows*n), make([]T, rows*n)
			indices, wantIndices := make([]int64, rows*n), make([]int64, rows*n)
			Cummax(values, indices, x, least, n, 1, 0, rows)
			Cummax(wantValues, wantIndices, turned, least, n, rows, 0, rows)
			for i, v := range values {
				p := i%n*rows + i/n
				if indices[i] != wantIndices[p] || v != wantValues[p] && (v == v || wantValues[p] == wantValues[p]) {
					t.Fatalf("%v, least %v: element %d is %v of %d, want %v of %d", x, least, i, v, indices[i], wantValues[p], wantIndices[p])
				}
			}
		}
	}
}
