package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

var ctx = context.Background()

func session(b *testing.B, opts ...loris.SessionOption) *loris.Session {
	b.Helper()
	s, err := loris.New(append([]loris.SessionOption{loris.WithTrimNodes(-1)}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	return s
}

// chain records n pointwise ops, each on the result of the last.
func chain(x *loris.Tensor, n int) *loris.Tensor {
	y := x
	for range n {
		y = y.Add(x)
	}
	return y
}

// ones returns four ones that are data already.
func ones(b *testing.B, s *loris.Session) *loris.Tensor {
	x := s.With().Ones(4)
	check(b, s.Sync(ctx, x))
	return x
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// clock times parts of an iteration by hand: b.StopTimer stops the world each
// time, which would distort parts of some microseconds.
type clock struct{ total time.Duration }

func (c *clock) time(fn func()) {
	start := time.Now()
	fn()
	c.total += time.Since(start)
}

func (c *clock) report(b *testing.B, per int, unit string) {
	b.ReportMetric(float64(c.total.Nanoseconds())/float64(b.N*per), unit)
}

// BenchmarkRecord records 1,000 pointwise ops in a step that repeats; ns/record
// and allocations are of one op and leave the step's end out. In a program with
// next to no heap the collector runs all the time (each 4 MiB), and that is most of the
// cost; "64MiB" is the same with the heap of a program that holds a small model.
func BenchmarkRecord(b *testing.B) {
	for _, c := range []struct {
		name string
		op   func(y, x *loris.Tensor) *loris.Tensor
	}{
		{"tensor", func(y, x *loris.Tensor) *loris.Tensor { return y.Add(x) }},
		{"number", func(y, _ *loris.Tensor) *loris.Tensor { return y.Mul(1.5) }},
		{"unary", func(y, _ *loris.Tensor) *loris.Tensor { return y.Tanh() }},
	} {
		for _, heap := range []string{"empty", "64MiB"} {
			b.Run(c.name+"/"+heap, func(b *testing.B) { record(b, c.op, heap == "64MiB") })
		}
	}
}

func record(b *testing.B, op func(y, x *loris.Tensor) *loris.Tensor, model bool) {
	const n = 1000
	var weights []byte
	if model {
		weights = make([]byte, 64<<20)
	}
	s := session(b, loris.WithDevice(loris.Null))
	x := ones(b, s)
	var rec clock
	var before, after runtime.MemStats
	step := func() {
		rec.time(func() {
			y := x
			for range n {
				y = op(y, x)
			}
		})
		check(b, s.MarkStep(ctx))
	}
	step()
	rec = clock{}
	runtime.ReadMemStats(&before)
	for b.Loop() {
		step()
	}
	runtime.ReadMemStats(&after)
	rec.report(b, n, "ns/record")
	// The MarkStep's own two dozen are in it: 0.02 an op.
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*n), "allocs/record")
	runtime.KeepAlive(weights)
}

// BenchmarkMarkStep is a MarkStep whose computation is cached, on the null
// backend, by graph size; recording is not counted, but the step before has
// finished.
func BenchmarkMarkStep(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
		if n > 10_000 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := session(b, loris.WithDevice(loris.Null))
			x := ones(b, s)
			chain(x, n)
			check(b, s.MarkStep(ctx))
			var mark clock
			for b.Loop() {
				chain(x, n)
				check(b, s.WaitDeviceOps(ctx))
				mark.time(func() { check(b, s.MarkStep(ctx)) })
			}
			mark.report(b, n, "ns/node")
		})
	}
}

