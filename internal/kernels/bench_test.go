package kernels

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/parallel"
)

func BenchmarkMatMul(b *testing.B) {
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprintf("i32/%d", n), func(b *testing.B) { benchMatMul[int32](b, n) })
	}
	b.Run("i64/256", func(b *testing.B) { benchMatMul[int64](b, 256) })
}

// benchMatMul packs and multiplies on one goroutine.
func benchMatMul[T Integer](b *testing.B, n int) {
	x, y, c := make([]T, n*n), make([]T, n*n), make([]T, n*n)
	for i := range x {
		x[i], y[i] = T(i%7), T(i%5)
	}
	px, py := make([]T, PackedLen(n, n, MR)), make([]T, PackedLen(n, n, NR))
	rows, cols := (n+MR-1)/MR, (n+NR-1)/NR
	b.ReportAllocs()
	for b.Loop() {
		Pack(px, x, MR, n, n, 0, n, 1, 0, rows)
		Pack(py, y, NR, n, n, 0, 1, n, 0, cols)
		MatMul(c, px, py, n, n, n, 0, rows, 0, cols)
	}
	b.ReportMetric(float64(n*n*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
}

func BenchmarkPointwise(b *testing.B) {
	const n = 4096
	x, y, z, mask := make([]float32, n), make([]float32, n), make([]float32, n), make([]uint8, n)
	for i := range x {
		x[i], y[i] = float32(i)/n, float32(n-i)/n
	}
	for _, k := range []struct {
		name string
		run  func()
	}{
		{"add", func() { Add(z, x, y) }},
		{"mul", func() { Mul(z, x, y) }},
		{"div", func() { Div(z, x, y) }},
		{"max", func() { Max(z, x, y) }},
		{"relu", func() { Relu(z, x) }},
		{"exp", func() { Exp(z, x) }},
		{"sigmoid", func() { Sigmoid(z, x) }},
		{"tanh", func() { Tanh(z, x) }},
		{"lt", func() { Lt(mask, x, y) }},
		{"sum", func() { z[0] = float32(sumRow(0.0, x)) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				k.run()
			}
		})
	}
}

func BenchmarkFor(b *testing.B) {
	x := make([]float32, 1<<20)
	body := func(lo, hi int) { Relu(x[lo:hi], x[lo:hi]) }
	b.Run("serial", func(b *testing.B) {
		for b.Loop() {
			body(0, len(x))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parallel.For(len(x), 1<<15, body)
		}
	})
}
