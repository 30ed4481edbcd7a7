package torchexport

import (
	"context"
	"fmt"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// controlOps call graphs.
var controlOps = map[string]func(c *call) []any{
	"higher_order.cond":                       condition,
	"higher_order.while_loop":                 whileLoop,
	"higher_order.map_impl":                   mapOver,
	"higher_order.scan":                       scanOver,
	"higher_order.wrap_with_set_grad_enabled": inlined,
	"higher_order.wrap_with_autocast":         autocast,
	"higher_order.invoke_subgraph":            inlined,
	"higher_order.strict_mode":                inlined,
	"higher_order.hints_wrapper":              inlined,
}

// graph returns an argument that is a graph.
func (c *call) graph(i int) *block {
	b, ok := c.at(i).(*block)
	if !ok {
		panic(misuse(c.n.target, "argument %d should be a graph, not %v", i, describeValue(c.at(i))))
	}
	return b
}

// list returns an argument that is a list; a list may also be one value.
func (c *call) list(i int) []any {
	if i >= len(c.args) {
		return nil
	}
	switch v := c.args[i].value.(type) {
	case []any:
		return v
	case nil:
		return nil
	default:
		return []any{v}
	}
}

// enter records a graph, whose in-place changes of its inputs are not seen outside.
func (c *call) enter(b *block, inputs []any) []any {
	own := make([]any, len(inputs))
	for i, v := range inputs {
		own[i] = v
		if x, ok := v.(*tensor); ok {
			own[i] = newTensor(x.value())
		}
	}
	return c.block(b, own)
}

// inlined records the graph among the arguments on those that follow it.
func inlined(c *call) []any {
	for i, a := range c.args {
		b, ok := a.value.(*block)
		if !ok {
			continue
		}
		var inputs []any
		for _, a := range c.args[i+1:] {
			if l, isList := a.value.([]any); isList && len(c.args[i+1:]) == 1 {
				inputs = append(inputs, l...)
				continue
			}
			if s, isName := a.value.(string); isName && s == b.name {
				continue // invoke_subgraph names the graph again
			}
			inputs = append(inputs, a.value)
		}
		return c.block(b, inputs)
	}
	panic(misuse(c.n.target, "it has no graph"))
}

// condition records one branch where the condition is a Python value. For a tensor it records both and
// chooses among their results, so that nothing waits and gradients flow.
func condition(c *call) []any {
	inputs := c.list(3)
	pred, ok := c.at(0).(*tensor)
	if !ok {
		if c.float(0) != 0 {
			return c.enter(c.graph(1), inputs)
		}
		return c.enter(c.graph(2), inputs)
	}
	yes, no := c.enter(c.graph(1), inputs), c.enter(c.graph(2), inputs)
	if len(yes) != len(no) {
		panic(misuse(c.n.target, "branches of %d and %d results", len(yes), len(no)))
	}
	choose := pred.value().Reshape()
	out := make([]any, len(yes))
	for i := range yes {
		a, ok1 := yes[i].(*tensor)
		b, ok2 := no[i].(*tensor)
		if !ok1 || !ok2 {
			panic(misuse(c.n.target, "result %d of a branch is no tensor", i))
		}
		if !a.value().Shape().SameDims(b.value().Shape()) {
			panic(misuse(c.n.target, "result %d of the branches is %v and %v", i, a.value().Shape(), b.value().Shape()))
		}
		out[i] = newTensor(loris.Where(castTo(choose, ir.Bool), a.value(), b.value()))
	}
	return out
}

// maxRounds bounds loops, so that a program that never ends is an error.
const maxRounds = 1 << 20

// whileLoop computes the condition before each round.
func whileLoop(c *call) []any {
	state, more := c.list(2), c.list(3)
	for range maxRounds {
		go1 := c.enter(c.graph(0), append(append([]any(nil), state...), more...))
		if len(go1) != 1 {
			panic(misuse(c.n.target, "a condition of %d results", len(go1)))
		}
		if v, isTensor := go1[0].(*tensor); isTensor {
			if c.item(v.value()) == 0 {
				return state
			}
		} else if f, ok := toFloat(go1[0]); !ok || f == 0 {
			return state
		}
		next := c.enter(c.graph(1), append(append([]any(nil), state...), more...))
		if len(next) != len(state) {
			panic(misuse(c.n.target, "a body of %d results for %d values", len(next), len(state)))
		}
		state = next
	}
	panic(misuse(c.n.target, "more than %d rounds", maxRounds))
}

// elements returns element i of each tensor of a list.
func (c *call) elements(xs []any, i int) []any {
	out := make([]any, len(xs))
	for j, x := range xs {
		t, ok := x.(*tensor)
		if !ok {
			panic(misuse(c.n.target, "a sequence that is no tensor"))
		}
		out[j] = newTensor(c.do("select", t.value(), 0, i))
	}
	return out
}

// length returns the common length of sequences.
func (c *call) length(xs []any) int {
	n := -1
	for _, x := range xs {
		t, ok := x.(*tensor)
		if !ok || t.value().Rank() == 0 {
			panic(misuse(c.n.target, "a sequence that is no tensor with dimensions"))
		}
		if m := t.value().Dim(0); n < 0 || m == n {
			n = m
			continue
		}
		panic(misuse(c.n.target, "sequences of different lengths"))
	}
	if n <= 0 {
		panic(misuse(c.n.target, "an empty sequence"))
	}
	return n
}

// stacked puts the results of all elements together.
func (c *call) stacked(rounds [][]any) []any {
	out := make([]any, len(rounds[0]))
	for j := range out {
		ts := make([]*loris.Tensor, len(rounds))
		for i, r := range rounds {
			t, ok := r[j].(*tensor)
			if !ok {
				panic(misuse(c.n.target, "a result that is no tensor"))
			}
			ts[i] = t.value()
		}
		out[j] = newTensor(c.do("stack", ts, 0))
	}
	return out
}

func mapOver(c *call) []any {
	xs, more := c.list(1), c.list(2)
	rounds := make([][]any, c.length(xs))
	for i := range rounds {
		rounds[i] = c.enter(c.graph(0), append(c.elements(xs, i), more...))
	}
	return c.stacked(rounds)
}

// scanOver carries values through a sequence. PyTorch 2.6 has the dimension and the direction among the
// arguments.
func scanOver(c *call) []any {
	carried, xs := c.list(1), c.list(2)
	reverse := false
	var more []any
	for i := 3; i < len(c.args); i++ {
		switch v := c.args[i].value.(type) {
		case bool:
			reverse = v
		case int64:
			if v != 0 {
				panic(misuse(c.n.target, "scans along dimension %d are not supported", v))
			}
		default:
			more = append(more, c.list(i)...)
		}
	}
	n := c.length(xs)
	rounds := make([][]any, n)
	for k := range n {
		i := k
		if reverse {
			i = n - 1 - k
		}
		outs := c.enter(c.graph(0), append(append(append([]any(nil), carried...), c.elements(xs, i)...), more...))
		if len(outs) < len(carried) {
			panic(misuse(c.n.target, "a body of %d results for %d values", len(outs), len(carried)))
		}
		carried, rounds[i] = outs[:len(carried)], outs[len(carried):]
	}
	return append(append([]any(nil), carried...), c.stacked(rounds)...)
}

// dataOps have results whose size or value depends on elements, which they wait for.
var dataOps = map[string]func(c *call) []any{
	"aten.nonzero":             func(c *call) []any { return one(c.nonzero(c.value("self"))) },
	"aten.nonzero_numpy":       func(c *call) []any { return []any{many(c.nonzero(c.value("self")).Unbind(loris.Dim(1))...)} },
	"aten.masked_select":       func(c *call) []any { return one(c.maskedSelect()) },
	"aten.item":                func(c *call) []any { return []any{c.scalarItem(c.value("self"))} },
	"aten._local_scalar_dense": func(c *call) []any { return []any{c.scalarItem(c.value("self"))} },
	"aten.repeat_interleave.self_Tensor": func(c *call) []any {
		return one(c.repeatEach(c.value("self"), c.value("repeats")))
	},
	"aten.repeat_interleave.Tensor": func(c *call) []any {
		repeats := c.value("repeats")
		return one(c.repeatEach(c.do("arange", 0, repeats.Numel(), 1, ir.I64), repeats))
	},
}

// needData are the ops that may wait for elements.
var needData = map[string]bool{
	"aten.nonzero": true, "aten.nonzero_numpy": true, "aten.masked_select": true, "aten.item": true, "aten._local_scalar_dense": true,
	"aten.repeat_interleave.self_Tensor": true, "aten.repeat_interleave.Tensor": true, "aten.where.default": true,
	"higher_order.while_loop": true, "aten.argwhere": true, "aten.tensor_split.tensor_indices_or_sections": true, "aten.bincount": true,
	"aten._unique2": true, "aten.view.dtype": true, "aten.unique_dim": true, "aten.unique_consecutive": true, "torchvision.nms": true, "torchvision.roi_align": true,
}

// failure carries an error of the environment through a recording.
type failure struct{ err error }

// check ends the recording with an error.
func (c *call) check(err error) {
	if err != nil {
		panic(failure{fmt.Errorf("node %s (%s): %w", c.n.name, c.n.target, err)})
	}
}

// wait returns the context to wait with, where waiting is allowed.
func (c *call) wait() (ctx context.Context) {
	if c.ctx == nil {
		panic(misuse(c.n.target, "the program needs elements here while it is recorded: use Model.Call, outside of loris.Compile"))
	}
	return c.ctx
}

func (c *call) nonzero(t *loris.Tensor) *loris.Tensor {
	out, err := loris.Nonzero(c.wait(), t)
	c.check(err)
	return out
}

// item returns the one element of a tensor.
func (c *call) item(t *loris.Tensor) float64 {
	v, err := t.Item(c.wait())
	c.check(err)
	return v
}

// scalarItem returns the one element as a Python value.
func (c *call) scalarItem(t *loris.Tensor) any {
	if t.DType().IsFloat() {
		return c.item(t)
	}
	ns, err := t.Cast(ir.I64).Reshape(1).Int64s(c.wait())
	c.check(err)
	if t.DType() == ir.Bool {
		return ns[0] != 0
	}
	return ns[0]
}

// commonDims are the dimensions of two operands broadcast together.
func commonDims(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		if at := len(a) - len(b) + i; out[at] == 1 {
			out[at] = n
		}
	}
	return out
}

func (c *call) maskedSelect() *loris.Tensor {
	x, mask := c.value("self"), c.value("mask")
	dims := commonDims(x.Dims(), mask.Dims())
	x, mask = x.Expand(dims...), mask.Expand(dims...)
	places := c.nonzero(mask.Reshape(-1)).Reshape(-1)
	return x.Reshape(-1).IndexSelect(0, places)
}

// repeatEach repeats each element along dim as often as repeats says.
func (c *call) repeatEach(x, repeats *loris.Tensor) *loris.Tensor {
	dim := 0
	if _, ok := c.arg("dim"); ok {
		dim = c.int("dim")
	} else {
		x = x.Reshape(-1)
	}
	counts, err := repeats.Int64s(c.wait())
	c.check(err)
	if len(counts) == 1 {
		counts = slices.Repeat(counts, x.Dim(dim))
	}
	var places []int64
	for i, n := range counts {
		if n < 0 || n > maxRounds || int64(len(places))+n > 1<<28 {
			panic(misuse(c.n.target, "an element is repeated %d times", n))
		}
		for range n {
			places = append(places, int64(i))
		}
	}
	return x.IndexSelect(dim, c.maker().FromSlice(places, len(places)))
}
