package ir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/ir"
)

// domains are the operands' ranges of pointwise ops that are not defined, or not
// smooth, around 0. Where one bound depends on another operand the ranges keep
// them apart.
var domains = map[string][][2]float64{
	"acos": {{-0.9, 0.9}}, "asin": {{-0.9, 0.9}}, "atanh": {{-0.9, 0.9}}, "erfinv": {{-0.9, 0.9}},
	"acosh": {{1.2, 4}}, "log": {{0.2, 4}}, "log2": {{0.2, 4}}, "log10": {{0.2, 4}}, "log1p": {{-0.8, 4}},
	"sqrt": {{0.2, 4}}, "rsqrt": {{0.2, 4}}, "reciprocal": {{0.2, 2}}, "logit": {{0.1, 0.9}},
	"tan": {{-1.2, 1.2}}, "sinc": {{0.3, 2}}, "relu": {{0.1, 2}}, "abs": {{0.1, 2}},
	"div": {{-2, 2}, {0.5, 2}}, "atan2": {{0.5, 2}, {-2, -0.5}}, "pow": {{0.3, 2}, {-2, 2}},
	"hypot": {{0.3, 2}, {0.3, 2}}, "xlogy": {{0.3, 2}, {0.3, 2}}, "copysign": {{0.3, 2}, {-2, -0.3}},
	"remainder": {{4.1, 4.4}, {1.1, 1.3}}, "fmod": {{4.1, 4.4}, {1.1, 1.3}},
	"floor_divide": {{4.1, 4.4}, {1.1, 1.3}}, "trunc_divide": {{4.1, 4.4}, {1.1, 1.3}},
	"floor": {{0.1, 0.9}}, "ceil": {{0.1, 0.9}}, "round": {{0.6, 0.9}}, "trunc": {{0.1, 0.9}}, "frac": {{0.1, 0.9}}, "sign": {{0.1, 2}},
	"maximum": {{-2, -0.1}, {0.1, 1}}, "minimum": {{-2, -0.1}, {0.1, 1}}, "fmax": {{0.1, 1}, {-2, -0.1}}, "fmin": {{0.1, 1}, {-2, -0.1}},
	"clamp": {{-1, 1}, {-3, -2}, {0.2, 0.4}}, "clamp_min": {{0.1, 1}, {-3, -2}}, "clamp_max": {{0.1, 1}, {-3, -2}},
	"addcdiv": {{-1, 1}, {-1, 1}, {0.5, 2}}, "lerp": {{-1, 1}, {-1, 1}, {0.1, 0.4}},
	"softplus": {{-2, 2}, {0.5, 1.5}, {18, 22}}, "elu": {{-2, -0.1}, {0.5, 1.5}, {0.5, 1.5}, {0.5, 1.5}}, "celu": {{-2, -0.1}, {0.5, 1.5}},
	"selu": {{-2, -0.1}}, "leaky_relu": {{-2, -0.1}}, "threshold": {{-1, -0.1}, {0, 0.2}},
	"hardtanh": {{-1, 1}, {-3, -2}, {0.2, 0.4}}, "relu6": {{0.5, 5.5}}, "hardsigmoid": {{-2.5, 2.5}}, "hardswish": {{-2.5, 2.5}},
	"hardshrink": {{1, 2}, {0.1, 0.4}}, "softshrink": {{-2, -1}, {0.1, 0.4}}, "softsign": {{0.1, 2}},
}

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
				if !p.Kind.Operand() {
					continue
				}
				var dims []int
				if !scalars && (p.Kind == ir.KindTensor || p.Name == "weight") {
					dims = shapes[n%len(shapes)]
				}
				c.args = append(c.args, operand(rng, sp.Name, p.Name, n, dims))
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
func operand(rng *rand.Rand, op, name string, n int, dims []int) data {
	d := random(rng, ir.MakeShape(ir.F64, dims...))
	if name == "condition" || name == "mask" {
		d.dtype = ir.Bool
		for i := range d.vals {
			d.vals[i] = float64(rng.IntN(2))
		}
		return d
	}
	if r := domains[op]; n < len(r) {
		for i := range d.vals {
			d.vals[i] = r[n][0] + (r[n][1]-r[n][0])*rng.Float64()
		}
	}
	return d
}
