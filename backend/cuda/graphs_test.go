//go:build cuda && linux && cgo

package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// sums is a chain of running sums, which are a launch each.
func sums(n int) string {
	var b strings.Builder
	b.WriteString("program @sums {\n %x = parameter \"x\" : f32[3]\n")
	from := "x"
	for range n {
		b.WriteString(" %" + from + "s = cumsum(%" + from + ", dim=0)\n")
		from += "s"
	}
	b.WriteString(" return %" + from + "\n}")
	return b.String()
}

// calls counts the calls of functions since the last time.
func calls(f *fakecuda.Fake, functions ...string) []int {
	n := make([]int, len(functions))
	for _, c := range f.Calls() {
		name, _, _ := strings.Cut(c, " ")
		if i := slices.Index(functions, name); i >= 0 {
			n[i]++
		}
	}
	return n
}

func TestReplays(t *testing.T) {
	f, b := newFake(t, 1)
	m := compiled(t, b, sums(8))
	// place gives the model one of several sets of memory and computes.
	var sets [][]driver.DevicePtr
	place := func(set int) {
		t.Helper()
		for len(sets) <= set {
			bases := make([]driver.DevicePtr, len(m.bases))
			for i, n := range []int{m.seq.Workspace, 0, 12, 12, 0} {
				mem, err := m.dev.alloc(t.Context(), m.stream, n)
				check(t, err)
				t.Cleanup(mem.release)
				bases[i] = mem.ptr
			}
			sets = append(sets, bases)
		}
		copy(m.bases, sets[set])
		x, y := m.bases[m.seq.Input(0)], m.bases[m.seq.Output(0)]
		check(t, m.stream.CopyIn(x, elements.EncodeFloats(ir.F32, []float64{1, 2, float64(set)})))
		check(t, m.start(&m.parts[0]))
		out := make([]byte, 12)
		check(t, m.stream.CopyOut(out, y))
		check(t, m.stream.Wait(t.Context()))
		if v := elements.DecodeFloats(ir.F32, out); !slices.Equal(v, []float64{1, 10, float64(36 + 16 + set)}) {
			t.Errorf("set %d: got %v", set, v)
		}
	}
	f.Calls()
	type counts [5]int // launches of kernels and graphs; graphs made, and their nodes; nodes changed
	for _, c := range []struct {
		name string
		set  int
		want counts
	}{
		{"the first", 0, counts{8, 0, 0, 0, 0}},
		{"made", 0, counts{0, 1, 1, 8, 0}},
		{"replayed", 0, counts{0, 1, 0, 0, 0}},
		{"other memory", 1, counts{0, 1, 0, 0, 8}},
		{"it comes again", 1, counts{0, 1, 0, 0, 0}},
		{"so does the first", 0, counts{0, 1, 1, 8, 0}},
		{"the second is there", 1, counts{0, 1, 0, 0, 0}},
		{"a third", 2, counts{0, 1, 0, 0, 8}},
		{"the second is not", 1, counts{0, 1, 0, 0, 0}},
		{"and the first", 0, counts{0, 1, 1, 8, 0}},
	} {
		place(c.set)
		n := calls(f, "cuLaunchKernel", "cuGraphLaunch", "cuGraphInstantiateWithFlags", "cuGraphAddKernelNode_v2", "cuGraphExecKernelNodeSetParams_v2")
		if counts(n) != c.want {
			t.Errorf("%s: calls %v, want %v", c.name, n, c.want)
		}
	}
	// When they never come again, graphs are given up.
	for set := range patience + 2 {
		place(10 + set)
	}
	f.Calls()
	place(1)
	if n := calls(f, "cuLaunchKernel", "cuGraphLaunch"); n[0] != 8 || n[1] != 0 {
		t.Errorf("given up: calls %v", n)
	}
}

