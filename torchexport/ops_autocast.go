package torchexport

import (
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
)

// autocast records the graph of a torch.autocast region: what PyTorch casts there is not in the graph
// but in the dtypes of its results.
func autocast(c *call) []any {
	on, ok := c.at(2).(bool)
	if !ok {
		panic(misuse(c.n.target, "argument 2 should say whether it is enabled, not %v", describeValue(c.at(2))))
	}
	defer func(was bool) { c.run.casting = was }(c.run.casting)
	c.run.casting = on
	return inlined(c)
}

// narrowOps compute in the region's dtype, products above all.
var narrowOps = []string{
	"addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
	"conv_transpose3d", "convolution", "gru_cell", "linalg_multi_dot", "linalg_vecdot", "linear", "lstm_cell", "matmul", "mm", "mv", "prelu", "rnn_relu_cell",
	"rnn_tanh_cell", "scaled_dot_product_attention",
}

// casts gives the floating operands of a node in an autocast region the dtype that PyTorch does: that
// of the result for ops that compute in narrow floats, and f32 where f32 comes of narrow ones.
func (c *call) casts() {
	i := slices.IndexFunc(c.n.outs, func(o out) bool { return !o.slice && o.slot >= 0 && c.f.metas[o.slot] != nil })
	if i < 0 {
		return
	}
	to := c.f.metas[c.n.outs[i].slot].dtype
	name, _, _ := strings.Cut(strings.TrimPrefix(c.n.target, "aten."), ".")
	narrow := (to == ir.BF16 || to == ir.F16) && slices.Contains(narrowOps, name)
	if !narrow && (to != ir.F32 || c.n.op.changes || c.n.op.shares) {
		return
	}
	for i, a := range c.args {
		if x, ok := a.value.(*tensor); ok {
			if d := x.value().DType(); d != to && (d == ir.F32 || d == ir.BF16 || d == ir.F16) {
				c.args[i].value = newTensor(x.value().Cast(to))
			}
		}
	}
}
