//go:build cuda && linux && cgo

package cuda_test

import (
	"testing"
	"time"

	"github.com/loris-ml/loris"
)

// chain records n ops of which no two neighbours are one product or sum.
func chain(x *loris.Tensor, n int) *loris.Tensor {
	y := x
	for i := range n {
		switch i % 4 {
		case 0:
			y = y.Add(x)
		case 1:
			y = y.Tanh()
		case 2:
			y = y.Mul(x)
		default:
			y = y.Cumsum(0) // a launch of its own, unlike the others
		}
	}
	return y
}

// BenchmarkStep is what a step of 100 nodes costs whose computation is cached, on the
// stand-in: the host's time for MarkStep, and calls of the driver for its run.
func BenchmarkStep(b *testing.B) {
	f := onFake(b)
	f.Set("idle", 1)
	s := session(b, loris.CUDA(0))
	defer s.Close(b.Context())
	x := s.With().Ones(4)
	if err := s.Sync(b.Context(), x); err != nil {
		b.Fatal(err)
	}
	var host time.Duration
	steps := 0
	for i := 0; b.Loop(); i++ {
		y := chain(x, 100)
		begin := time.Now()
		if err := s.MarkStep(b.Context()); err != nil {
			b.Fatal(err)
		}
		host += time.Since(begin)
		if err := s.WaitDeviceOps(b.Context()); err != nil {
			b.Fatal(err)
		}
		y.Discard()
		if steps++; i < 5 { // which compile and capture
			host, steps = 0, 0
			f.Calls()
		}
	}
	n := float64(max(steps, 1))
	b.ReportMetric(float64(host.Nanoseconds())/n, "ns/MarkStep")
	b.ReportMetric(float64(len(f.Calls()))/n, "calls/step")
}
