package rnn

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// BenchmarkLayer has the sizes of the recurrent workloads.
func BenchmarkLayer(b *testing.B) {
	const time, batch, dim = 100, 16, 256
	for _, mode := range []Mode{LSTM, GRU} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d/%d", mode, threads), func(b *testing.B) {
				parallel.SetThreads(threads)
				defer parallel.SetThreads(0)
				n := network{x: make([]float64, time*batch*dim)}
				w := make([]float32, mode.Gates()*dim*dim)
				for i := range w {
					w[i] = float32(i%129-64) / 1024
				}
				for i := range n.x {
					n.x[i] = float64(i%127-63) / 64
				}
				m := Matrix[float32]{w, dim, 1}
				x, y := make([]float32, len(n.x)), make([]float32, len(n.x))
				vec.Store(x, n.x)
				c := &Call[float32, float32]{
					Weights: Pack[float32](mode, dim, dim, m, m, nil, nil), Time: time, Batch: batch,
					X: Sequence[float32]{x, batch * dim, dim}, Y: Sequence[float32]{y, batch * dim, dim},
				}
				for b.Loop() {
					c.Run()
				}
			})
		}
	}
}