// BenchmarkHash records a graph that was never seen, line by line inferred and
// hashed anew, and computes its graph hash.
func BenchmarkHash(b *testing.B) {
	const n = 1000
	s := session(b, loris.WithDevice(loris.Null), loris.WithLines(loris.LinesOff))
	var rec, hash clock
	size := 0
	for b.Loop() {
		size++
		x := s.With().Ones(size%100_000 + 1) // a new shape makes every hash new
		check(b, s.Sync(ctx, x))
		var y *loris.Tensor
		rec.time(func() { y = chain(x, n) })
		hash.time(func() {
			if _, err := s.GraphHash(y); err != nil {
				b.Fatal(err)
			}
		})
		y.Discard()
		check(b, s.MarkStep(ctx))
	}
	rec.report(b, n, "ns/record-new")
	hash.report(b, n, "ns/hash-node")
}

// BenchmarkFirstCompile is the first MarkStep of a new graph on the cpu, from walk
// to scheduled, by the number of its nodes. The graphs are those of the workload
// first-compile: which of two ops the first groups of four begin with is the
// graph's number in binary, so that part of the machine code is new each time and
// part is that of the graph before. Sizes differ, too, because small graphs have
// few groups.
func BenchmarkFirstCompile(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000, 10_000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) { firstCompile(b, nodes) })
	}
}

func firstCompile(b *testing.B, nodes int) {
	s := session(b)
	var c clock
	for graph := uint32(0); b.Loop(); graph++ {
		x := s.With().Ones(4096 + int(graph%4096))
		check(b, s.Sync(ctx, x))
		check(b, s.WaitDeviceOps(ctx))
		y := x
		for i := range nodes {
			switch first := i/4 < 32 && graph>>(i/4)&1 == 1; {
			case i%4 == 0 && first:
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
		c.time(func() { check(b, s.MarkStep(ctx)) })
	}
	c.report(b, 1, "ns/compile")
	c.report(b, nodes, "ns/node")
}

// BenchmarkTrainingStep is a step of the digits network on the cpu: batch 64,
// 64-128-64-10, Adam.
func BenchmarkTrainingStep(b *testing.B) {
	s := session(b)
	m := nn.NewSequential(
		nn.NewLinear(64, 128, nn.With(s.With())), nn.Func(nn.ReLU),
		nn.NewLinear(128, 64, nn.With(s.With())), nn.Func(nn.ReLU),
		nn.NewLinear(64, 10, nn.With(s.With())))
	opt := optim.NewAdam(m.Params(), 1e-3)
	x := s.With().Rand(64, 64)
	y := s.With(loris.As(loris.I64)).Zeros(64)
	step := func() {
		opt.Minimize(loris.CrossEntropy(m.Forward(x), y))
		check(b, s.MarkStep(ctx))
	}
	check(b, s.MarkStep(ctx))
	step()
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	check(b, s.WaitDeviceOps(ctx))
	if r := s.Report(); r.Compiles > 3 {
		b.Errorf("%d compiles:\n%v", r.Compiles, r)
	}
}

// BenchmarkSmallStep is a step of a linear layer trained by SGD, recorded and compiled, which takes some ten
// microseconds: with -cpu 1,2 it shows what a second processor costs where there is nothing to share.
func BenchmarkSmallStep(b *testing.B) {
	for _, compiled := range []bool{false, true} {
		b.Run(map[bool]string{false: "recorded", true: "compiled"}[compiled], func(b *testing.B) {
			s := session(b)
			m := nn.NewLinear(128, 64, nn.With(s.With()))
			x, y := s.With().Rand(64, 128), s.With(loris.As(loris.I64)).Zeros(64)
			check(b, s.MarkStep(ctx))
			update := func(x, y *loris.Tensor) {
				optim.NewSGD(m.Params(), 1e-3).Minimize(loris.CrossEntropy(m.Forward(x), y))
			}
			step := func() { check(b, s.Step(ctx, func() error { update(x, y); return nil })) }
			if compiled {
				f := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
					update(in[0], in[1])
					return nil
				})
				step = func() {
					_, err := f.Call(ctx, x, y)
					check(b, err)
				}
			}
			step()
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			check(b, s.WaitDeviceOps(ctx))
		})
	}
}
