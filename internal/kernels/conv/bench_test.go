package conv

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// benchmarks are layers of common networks.
var benchmarks = []struct {
	name string
	g    Geometry
}{
	{"3x3 64 8x56", geometry(8, 1, 64, 64, plane(1, 56), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"7x7 stem", geometry(1, 1, 3, 64, plane(1, 224), plane(1, 7), plane(1, 2), plane(0, 3), cube(1))},
	{"3x3 64 56", geometry(1, 1, 64, 64, plane(1, 56), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 128 28", geometry(1, 1, 128, 128, plane(1, 28), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 256 14", geometry(1, 1, 256, 256, plane(1, 14), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 512 7", geometry(1, 1, 512, 512, plane(1, 7), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"3x3 64 128 stride 2", geometry(1, 1, 64, 128, plane(1, 56), plane(1, 3), plane(1, 2), plane(0, 1), cube(1))},
	{"1x1 64 128 stride 2", geometry(1, 1, 64, 128, plane(1, 56), cube(1), plane(1, 2), cube(0), cube(1))},
	{"1x1 256 64 56", geometry(1, 1, 256, 64, plane(1, 56), cube(1), cube(1), cube(0), cube(1))},
	{"1x1 1024 256 14", geometry(1, 1, 1024, 256, plane(1, 14), cube(1), cube(1), cube(0), cube(1))},
	{"depthwise 96 56", geometry(1, 96, 1, 1, plane(1, 56), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	{"depthwise 144 stride 2", geometry(1, 144, 1, 1, plane(1, 56), plane(1, 3), plane(1, 2), plane(0, 1), cube(1))},
	{"patches 16x16 768", geometry(1, 1, 3, 768, plane(1, 224), plane(1, 16), plane(1, 16), cube(0), cube(1))},
}

// BenchmarkConvolution reports the rate of multiplications and additions of the
// fastest run, which other work on the machine disturbs least.
func BenchmarkConvolution(b *testing.B) {
	for _, bm := range benchmarks {
		g := bm.g
		for _, l := range layouts[:2] {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/%d", bm.name, l.name, threads), func(b *testing.B) {
					parallel.SetThreads(threads)
					defer parallel.SetThreads(0)
					xl, n := l.of(g.N, g.Groups*g.CIn, g.In)
					yl, m := l.of(g.N, g.Groups*g.COut, g.Out)
					c := &Call[float32, float32]{
						Plan: New[float32, float32](g, xl, yl, threads, false), X: make([]float32, n), Y: make([]float32, m),
						Weights:    Pack[float32](make([]float32, g.Groups*g.COut*g.CIn*volume(g.Kernel)), g.Filters(), g, formOf(&g, tile.Best[float32](), false)),
						Bias:       make([]float32, g.Groups*g.COut),
						Activation: vec.Activation{Kind: vec.ReLU},
					}
					best := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := time.Now()
						c.Run()
						best = min(best, time.Since(start))
					}
					flops := 2 * float64(m) * float64(g.CIn*volume(g.Kernel))
					b.ReportMetric(float64(best.Microseconds()), "best-µs")
					b.ReportMetric(flops/float64(best.Nanoseconds()), "best-GFLOP/s")
				})
			}
		}
	}
}
