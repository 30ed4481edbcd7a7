package ir

import (
	"slices"
	"strings"
)

// Ops that move elements between the ranks of a group of processes. Every rank of the group runs the
// same uses in the same order; which rank a process is never enters a graph, so that the hashes of
// equal programs agree. Package dist records them and runs them.
var (
	opAllReduce     = declare("all_reduce")
	opReduce        = declare("reduce")
	opBroadcast     = declare("broadcast")
	opAllGather     = declare("all_gather")
	opReduceScatter = declare("reduce_scatter")
	opAllToAll      = declare("all_to_all")
	opSend          = declare("send")
	opRecv          = declare("recv")
)

// Reductions are the words that all_reduce and reduce_scatter take.
var reductions = []string{"sum", "mean", "max", "min"}

// collective adds a row. after, of any shape, is an operand that is computed before: it puts uses in
// an order and is not read.
func collective(schema, doc string, infer func(a Args) []Shape, vjp func(b *Builder, a Args, out, grad []Value) []Value) {
	register(strings.Replace(schema, ") ->", ", str group, Tensor? after=None) ->", 1), Spec{
		Doc: doc, Category: Collective, Unlisted: true, Impure: true, Ordered: true, Infer: infer,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			grads := make([]Value, len(a.In)) // none for after
			copy(grads, vjp(b, a, out, grad))
			return grads
		},
	})
}

func init() {
	collective("all_reduce(Tensor self, str reduction) -> Tensor",
		"The sum, mean, max or min over self of all ranks, on each of them. f16 and bf16 are added in f32 and rounded once.",
		inferReduced, vjpAllReduce)
	collective("reduce(Tensor self, int root) -> Tensor",
		"The sum over self of all ranks on the rank root, and zeros on the others.",
		inferRooted, func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Call1(opBroadcast, []any{grad[0], a.Int("root"), a.Str("group")})}
		})
	collective("broadcast(Tensor self, int root) -> Tensor",
		"self of the rank root, on each rank. Any dtype.",
		inferRooted, func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Call1(opReduce, []any{grad[0], a.Int("root"), a.Str("group")})}
		})
	collective("all_gather(Tensor self, int dim, int size) -> Tensor",
		"self of all ranks, of which there are size, joined along dim in the order of the ranks, on each of them. Any dtype.",
		func(a Args) []Shape { return inferResized(a, true) }, func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Call1(opReduceScatter, []any{grad[0], "sum", a.Int("dim"), a.Int("size"), a.Str("group")})}
		})
	collective("reduce_scatter(Tensor self, str reduction, int dim, int size) -> Tensor",
		"Of the sum, mean, max or min over self of all ranks, cut along dim into size equal parts, the part of the rank.",
		func(a Args) []Shape {
			inferReduced(a)
			return inferResized(a, false)
		}, vjpReduceScatter)
	collective("all_to_all(Tensor self, int dim, int size) -> Tensor",
		"self is cut along dim into size equal parts, one for each rank; the parts that the rank gets are joined along dim in the order of the ranks. Any dtype.",
		func(a Args) []Shape {
			inferResized(a, false)
			return []Shape{a.In[0].Shape()}
		}, func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Call1(opAllToAll, []any{grad[0], a.Int("dim"), a.Int("size"), a.Str("group")})}
		})
	collective("send(Tensor self, int peer, int tag) -> Tensor",
		"Sends self to the rank peer, where a recv with the tag takes it. Returns an f32 scalar, 0, that stands for the send. Its gradient is received from the peer.",
		func(a Args) []Shape {
			requirePeer(a, "peer")
			return []Shape{MakeShape(F32)}
		}, vjpSend)
	collective("recv(Tensor token, int[] size, ScalarType dtype, int peer, int tag) -> Tensor",
		"The tensor that the rank peer sends with the tag. token is an f32 scalar that is computed before; its gradient stands for the send of the result's.",
		inferRecv, func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{b.Call1(opSend, []any{grad[0], a.Int("peer"), a.Int("tag"), a.Str("group"), out[0]})}
		})
	collective("barrier(Tensor self) -> Tensor",
		"self, once all ranks have computed theirs, which may differ in shape. Any dtype.",
		func(a Args) []Shape { return []Shape{a.In[0].Shape()} }, func(b *Builder, a Args, out, grad []Value) []Value {
			return []Value{grad[0]}
		})
}

