package torchexport

import (
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// normOps normalise over batches and instances.
var normOps = map[string]func(c *call) []any{
	"aten.batch_norm":    func(c *call) []any { return c.batchNorm(c.boolOr("training", false))[:1] },
	"aten.instance_norm": instanceNorm,
	// The functional forms return the mean and the inverse deviation that training took.
	"aten.native_batch_norm":        func(c *call) []any { return c.batchNorm(c.boolOr("training", false)) },
	"aten._native_batch_norm_legit": func(c *call) []any { return c.batchNorm(c.boolOr("training", true)) },
	"aten._batch_norm_with_update": func(c *call) []any {
		return append(c.batchNorm(true), newTensor(c.do("full", []int{0}, 0, ir.U8)))
	},
	"aten._safe_softmax": safeSoftmax,
}

// statistics are the arguments to which training gives new values.
var statistics = []string{"running_mean", "running_var"}

// trains returns the statistics that a node gives new values, none if it does not train.
func (n *node) trains() []string {
	flag := ""
	op, _, _ := strings.Cut(strings.TrimPrefix(n.target, "aten."), ".")
	switch op {
	case "batch_norm", "native_batch_norm", "_native_batch_norm_legit":
		flag = "training"
	case "instance_norm":
		flag = "use_input_stats"
	case "_batch_norm_with_update":
		return statistics
	}
	if on, _ := n.argument(flag).(bool); on {
		return statistics
	}
	return nil
}

// batchNorm normalises, gives the running statistics their new values in training, and returns also
// the mean and the inverse deviation of the batch; there are none outside of training.
func (c *call) batchNorm(training bool) []any {
	x, eps := c.value("input"), c.floatOr("eps", 1e-5)
	outs := c.all("batch_norm", []any{x, c.optional("weight"), c.optional("bias"), c.optional("running_mean"),
		c.optional("running_var"), training, c.floatOr("momentum", 0.1), eps})
	if !training {
		none := c.do("full", []int{0}, 0, x.DType())
		return many(outs[0], none, none)
	}
	for i, name := range statistics {
		if _, ok := c.arg(name); ok {
			c.assign(c.tensor(name), outs[1+i])
		}
	}
	over := []int{0}
	for i := 2; i < x.Rank(); i++ {
		over = append(over, i)
	}
	stats := c.all("var_mean", []any{castTo(x, ir.PromoteTypes(x.DType(), ir.F32)), over}, ir.A("correction", 0.0))
	return many(outs[0], stats[1], stats[0].Add(eps).Rsqrt())
}

// instanceNorm is batchNorm in which each sample's channels are channels of their own.
func instanceNorm(c *call) []any {
	x, momentum, eps := c.value("input"), c.floatOr("momentum", 0.1), c.floatOr("eps", 1e-5)
	mean, variance := c.optional("running_mean"), c.optional("running_var")
	if !c.boolOr("use_input_stats", true) {
		return one(c.all("batch_norm", []any{x, c.optional("weight"), c.optional("bias"), mean, variance, false, momentum, eps})[0])
	}
	if mean != nil && variance != nil {
		var over []int
		for i := 2; i < x.Rank(); i++ {
			over = append(over, i)
		}
		stats := c.all("var_mean", []any{castTo(x, mean.DType()), over})
		toward := func(name string, have, batch *loris.Tensor) {
			c.assign(c.tensor(name), have.Mul(1-momentum).Add(c.do("mean", batch, []int{0}).Mul(momentum)))
		}
		toward("running_mean", mean, stats[1])
		toward("running_var", variance, stats[0])
	}
	return one(c.do("group_norm", x, x.Dim(1), c.optional("weight"), c.optional("bias"), eps))
}

// safeSoftmax gives 0 to rows in which everything is hidden.
func safeSoftmax(c *call) []any {
	x, dim := castTo(c.value("self"), c.dtypeOr(c.value("self").DType())), c.int("dim")
	hidden := c.do("amax", x, []int{dim}, true).Isneginf()
	return one(c.do("masked_fill", c.do("softmax", x, dim), hidden, 0))
}
