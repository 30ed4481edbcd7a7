//go:build cuda && linux && cgo

package emit

import (
	"errors"
	"regexp"
	"testing"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/ir"
)

// TestAttentionKeepsToRegisters compiles kernels of attention for devices, and
// checks that what a thread has does not go to memory and back.
func TestAttentionKeepsToRegisters(t *testing.T) {
	c, err := driver.OpenCompiler("", 0)
	if errors.Is(err, driver.ErrNoLibrary) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	spills := regexp.MustCompile(`\d+ bytes spill stores, \d+ bytes spill loads`)
	used := regexp.MustCompile(`Used \d+ registers`)
	plans := attentionPlans()
	if testing.Short() {
		plans = plans[:2]
	}
	for i, p := range plans {
		for k, arch := range []string{"sm_90", "sm_80"} {
			if testing.Short() && k != i%2 {
				continue
			}
			l := &p.Launches[len(p.Launches)-1]
			_, log, err := c.Compile(l.Source(), l.Entry+".cu", arch, append([]string{"--ptxas-options=-v"}, options...))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(l.Entry, arch, used.FindString(log))
			if got := spills.FindString(log); got != "0 bytes spill stores, 0 bytes spill loads" {
				t.Errorf("%s for %s: %q in\n%s", l.Entry, arch, got, log)
			}
		}
	}
}

// attentionPlans are of the kernels that matter most, and of those with most in
// registers.
func attentionPlans() (plans []*Plan) {
	for _, g := range []Attention{
		{DType: ir.BF16, Dim: 64, ValueDim: 64, Packed: true},
		{DType: ir.F32, Dim: 64, ValueDim: 64, Packed: true},
		{DType: ir.BF16, Dim: 128, ValueDim: 128, Packed: true},
		{DType: ir.F32, Dim: 32, ValueDim: 32, Packed: true},
		{DType: ir.F16, Dim: 64, ValueDim: 64, Mask: ir.F32},
		{DType: ir.F16, Dim: 192, ValueDim: 192, Mask: ir.F16},
		{DType: ir.BF16, Dim: 256, ValueDim: 256, Packed: true},
		{DType: ir.F32, Dim: 128, ValueDim: 128, Mask: ir.F32},
	} {
		g.Batch, g.Queries, g.Keys = []int{1}, 1, 1
		plans = append(plans, g.Plan(Limits{Processors: 1, Threads: 128}))
	}
	return plans
}
