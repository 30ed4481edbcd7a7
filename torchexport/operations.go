package torchexport

import (
	"maps"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// operation is how an op of PyTorch is recorded.
type operation struct {
	run func(c *call) []any
	// needsData says that it waits for elements while it is recorded.
	needsData bool
	// changes says that it changes its first tensor in place, and shares that its results may share
	// memory with it.
	changes, shares bool
}

// adapters are the ops that differ from the row of their name, or have none: by namespace and name,
// "aten.sum", or with the overload, "aten.max.dim", which counts first.
var adapters = gather(pointwiseOps, castOps, copyOps, viewOps, splitOps, sizeOps, factoryOps,
	reductionOps, statisticOps, indexOps, matrixOps, linalgOps, neuralOps, normOps, lossOps, randomOps, recurrentOps, controlOps, dataOps, detectionOps, uniqueOps, symbolOps)

func gather(tables ...map[string]func(c *call) []any) map[string]func(c *call) []any {
	out := map[string]func(c *call) []any{}
	for _, t := range tables {
		maps.Copy(out, t)
	}
	return out
}

// aliases are ops whose meaning is that of another name.
var aliases = map[string]string{
	"absolute": "abs", "negative": "neg", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "concat": "cat",
	"concatenate": "cat", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "clip": "clamp",
	"__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
	"special_expit": "sigmoid", "special_erf": "erf", "special_erfc": "erfc", "special_log1p": "log1p", "special_expm1": "expm1",
	"special_softmax": "softmax", "special_log_softmax": "log_softmax", "special_logsumexp": "logsumexp", "special_xlogy": "xlogy",
	"swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim", "linalg_matmul": "matmul", "linalg_norm_vector": "linalg_vector_norm",
	"log_sigmoid_forward": "log_sigmoid", "arctan2": "atan2", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "fix": "trunc", "ger": "outer",
	"_unsafe_index": "index", "_unsafe_index_put": "index_put", "_index_put_impl": "index_put", "_reshape_alias": "view",
	"special_i0": "i0", "special_gammaln": "lgamma", "special_digamma": "digamma", "special_psi": "digamma", "special_polygamma": "polygamma",
	"special_multigammaln": "mvlgamma",
	"special_logit":        "logit", "special_exp2": "exp2", "special_sinc": "sinc",
	"conj_physical": "conj", "trapz": "trapezoid",
	"_upsample_nearest_exact1d": "upsample_nearest_exact1d",
	"_upsample_nearest_exact2d": "upsample_nearest_exact2d", "_upsample_nearest_exact3d": "upsample_nearest_exact3d", "_conv_depthwise2d": "conv2d",
}

// findOperation returns how to record a target such as "aten.add.Tensor", nil for one that is not
// supported.
func findOperation(target string) *operation {
	space, rest, ok := strings.Cut(target, ".")
	if !ok {
		return nil
	}
	name, overload, _ := strings.Cut(rest, ".")
	if space != "aten" && space != "prims" {
		if run := adapters[target]; run != nil {
			return &operation{run: run, needsData: needData[target]}
		}
		if run := adapters[space+"."+name]; run != nil {
			return &operation{run: run, needsData: needData[space+"."+name]}
		}
		return nil
	}
	if run, ok := inPlaceOps[name]; ok {
		return &operation{run: run, changes: true, shares: true}
	}
	if op := functional(name, overload); op != nil {
		return op
	}
	if base, ok := strings.CutSuffix(name, "_"); ok && base != "" {
		if op := functional(base, overload); op != nil {
			return &operation{run: inPlace(op.run), needsData: op.needsData, changes: true, shares: true}
		}
	}
	return nil
}

// functional returns how to record an op that changes nothing in place.
func functional(name, overload string) *operation {
	if to, ok := aliases[name]; ok {
		name = to
	}
	for _, key := range []string{"aten." + name + "." + overload, "aten." + name} {
		if run := adapters[key]; run != nil {
			return &operation{run: run, needsData: needData[key], shares: viewOps[key] != nil || splitOps[key] != nil || castOps[key] != nil}
		}
	}
	if base, ok := viewOfCopy(name); ok {
		return &operation{run: copied(functional(base, overload).run)}
	}
	if op, ok := ir.Lookup(name); ok {
		return &operation{run: generic(op)}
	}
	return nil
}

// inPlace makes an op that returns a new value one that replaces its first tensor's.
func inPlace(run func(c *call) []any) func(c *call) []any {
	return func(c *call) []any {
		x, ok := c.first()
		if !ok {
			panic(misuse(c.n.target, "it changes something that is no tensor"))
		}
		results := run(c)
		y, ok := results[0].(*tensor)
		if !ok {
			panic(misuse(c.n.target, "its result is no tensor"))
		}
		c.assign(x, y.value())
		return []any{x}
	}
}

// first returns the first argument if it is a tensor.
func (c *call) first() (*tensor, bool) {
	if len(c.args) == 0 {
		return nil, false
	}
	x, ok := c.args[0].value.(*tensor)
	return x, ok
}

// assign writes a value to a tensor, of the tensor's dtype and dimensions.
func (c *call) assign(x *tensor, t *loris.Tensor) {
	if !x.writable() {
		panic(misuse(c.n.target, "a view of this kind cannot be changed in place"))
	}
	have := x.value()
	if t.DType() != have.DType() {
		t = t.Cast(have.DType())
	}
	if !t.Shape().SameDims(have.Shape()) {
		t = t.Expand(have.Dims()...)
	}
	x.set(t)
}

// inPlaceOps are ops that change a tensor and are not the in-place form of an op with a result.
var inPlaceOps = map[string]func(c *call) []any{
	"copy_": func(c *call) []any {
		x := c.tensor("self")
		c.assign(x, c.value("src"))
		return []any{x}
	},
	"fill_":   fillWith(func(c *call) any { return c.operand("value") }),
	"zero_":   fillWith(func(*call) any { return 0 }),
	"detach_": sameTensor,
	"normal_": randomInPlace(func(c *call, m loris.Maker, dims []int) *loris.Tensor {
		return m.Normal(c.floatOr("mean", 0), c.floatOr("std", 1), dims...)
	}),
	"uniform_": randomInPlace(func(c *call, m loris.Maker, dims []int) *loris.Tensor {
		return m.Uniform(c.floatOr("from", 0), c.floatOr("to", 1), dims...)
	}),
	"bernoulli_": randomInPlace(func(c *call, m loris.Maker, dims []int) *loris.Tensor {
		return m.Bernoulli(c.floatOr("p", 0.5), dims...)
	}),
	"requires_grad_":    sameTensor,
	"exponential_":      exponentialInPlace,
	"geometric_":        geometricInPlace,
	"cauchy_":           cauchyInPlace,
	"log_normal_":       logNormalInPlace,
	"embedding_renorm_": embeddingRenorm,
}

// sameTensor returns the first tensor.
func sameTensor(c *call) []any {
	x, ok := c.first()
	if !ok {
		panic(misuse(c.n.target, "it has no tensor"))
	}
	return []any{x}
}

func fillWith(value func(c *call) any) func(c *call) []any {
	return func(c *call) []any {
		x := c.tensor("self")
		c.assign(x, c.do("full_like", x, value(c)))
		return []any{x}
	}
}

func randomInPlace(fill func(c *call, m loris.Maker, dims []int) *loris.Tensor) func(c *call) []any {
	return func(c *call) []any {
		x := c.tensor("self")
		t := x.value()
		c.assign(x, fill(c, c.maker().With(loris.As(t.DType())), t.Dims()))
		return []any{x}
	}
}