// TestReplaysOfFreshOutputs checks that runs whose results are kept, so that those are
// elsewhere each time, change no more nodes than write there.
func TestReplaysOfFreshOutputs(t *testing.T) {
	f, b := newFake(t, 1)
	m := compiled(t, b, `program @fresh {
		%x = parameter "x" : f32[2,2]
		%0 = cumsum(cumsum(cumsum(cumsum(cumsum(%x, dim=0), dim=1), dim=0), dim=1), dim=0)
		%1 = cumsum(cumsum(cumsum(cumsum(%0, dim=1), dim=0), dim=1), dim=0)
		%2 = matmul(matmul(%1, %x), %1)
		%3 = cumsum(%2, dim=0)
		return matmul(%3, %3), %x
	}`)
	in := uploaded(t, b, ir.MakeShape(ir.F32, 2, 2), elements.EncodeFloats(ir.F32, []float64{1, 0, 0, 1}))
	var want []float64
	const runs = 20
	functions := []string{"cuLaunchKernel", "cuGraphLaunch", "cuGraphInstantiateWithFlags",
		"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecChildGraphNodeSetParams", "cublasLtMatmul"}
	for run := range runs {
		f.Calls()
		outs, err := m.Run(t.Context(), []backend.Buffer{in}, nil)
		check(t, err)
		n := calls(f, functions...)
		for _, o := range outs {
			o.Retain() // until the end, so that no memory is used again
			t.Cleanup(o.Release)
		}
		y := got(t, outs[0])
		outs[1].Release()
		if want == nil {
			want = y
		}
		if !slices.Equal(y, want) {
			t.Errorf("run %d: got %v, want %v", run, y, want)
		}
		// One product and one copy write the results.
		if made := []int{0, 1, 0, 0, 2, 1}; run > 1 && !slices.Equal(n, made) {
			t.Errorf("run %d: calls %v of %v, want %v", run, n, functions, made)
		}
	}
	if len(m.parts[0].replays.made) != 1 || m.parts[0].replays.off {
		t.Errorf("%d graphs", len(m.parts[0].replays.made))
	}
}

// TestReplaysOfCopies checks that a copy that comes and goes with donation is right.
func TestReplaysOfCopies(t *testing.T) {
	_, b := newFake(t, 1)
	m := compiled(t, b, `program @copies {
		%x = parameter "x" : f32[3]
		%y = parameter "y" : f32[3]
		%0 = cumsum(cumsum(cumsum(cumsum(cumsum(cumsum(cumsum(%y, dim=0), dim=0), dim=0), dim=0), dim=0), dim=0), dim=0)
		return %x, %0
	}`, backend.Alias{Input: 0, Output: 0})
	for run := range 8 {
		x, err := b.Upload(t.Context(), ir.MakeShape(ir.F32, 3), gpu(0), elements.EncodeFloats(ir.F32, []float64{float64(run), 2, 3}))
		check(t, err)
		outs, err := m.Run(t.Context(), []backend.Buffer{x, floats(t, b, 1, 0, 0)}, []bool{run/2%2 == 1, false})
		x.Release()
		check(t, err)
		if y := got(t, outs[0]); !slices.Equal(y, []float64{float64(run), 2, 3}) {
			t.Errorf("run %d: got %v", run, y)
		}
		if y := got(t, outs[1]); !slices.Equal(y, []float64{1, 7, 28}) {
			t.Errorf("run %d: got %v", run, y)
		}
	}
}

// TestNoGraphs checks that work is enqueued where it cannot be made a graph.
func TestNoGraphs(t *testing.T) {
	for _, call := range []string{"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2"} {
		f, b := newFake(t, 1)
		m := compiled(t, b, sums(8))
		for i := range 4 {
			x := floats(t, b, 1, 1, 1) // elsewhere each time
			if i == 1 {
				f.Fail(call, 900, 0, true)
			}
			outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
			if err != nil {
				t.Fatalf("%s: %v", call, err)
			}
			if y := got(t, outs[0]); !slices.Equal(y, []float64{1, 9, 45}) {
				t.Errorf("%s: got %v", call, y)
			}
		}
	}
}

// TestAllocations checks that what a run allocates on the host does not depend on
// how much it does.
func TestAllocations(t *testing.T) {
	_, b := newFake(t, 1)
	x := floats(t, b, 1, 2, 3)
	per := func(n int) float64 {
		m := compiled(t, b, sums(n))
		return testing.AllocsPerRun(10, func() {
			outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
			check(t, err)
			outs[0].Release()
		})
	}
	if few, many := per(2), per(fewCommands-1); many > few+1 || many > 40 {
		t.Errorf("%v allocations for 2 launches, %v for %d", few, many, fewCommands-1)
	}
}
