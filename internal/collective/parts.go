package collective

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Gathered is up to how many bytes of all ranks together a reduction gathers everything on each.
const Gathered = 16 << 10

// OnDevice writes the collectives of a Program as those that a DeviceCommunicator runs: all_gather and
// all_to_all along dimension 0, broadcast, send, recv and barrier. Reductions are exchanges and a
// balanced tree of ordinary ops, the same tree as on the host, so that results have the same bits. With
// the library's own sums, all_reduce of long f32 and f64 stays.
func OnDevice(p *graph.Program, c DeviceCommunicator, supports func(ir.Op) bool) (*graph.Program, error) {
	uses := Of(p)
	if len(uses) == 0 {
		return p, nil
	}
	layouts := map[string]layout{}
	for i := range uses {
		size, library, err := c.Layout(uses[i].Group)
		if err != nil {
			return nil, err
		}
		layouts[uses[i].Group] = layout{size, library}
	}
	replace := func(b *ir.Builder, a ir.Args) ([]ir.Value, bool) {
		if a.Spec.Category != ir.Collective {
			return nil, false
		}
		w := writer{b: b, layout: layouts[a.Str("group")], group: a.Str("group")}
		if len(a.In) > 1 {
			w.after = a.In[1:]
		}
		out, ok := w.write(a)
		return []ir.Value{out}, ok
	}
	out, _ := graph.Optimize(p, graph.Options{Supports: supports, NoRules: true, Replace: replace})
	return out, nil
}

type layout struct {
	size    int
	library bool
}

// writer writes one collective.
type writer struct {
	layout
	b     *ir.Builder
	group string
	after []ir.Value // to be computed before, if any
}

// write returns the result of a use; ok is false for one that stays.
func (w *writer) write(a ir.Args) (out ir.Value, ok bool) {
	x := a.In[0]
	switch a.Spec.Op.String() {
	case "all_reduce":
		if d := x.DType(); w.library && a.Str("reduction") == "sum" && (d == ir.F32 || d == ir.F64) && x.Shape().Bytes()*w.size > Gathered {
			return out, false
		}
		return w.allReduce(x, a.Str("reduction")), true
	case "reduce":
		sum := w.allReduce(x, "sum")
		return w.b.Where(w.isRank(a.Int("root")), sum, w.b.Full(x.Shape().Dims(), 0, x.DType())), true
	case "reduce_scatter":
		dim := a.Dim("dim", x.Shape().Rank())
		parts, dims := w.separated(x, dim)
		parts = w.exchange(parts)
		dims[dim] /= w.size
		return w.b.Reshape(w.tree(parts, a.Str("reduction")), dims...), true
	case "all_gather":
		dim := a.Dim("dim", x.Shape().Rank())
		return w.joined(x, dim)
	case "all_to_all":
		dim := a.Dim("dim", x.Shape().Rank())
		if dim == 0 {
			return out, false
		}
		parts, dims := w.separated(x, dim)
		part := x.Shape().Dims()
		part[dim] /= w.size
		return w.interleaved(w.exchange(parts), part, dim, dims), true
	}
	return out, false
}

func (w *writer) call(op string, x ir.Value, args ...any) ir.Value {
	o, _ := ir.Lookup(op)
	args = append(append([]any{x}, args...), w.group)
	for _, v := range w.after {
		args = append(args, v)
	}
	return w.b.Call1(o, args)
}

// exchange is all_to_all along dimension 0, which has the parts.
func (w *writer) exchange(x ir.Value) ir.Value { return w.call("all_to_all", x, 0, w.size) }

// gather joins x of all ranks along a new dimension 0.
func (w *writer) gather(x ir.Value) ir.Value {
	dims := x.Shape().Dims()
	return w.b.Reshape(w.call("all_gather", w.b.Reshape(x, -1), 0, w.size), append([]int{w.size}, dims...)...)
}

// joined is all_gather along any dimension.
func (w *writer) joined(x ir.Value, dim int) (ir.Value, bool) {
	if dim == 0 {
		return ir.Value{}, false
	}
	part := x.Shape().Dims()
	whole := x.Shape().Dims()
	whole[dim] *= w.size
	return w.interleaved(w.gather(x), part, dim, whole), true
}

// separated cuts x along dim into the parts of the ranks, along a new dimension 0, and returns the
// dimensions of x.
func (w *writer) separated(x ir.Value, dim int) (parts ir.Value, dims []int) {
	dims = x.Shape().Dims()
	split := append(append(append([]int{}, dims[:dim]...), w.size, dims[dim]/w.size), dims[dim+1:]...)
	order := []int{dim}
	for i := range split {
		if i != dim {
			order = append(order, i)
		}
	}
	return w.b.Permute(w.b.Reshape(x, split...), order...), dims
}

// interleaved is the inverse: parts of the given dimensions, along dimension 0, are joined along dim.
func (w *writer) interleaved(parts ir.Value, part []int, dim int, whole []int) ir.Value {
	x := w.b.Reshape(parts, append([]int{w.size}, part...)...)
	order := make([]int, 0, len(part)+1)
	for i := range part {
		if i == dim {
			order = append(order, 0)
		}
		order = append(order, i+1)
	}
	return w.b.Reshape(w.b.Permute(x, order...), whole...)
}

// allReduce gathers what is short; of what is long each rank joins a part.
func (w *writer) allReduce(x ir.Value, how string) ir.Value {
	dims, n := x.Shape().Dims(), x.Shape().Numel()
	if x.Shape().Bytes()*w.size <= Gathered {
		return w.b.Reshape(w.tree(w.gather(x), how), dims...)
	}
	k := (n + w.size - 1) / w.size
	flat := w.b.Reshape(x, n)
	if more := k*w.size - n; more > 0 {
		flat = w.b.Cat([]ir.Value{flat, w.b.Full([]int{more}, 0, x.DType())}, 0)
	}
	mine := w.b.Reshape(w.tree(w.exchange(w.b.Reshape(flat, w.size, k)), how), k)
	w.after = nil // the exchange is after it
	all := w.b.Reshape(w.gather(mine), k*w.size)
	return w.b.Reshape(w.b.Slice(all, 0, 0, n, 1), dims...)
}

// tree joins the parts along dimension 0: neighbours first, then neighbouring pairs. f16 and bf16 are
// joined in f32 and rounded once.
func (w *writer) tree(x ir.Value, how string) ir.Value {
	d := x.DType()
	if d == ir.F16 || d == ir.BF16 {
		x = w.b.Cast(x, ir.F32)
	}
	var level []ir.Value
	for i := range w.size {
		level = append(level, w.b.Slice(x, 0, i, i+1, 1))
	}
	op := map[string]ir.Op{"sum": aten.Add, "mean": aten.Add, "max": aten.Maximum, "min": aten.Minimum}[how]
	for len(level) > 1 {
		var next []ir.Value
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				next = append(next, level[i])
				break
			}
			next = append(next, w.b.Call1(op, []any{level[i], level[i+1]}))
		}
		level = next
	}
	out := level[0]
	if how == "mean" {
		out = w.b.Div(out, w.b.Const(float64(w.size), out.DType()))
	}
	return w.b.Cast(out, d)
}

// isRank is whether this is a rank. Graphs are equal on all ranks: each gets its number by an exchange.
func (w *writer) isRank(r int) ir.Value {
	own := w.b.Slice(w.exchange(w.b.Iota(w.size, ir.I32)), 0, 0, 1, 1)
	return w.b.Call1(aten.Eq, []any{w.b.Reshape(own), w.b.Const(r, ir.I32)})
}
