package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSmall holds small products against Mul, bit by bit.
func TestSmall(t *testing.T) {
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
	matrix := func(rows, cols int) Matrix[A] {
		m := Matrix[A]{Data: next(2 * rows * cols), Rows: rows, Cols: cols, RowStride: cols, ColStride: 1}
		switch r.IntN(4) {
		case 0:
			m.RowStride, m.ColStride = 1, rows
		case 1:
			m.RowStride, m.ColStride = 2*cols, 2
		}
		return m
	}
	taken := 0
	for range 600 {
		m, n, k := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(60)
		a, b := matrix(m, k), matrix(k, n)
		s, ok := SmallOf[A](m, n, k, a.RowStride, a.ColStride, b.RowStride, b.ColStride)
		if !ok {
			continue
		}
		taken++
		got, want := append(make([]A, 0, m*n+20), next(m*n)...), next(m*n)
		room := next(s.Room())
		right, step := s.Right(b.Data[:b.extent()+r.IntN(40)%(len(b.Data)-b.extent()+1)], room)
		s.Mul(append(got, next(r.IntN(20))...), a.Data, right, step, room)
		Mul(Dense(want, m, n), a, b, nil)
		if !slices.Equal(got, want) {
			t.Fatalf("%d×%d×%d: %v, want %v", m, n, k, got, want)
		}
	}
	if taken < 300 {
		t.Errorf("%d of 600 products are small", taken)
	}
}

// TestSmallOf lists what is not for Small.
func TestSmallOf(t *testing.T) {
	for _, s := range [][7]int{
		{0, 2, 2, 2, 1, 2, 1}, {2, 0, 2, 2, 1, 2, 1}, {2, 2, 0, 2, 1, 2, 1}, {2, 2, 2, -2, 1, 2, 1},
		{65, 64, 64, 64, 1, 64, 1}, {4, mostSmallCols + 1, 2, 2, 1, 200, 1}, {2, 2, 600, 600, 1, 2, 1}, {50, 8, 8, 8, 1, 512, 1},
	} {
		if _, ok := SmallOf[float32](s[0], s[1], s[2], s[3], s[4], s[5], s[6]); ok {
			t.Errorf("%v is taken", s)
		}
	}
}
