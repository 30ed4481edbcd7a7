package torchexport

import (
	"math"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// neuralOps are layers whose arguments differ from those of the row of the name.
var neuralOps = map[string]func(c *call) []any{
	"aten.scaled_dot_product_attention":                attention,
	"aten._scaled_dot_product_flash_attention_for_cpu": attentionWithSums,
	"aten.conv1d.padding":                              convPadding,
	"aten.conv2d.padding":                              convPadding,
	"aten.conv3d.padding":                              convPadding,
	"aten.reflection_pad1d":                            padMode("reflect"),
	"aten.reflection_pad2d":                            padMode("reflect"),
	"aten.reflection_pad3d":                            padMode("reflect"),
	"aten._pad_circular": func(c *call) []any {
		return one(c.do("pad", c.value("self"), c.ints("pad"), "circular"))
	},
	"aten.constant_pad_nd": func(c *call) []any {
		return one(c.do("constant_pad_nd", c.value("self"), c.ints("pad"), c.operandOr("value", 0)))
	},
	"aten.upsample_nearest1d":       upsample("upsample_nearest1d", 1),
	"aten.upsample_nearest2d":       upsample("upsample_nearest2d", 2),
	"aten.upsample_nearest3d":       upsample("upsample_nearest3d", 3),
	"aten.upsample_nearest_exact1d": upsample("_upsample_nearest_exact1d", 1),
	"aten.upsample_nearest_exact2d": upsample("_upsample_nearest_exact2d", 2),
	"aten.upsample_nearest_exact3d": upsample("_upsample_nearest_exact3d", 3),
	"aten.upsample_linear1d":        upsample("upsample_linear1d", 1),
	"aten.upsample_bilinear2d":      upsample("upsample_bilinear2d", 2),
	"aten._upsample_bilinear2d_aa":  antialiased(triangle, 1),
	"aten._upsample_bicubic2d_aa":   antialiased(cubic, 2),
	"aten.upsample_trilinear3d":     upsample("upsample_trilinear3d", 3),
	"aten.upsample_bicubic2d":       upsample("upsample_bicubic2d", 2),
	"aten.affine_grid_generator": func(c *call) []any {
		return one(c.do("affine_grid", c.value("theta"), c.ints("size"), c.boolOr("align_corners", false)))
	},
	"aten.grid_sampler":                gridSample,
	"aten.grid_sampler_2d":             gridSample,
	"aten.grid_sampler_3d":             gridSample,
	"aten.embedding_bag":               embeddingBag,
	"transformers.grouped_mm_fallback": groupedProduct,
}

// attention records the fused op, and its parts where it drops weights in training.
func attention(c *call) []any {
	q, k, v := c.value("query"), c.value("key"), c.value("value")
	var mask any
	if m := c.optional("attn_mask"); m != nil {
		mask = m
	}
	causal, p := c.boolOr("is_causal", false), c.floatOr("dropout_p", 0)
	var scale any
	if _, ok := c.arg("scale"); ok {
		scale = c.floatOr("scale", 1)
	}
	if p == 0 {
		return one(c.all("scaled_dot_product_attention", []any{q, k, v, mask, causal}, ir.A("scale", scale), ir.A("enable_gqa", c.boolOr("enable_gqa", false)))[0])
	}
	weights := c.attentionScores(q, k, mask, causal, scale).Softmax(-1)
	return one(weights.Dropout(p).MatMul(v))
}

// attentionScores returns what attention takes the softmax of.
func (c *call) attentionScores(q, k *loris.Tensor, mask any, causal bool, scale any) *loris.Tensor {
	factor := 1 / math.Sqrt(float64(q.Dim(-1)))
	if f, ok := scale.(float64); ok {
		factor = f
	}
	if n := q.Rank() - 3; n >= 0 && q.Dim(n) != k.Dim(n) && k.Dim(n) > 0 { // grouped queries
		k = c.do("repeat_interleave", k, q.Dim(n)/k.Dim(n), n)
	}
	scores := q.Mul(factor).MatMul(k.Transpose(-2, -1))
	hide := math.Inf(-1)
	if causal {
		keep := c.do("full", []int{q.Dim(-2), k.Dim(-2)}, 1, ir.Bool).Tril()
		scores = c.do("masked_fill", scores, keep.LogicalNot(), hide)
	}
	if m, ok := mask.(*loris.Tensor); ok {
		if m.DType() == ir.Bool {
			return c.do("masked_fill", scores, m.LogicalNot(), hide)
		}
		scores = scores.Add(m)
	}
	return scores
}

// attentionWithSums also returns the logarithms of the sums that the softmax divides by.
func attentionWithSums(c *call) []any {
	outs := attention(c)
	var mask, scale any
	if m := c.optional("attn_mask"); m != nil {
		mask = m
	}
	if _, ok := c.arg("scale"); ok {
		scale = c.floatOr("scale", 1)
	}
	scores := c.attentionScores(c.value("query"), c.value("key"), mask, c.boolOr("is_causal", false), scale)
	return append(outs, newTensor(c.do("logsumexp", scores.Cast(ir.F32), []int{-1})))
}

// convPadding is a convolution whose padding is a word.
func convPadding(c *call) []any {
	name := c.n.target[len("aten.") : len("aten.")+len("conv1d")]
	n := int(name[len("conv")] - '0')
	return one(c.all(name, []any{c.value("input"), c.value("weight"), c.optional("bias"), c.intsOr("stride", repeated(1, n)), repeated(0, n),
		c.intsOr("dilation", repeated(1, n)), c.intOr("groups", 1), c.stringOr("padding", "valid")})[0])
}

func repeated(v, n int) []int { return slices.Repeat([]int{v}, n) }

func padMode(mode string) func(c *call) []any {
	return func(c *call) []any { return one(c.do("pad", c.value("self"), c.ints("padding"), mode)) }
}

// upsample resizes the last n dimensions to output_size, or by scale_factors.
func upsample(op string, n int) func(c *call) []any {
	return func(c *call) []any {
		x, ok := c.first()
		if !ok || x.value().Rank() != n+2 {
			panic(misuse(c.n.target, "it resizes %d dimensions of a batch of images", n))
		}
		t := x.value()
		scales := c.scales(n)
		size := c.intsOr("output_size", nil)
		if size == nil {
			for i, s := range scales {
				size = append(size, int(math.Floor(float64(t.Dim(2+i))*s.(float64))))
			}
		}
		if len(size) != n {
			panic(misuse(c.n.target, "output_size %v", size))
		}
		args := []any{t, size}
		if !strings.Contains(op, "nearest") {
			args = append(args, c.boolOr("align_corners", false))
		}
		return one(c.all(op, append(args, scales...))[0])
	}
}

// scales returns the n factors of a resizing, nil for each that is not given.
func (c *call) scales(n int) []any {
	out := make([]any, n)
	if v, ok := c.arg("scale_factors"); ok {
		items, _ := v.([]any)
		for i := range out {
			f, isFloat := 0.0, false
			if i < len(items) {
				f, isFloat = toFloat(items[i])
			}
			if !isFloat || !(f > 0) || f > 1<<20 {
				panic(c.wrong("scale_factors", "positive numbers", v))
			}
			out[i] = f
		}
		return out
	}
	names := [][]string{{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}}[n-1]
	for i, name := range names {
		if _, ok := c.arg(name); ok {
			out[i] = c.floatOr(name, 1)
		}
	}
	return out
}

// groupedProduct multiplies groups of rows by matrices of their own, as transformers' experts do:
// input [rows, in], weight [groups, in, out], offs the ends of the groups.
func groupedProduct(c *call) []any {
	if len(c.args) < 3 {
		panic(misuse(c.n.target, "%d arguments", len(c.args)))
	}
	var ts [3]*loris.Tensor
	for i := range ts {
		x, ok := c.args[i].value.(*tensor)
		if !ok {
			panic(c.wrong(c.args[i].name, "a tensor", c.args[i].value))
		}
		ts[i] = x.value()
	}
	return one(c.all("_grouped_mm", []any{ts[0], ts[1], ts[2].Cast(ir.I32)})[0])
}

// gridSample reads an image at the places of a grid. The numbers of modes are those of the lists.
func gridSample(c *call) []any {
	mode, ok1 := pick([]string{"bilinear", "nearest", "bicubic"}, c.intOr("interpolation_mode", 0))
	padding, ok2 := pick([]string{"zeros", "border", "reflection"}, c.intOr("padding_mode", 0))
	if !ok1 || !ok2 {
		panic(misuse(c.n.target, "interpolation_mode %d, padding_mode %d", c.intOr("interpolation_mode", 0), c.intOr("padding_mode", 0)))
	}
	return one(c.do("grid_sample", c.value("input"), c.value("grid"), mode, padding, c.boolOr("align_corners", false)))
}

func pick(of []string, n int) (string, bool) {
	if n < 0 || n >= len(of) {
		return "", false
	}
	return of[n], true
}

// embeddingBag also names results that only gradients take, which are not made here.
func embeddingBag(c *call) []any {
	mode, ok := pick([]string{"sum", "mean", "max"}, c.intOr("mode", 0))
	if !ok {
		panic(misuse(c.n.target, "mode %d", c.intOr("mode", 0)))
	}
	var weights, padding any
	if w := c.optional("per_sample_weights"); w != nil {
		weights = w
	}
	if n := c.intOr("padding_idx", -1); n >= 0 {
		padding = n
	}
	out := c.do("embedding_bag", c.value("indices"), c.value("weight"), c.optional("offsets"), mode, weights, c.boolOr("include_last_offset", false), padding)
	return append(one(out), nil, nil, nil)
}