func inferReduced(a Args) []Shape {
	if r := a.Str("reduction"); !slices.Contains(reductions, r) {
		a.Fail(ErrArg, "reduction %q is none of %v", r, reductions)
	}
	requireSummable(a)
	if d := a.In[0].DType(); a.Str("reduction") == "mean" && !d.IsFloat() {
		a.Fail(ErrDType, "the mean of %v is not defined: cast first", d)
	}
	return []Shape{a.In[0].Shape()}
}

func requireSummable(a Args) {
	if d := a.In[0].DType(); d == Bool || d.IsStorage() || d.IsComplex() {
		a.Fail(ErrDType, "not defined for %v: cast first", d)
	}
}

func inferRooted(a Args) []Shape {
	requirePeer(a, "root")
	if a.Spec.Op == opReduce {
		requireSummable(a)
	}
	return []Shape{a.In[0].Shape()}
}

func requirePeer(a Args, name string) {
	if n := a.Int(name); n < 0 {
		a.Fail(ErrArg, "%s is %d, must be a rank", name, n)
	}
}

// inferResized is the shape with dim multiplied or divided by the number of ranks.
func inferResized(a Args, up bool) []Shape {
	s, n := a.In[0].Shape(), a.Int("size")
	if n < 1 {
		a.Fail(ErrArg, "size is %d, must be the number of ranks", n)
	}
	if s.Rank() == 0 {
		a.Fail(ErrShape, "self is a scalar and has no dimension to cut or join: reshape it to [1]")
	}
	dims, dim := s.Dims(), a.Dim("dim", s.Rank())
	switch {
	case up:
		dims[dim] *= n
	case dims[dim]%n != 0:
		a.Fail(ErrShape, "dimension %d of size %d cannot be cut into %d equal parts: pad it", dim, dims[dim], n)
	default:
		dims[dim] /= n
	}
	return inferDims(a, s.DType(), dims)
}

func inferRecv(a Args) []Shape {
	requirePeer(a, "peer")
	if s := a.Tensor("token").Shape(); s != MakeShape(F32) {
		a.Fail(ErrShape, "the token must be an f32 scalar, got %v", s)
	}
	return inferDims(a, a.DType("dtype"), a.Ints("size"))
}

// vjpAllReduce is the adjoint: an element of the result depends on those of all ranks. Of a max or min
// the gradient is divided among the ranks that have it, as amax divides it among elements.
func vjpAllReduce(b *Builder, a Args, out, grad []Value) []Value {
	reduce := func(x Value, how string) Value { return b.Call1(opAllReduce, []any{x, how, a.Str("group")}) }
	how := a.Str("reduction")
	if how == "sum" || how == "mean" {
		return []Value{reduce(grad[0], how)}
	}
	mask := b.Cast(b.eq(a.In[0], out[0]), grad[0].DType())
	return []Value{b.Mul(mask, b.Div(reduce(grad[0], "sum"), reduce(mask, "sum")))}
}

func vjpReduceScatter(b *Builder, a Args, out, grad []Value) []Value {
	dim, size, group := a.Int("dim"), a.Int("size"), a.Str("group")
	gather := func(x Value) Value { return b.Call1(opAllGather, []any{x, dim, size, group}) }
	g := gather(grad[0])
	switch a.Str("reduction") {
	case "sum":
		return []Value{g}
	case "mean":
		return []Value{b.Div(g, b.Const(float64(size), g.DType()))}
	}
	mask := b.Cast(b.eq(a.In[0], gather(out[0])), g.DType())
	return []Value{b.Mul(mask, b.Div(g, b.Call1(opAllReduce, []any{mask, "sum", group})))}
}

// vjpSend receives the gradient of what was sent, which the peer can compute once it is sent.
func vjpSend(b *Builder, a Args, out, grad []Value) []Value {
	x := a.In[0]
	if !x.DType().HasGradient() {
		return nil
	}
	return []Value{b.Call1(opRecv, []any{grad[0], x.Shape().Dims(), x.DType(), a.Int("peer"), a.Int("tag"), a.Str("group"), out[0]})}
}
