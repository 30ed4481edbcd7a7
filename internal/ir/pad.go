package ir

import "math"

// Padding: constants around a tensor, or its own elements repeated.

func init() {
	register("constant_pad_nd(Tensor self, int[] pad, Scalar value) -> Tensor", Spec{
		Category: View,
		Promote:  PromoteFirst,
		Doc: "self with value around it: pad holds (before, after) pairs from the last dimension backwards, a negative entry " +
			"crops. value, of rank 0, is cast to self's dtype. ATen's constant_pad_nd.",
		Infer:   inferConstantPad,
		VJP:     vjpConstantPad,
		Complex: complexPad,
	})
	register("pad(Tensor self, int[] pad, str mode='constant', Scalar? value=None) -> Tensor", Spec{
		Category: View,
		Numbers:  map[string]NumberUse{"value": NumberInRange}, // ATen takes a float, which does not wrap
		Doc: "self with padding: (before, after) pairs from the last dimension backwards, negative ones crop. mode is constant " +
			"(with value, 0 unless given), reflect, replicate or circular; the latter three pad the last 1, 2 or 3 " +
			"dimensions of a tensor with one or two more. ATen's pad.",
		Decompose: decomposePad,
	})
	register("_pad_edges(Tensor self, int[] pad, str mode) -> Tensor", Spec{
		Category: View, Unlisted: true,
		Doc:       "pad with the elements of self around it, by mode reflect, replicate or circular.",
		Decompose: decomposePadEdges,
	})
}

func inferConstantPad(a Args) []Shape {
	s := a.In[0].Shape()
	requireNumbers(a, s.DType())
	if v := a.Tensor("value"); v.Rank() != 0 {
		a.Fail(ErrShape, "value has rank %d, want 0", v.Rank())
	}
	pad := a.Ints("pad")
	if len(pad)%2 != 0 || len(pad)/2 > s.Rank() {
		a.Fail(ErrShape, "pad %v is not a list of pairs for at most %d dimensions", pad, s.Rank())
	}
	dims := s.Dims()
	for i := 0; i < len(pad); i += 2 {
		d := s.Rank() - 1 - i/2
		for _, p := range pad[i : i+2] {
			if p > 1<<56 || p < -1<<56 { // so that a sum which overflows is negative
				a.Fail(ErrShape, "padding by %d is more than any tensor has", p)
			}
		}
		if dims[d] += pad[i] + pad[i+1]; dims[d] < 0 {
			a.Fail(ErrShape, "size %d of dimension %d with padding %d and %d is negative", s.Dim(d), d, pad[i], pad[i+1])
		}
	}
	return inferDims(a, s.DType(), dims)
}

// padDim records a padding of one dimension with a constant; negative sizes crop.
func (b *Builder) padDim(x Value, dim, before, after int, value float64) Value {
	if before == 0 && after == 0 {
		return x
	}
	i := 2 * (x.Rank() - 1 - dim)
	pad := make([]int, i+2)
	pad[i], pad[i+1] = before, after
	return b.PadConst(x, pad, b.Const(value, x.DType()))
}

func vjpConstantPad(b *Builder, a Args, out, grad []Value) []Value {
	pad := a.Ints("pad")
	back := make([]int, len(pad))
	for i, p := range pad {
		back[i] = -p
	}
	g := grad[0]
	gs := []Value{b.PadConst(g, back, b.Const(0, g.DType())), {}}
	if v := a.In[1]; !v.wrapped() && v.Node.Op() != opFull {
		inside := b.PadConst(b.Full(a.In[0].Shape().Dims(), true, Bool), pad, b.Const(false, Bool))
		gs[1] = b.Sum(b.Where(inside, b.Const(0, g.DType()), g), nil, false)
	}
	return gs
}

