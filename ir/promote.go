package ir

// floatOf returns the dtype in which a float-only op computes on d.
func floatOf(d DType) DType {
	if d.IsFloat() || d.IsStorage() {
		return d
	}
	return DefaultDType
}

// promoteTo casts a value; a plain number changes its dtype without a node.
func (b *Builder) promoteTo(v Value, d DType) Value {
	if v.DType() == d {
		return v
	}
	if s, ok := v.Node.leaf.(*ScalarLeaf); ok {
		return NewScalar(s, d, v.Node.device, v.Wrapped()).Out(0)
	}
	if v.Wrapped() && v.Node.op == OpFull {
		return b.Const(v.Node.Args().Get("fill_value"), d)
	}
	return b.Cast(v, d)
}

func (b *Builder) promote2(sp *Spec, x, y Value) (Value, Value) {
	d := ResultType(x, y)
	if sp.Promote == PromoteIntToFloat {
		d = floatOf(d)
	}
	if d == Invalid {
		panic(NewOpError(sp.Name, ErrDType, []Value{x, y}, "the operands' dtypes do not promote together"))
	}
	return b.promoteTo(x, d), b.promoteTo(y, d)
}

// promoteAll applies the row's promotion; it returns in itself if no cast is
// needed and never changes it.
func (b *Builder) promoteAll(sp *Spec, in []Value) []Value {
	if len(in) == 0 {
		return in // an empty Tensor[]: the row's Infer says what it thinks of it
	}
	if sp.Promote == PromoteScalars {
		return b.promoteScalars(in)
	}
	from := 0
	if sp.Promote == PromoteTail {
		from = 1
	}
	d := ResultType(in[from:]...)
	switch sp.Promote {
	case PromoteIntToFloat:
		d = floatOf(d)
	case PromoteFirst:
		d = in[0].DType()
	}
	if d == Invalid {
		panic(NewOpError(sp.Name, ErrDType, in, "the operands' dtypes do not promote together"))
	}
	out := in
	for i := from; i < len(in); i++ {
		if in[i].DType() != d {
			if &out[0] == &in[0] {
				out = append([]Value(nil), in...)
			}
			out[i] = b.promoteTo(in[i], d)
		}
	}
	return out
}

// promoteScalars gives plain numbers the dtype that composites compute in on the
// first operand, so that a number keeps its precision beside f64 and beside
// f16. A float beside integers stays a float; the op says whether it takes it.
func (b *Builder) promoteScalars(in []Value) []Value {
	d := accDType(in[0].DType())
	out := append([]Value(nil), in...)
	for i, v := range in[1:] {
		if v.Wrapped() && (d.IsFloat() || !v.DType().IsFloat()) {
			out[i+1] = b.promoteTo(v, d)
		}
	}
	return out
}
