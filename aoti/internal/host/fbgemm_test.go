//go:build linux && cgo

package host

import (
	"errors"
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// Layers with packed weights, against what PyTorch 2.15 computes.
func TestPackedLinear(t *testing.T) {
	leakCheck(t)
	weights, inputs := make([]float64, 12), make([]float64, 8)
	for i := range weights {
		weights[i] = float64(float32(i-5) * 0.37)
	}
	for i := range inputs {
		inputs[i] = float64(float32(i-3) * 0.83)
	}
	w, x := tensorOf(t, ir.F32, weights, 3, 4), tensorOf(t, ir.F32, inputs, 2, 4)
	b := tensorOf(t, ir.F32, []float64{0.5, -1, 2}, 3)
	number := func(v float64) *tensor { return tensorOf(t, ir.F32, []float64{v}, 1) }
	for _, c := range []struct {
		pack, run string
		args      []any // after the weights
		linear    func(packed *tensor) []any
		want      []float64
	}{
		{"cpu_wrapped_fbgemm_pack_gemm_matrix_fp16", "cpu_wrapped_fbgemm_linear_fp16_weight", nil,
			func(p *tensor) []any { return []any{x, p, b, 3} },
			[]float64{8.484697341918945, -0.38560545444488525, -4.757529258728027, -8.715106964111328, 2.071972608566284, 17.357431411743164}},
		{"cpu__wrapped_linear_prepack", "cpu__wrapped_quantized_linear_prepacked", []any{number(0.03), number(2), b},
			func(p *tensor) []any { return []any{x, number(0.05), number(70), p, number(0.11), number(90), 3} },
			[]float64{8.470000267028809, -0.4399999976158142, -4.730000019073486, -8.800000190734863, 2.0899999141693115, 17.3799991607666}},
	} {
		var packed, out *tensor
		if err := invoke(t, c.pack, append(append([]any{w}, c.args...), &packed)...); err != nil {
			t.Fatal(err)
		}
		if err := invoke(t, c.run, append(c.linear(packed), &out)...); err != nil {
			t.Fatal(err)
		}
		for i, got := range numbers(t, out) {
			if math.Abs(got-c.want[i]) > 2e-6*max(1, math.Abs(c.want[i])) {
				t.Errorf("%s: element %d is %v, want %v", c.run, i, got, c.want[i])
			}
		}
		release(packed)
		release(out)
	}
	var out *tensor
	if err := invoke(t, "cpu__wrapped_quantized_linear_prepacked", x, number(1), number(0), w, number(1), number(0), 3, &out); !errors.Is(err, errPacked) {
		t.Errorf("weights of somebody else: %v", err)
	}
}
