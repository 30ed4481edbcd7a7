package executor_test

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/executor"
	"github.com/loris-ml/loris/ir"
)

func nullSession(b *testing.B) *executor.Session {
	d, err := ir.ParseDevice("null")
	if err != nil {
		b.Fatal(err)
	}
	return newSession(b, executor.Config{Device: d, TrimNodes: -1})
}

// BenchmarkRecord is one pointwise op in a step of 1,000 that repeats.
func BenchmarkRecord(b *testing.B) {
	s := nullSession(b)
	x := floats(b, s, make([]float32, 4), 4)
	b.ReportAllocs()
	y := x
	n := 0
	for b.Loop() {
		out := newTensor()
		s.Binary(ir.OpAdd, out, y, x)
		y = out
		if n++; n == 1000 {
			b.StopTimer()
			if err := s.MarkStep(ctx); err != nil {
				b.Fatal(err)
			}
			y, n = x, 0
			b.StartTimer()
		}
	}
}

// BenchmarkMarkStep is a MarkStep whose computation is cached, without the
// recording before it.
func BenchmarkMarkStep(b *testing.B) {
	for _, n := range []int{100, 1000, 10000, 100000, 1000000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := nullSession(b)
			x := floats(b, s, make([]float32, 4), 4)
			record := func() {
				y := x
				for range n {
					out := newTensor()
					s.Binary(ir.OpAdd, out, y, x)
					y = out
				}
			}
			record()
			if err := s.MarkStep(ctx); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				record()
				if err := s.WaitDeviceOps(ctx); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if err := s.MarkStep(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/node")
		})
	}
}
