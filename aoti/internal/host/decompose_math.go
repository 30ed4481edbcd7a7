//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// simple is a decomposition whose results are row-major.
func simple(what string, in []*tensor, build builder) (*decomposition, error) {
	return &decomposition{what: []byte(what), in: in, build: build}, nil
}

// tensors returns those of some names, which must be there.
func (v values) tensors(names ...string) ([]*tensor, error) {
	out := make([]*tensor, len(names))
	for i, n := range names {
		var err error
		if out[i], err = v.tensor(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// likeStrides gives results of the size of t the strides that a copy of it has.
func likeStrides(t *tensor) func(int, ir.Shape) []int64 {
	return func(_ int, s ir.Shape) []int64 {
		if x, err := shapeOf(t); err == nil && x.SameDims(s) {
			return denseLike(t)
		}
		return nil
	}
}

// do records an op of ir by its name.
func do(b *ir.Builder, name string, args ...any) ir.Value { return b.Call1(lookup(name), args) }

// behind is where each number belongs in a sorted vector, after those equal to it.
func behind(b *ir.Builder, sorted, x ir.Value) ir.Value {
	return b.Call1(lookup("searchsorted"), []any{sorted, x}, ir.A("right", true))
}

// num is a number as an operand of x's dtype.
func num(b *ir.Builder, v float64, x ir.Value) ir.Value {
	if x.DType().IsFloat() {
		return b.Const(v, x.DType())
	}
	return b.Const(int(v), x.DType())
}

// wide is the dtype that floats of d are computed in.
func wide(d ir.DType) ir.DType {
	if d == ir.F64 {
		return d
	}
	return ir.F32
}

// mathDecompositions are the elementwise ops.
var mathDecompositions = map[string]decomposeFunc{
	"clone": func(v values) (*decomposition, error) {
		t, err := v.tensor("self")
		return &decomposition{what: []byte("copy"), in: []*tensor{t}, build: unchanged, strides: func(int, ir.Shape) []int64 { return denseLike(t) }}, err
	},
	"contiguous": func(v values) (*decomposition, error) {
		t, err := v.tensor("self")
		return &decomposition{what: []byte("copy"), in: []*tensor{t}, build: unchanged}, err
	},
	"add": func(v values) (*decomposition, error) { return decomposeSum(v, 1) },
	"sub": func(v values) (*decomposition, error) { return decomposeSum(v, -1) },
	"fill_": func(v values) (*decomposition, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		s, err := shapeOf(t)
		x := v.float("value", 0)
		return &decomposition{what: fmt.Append(nil, "fill_ ", s.DType(), x), build: func(b *ir.Builder, _ []ir.Value) []ir.Value {
			return []ir.Value{b.Cast(b.Const(x, ir.F64), s.DType())}
		}}, err
	},
	"_efficientzerotensor": func(v values) (*decomposition, error) { return decomposeFull(v, v.dtype(ir.F32)) },
	"full": func(v values) (*decomposition, error) {
		d := ir.F32
		if _, ok := v["fill_value"].(int); ok {
			d = ir.I64
		}
		return decomposeFull(v, v.dtype(d))
	},
	"new_empty": decomposeNew, "new_zeros": decomposeNew,
	"cat": decomposeCat,
}

// decomposeFull makes a tensor whose elements are one number.
func decomposeFull(v values, d ir.DType) (*decomposition, error) {
	size, x := intsOf(v.ints("size")), v.float("fill_value", 0)
	return simple(fmt.Sprint("full ", size, x, d), nil, func(b *ir.Builder, _ []ir.Value) []ir.Value {
		return []ir.Value{b.Expand(b.Cast(b.Const(x, ir.F64), d), size...)}
	})
}

func decomposeNew(v values) (*decomposition, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	return decomposeFull(v, v.dtype(dtypeOf(t)))
}

// unchanged is a copy.
func unchanged(_ *ir.Builder, in []ir.Value) []ir.Value { return in }

// decomposeSum is self + sign·alpha·other.
func decomposeSum(v values, sign float64) (*decomposition, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	in, alpha := []*tensor{t}, sign*v.float("alpha", 1)
	other, isTensor := v["other"].(*tensor)
	if isTensor {
		in = append(in, other)
	}
	number := v["other"]
	return &decomposition{
		what: fmt.Appendf(nil, "add %v %T%v", alpha, number, pick(number, any(nil), isTensor)), in: in,
		strides: stridesFrom(lookup("add").Spec(), in),
		build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			var y ir.Value
			switch x := number.(type) {
			case float64:
				y = b.WrappedConst(alpha * x)
			case int:
				y = b.WrappedConst(int(alpha) * x)
			default:
				switch y = in[1]; {
				case alpha == -1:
					return []ir.Value{b.Sub(in[0], y)}
				case alpha != 1 && y.DType().IsFloat():
					y = b.Mul(y, b.WrappedConst(alpha))
				case alpha != 1:
					y = b.Mul(y, b.WrappedConst(int(alpha)))
				}
			}
			return []ir.Value{b.Add(in[0], y)}
		},
	}, nil
}

// decomposeCat joins tensors as the function of the op does.
func decomposeCat(v values) (*decomposition, error) {
	list := catOperands(v)
	r, err := decomposeRow(aten.Cat, values{"tensors": list, "dim": v.int("dim", 0)})
	if err == nil && channelsLastAll(list) {
		r.strides = lastStrides(list...)
	}
	return r, err
}
