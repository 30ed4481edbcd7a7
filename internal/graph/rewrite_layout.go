package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// foldPointwise computes a pointwise op on constants: full(x) op full(y) is
// full(x op y), with the rounding and wrapping that the kernel would do.
func foldPointwise(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	sp := op.Spec()
	if sp.Category != ir.Pointwise || sp.Composite() || len(in) == 0 {
		return nil, false
	}
	vals := make([]any, len(in))
	for i, v := range in {
		c, ok := constant(v)
		if !ok {
			return nil, false
		}
		vals[i] = convert(c, v.DType(), v.DType())
	}
	out := b.Results(op, attr, in)[0]
	v, ok := foldScalar(sp, op, in, vals, out.DType())
	if !ok {
		return nil, false
	}
	return []ir.Value{b.Full(out.Dims(), v, out.DType())}, true
}

func foldScalar(sp *ir.Spec, op ir.Op, in []ir.Value, vals []any, out ir.DType) (any, bool) {
	switch op {
	case aten.Cast:
		return convert(vals[0], in[0].DType(), out), true
	case aten.Where:
		if asFloat(vals[0]) != 0 {
			return vals[1], true
		}
		return vals[2], true
	}
	sc := sp.Scalar
	if in[len(in)-1].DType().IsFloat() {
		if sp.ULPs > 0 {
			return nil, false
		}
		var r float64
		switch {
		case len(in) == 1 && sc.F1 != nil:
			r = sc.F1(asFloat(vals[0]))
		case len(in) == 2 && sc.F2 != nil:
			r = sc.F2(asFloat(vals[0]), asFloat(vals[1]))
		default:
			return nil, false
		}
		if out == ir.Bool {
			return int64(r), true
		}
		return ir.RoundFloat(out, r), true
	}
	var r int64
	switch {
	case len(in) == 1 && sc.I1 != nil:
		r = sc.I1(asInt(vals[0]))
	case len(in) == 2 && sc.I2 != nil && !(sp.Divides && asInt(vals[1]) == 0): // the run reports a division by zero
		r = sc.I2(asInt(vals[0]), asInt(vals[1]))
	default:
		return nil, false
	}
	return ir.WrapInt(out, r), true
}

func convert(v any, from, to ir.DType) any {
	switch {
	case to.IsFloatOrF8():
		return ir.RoundFloat(to, asFloat(v))
	case to == ir.Bool:
		if asFloat(v) != 0 {
			return int64(1)
		}
		return int64(0)
	}
	if f, ok := v.(float64); ok {
		return ir.FloatToInt(to, f)
	}
	return ir.WrapInt(to, asInt(v))
}

// foldLayout: a view of a constant is a constant of the view's shape.
func foldLayout(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if sp := op.Spec(); sp.Category != ir.View || sp.Composite() || len(in) != 1 {
		return nil, false
	}
	c, ok := constant(in[0])
	if !ok {
		return nil, false
	}
	s := b.Results(op, attr, in)[0]
	if s.DType() != in[0].DType() {
		return nil, false
	}
	return []ir.Value{b.Full(s.Dims(), c, s.DType())}, true
}

// mergeViews: a reshape of a reshape, a permute of a permute and an expand of
// an expand are one.
func mergeViews(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if len(in) != 1 || in[0].Node.Op() != op {
		return nil, false
	}
	inner := in[0].Node
	x := inner.Inputs()[0]
	switch op {
	case aten.Reshape:
		return []ir.Value{b.Reshape(x, b.Results(op, attr, in)[0].Dims()...)}, true
	case aten.Expand:
		return []ir.Value{b.Expand(x, b.Results(op, attr, in)[0].Dims()...)}, true
	case aten.Permute:
		outer := normDims(ir.Args{Spec: op.Spec(), Attr: attr, In: in}.Ints("dims"))
		first := normDims(inner.Args().Ints("dims"))
		p := make([]int, len(outer))
		for i, d := range outer {
			p[i] = first[d]
		}
		return []ir.Value{b.Permute(x, p...)}, true
	}
	return nil, false
}

func normDims(dims []int) []int {
	out := slices.Clone(dims)
	for i, d := range out {
		if d < 0 {
			out[i] = d + len(dims)
		}
	}
	return out
}

// noopView: a view that changes nothing is its operand.
func noopView(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	a := ir.Args{Spec: op.Spec(), Attr: attr, In: in}
	switch op {
	case aten.Reshape, aten.Expand:
		if !b.Results(op, attr, in)[0].SameDims(in[0].Shape()) {
			return nil, false
		}
	case aten.Permute:
		for i, d := range normDims(a.Ints("dims")) {
			if i != d {
				return nil, false
			}
		}
	case aten.Slice:
		if a.Int("step") != 1 || b.Results(op, attr, in)[0] != in[0].Shape() {
			return nil, false
		}
	case aten.Flip:
		mask := ir.FlipDims(a)
		for d := range in[0].Rank() {
			if mask[d] && in[0].Dim(d) > 1 {
				return nil, false
			}
		}
	case aten.Cat:
		if len(in) != 1 {
			return nil, false
		}
	case aten.ConstantPadNd:
		if slices.ContainsFunc(a.Ints("pad"), func(p int) bool { return p != 0 }) {
			return nil, false
		}
	default:
		return nil, false
	}
	return in[:1:1], true
}

// sliceOfCat: the part of a concatenation that its first or its last operand fills is that operand, so the
// parts of complex numbers that were made from parts need no memory of their own. Only equality of sizes
// is asked for, as Templates have it.
func sliceOfCat(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	if op != aten.Slice || in[0].Node.Op() != aten.Cat {
		return nil, false
	}
	a := ir.Args{Spec: op.Spec(), Attr: attr, In: in}
	whole := in[0].Shape()
	dim := a.Dim("dim", whole.Rank())
	if a.Int("step") != 1 || in[0].Node.Args().Dim("dim", whole.Rank()) != dim {
		return nil, false
	}
	pieces, part := in[0].Node.Inputs(), b.Results(op, attr, in)[0]
	start, given := a.OptInt("start")
	if v := pieces[0]; (!given || start == 0) && v.Shape() == part {
		return []ir.Value{v}, true
	}
	end, given := a.OptInt("end")
	if v := pieces[len(pieces)-1]; (!given || end == whole.Dim(dim)) && v.Shape() == part {
		return []ir.Value{v}, true
	}
	return nil, false
}

func isExpand(v ir.Value) bool { return v.Node.Op() == aten.Expand }

// dropExpand: pointwise ops broadcast by themselves, so an expanded operand is
// used as it was when another operand gives the shape.
func dropExpand(b *ir.Builder, op ir.Op, attr string, in []ir.Value) ([]ir.Value, bool) {
	sp := op.Spec()
	if sp.Category != ir.Pointwise || sp.Composite() || len(in) < 2 || !slices.ContainsFunc(in, isExpand) {
		return nil, false
	}
	out := b.Results(op, attr, in)[0]
	for i, v := range in {
		if !isExpand(v) {
			continue
		}
		cand := slices.Clone(in)
		cand[i] = v.Node.Inputs()[0]
		s, ok := cand[0].Shape(), true
		for _, c := range cand[1:] {
			if s, ok = ir.BroadcastDims(s, c.Shape()); !ok {
				break
			}
		}
		if ok && s.SameDims(out) {
			return b.Emit(op, attr, cand...), true
		}
	}
	return nil, false
}
