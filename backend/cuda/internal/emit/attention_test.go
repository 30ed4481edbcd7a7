package emit

import (
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestAttentionSplits checks when blocks share keys: where there are few queries for
// many keys, by sizes alone.
func TestAttentionSplits(t *testing.T) {
	for _, test := range []struct {
		heads, queries, keys int
		splits               int
	}{
		{32, 1, 4096, 4},
		{8, 1, 4096, 16},
		{1, 1, 100_000, 121}, // of 13 tiles each
		{8, 1, 511, 1},
		{128, 1, 4096, 1},
		{1, 5000, 100_000, 4},
	} {
		g := Attention{DType: ir.F16, Batch: []int{test.heads}, Queries: test.queries, Keys: test.keys, Dim: 64, ValueDim: 64, Packed: true}
		for _, processors := range []int{1, 1000} {
			p := g.Plan(Limits{Processors: processors, Threads: 1024, Tensor: true})
			l := &p.Launches[0]
			splits, share := int(l.Params[len(l.Params)-2]), int(l.Params[len(l.Params)-1])
			if splits != test.splits || splits*share < test.keys || (splits-1)*share >= test.keys || (len(p.Launches) == 2) != (splits > 1) {
				t.Errorf("%+v on %d processors: %d splits of %d keys, %d launches", test, processors, splits, share, len(p.Launches))
			}
		}
	}
}

func TestAttentionTakes(t *testing.T) {
	dev := Limits{Processors: 1, Threads: 1024, Tensor: true}
	for _, test := range []struct {
		g                   Attention
		forwards, backwards bool
	}{
		{Attention{DType: ir.BF16, Dim: 128, ValueDim: 1}, true, true},
		{Attention{DType: ir.F16, Dim: 1, ValueDim: 256, Mask: ir.Bool}, true, false},
		{Attention{DType: ir.F16, Dim: 257, ValueDim: 64}, false, false},
		{Attention{DType: ir.F32, Dim: 64, ValueDim: 64, Mask: ir.BF16}, true, true},
		{Attention{DType: ir.F32, Dim: 128, ValueDim: 64}, true, false},
		{Attention{DType: ir.F32, Dim: 129, ValueDim: 64}, false, false},
		{Attention{DType: ir.F32, Dim: 64, ValueDim: 64, Mask: ir.F64}, false, false},
		{Attention{DType: ir.F64, Dim: 64, ValueDim: 64}, false, false},
		{Attention{DType: ir.F32, Dim: 0, ValueDim: 64}, false, false},
		{Attention{DType: ir.F32, Dim: 8, ValueDim: 8, Batch: make([]int, 7)}, false, false},
	} {
		back := AttentionGradient{Attention: test.g}
		if f, b := test.g.Takes(dev), back.Takes(dev); f != test.forwards || b != test.backwards {
			t.Errorf("%+v: %v forwards, %v backwards", test.g, f, b)
		}
		if old := (Limits{Processors: 1, Threads: 1024}); test.g.Takes(old) || back.Takes(old) {
			t.Errorf("%+v: taken without tensor cores", test.g)
		}
	}
}
