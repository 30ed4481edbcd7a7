//go:build cuda && linux && cgo

package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// TestKernelsThatNobodyHas checks that kernels are unloaded when many have no model any
// more, those that were used last staying, and that what a model has stays.
func TestKernelsThatNobodyHas(t *testing.T) {
	f, b := newFake(t, 1)
	d := open(t, b, 0)
	d.kernels.limit = 2
	compile := func(op string) *model {
		t.Helper()
		m, err := b.Compile(t.Context(), parse(t, fmt.Sprintf("program @p {\n %%x = parameter \"x\" : f32[2]\n return %s(%%x)\n}", op)), gpu(0), backend.CompileOptions{})
		check(t, err)
		return m.(*model)
	}
	x := floats(t, b, 1, 4)
	runs := func(m *model, want ...float64) {
		t.Helper()
		outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
		check(t, err)
		if y := got(t, outs[0]); !slices.Equal(y, want) {
			t.Errorf("got %v, want %v", y, want)
		}
	}
	counts := func(what string, want ...int) {
		t.Helper()
		if n := calls(f, "nvrtcCompileProgram", "cuModuleLoadData", "cuModuleUnload"); !slices.Equal(n, want) {
			t.Errorf("%s: %v compiled, loaded and unloaded, want %v", what, n, want)
		}
	}
	f.Calls()
	neg, again := compile("neg"), compile("neg")
	runs(neg, -1, -4)
	check(t, neg.Close())
	counts("one that two have", 1, 1, 0)
	for _, op := range []string{"sqrt", "abs", "relu", "sqrt", "exp"} {
		m := compile(op)
		check(t, m.Close())
	}
	// For relu went sqrt, which was loaded again; for that abs, and relu for exp.
	counts("those of models that are closed", 4, 5, 3)
	runs(again, -1, -4)
	sqrt := compile("sqrt")
	counts("one that is there", 0, 0, 0)
	runs(sqrt, 1, 2)
	abs := compile("abs")
	counts("one that was unloaded", 0, 1, 0)
	runs(abs, 1, 4)
	// When memory is short the others go.
	f.Calls()
	f.Fail("cuMemAllocFromPoolAsync", 2, 0, true)
	f.Fail("cuMemAllocFromPoolAsync", 2, 0, true)
	y := uploaded(t, b, ir.MakeShape(ir.F32, 1), elements.EncodeFloats(ir.F32, []float64{1}))
	y.Retain()
	y.Release()
	counts("when memory is short", 0, 0, 1)
	runs(abs, 1, 4)
	runs(again, -1, -4)
	for _, m := range []*model{again, sqrt, abs} {
		check(t, m.Close())
	}
	for _, c := range f.Calls() {
		if strings.HasPrefix(c, "nvrtcCompile") {
			t.Error(c)
		}
	}
}
