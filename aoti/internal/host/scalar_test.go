//go:build linux && cgo

package host

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// A scalar counts as a row of one element, and its results are scalars.
func TestRowOfAScalar(t *testing.T) {
	for _, name := range []string{"topk", "kthvalue", "mode", "median", "cummin", "logcumsumexp"} {
		for _, d := range []ir.DType{ir.I32, ir.F32} {
			if name == "logcumsumexp" && d == ir.I32 {
				continue // PyTorch has it for floats only
			}
			t.Run(name+" "+d.String(), func(t *testing.T) {
				leakCheck(t)
				in := tensorOf(t, d, []float64{7})
				outs, err := eagerKernelOf(name)(values{"self": in, "dim": 0, "k": 1})
				if err != nil {
					t.Fatal(err)
				}
				for i, out := range outs {
					a, err := load[float64](out)
					release(out)
					if want := []float64{7, 0}[i : i+1]; err != nil || len(a.dims) != 0 || !slices.Equal(a.data, want) {
						t.Errorf("result %d: %v of dimensions %v (%v), want %v", i, a.data, a.dims, err, want)
					}
				}
			})
		}
	}
}
