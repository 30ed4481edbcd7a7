//go:build cuda && linux && cgo

package emit

import (
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// BenchmarkGPU has how many bytes kernels move in a second, and as a share of what
// a copy on the device does. Operands that do not move along rows count once.
func BenchmarkGPU(b *testing.B) {
	g := newGPU(b)
	if g == nil {
		b.Skip("there is no GPU")
	}
	const rows, cols = 16384, 4096
	size := int64(rows * cols * 4)
	var memory [3]driver.DevicePtr
	for i := range memory {
		p, err := g.pool.Alloc(g.stream, size)
		g.check(err)
		g.check(g.stream.Set(p, 0x3f800000, 4, size/4))
		memory[i] = p
	}
	defer func() {
		for _, p := range memory {
			g.check(g.stream.Free(p))
		}
	}()
	copied := g.seconds(func() { g.check(g.stream.Copy(memory[1], memory[0], size)) })
	copyRate := float64(2*size) / copied
	for _, bench := range []struct {
		name       string
		k          *loop.Kernel
		rows, cols int
		still      []bool // operands that do not move along rows
		bytes      int64
	}{
		{"add", addition(), 1, rows * cols, nil, 3 * size},
		{"softmax", softmaxInPlace(), rows, cols, nil, 2 * size},
		{"layer norm", layerNorm(ir.F32), rows, cols, []bool{false, true, true, false}, 2 * size},
		{"sums of rows", sumOf(loop.Columns), rows, cols, []bool{false, false}, size},
		{"sums of columns", sumOf(loop.Rows), rows, cols, []bool{false, false}, size},
		{"sum", sumOf(loop.Columns), 1, rows * cols, nil, size},
	} {
		b.Run(bench.name, func(b *testing.B) {
			rate := 0.0
			for range b.N {
				rate = float64(bench.bytes) / g.time(bench.k, bench.rows, bench.cols, bench.still, memory[:])
			}
			b.ReportMetric(rate/1e9, "GB/s")
			b.ReportMetric(rate/copyRate, "of-copy")
		})
	}
}

// time returns the seconds that a kernel of f32s takes.
func (g *realGPU) time(k *loop.Kernel, rows, cols int, still []bool, memory []driver.DevicePtr) float64 {
	l, err := WriteLoop(k, Options{})
	g.check(err)
	geometry := &Geometry{Rows: rows, Cols: cols}
	var operands []uint64
	for a := range k.Args {
		p := Place{Row: 4 * cols}
		if still != nil && still[a] {
			p.Row = 0
		}
		geometry.Args = append(geometry.Args, p)
		operands = append(operands, uint64(memory[a%len(memory)]))
	}
	plan := l.Plan(geometry, g.limits)
	work, fault := g.alloc(make([]byte, plan.Workspace)), g.alloc(make([]byte, faultBytes))
	var functions []*driver.Function
	var params [][]uint64
	for i := range plan.Launches {
		launch := &plan.Launches[i]
		f, err := g.load(launch.Entry, launch.Source()).Function(launch.Entry)
		g.check(err)
		functions, params = append(functions, f), append(params, launch.Bind(operands, uint64(work), uint64(fault)))
	}
	seconds := g.seconds(func() {
		for i, f := range functions {
			g.check(f.Launch(g.stream, driver.Launch{Grid: dim(plan.Launches[i].Grid), Block: dim(plan.Launches[i].Block)}, params[i]))
		}
	})
	g.check(g.stream.Free(work))
	g.check(g.stream.Free(fault))
	return seconds
}

// seconds returns what something takes on the device, once it is warm.
func (g *realGPU) seconds(start func()) float64 {
	const times = 20
	from, err := g.ctx.NewEvent(true)
	g.check(err)
	to, err := g.ctx.NewEvent(true)
	g.check(err)
	start()
	g.check(from.Record(g.stream))
	for range times {
		start()
	}
	g.check(to.Record(g.stream))
	g.wait()
	d, err := to.Since(from)
	g.check(err)
	g.check(from.Close())
	g.check(to.Close())
	return d.Seconds() / times
}
