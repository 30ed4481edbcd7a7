package ir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestGradientsOfPointwiseOps compares every differentiable pointwise op with
// differences, to second order and for all operands at once: scalars, and
// tensors that broadcast against each other.
func TestGradientsOfPointwiseOps(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	shapes := [][]int{{2, 1}, {3}, {1, 3}}
	for _, sp := range ir.Ops() {
		if sp.Category != ir.Pointwise || !sp.Differentiable() || sp.Name == "cast" {
			continue
		}
		for _, scalars := range []bool{false, true} {
			c := opCall{op: sp.Name}
			n := 0
			for _, p := range sp.Schema.Params {
				if p.Kind == ir.KindInt && !p.HasDef {
					c.args = append(c.args, 2)
				}
				if !p.Kind.Operand() {
					continue
				}
				var dims []int
				if !scalars && (p.Kind == ir.KindTensor || p.Name == "weight") {
					dims = shapes[n%len(shapes)]
				}
				c.args = append(c.args, operand(rng, sp, p.Name, n, dims))
				n++
			}
			checkGradients(t, rng, 2, []opCall{c})
		}
	}
	x := rnd(rng, 4)
	checkGradients(t, rng, 2, []opCall{
		call("gelu", x, ir.A("approximate", "tanh")),
		call("logit", fs([]int{2}, 0.15, 0.7), 0.2),
		call("nan_to_num", x),
		call("clamp", x, nil, fs(nil, 0.3)),
		call("clamp", x, fs(nil, 0.3)),
		call("clamp", x, fs([]int{2, 1}, 0.3, -0.4), fs([]int{2, 1}, 0.5, -0.8)),
		call("hardswish", fs([]int{2}, -4, 4)),
		call("elu", fs([]int{1}, 2), fs(nil, 0.5), fs(nil, 1.5), fs(nil, 2)),
		call("celu", fs([]int{1}, 2), fs(nil, 0.5)),
		call("selu", fs([]int{1}, 2)),
		call("softplus", fs([]int{2}, 3, -1), fs(nil, 2), fs(nil, 4)),
		call("lerp", x, rnd(rng, 4), fs(nil, 0.75)),
	})
}

// operand draws values from the op's domain; masks and conditions are bool.
func operand(rng *rand.Rand, sp *ir.Spec, name string, n int, dims []int) data {
	d := random(rng, ir.MakeShape(ir.F64, dims...))
	if name == "condition" || name == "mask" {
		d.dtype = ir.Bool
		for i := range d.vals {
			d.vals[i] = float64(rng.IntN(2))
		}
		return d
	}
	if r := sp.Domain; n < len(r) {
		for i := range d.vals {
			d.vals[i] = r[n][0] + (r[n][1]-r[n][0])*rng.Float64()
		}
	}
	return d
}
