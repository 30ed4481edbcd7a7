package attention

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/longtest"
)

// TestThreadsSameBits holds attention over finite numbers equal to the last bit
// for however many goroutines its units are cut.
func TestThreadsSameBits(t *testing.T) {
	all := append(shapes[:len(shapes):len(shapes)], shape{1, 2, 1, 90, 1100, 16, 20}, shape{1, 1, 1, 600, 600, 4, 4})
	some := modes
	if !longtest.Enabled() {
		all, some = []shape{{1, 2, 2, 33, 65, 16, 48}, {1, 2, 1, 90, 540, 16, 20}}, modes[1:2]
	}
	for _, s := range all {
		for _, m := range some {
			o := newOperands(s, m)
			var want []float32
			for _, workers := range []int{1, 2, 3, 5, 40} {
				c := o.call(workers)
				c.Run()
				if want == nil {
					want = c.Out.Data
				} else if !slices.Equal(c.Out.Data, want) {
					t.Errorf("%s: cut for %d goroutines the result has other bits", o.name, workers)
					break
				}
			}
		}
	}
}

// call returns a run over dense float32.
func (o *operands) call(workers int) *Call[float32, float32] {
	c := &Call[float32, float32]{
		Batch: o.batch, Heads: o.heads, KVHeads: o.kv, Queries: o.queries, Keys: o.keys, Dim: o.dim, ValueDim: o.value,
		Scale: o.scale, Causal: o.causal, Workers: workers,
		Q:   bind[float32](o.q, [4]int{o.batch, o.heads, o.queries, o.dim}, orders[0]),
		K:   bind[float32](o.k, [4]int{o.batch, o.kv, o.keys, o.dim}, orders[0]),
		V:   bind[float32](o.v, [4]int{o.batch, o.kv, o.keys, o.value}, orders[0]),
		Out: Dense(make([]float32, o.batch*o.heads*o.queries*o.value), o.heads, o.queries, o.value),
	}
	if o.mode.mask {
		c.Mask = bind[float32](o.mask, [4]int{o.batch, o.heads, o.queries, o.keys}, orders[0])
	}
	if o.mode.keep {
		c.Keep = Dense(o.keep, o.heads, o.queries, o.keys)
	}
	if o.rows {
		c.Mask.Strides[1], c.Mask.Strides[2], c.Keep.Strides[1], c.Keep.Strides[2] = 0, 0, 0, 0
	}
	return c
}
