package torchexport

import (
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// lossOps are losses. ATen's reduction is a number.
var lossOps = map[string]func(c *call) []any{
	"aten.cross_entropy_loss":               loss("cross_entropy"),
	"aten.nll_loss":                         loss("nll_loss"),
	"aten.nll_loss_nd":                      loss("nll_loss"),
	"aten.nll_loss2d":                       loss("nll_loss"),
	"aten.mse_loss":                         loss("mse_loss"),
	"aten.l1_loss":                          loss("l1_loss"),
	"aten.smooth_l1_loss":                   loss("smooth_l1_loss"),
	"aten.huber_loss":                       loss("huber_loss"),
	"aten.kl_div":                           loss("kl_div"),
	"aten.binary_cross_entropy":             loss("binary_cross_entropy"),
	"aten.binary_cross_entropy_with_logits": loss("binary_cross_entropy_with_logits"),
	"aten.soft_margin_loss":                 loss("soft_margin_loss"),
	"aten.margin_ranking_loss": func(c *call) []any {
		far := c.value("input1").Sub(c.value("input2")).Mul(c.value("target")).Neg().Add(c.floatOr("margin", 0))
		return c.reduced(c.do("clamp_min", far, 0))
	},
	"aten.hinge_embedding_loss": func(c *call) []any {
		x, target := c.value("self"), c.value("target")
		zero := x.ZerosLike()
		near := loris.Where(target.Eq(1), x, zero)
		far := loris.Where(target.Eq(-1), c.do("clamp_min", x.Neg().Add(c.floatOr("margin", 1)), 0), zero)
		return c.reduced(near.Add(far))
	},
	"aten.cosine_embedding_loss":  cosineEmbeddingLoss,
	"aten.triplet_margin_loss":    tripletMarginLoss,
	"aten.poisson_nll_loss":       poissonLoss,
	"aten.multi_margin_loss":      multiMarginLoss,
	"aten.multilabel_margin_loss": multilabelMarginLoss,
}

// reductions are the words of the numbers that ATen's losses take.
var reductions = []string{"none", "mean", "sum"}

// loss records a loss, whose reduction is a number in ATen and a word in the row.
func loss(op string) func(c *call) []any {
	row, _ := ir.Lookup(op)
	record := generic(row)
	return func(c *call) []any {
		n := c.intOr("reduction", 1)
		if n < 0 || n >= len(reductions) {
			panic(misuse(c.n.target, "reduction %d", n))
		}
		with := *c
		with.args = []argument{{"reduction", reductions[n]}}
		for _, a := range c.args {
			if a.name != "reduction" {
				with.args = append(with.args, a)
			}
		}
		return record(&with)
	}
}

// reduced is a loss's mean, sum or its elements, as the argument reduction says.
func (c *call) reduced(t *loris.Tensor) []any {
	switch n := c.intOr("reduction", 1); n {
	case 0:
		return one(t)
	case 1:
		return one(t.Mean())
	case 2:
		return one(t.Sum())
	default:
		panic(misuse(c.n.target, "reduction %d", n))
	}
}

func cosineEmbeddingLoss(c *call) []any {
	a, b, target := c.value("input1"), c.value("input2"), c.value("target")
	const eps = 1e-12
	inner := func(a, b *loris.Tensor) *loris.Tensor { return c.do("sum", a.Mul(b), []int{-1}) }
	cos := inner(a, b).Div(inner(a, a).Add(eps).Mul(inner(b, b).Add(eps)).Sqrt())
	zero := cos.ZerosLike()
	near := loris.Where(target.Eq(1), cos.Neg().Add(1), zero)
	far := loris.Where(target.Eq(-1), c.do("clamp_min", cos.Sub(c.floatOr("margin", 0)), 0), zero)
	return c.reduced(near.Add(far))
}

func tripletMarginLoss(c *call) []any {
	anchor, positive, negative := c.value("anchor"), c.value("positive"), c.value("negative")
	p, eps := c.floatOr("p", 2), c.floatOr("eps", 1e-6)
	near, far := c.distance(anchor, positive, p, eps, false), c.distance(anchor, negative, p, eps, false)
	if c.boolOr("swap", false) {
		far = c.do("minimum", far, c.distance(positive, negative, p, eps, false))
	}
	return c.reduced(c.do("clamp_min", near.Sub(far).Add(c.floatOr("margin", 1)), 0))
}

func poissonLoss(c *call) []any {
	x, target := c.value("input"), c.value("target")
	var out *loris.Tensor
	if c.boolOr("log_input", true) {
		out = x.Exp().Sub(target.Mul(x))
	} else {
		out = x.Sub(target.Mul(x.Add(c.floatOr("eps", 1e-8)).Log()))
	}
	if c.boolOr("full", false) { // Stirling's formula
		t := castTo(target, out.DType())
		terms := t.Mul(t.Log()).Sub(t).Add(t.Mul(2 * math.Pi).Log().Mul(0.5))
		out = out.Add(c.do("masked_fill", terms, t.Le(1), 0))
	}
	return c.reduced(out)
}

// multiMarginLoss sums, over the classes but the right one, what their scores lack to its margin.
func multiMarginLoss(c *call) []any {
	x, target := c.value("self"), c.value("target")
	rank := x.Rank()
	classes := x.Dim(-1)
	x, target = x.Reshape(-1, classes), target.Reshape(-1, 1)
	far := c.do("clamp_min", x.Sub(c.do("gather", x, 1, target)).Add(c.floatOr("margin", 1)), 0)
	switch p := c.floatOr("p", 1); p {
	case 1:
	case 2:
		far = far.Square()
	default:
		panic(misuse(c.n.target, "p is 1 or 2, not %g", p))
	}
	if w := c.optional("weight"); w != nil {
		far = far.Mul(c.do("index_select", w, 0, target.Reshape(-1)).Unsqueeze(1))
	}
	right := c.do("arange", 0, classes, 1, ir.I64).Eq(target)
	out := c.do("sum", c.do("masked_fill", far, right, 0), []int{1}).Div(classes)
	if rank < 2 {
		out = out.Reshape()
	}
	return c.reduced(out)
}

// multilabelMarginLoss compares the score of each right class, which target lists up to the first
// negative number, to those of all others. ATen also returns which classes are right.
func multilabelMarginLoss(c *call) []any {
	x, target := c.value("self"), c.value("target")
	rank := x.Rank()
	classes := x.Dim(-1)
	x, target = x.Reshape(-1, classes), target.Reshape(-1, classes)
	listed := c.do("cumsum", target.Lt(0).Cast(ir.I64), 1).Eq(0)
	place := loris.Where(listed, target, target.ZerosLike())
	right := c.do("scatter_reduce", c.do("full", x.Dims(), 0, ir.I64), 1, place, listed.Cast(ir.I64), "amax").Ne(0)
	scores := c.do("gather", x, 1, place)
	far := c.do("clamp_min", x.Unsqueeze(1).Sub(scores.Unsqueeze(2)).Add(1), 0) // [rows, listed, classes]
	out := c.do("masked_fill", far, listed.LogicalNot().Unsqueeze(2).LogicalOr(right.Unsqueeze(1)), 0)
	sums := c.do("sum", out, []int{1, 2}).Div(classes)
	if rank < 2 {
		sums = sums.Reshape()
	}
	return c.reduced(sums)
}
