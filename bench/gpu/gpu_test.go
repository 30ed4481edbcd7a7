//go:build cuda && linux && cgo

package gpu

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend/cuda"
)

// session returns one on the first GPU. The machines that compile this test have
// none.
func session(b *testing.B) *loris.Session {
	b.Helper()
	if _, err := cuda.Devices(); err != nil {
		b.Skip(err)
	}
	s, err := loris.New(loris.WithDevice(loris.CUDA(0)), loris.WithTrimNodes(-1))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return s
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// record records n ops of which no two neighbours are one product or sum, on the
// result of the last; first says in binary which of two ops groups of four begin
// with.
func record(x *loris.Tensor, n int, first uint32) *loris.Tensor {
	y := x
	for i := range n {
		switch {
		case i%4 == 0 && i < 128 && first>>(i/4)&1 == 1:
			y = y.Sub(x)
		case i%4 == 0:
			y = y.Add(x)
		case i%4 == 1:
			y = y.Tanh()
		case i%4 == 2:
			y = y.Mul(x)
		default:
			y = y.Sigmoid()
		}
	}
	return y
}

// BenchmarkMarkStep is the host's time for a MarkStep whose computation is
// cached, and the time until the device is done with it, by the number of nodes.
func BenchmarkMarkStep(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			s := session(b)
			x := s.With().Ones(4096)
			check(b, s.Sync(b.Context(), x))
			var host, device time.Duration
			for i := 0; b.Loop(); i++ {
				y := record(x, nodes, 0)
				begin := time.Now()
				check(b, s.MarkStep(b.Context()))
				host += time.Since(begin)
				check(b, s.WaitDeviceOps(b.Context()))
				device += time.Since(begin)
				y.Discard()
				if i == 0 { // which compiled
					host, device = 0, 0
				}
			}
			n := float64(max(b.N-1, 1))
			b.ReportMetric(float64(host.Nanoseconds())/n, "ns/MarkStep")
			b.ReportMetric(float64(device.Nanoseconds())/n, "ns/done")
		})
	}
}

// BenchmarkFirstCompile is the first MarkStep of a new graph until its result is
// there, by the number of nodes.
func BenchmarkFirstCompile(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			s := session(b)
			x := s.With().Ones(4096)
			check(b, s.Sync(b.Context(), x))
			for graph := uint32(0); b.Loop(); graph++ {
				record(x, nodes, graph)
				check(b, s.MarkStep(b.Context()))
				check(b, s.WaitDeviceOps(b.Context()))
			}
		})
	}
}
