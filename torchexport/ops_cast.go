package torchexport

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// castOps change the dtype or make copies. Their result's dtype is the program's, which define casts
// to, so that a tensor that has it already is itself.
var castOps = map[string]func(c *call) []any{
	"aten.to":              castToResult,
	"aten.type_as":         castToResult,
	"aten.float":           castToResult,
	"aten.contiguous":      contiguous,
	"aten.detach":          detach,
	"aten.alias":           aliasOf,
	"aten.lift_fresh":      aliasOf,
	"aten.lift":            aliasOf,
	"aten.positive":        aliasOf,
	"aten.resolve_conj":    aliasOf,
	"aten.resolve_neg":     aliasOf,
	"aten.cpu":             aliasOf,
	"aten.view_as_real":    viewAsReal,
	"aten.view_as_complex": viewAsComplex,
}

// copyOps return tensors of their own.
var copyOps = map[string]func(c *call) []any{
	"aten.clone":           copyOf,
	"aten.lift_fresh_copy": copyOf,
	"aten._to_copy":        copyOf,
	"aten._unsafe_view":    func(c *call) []any { return one(c.value("self").Reshape(c.ints("size")...)) },
	"prims.convert_element_type": func(c *call) []any {
		return one(castTo(c.value("a"), c.dtypeOr(ir.F32)))
	},
	"aten.copy": func(c *call) []any {
		x := c.value("self")
		return one(castTo(c.value("src"), x.DType()).Expand(x.Dims()...))
	},
}

// castTo is Cast that records nothing for a tensor of the dtype.
func castTo(t *loris.Tensor, d ir.DType) *loris.Tensor {
	if t.DType() == d {
		return t
	}
	return t.Cast(d)
}

// castToResult returns the tensor itself: what defines the result casts it. A tensor of the dtype is
// shared, as in PyTorch, unless a copy is asked for.
func castToResult(c *call) []any {
	if c.boolOr("copy", false) {
		return copyOf(c)
	}
	return sameTensor(c)
}

// aliasOf returns a view of all of a tensor.
func aliasOf(c *call) []any {
	x, ok := c.first()
	if !ok {
		panic(misuse(c.n.target, "it has no tensor"))
	}
	same := func(t *loris.Tensor) *loris.Tensor { return t }
	return []any{x.view(same, func(_, value *loris.Tensor) *loris.Tensor { return value })}
}

// contiguous returns the tensor itself if PyTorch's lies as it should, and else a copy.
func contiguous(c *call) []any {
	from, ok1 := c.strides(c.n.args[0].value)
	to, ok2 := c.f.stridesOf(c.run, c.n.outs[0].slot)
	if ok1 && ok2 && !slices.Equal(from, to) {
		return copyOf(c)
	}
	return aliasOf(c)
}

// strides returns the strides that PyTorch's tensor has, where the graph tells.
func (c *call) strides(arg any) ([]int, bool) {
	slot, ok := arg.(ref)
	if !ok || c.f == nil {
		return nil, false
	}
	return c.f.stridesOf(c.run, int(slot))
}

func (f *frame) stridesOf(r *run, slot int) ([]int, bool) {
	m := f.metas[slot]
	if m == nil || m.strides == nil {
		return nil, false
	}
	return evalAll(m.strides, r.symbols)
}

// copyOf returns a tensor of its own with the same value.
func copyOf(c *call) []any {
	x, ok := c.first()
	if !ok {
		panic(misuse(c.n.target, "it has no tensor"))
	}
	return one(x.value())
}

// detach is an alias through which no gradient flows.
func detach(c *call) []any {
	if _, ok := ir.Lookup("detach"); !ok {
		return aliasOf(c)
	}
	x := c.tensor("self")
	stop := func(t *loris.Tensor) *loris.Tensor { return c.do("detach", t) }
	return []any{x.view(stop, func(_, value *loris.Tensor) *loris.Tensor { return value })}
}

func viewAsReal(c *call) []any {
	x := c.tensor("self")
	return []any{x.view(func(t *loris.Tensor) *loris.Tensor { return c.do("view_as_real", t) },
		func(_, v *loris.Tensor) *loris.Tensor { return c.do("view_as_complex", v) })}
}

func viewAsComplex(c *call) []any {
	x := c.tensor("self")
	return []any{x.view(func(t *loris.Tensor) *loris.Tensor { return c.do("view_as_complex", t) },
		func(_, v *loris.Tensor) *loris.Tensor { return c.do("view_as_real", v) })}
}
