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
	if v.Node.flags&flagNumber != 0 && d.IsComplex() {
		return b.Cast(b.promoteTo(v, d.Part()), d)
	}
	if v.Node.flags&flagNumber != 0 {
		return b.newNumber(*v.Node.scalar(), d, v.Node.device, v.wrapped())
	}
	if v.wrapped() && v.Node.e.op == opFull {
		return b.Const(attrNumber(v.Node.Args().Get("fill_value")).wrapped(d), d)
	}
	return b.Cast(v, d)
}

func (b *Builder) promote2(sp *Spec, x, y Value) (Value, Value) {
	d := resultType(x, y)
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
	d := promotedType(sp, in)
	if d == Invalid {
		panic(NewOpError(sp.Name, ErrDType, in, "the operands' dtypes do not promote together"))
	}
	out := in
	for i := range in {
		if to := sp.operandType(i, in[i], d); in[i].DType() != to {
			if &out[0] == &in[0] {
				out = append([]Value(nil), in...)
			}
			out[i] = b.promoteTo(in[i], to)
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
		if v.wrapped() && (d.IsFloat() || !v.DType().IsFloat()) {
			out[i+1] = b.promoteTo(v, d)
		}
	}
	return out
}

// promotedType returns the dtype to which the operands of one use of an op are promoted.
func promotedType(sp *Spec, in []Value) DType {
	switch sp.Promote {
	case PromoteIntToFloat:
		return floatOf(resultType(in...))
	case PromoteTail:
		return resultType(in[1:]...)
	case PromoteFirst:
		return in[0].DType()
	case PromoteTensors:
		tensors := make([]Value, 0, 4)
		for i, v := range in {
			if sp.scalars>>i&1 == 0 {
				tensors = append(tensors, v)
			}
		}
		return resultType(tensors...)
	}
	return resultType(in...)
}

// operandType returns the dtype to which operand i is cast, where the promoted dtype is d.
func (s *Spec) operandType(i int, v Value, d DType) DType {
	switch {
	case s.Promote == PromoteTail && i == 0:
		return v.DType()
	case s.Promote == PromoteTensors && s.scalars>>i&1 != 0:
		return accDType(d)
	}
	return d
}
