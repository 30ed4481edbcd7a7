package conv

import (
	"testing"

	"github.com/loris-ml/loris/internal/isa"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// eachInPairs calls f with the geometries that pairs are for, where the processor multiplies them.
func eachInPairs(t *testing.T, f func(t *testing.T, g Geometry)) {
	if tile.Pairs() == nil {
		t.Skip("this processor does not multiply pairs of bfloat16")
	}
	for _, c := range geometries {
		if inPairs[vec.BF16](&c.g) {
			t.Run(c.name, func(t *testing.T) { f(t, c.g) })
		}
	}
}

func TestPairs(t *testing.T) {
	eachInPairs(t, func(t *testing.T, g Geometry) {
		r := newReference(g)
		for i := range 9 {
			check[vec.BF16](t, r, tile.Best[float32](), Pairs, i/3, i%3, 1+i%2, i%len(finishes), 1.0/128)
		}
	})
}

func TestPairsThreadsSameBits(t *testing.T) {
	eachInPairs(t, func(t *testing.T, g Geometry) { sameBits[vec.BF16](t, g, tile.Best[float32](), Pairs) })
}

// TestPairsScale holds factors of the output channels, with which pairs multiply their sums, to be
// those that other forms put into their filters.
func TestPairsScale(t *testing.T) {
	eachInPairs(t, func(t *testing.T, g Geometry) {
		x, w := narrow[vec.BF16](random(1, g.N*g.Groups*g.CIn*volume(g.In))), narrow[vec.BF16](random(2, g.Groups*g.COut*g.CIn*volume(g.Kernel)))
		xl, yl := ChannelsFirst(g.Groups*g.CIn, g.In), ChannelsFirst(g.Groups*g.COut, g.Out)
		scale, bias := make([]float32, g.Groups*g.COut), narrow[vec.BF16](random(3, g.Groups*g.COut))
		for i := range scale {
			scale[i] = []float32{0.5, 1, 2, -1}[i%4]
		}
		var results [2][]vec.BF16
		for i, form := range []Form{Plain, Pairs} {
			packed := Pack[float32](w, g.Filters(), g, form)
			ScaleWeights(packed, scale, 0, packed.Units())
			c := &Call[vec.BF16, float32]{
				Plan: newPlan[vec.BF16](g, xl, yl, tile.Best[float32](), 1, form), X: x, Y: make([]vec.BF16, g.N*g.Groups*g.COut*volume(g.Out)),
				Weights: packed, FilterScale: scale, Bias: bias, Activation: vec.Activation{Kind: vec.ReLU},
			}
			c.Do(0, c.Plan.Units())
			results[i] = c.Y
		}
		for i, v := range results[1] { // sums in another order
			want := f64(results[0][i])
			if d := f64(v) - want; d > 1.0/64*(1+want) || d < -1.0/64*(1+want) {
				t.Fatalf("output %d is %v, want %v", i, f64(v), want)
			}
		}
	})
}

// TestPairsOfNew holds that a convolution of bf16 is computed in pairs where these are fast,
// but for what Winograd's form is for, and one of f16 is not.
func TestPairsOfNew(t *testing.T) {
	g := geometry(1, 1, 24, 32, plane(1, 14), cube(1), cube(1), cube(0), cube(1))
	l := ChannelsFirst(24, g.In)
	want := Plain
	if isa.FastBF16Pairs() {
		want = Pairs
	}
	if got := New[vec.BF16, float32](g, l, l, parallel.Threads(), false).Form(); got != want {
		t.Errorf("bf16 has form %d, want %d", got, want)
	}
	if got := New[vec.F16, float32](g, l, l, parallel.Threads(), false).Form(); got != Plain {
		t.Errorf("f16 has form %d", got)
	}
}