func decomposePad(b *Builder, a Args) []Value {
	x, pad, mode, value := a.In[0], a.Ints("pad"), a.Str("mode"), a.Tensor("value")
	if mode == "constant" {
		if value.IsNil() {
			value = b.Const(0, x.DType())
		}
		return []Value{b.PadConst(x, pad, value)}
	}
	switch n := len(pad) / 2; {
	case !value.IsNil():
		a.Fail(ErrArg, "mode %s takes no value", mode)
	case len(pad)%2 != 0 || n < 1 || n > 3 || (x.Rank() != n+1 && x.Rank() != n+2):
		a.Fail(ErrShape, "mode %s pads the last 1, 2 or 3 dimensions of a tensor with one or two more, not rank %d by %v",
			mode, x.Rank(), pad)
	}
	checkPadEdges(a) // so that what it says names pad
	return []Value{b.callNamed("_pad_edges", []any{x, pad, mode})}
}

// checkPadEdges fails where self has too few elements for its padding.
func checkPadEdges(a Args) {
	dims, pad, mode := a.In[0].Shape().Dims(), a.Ints("pad"), a.Str("mode")
	edge, ok := padEdges[mode]
	if !ok {
		a.Fail(ErrArg, "mode is %q, must be constant, reflect, replicate or circular", mode)
	}
	if len(pad)%2 != 0 || len(pad)/2 > len(dims) {
		a.Fail(ErrShape, "pad %v is not a list of pairs for at most %d dimensions", pad, len(dims))
	}
	for i := 0; i < len(pad); i += 2 {
		before, after, d := pad[i], pad[i+1], len(dims)-1-i/2
		size := dims[d]
		if n := edge.limit(size); before > n || after > n {
			a.Fail(ErrShape, "padding %d and %d is too much for mode %s in dimension %d of size %d", before, after, mode, d, size)
		}
		if dims[d] += before + after; dims[d] < 0 || -before > size || -after > size {
			a.Fail(ErrShape, "padding %d and %d crops more than dimension %d of size %d has", before, after, d, size)
		}
	}
}

func decomposePadEdges(b *Builder, a Args) []Value {
	x, pad := a.In[0], a.Ints("pad")
	checkPadEdges(a)
	for i := 0; i < len(pad); i += 2 {
		x = padEdge(b, x, x.Rank()-1-i/2, pad[i], pad[i+1], padEdges[a.Str("mode")])
	}
	return []Value{x}
}

// padMode makes the n elements that go before (or after) x along dim.
type padMode struct {
	make  func(b *Builder, x Value, dim, n int, before bool) Value
	limit func(size int) int // the most that can be made
}

var padEdges = map[string]padMode{
	"reflect": {
		make: func(b *Builder, x Value, dim, n int, before bool) Value {
			if size := x.Dim(dim); !before {
				return b.Flip(b.Slice(x, dim, size-1-n, size-1, 1), dim)
			}
			return b.Flip(b.Slice(x, dim, 1, 1+n, 1), dim)
		},
		limit: func(size int) int { return size - 1 },
	},
	"replicate": {
		make: func(b *Builder, x Value, dim, n int, before bool) Value {
			at, dims := 0, x.Shape().Dims()
			if !before {
				at = dims[dim] - 1
			}
			dims[dim] = n
			return b.Expand(b.Slice(x, dim, at, at+1, 1), dims...)
		},
		limit: func(size int) int {
			if size == 0 {
				return 0
			}
			return math.MaxInt
		},
	},
	"circular": {
		make: func(b *Builder, x Value, dim, n int, before bool) Value {
			if size := x.Dim(dim); before {
				return b.Slice(x, dim, size-n, size, 1)
			}
			return b.Slice(x, dim, 0, n, 1)
		},
		limit: func(size int) int { return size },
	},
}

func padEdge(b *Builder, x Value, dim, before, after int, edge padMode) Value {
	size := x.Dim(dim)
	parts := []Value{b.Slice(x, dim, max(0, -before), size-max(0, -after), 1)}
	if before > 0 {
		parts = append([]Value{edge.make(b, x, dim, before, true)}, parts...)
	}
	if after > 0 {
		parts = append(parts, edge.make(b, x, dim, after, false))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return b.Cat(parts, dim)
}
