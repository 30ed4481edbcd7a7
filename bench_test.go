package loris

import (
	"context"
	"testing"
)

// recorded are the ways to record one op that the benchmarks and the allocation
// tests measure; each takes the chain's last tensor and another operand.
var recorded = []struct {
	name   string
	fn     func(y, x *Tensor) *Tensor
	allocs float64
}{
	{"unary", func(y, x *Tensor) *Tensor { return y.Neg() }, 1},
	{"binary", func(y, x *Tensor) *Tensor { return y.Add(x) }, 1},
	{"number", func(y, x *Tensor) *Tensor { return y.Mul(0.5) }, 1},
	{"number first", func(y, x *Tensor) *Tensor { return Sub(1, y) }, 1},
	{"matmul", func(y, x *Tensor) *Tensor { return y.MatMul(x) }, 1},
	{"composite", func(y, x *Tensor) *Tensor { return y.Silu() }, 1},
	{"options", func(y, x *Tensor) *Tensor { return y.Cumsum(0, As(F32)) }, 4},
	{"dims", func(y, x *Tensor) *Tensor { return y.Sum(Dim(-1), Keepdim(true)) }, 2},
	{"numbers", func(y, x *Tensor) *Tensor { return y.LayerNorm([]int{2}, Weight(nil), Eps(1e-5)) }, 4},
	{"ints", func(y, x *Tensor) *Tensor { return y.Permute(1, 0) }, 4},
}

// chain is a step of n equal ops; it is marked so that the recorder has seen it.
func chain(tb testing.TB, s *Session, x *Tensor, n int, fn func(y, x *Tensor) *Tensor) {
	y := x
	for range n {
		y = fn(y, x)
	}
	if err := s.MarkStep(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// TestRecordingAllocates bounds the allocations of recording one op in a step
// that repeats: the handle, and the arguments where an op has some.
func TestRecordingAllocates(t *testing.T) {
	for _, c := range recorded {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, WithDevice(Null))
			x := s.With().FromSlice(make([]float32, 4), 2, 2)
			const steps, n = 10, 500
			for range 3 {
				chain(t, s, x, n, c.fn)
			}
			// What a step allocates beside its ops is measured with few of them.
			few := testing.AllocsPerRun(steps, func() { chain(t, s, x, 1, c.fn) })
			chain(t, s, x, n, c.fn)
			many := testing.AllocsPerRun(steps, func() { chain(t, s, x, n, c.fn) })
			// Slabs of nodes and the like come to a few for every hundred ops.
			if per := (many - few) / (n - 1); per > c.allocs+0.2 {
				t.Errorf("%.2f allocations for each op, want %v", per, c.allocs)
			}
		})
	}
}

// BenchmarkRecord is one op in a step of 1,000 that repeats, on the backend that
// computes nothing, with the MarkStep left out.
func BenchmarkRecord(b *testing.B) {
	for _, c := range recorded {
		b.Run(c.name, func(b *testing.B) {
			s := newSession(b, WithDevice(Null))
			x := s.With().FromSlice(make([]float32, 4), 2, 2)
			const n = 1000
			chain(b, s, x, n, c.fn)
			b.ReportAllocs()
			y, i := x, 0
			for b.Loop() {
				y = c.fn(y, x)
				if i++; i == n {
					b.StopTimer()
					if err := s.MarkStep(context.Background()); err != nil {
						b.Fatal(err)
					}
					y, i = x, 0
					b.StartTimer()
				}
			}
		})
	}
}
