//go:build cuda && linux && cgo

package emit

import (
	"os"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
)

// TestAttentionKeepsToRegisters compiles kernels of attention for devices, and
// checks that what a thread has does not go to memory and back.
func TestAttentionKeepsToRegisters(t *testing.T) {
	c := compilerOf(t)
	all, archs := attentionLaunches(), []string{"sm_90", "sm_80"}
	long := os.Getenv("LORIS_CUDA_CONFORMANCE") != ""
	switch {
	case !longtest.Enabled():
		all = all[:2]
	case !long: // they take seconds each
		all = all[:4]
	}
	for i, l := range all {
		for k, arch := range archs {
			if !long && k != i%len(archs) {
				continue
			}
			_, log, err := c.Compile(l.Source(), l.Entry+".cu", arch, append([]string{"--ptxas-options=-v"}, options...))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %s: %d registers", l.Entry, arch, said(t, log, `Used (\d+) registers`))
			// A few words that live across the loops do no harm.
			if said(t, log, `(\d+) bytes spill stores`) > 32 {
				t.Errorf("%s for %s:\n%s", l.Entry, arch, log)
			}
		}
	}
}

// attentionLaunches are of the kernels that matter most, first, and of those with
// most in registers.
func attentionLaunches() (all []Launch) {
	dev := Limits{Processors: 1, Threads: 128}
	sized := func(g Attention) Attention {
		g.Batch, g.Queries, g.Keys = []int{1}, 1, 1
		return g
	}
	gradients := func(g Attention) []Launch {
		p := (&AttentionGradient{Attention: sized(g), Shared: 1}).Plan(dev)
		return p.Launches[1:] // behind attention_delta
	}
	forward := func(g Attention) []Launch {
		g = sized(g)
		return g.Plan(dev).Launches
	}
	usual := Attention{DType: ir.BF16, Dim: 64, ValueDim: 64, Packed: true}
	all = append(forward(usual), gradients(usual)...)
	for _, g := range []Attention{
		{DType: ir.F32, Dim: 64, ValueDim: 64, Packed: true},
		{DType: ir.BF16, Dim: 128, ValueDim: 128, Packed: true},
		{DType: ir.F16, Dim: 64, ValueDim: 64, Mask: ir.F32},
		{DType: ir.F32, Dim: 64, ValueDim: 64, Mask: ir.F32, Packed: true},
		{DType: ir.F16, Dim: 128, ValueDim: 128, Mask: ir.F16, Packed: true},
	} {
		all = append(append(all, forward(g)...), gradients(g)...)
	}
	for _, g := range []Attention{
		{DType: ir.F32, Dim: 32, ValueDim: 32, Packed: true},
		{DType: ir.F16, Dim: 192, ValueDim: 192, Mask: ir.F16},
		{DType: ir.BF16, Dim: 256, ValueDim: 256, Packed: true},
		{DType: ir.F32, Dim: 128, ValueDim: 128, Mask: ir.F32},
	} {
		all = append(all, forward(g)...)
	}
	return all
}
