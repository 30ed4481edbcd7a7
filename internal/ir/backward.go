package ir

import "slices"

// registerBackward adds the op that ATen calls for the gradients of another. Its decomposition
// is the rule of that other op, so a gradient is written once. It is not listed.
func registerBackward(schema, doc string, decompose func(b *Builder, a Args) []Value) {
	register(schema, Spec{Doc: doc, Category: Neural, Unlisted: true, Decompose: decompose})
}

// backwardOf is the decomposition of an op whose operand grad_output is the cotangent of the
// first result of forward, and whose other arguments are those of forward, by name.
func backwardOf(forward string, wrt ...string) func(b *Builder, a Args) []Value {
	return func(b *Builder, a Args) []Value {
		return gradientsOf(b, a, forward, a.Tensor("grad_output"), wrt)
	}
}

// gradientsOf records the gradients of the op forward with respect to the operands named wrt,
// for the cotangent of its first result. The arguments are those of the same names in a;
// attributes named in over take the place of those. Arguments that neither has keep their
// defaults.
func gradientsOf(b *Builder, a Args, forward string, cotangent Value, wrt []string, over ...Named) []Value {
	op := byName[forward]
	names := slices.Clone(wrt)
	var attrs []Named
	for _, p := range specs[op].Schema.Params {
		given := slices.IndexFunc(over, func(n Named) bool { return n.Name == p.Name })
		switch at := a.Spec.Schema.Param(p.Name); {
		case slices.Contains(wrt, p.Name):
		case given >= 0:
			attrs = append(attrs, over[given])
		case at >= 0 && p.Kind.Operand() && !a.Tensor(p.Name).IsNil():
			names = append(names, p.Name)
		case at >= 0 && !p.Kind.Operand():
			attrs = append(attrs, Named{p.Name, a.Get(p.Name)})
		}
	}
	in := make([]Value, len(names))
	for i, name := range names {
		in[i] = a.Tensor(name)
	}
	grads := b.pullBackFrom(in, len(wrt), []Value{cotangent}, func(b *Builder, in []Value) []Value {
		args := slices.Clone(attrs)
		for i, name := range names {
			args = append(args, Named{name, in[i]})
		}
		out := b.Call(op, nil, args...)
		if out[0].Shape() != cotangent.Shape() {
			a.Fail(ErrShape, "the gradient of the result must be %v, got %v", out[0].Shape(), cotangent.Shape())
		}
		return out
	})
	for i, g := range grads {
		if g.IsNil() {
			grads[i] = b.fullLike(in[i], 0)
		}
	}
	return grads
}
