//go:build linux && cgo

package cxx

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ctest"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// kernelCase is a kernel on a grid, whose results may be off by some units in the last place.
type kernelCase struct {
	k          *loop.Kernel
	rows, cols int
	fill       looptest.Fill
	ulps       float64
}

// run compiles the kernels and holds them to loop.Eval.
func run(t *testing.T, cases []kernelCase) {
	t.Helper()
	var b strings.Builder
	b.WriteString(Prelude)
	for i, c := range cases {
		if err := Defined(c.k); err != nil {
			t.Fatal(err)
		}
		b.WriteString(Loop(fmt.Sprint("kernel", i), c.k))
		fmt.Fprintf(&b, "extern \"C\" const char* run%d(const Frame* f) { kernel%d(f); return 0; }\n", i, i)
	}
	src := filepath.Join(t.TempDir(), "kernels.cpp")
	if err := os.WriteFile(src, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := Flags()
	if !longtest.Enabled() {
		flags = append(flags, "-O1") // which takes a third of the time
	}
	lib := ctest.Open(t, ctest.Build(t, src, flags...))
	for i, c := range cases {
		g := looptest.NewGrid(rand.New(rand.NewPCG(uint64(i), 1)), c.k, c.rows, c.cols, Spill, c.fill)
		fault := eval(c.k, &g.Frame[1])
		// C gets the frame as words: it may not see Go's pointers in typed memory.
		words := slices.Clone(unsafe.Slice((*uint64)(unsafe.Pointer(&g.Frame[0])), unsafe.Sizeof(g.Frame[0])/8))
		if why := lib.Call(fmt.Sprint("run", i), unsafe.Pointer(&words[0])); why != "" {
			t.Fatal(why)
		}
		if got := *(*uint64)(unsafe.Add(g.Frame[0].Spill, loop.MaxArgs*8+24)); (got != 0) != fault {
			t.Errorf("fault %d, want %v\n%v", got, fault, c.k)
		}
		if why := g.Compare(c.k, c.ulps); !fault && why != "" {
			t.Error(why)
		}
		runtime.KeepAlive(g)
	}
}

// eval computes what is wanted and reports whether an integer was divided by 0.
func eval(k *loop.Kernel, f *loop.Frame) (fault bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, fault = r.(loop.ZeroDivision); !fault {
				panic(r)
			}
		}
	}()
	loop.Eval(k, f)
	return false
}

// Random kernels of exact ops, along all axes.
func TestRandomKernels(t *testing.T) {
	n := 10
	if longtest.Enabled() {
		n = 150
	}
	var cases []kernelCase
	for seed := range uint64(n) {
		k := looptest.Random(rand.New(rand.NewPCG(seed, 1)))
		if len(k.Args) <= loop.MaxArgs && Defined(k) == nil {
			cases = append(cases, kernelCase{k, 1 + int(seed%5), int(seed*7%97) + 1, looptest.Elements, 0})
		}
	}
	if len(cases) < n*3/4 {
		t.Errorf("only %d of %d kernels could be written", len(cases), n)
	}
	run(t, cases)
}

// Every pointwise op, on f32 and in the long suites on every dtype.
func TestOps(t *testing.T) {
	dtypes := []ir.DType{ir.F32}
	if longtest.Enabled() {
		dtypes = looptest.Stored
	}
	var cases []kernelCase
	for _, d := range dtypes {
		c := loop.ComputeDType(d)
		for _, sp := range ir.Ops() {
			if sp.Category != ir.Pointwise || sp.Composite() || sp.Op == aten.Cast || sp.Op == aten.Where || !looptest.Defined(sp, c) {
				continue
			}
			b := looptest.New(loop.None)
			in := []loop.Value{b.Load(b.Arg(d, loop.Unit, false)), b.Load(b.Arg(d, loop.Free, false))}[:len(sp.Schema.Params)]
			out, ulps := d, sp.Tolerance(d)
			if sp.Predicate {
				out = ir.Bool
			}
			if d == ir.F64 && sp.ULPs64 != 0 {
				ulps = max(ulps, 64) // package math loses digits near zeros, as backend/cuda/internal/emit says
			}
			b.Store(b.Arg(out, loop.Unit, true), b.Op(sp.Op, in...))
			if Defined(&b.Kernel) == nil {
				cases = append(cases, kernelCase{&b.Kernel, 2, 67, looptest.Elements, ulps})
			}
		}
	}
	if len(cases) < 40*len(dtypes) {
		t.Errorf("only %d ops of dtypes were tried", len(cases))
	}
	run(t, cases)
}

// Every reduction along every axis.
func TestReductions(t *testing.T) {
	var cases []kernelCase
	dtypes := []ir.DType{ir.F32, ir.I64}
	if longtest.Enabled() {
		dtypes = []ir.DType{ir.F32, ir.BF16, ir.F64, ir.I32, ir.I64, ir.Bool}
	}
	for _, axis := range []loop.Axis{loop.Columns, loop.Rows, loop.Both} {
		for _, d := range dtypes {
			for _, op := range []ir.Op{aten.Sum, aten.Prod, aten.Amax, aten.Amin, aten.Argmax, aten.Argmin, aten.Any, aten.All} {
				in := loop.ComputeDType(d)
				out := in
				switch op {
				case aten.Argmax, aten.Argmin:
					out = ir.I64
				case aten.Any, aten.All:
					out = ir.Bool
				case aten.Sum, aten.Prod:
					if in.IsIntegral() {
						out = ir.I64
					}
				}
				b := looptest.New(axis)
				x := b.Arg(d, loop.Unit, false)
				v := b.Reduce(op, out, b.Load(x))
				b.Final(b.StoreOf(b.Arg(out, loop.Unit, true), v))
				cases = append(cases, kernelCase{&b.Kernel, 5, 37, looptest.Moderate, 4})
			}
		}
	}
	run(t, cases)
}
