package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSmall holds small products against Mul, bit by bit.
func TestSmall(t *testing.T) {
	if !Small(make([]float32, 4), 2, 2, 1, make([]float32, 2), 1, 1, make([]float32, 2), 2) {
		t.Skip("no loop for small products")
	}
	smallAsMul[float32](t)
	smallAsMul[float64](t)
}

func smallAsMul[A Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	next := func(n int) []A {
		x := make([]A, n)
		for i := range x {
			x[i] = A(r.NormFloat64())
		}
		return x
	}
	for range 300 {
		m, n, k := 1+r.IntN(MostSmall), 2+r.IntN(7), 1+r.IntN(MostSmall)
		a, b := next(m*k), next(k*n)
		left := Matrix[A]{Data: a, Rows: m, Cols: k, RowStride: k, ColStride: 1}
		if r.IntN(2) == 0 {
			left.RowStride, left.ColStride = 1, m
		}
		got, want := next(m*n), next(m*n)
		if !Small(got, m, n, k, a, left.RowStride, left.ColStride, b, n) {
			t.Fatalf("%d×%d×%d is refused", m, n, k)
		}
		Mul(Dense(want, m, n), left, Dense(b, k, n), nil)
		if !slices.Equal(got, want) {
			t.Fatalf("%d×%d×%d: %v, want %v", m, n, k, got, want)
		}
	}
	if got := next(2); Small(got, 1, 1, 1, got, 1, 1, got, 1) || Small(got, MostSmall+1, 2, 1, got, 1, 1, got, 1) {
		t.Error("a product is taken that is not for it")
	}
}
