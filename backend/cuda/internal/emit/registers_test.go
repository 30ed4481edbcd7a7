//go:build cuda && linux && cgo

package emit

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// pointwiseKernel is tanh(x·w + b)·sigmoid(x) + relu(x - w).
func pointwiseKernel() *loop.Kernel {
	b := looptest.New(loop.None)
	var in [3]loop.Value
	for i := range in {
		in[i] = b.Load(b.Arg(ir.F32, loop.Unit, false))
	}
	t := b.Op(aten.Tanh, b.Op(aten.Add, b.Op(aten.Mul, in[0], in[1]), in[2]))
	r := b.Op(aten.Relu, b.Op(aten.Sub, in[0], in[1]))
	b.Store(b.Arg(ir.F32, loop.Unit, true), b.Op(aten.Add, b.Op(aten.Mul, t, b.Op(aten.Sigmoid, in[0])), r))
	return &b.Kernel
}

func castKernel(from, to ir.DType) *loop.Kernel {
	b := looptest.New(loop.None)
	b.Store(b.Arg(to, loop.Unit, true), b.Load(b.Arg(from, loop.Unit, false)))
	return &b.Kernel
}

// A multiprocessor of sm_80 and of sm_90.
const (
	registerFile  = 65536
	mostResidents = 2048
	// inFlight is how many bytes a multiprocessor must have asked for at a time to
	// keep its share of the memory busy: 25 GB/s times 700 ns, and as much again for
	// threads that compute meanwhile.
	inFlight = 32 << 10
)

// TestRegisters holds what the compiler says of kernels that are to be bound by
// memory: nothing is spilled, and so many threads fit a multiprocessor that enough
// loads are under way.
func TestRegisters(t *testing.T) {
	c := compilerOf(t)
	for _, test := range []struct {
		name       string
		k          *loop.Kernel
		rows, cols int
	}{
		{"pointwise", pointwiseKernel(), 1, 1 << 20},
		{"cast to bf16", castKernel(ir.F32, ir.BF16), 1, 1 << 20},
		{"cast from bf16", castKernel(ir.BF16, ir.F32), 1, 1 << 20},
		{"softmax", softmaxInPlace(), 4096, 1024},
		{"softmax of bf16", softmax(ir.BF16), 4096, 1024},
		{"softmax of long rows", softmaxInPlace(), 4096, 16384},
		{"layer norm", layerNorm(ir.F32), 4096, 1024},
		{"layer norm of bf16", layerNorm(ir.BF16), 4096, 1024},
		{"sums of rows", sumOf(loop.Columns), 4096, 4096},
		{"sums of columns", sumOf(loop.Rows), 4096, 1024},
		{"sum", sumOf(loop.Columns), 1, 1 << 24},
	} {
		l, err := WriteLoop(test.k, Options{Scratch: make([]bool, len(test.k.Args))})
		if err != nil {
			t.Fatal(err)
		}
		g := &Geometry{Rows: test.rows, Cols: test.cols}
		for _, a := range test.k.Args {
			g.Args = append(g.Args, Place{Row: test.cols * a.DType.Size()})
		}
		launch := &l.Plan(g, Limits{Processors: 132, Threads: 1024}).Launches[0]
		for _, arch := range []string{"sm_80", "sm_90"} {
			if !longtest.Enabled() && arch != "sm_90" {
				continue
			}
			_, log, err := c.Compile(launch.Source(), launch.Entry+".cu", arch, append([]string{"--ptxas-options=-v"}, options...))
			if err != nil {
				t.Fatal(err)
			}
			registers, spilled := said(t, log, `Used (\d+) registers`), said(t, log, `(\d+) bytes spill stores`)
			threads := launch.Block[0] * launch.Block[1] * launch.Block[2]
			residents := min(mostResidents/threads, registerFile/(threads*((registers+7)/8*8))) * threads
			width, packs := l.width, l.unroll(l.width)
			if form := l.form(launch.Entry); holdings[form] != nil {
				packs = holdings[form].packs
			}
			bytes := residents * packs * width * loadsOf(test.k)
			t.Logf("%s, %s: %d registers, %d threads, %d KiB under way", test.name, arch, registers, residents, bytes>>10)
			if spilled > 0 {
				t.Errorf("%s, %s: %d bytes are spilled", test.name, arch, spilled)
			}
			if bytes < inFlight {
				t.Errorf("%s, %s: %d registers leave %d bytes under way", test.name, arch, registers, bytes)
			}
		}
	}
}

// TestSharedLaunch compiles an entry that has loops and functions of the library.
func TestSharedLaunch(t *testing.T) {
	c := compilerOf(t)
	dev := Limits{Processors: 132, Threads: 1024}
	var launches []Member
	add := func(p *Plan) {
		if !p.Launches[0].Shares(dev) {
			t.Fatalf("%s does not share", p.Launches[0].Entry)
		}
		launches = append(launches, Member{Launch: &p.Launches[0], Number: func(operand int) int { return operand }})
	}
	for _, k := range []*loop.Kernel{addition(), sumOf(loop.Columns), sumOf(loop.Rows), addition()} {
		l, err := WriteLoop(k, Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := &Geometry{Rows: 64, Cols: 512}
		for range k.Args {
			g.Args = append(g.Args, Place{Row: 4 * 512})
		}
		add(l.Plan(g, dev))
	}
	add((&Gather{Lines{Dims: []int{4}, Index: []int{2}, Strides: []int{1}}, 4}).Plan(dev))
	add((&Random{Op: aten.Uniform, DType: ir.F32, N: 1000}).Plan(dev))
	launch := Horizontal(launches)
	_, log, err := c.Compile(launch.Source(), launch.Entry+".cu", "sm_90", append([]string{"--ptxas-options=-v"}, options...))
	if err != nil {
		t.Fatal(err)
	}
	if spilled := said(t, log, `(\d+) bytes spill stores`); spilled > 0 {
		t.Errorf("%d bytes are spilled", spilled)
	}
}

// loadsOf returns how many bytes the first pass reads for an element.
func loadsOf(k *loop.Kernel) (n int) {
	for _, v := range k.Passes[0].Body {
		if in := &k.Instrs[v]; in.Code == loop.Load {
			n += k.Args[in.Arg].DType.Size()
		}
	}
	return n
}

// said returns a number of the compiler's log.
func said(t *testing.T, log, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(log)
	if m == nil {
		t.Fatalf("the compiler's log has no %s:\n%s", pattern, log)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
