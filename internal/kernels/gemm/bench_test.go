package gemm

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/parallel"
)

// BenchmarkMul multiplies by a matrix with dense rows (n) and by the transpose of
// one (t), as linear layers do.
func BenchmarkMul(b *testing.B) {
	for _, d := range [][3]int{
		{32, 768, 768}, {128, 384, 384}, {128, 384, 1536}, {128, 1536, 384}, {128, 768, 3072}, {512, 768, 768}, {512, 3072, 768},
		{64, 576, 3136}, {256, 2304, 196}, {256, 256, 256}, {1024, 1024, 1024}, {32, 1024, 1024}, {64, 1024, 1024}, {128, 1024, 1024}, {128, 512, 512}, {128, 512, 2048}, {64, 768, 3072}, {1, 4096, 4096}, {4, 4096, 4096}, {1, 768, 768}, {1, 768, 3072}, {4, 768, 768}, {8, 768, 3072}, {16, 768, 768}, {64, 64, 64}, {16, 16, 16}, {4, 4, 4}, {100, 100, 100}, {20000, 16, 48}, {20000, 48, 16}, {5000, 5, 100}, {2048, 128, 512}, {2048, 512, 128}, {512, 2048, 128}, {2048, 128, 384}, {2048, 128, 128},
	} {
		for _, layout := range []string{"n", "t"} {
			for _, threads := range []int{1, 2} {
				name := fmt.Sprintf("%dx%dx%d/%s/%d", d[0], d[1], d[2], layout, threads)
				b.Run("f32/"+name, func(b *testing.B) { benchMul[float32](b, d, layout == "t", threads) })
			}
		}
	}
	b.Run("f64/512x512x512/n/1", func(b *testing.B) { benchMul[float64](b, [3]int{512, 512, 512}, false, 1) })
	b.Run("f64/128x768x768/t/1", func(b *testing.B) { benchMul[float64](b, [3]int{128, 768, 768}, true, 1) })
	for _, layout := range []string{"n", "t"} {
		for _, d := range [][3]int{{1024, 1024, 1024}, {128, 768, 768}, {1, 768, 3072}, {8, 768, 768}} {
			name := fmt.Sprintf("%dx%dx%d/%s/1", d[0], d[1], d[2], layout)
			b.Run("bf16/"+name, func(b *testing.B) { benchMul[BF16](b, d, layout == "t", 1) })
			b.Run("f16/"+name, func(b *testing.B) { benchMul[F16](b, d, layout == "t", 1) })
		}
	}
}

func benchMul[T Element](b *testing.B, d [3]int, transposed bool, threads int) {
	m, k, n := d[0], d[1], d[2]
	x, y, c := make([]T, m*k), make([]T, k*n), make([]T, m*n)
	for i := range x {
		x[i] = toElement[T](float64(i%7) / 7)
	}
	for i := range y {
		y[i] = toElement[T](float64(i%5) / 5)
	}
	w := Dense(y, k, n)
	if transposed {
		w = Dense(y, n, k).T()
	}
	o := &Options[T]{Threads: threads}
	best(b, 2*m*n*k, func() { Mul(Dense(c, m, n), Dense(x, m, k), w, o) })
}

// BenchmarkMulPacked is of weights that were packed before.
func BenchmarkMulPacked(b *testing.B) {
	for _, d := range [][3]int{{1, 4096, 4096}, {14, 4096, 4096}, {56, 768, 3072}, {128, 768, 3072}} {
		name := fmt.Sprintf("%dx%dx%d", d[0], d[1], d[2])
		b.Run("f32/"+name, func(b *testing.B) { benchPacked[float32](b, d) })
		b.Run("bf16/"+name, func(b *testing.B) { benchPacked[BF16](b, d) })
		b.Run("f16/"+name, func(b *testing.B) { benchPacked[F16](b, d) })
	}
}

func benchPacked[T Element](b *testing.B, d [3]int) {
	m, k, n := d[0], d[1], d[2]
	x, c, w := make([]T, m*k), make([]T, m*n), Pack(Dense(make([]T, k*n), n, k).T())
	best(b, 2*m*n*k, func() { MulPacked(Dense(c, m, n), Dense(x, m, k), w, &Options[T]{Threads: 1}) })
}

func BenchmarkMulBatch(b *testing.B) {
	for _, d := range [][4]int{{16, 256, 64, 256}, {16, 256, 256, 64}, {96, 64, 64, 64}, {48, 128, 32, 128}, {200, 17, 17, 17}, {250, 16, 20, 15}, {400, 57, 3, 3}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("f32/%d·%dx%dx%d/%d", d[0], d[1], d[2], d[3], threads), func(b *testing.B) {
				defer parallel.SetThreads(0)
				parallel.SetThreads(threads)
				n, m, k, cols := d[0], d[1], d[2], d[3]
				x, y, c := make([]float32, n*m*k), make([]float32, n*k*cols), make([]float32, n*m*cols)
				best(b, 2*n*m*cols*k, func() {
					MulBatch(n, func(i int) (p, q, r Matrix[float32]) {
						return Dense(c[i*m*cols:], m, cols), Dense(x[i*m*k:], m, k), Dense(y[i*k*cols:], k, cols)
					}, nil)
				})
			})
		}
	}
}

// best reports the fastest run beside the mean: on a machine that others use too
// it is what tells one version from another.
func best(b *testing.B, flops int, run func()) {
	run()
	least := time.Duration(math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		run()
		least = min(least, time.Since(start))
	}
	b.ReportMetric(float64(least.Nanoseconds())/1e3, "best-µs")
	b.ReportMetric(float64(flops)/float64(least.Nanoseconds()), "best-GFLOP/s")
}
