package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/parallel"
)

// BenchmarkAttention reports the fastest run, which other work on the machine
// disturbs least.
func BenchmarkAttention(b *testing.B) {
	for _, s := range []struct {
		shape
		causal bool
	}{
		{shape{4, 8, 8, 128, 128, 64, 64}, false},
		{shape{1, 12, 12, 512, 512, 64, 64}, false},
		{shape{1, 12, 12, 512, 512, 64, 64}, true},
		{shape{8, 12, 12, 128, 128, 32, 32}, false},
		{shape{1, 12, 12, 197, 197, 64, 64}, false},
		{shape{1, 32, 8, 1, 1024, 128, 128}, false},
		{shape{1, 12, 12, 1, 512, 64, 64}, false},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/causal=%v/%d", s.shape, s.causal, threads), func(b *testing.B) {
				parallel.SetThreads(threads)
				defer parallel.SetThreads(0)
				operand := func(heads, rows, cols int) Tensor[float32] {
					x := make([]float32, s.batch*heads*rows*cols)
					for i := range x {
						x[i] = float32(rand.NormFloat64())
					}
					return Dense(x, heads, rows, cols)
				}
				c := &Call[float32, float32]{
					Batch: s.batch, Heads: s.heads, KVHeads: s.kv, Queries: s.queries, Keys: s.keys, Dim: s.dim, ValueDim: s.value,
					Scale: 1 / math.Sqrt(float64(s.dim)), Causal: s.causal,
					Q: operand(s.heads, s.queries, s.dim), K: operand(s.kv, s.keys, s.dim), V: operand(s.kv, s.keys, s.value),
					Out: operand(s.heads, s.queries, s.value),
				}
				best := time.Duration(math.MaxInt64)
				for b.Loop() {
					start := time.Now()
					c.Run()
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Nanoseconds())/1000, "best-µs")
			})
		}
	}
}
