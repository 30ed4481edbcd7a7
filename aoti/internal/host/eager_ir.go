//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// eagerRow computes an op of ir: its parameters are found by their names.
func eagerRow(op ir.Op, v values) ([]*tensor, error) {
	r, err := decomposeRow(op, v)
	if err != nil {
		return nil, err
	}
	return r.onHost()
}

// onHost computes a decomposition on the CPU. The results are new.
func (r *decomposition) onHost() ([]*tensor, error) {
	in := r.in
	for _, t := range r.tables {
		x, err := newTensor(t.shape)
		if err != nil {
			return nil, err
		}
		defer release(x)
		copy(tensorBytes(x), t.data())
		in = append(in[:len(in):len(in)], x)
	}
	if r.draws {
		x, err := save(array[int64]{data: []int64{int64(drawSeed())}}, ir.I64)
		if err != nil {
			return nil, err
		}
		defer release(x)
		in = append(in[:len(in):len(in)], x)
	}
	bufs, err := eager(r.what, in, r.build)
	if err != nil {
		return nil, err
	}
	outs, err := fromBuffers(bufs, r.strides)
	for _, z := range r.zeros {
		if err == nil {
			var t *tensor
			if t, err = zerosOnHost(z); err == nil {
				outs = append(outs, t)
			}
		}
	}
	return all(err, outs...)
}

// zerosOnHost returns a new tensor of zeros.
func zerosOnHost(z zeroTensor) (*tensor, error) {
	var dims [ir.MaxRank]C.int64_t
	for i, n := range z.dims {
		dims[i] = C.int64_t(n)
	}
	t, err := made(func() *tensor { return C.lori_tensor_empty(C.int64_t(len(z.dims)), &dims[0], nil, C.int32_t(z.code)) })
	if err == nil {
		clear(tensorBytes(t))
	}
	return t, err
}

// rowCall is a call of an op of ir by name. Most have room for their lists in it.
type rowCall struct {
	decomposition
	op   ir.Op
	args []any // what the builder takes, an inputIndex or inputIndices
	room struct {
		in   [4]*tensor
		args [8]any
		what [160]byte
	}
}

// inputIndex is an argument that is a tensor, by its position in in; inputIndices are those of a list,
// -1 for one that is none.
type (
	inputIndex   int
	inputIndices []int
)

// decomposeRow is an op of ir.
func decomposeRow(op ir.Op, v values) (*decomposition, error) {
	sp := op.Spec()
	r := &rowCall{op: op}
	r.in, r.what = r.room.in[:0], append(r.room.what[:0], sp.Name...)
	r.args = slices.Grow(r.room.args[:0], len(sp.Schema.Params))
	for _, p := range sp.Schema.Params {
		x, ok := v[p.Name]
		if !ok {
			if !p.HasDef && !p.Kind.Optional() {
				return nil, fmt.Errorf("%w: %s has no argument %q", ir.ErrArg, sp.Name, p.Name)
			}
			r.args = append(r.args, p.Default)
			r.what = appendArg(r.what, p.Default)
			continue
		}
		switch x := x.(type) {
		case *tensor:
			r.args = append(r.args, inputIndex(len(r.in)))
			r.in = append(r.in, x)
			r.what = append(r.what, ",T"...)
		case []*tensor:
			r.addList(x)
		default:
			a, err := attribute(p.Kind, x)
			if err != nil {
				return nil, fmt.Errorf("%s: argument %q: %w", sp.Name, p.Name, err)
			}
			r.args = append(r.args, a)
			r.what = appendArg(r.what, a)
		}
	}
	r.build, r.strides = r.record, layoutOf(sp, v, r.in)
	r.leaveOut(v, sp)
	return &r.decomposition, nil
}

// addList adds an argument that is a list of tensors.
func (r *rowCall) addList(ts []*tensor) {
	list := make(inputIndices, len(ts))
	for i, t := range ts {
		list[i] = -1
		if t != nil {
			list[i] = len(r.in)
			r.in = append(r.in, t)
		}
	}
	r.args = append(r.args, list)
	r.what = fmt.Appendf(r.what, ",%v", list)
}

// record records the op on stand-ins of the operands.
func (r *rowCall) record(b *ir.Builder, vals []ir.Value) []ir.Value {
	params := r.op.Spec().Schema.Params
	bound := make([]any, len(r.args))
	for i, a := range r.args {
		switch a := a.(type) {
		case inputIndex:
			bound[i] = vals[a]
		case inputIndices:
			list := make([]ir.Value, len(a))
			for j, k := range a {
				if k >= 0 {
					list[j] = vals[k]
				}
			}
			bound[i] = list
		default:
			bound[i] = a
			if a != nil && params[i].Kind.Operand() {
				bound[i] = b.WrappedConst(a)
			}
		}
	}
	return b.Call(r.op, bound)
}

// appendArg appends an argument's type and value to what names a call.
func appendArg(what []byte, a any) []byte {
	switch a := a.(type) {
	case nil:
		return append(what, ",-"...)
	case int:
		return strconv.AppendInt(append(what, ",i"...), int64(a), 10)
	case bool:
		return strconv.AppendBool(append(what, ",b"...), a)
	case float64:
		return strconv.AppendUint(append(what, ",f"...), math.Float64bits(a), 16)
	case []int:
		what = append(what, ",["...)
		for _, n := range a {
			what = append(strconv.AppendInt(what, int64(n), 10), ' ')
		}
		return what
	}
	return fmt.Appendf(what, ",%T%q", a, fmt.Sprint(a))
}

// leaveOut leaves those results of a gradient undefined that its mask does not ask for, which
// the row makes empty.
func (r *decomposition) leaveOut(v values, sp *ir.Spec) {
	mask := v.ints("output_mask")
	if len(mask) != len(sp.Schema.Returns) {
		return
	}
	r.places, r.results = []int{}, len(mask)
	for i, wanted := range mask {
		if wanted != 0 {
			r.places = append(r.places, i)
		}
	}
	build := r.build
	r.build = func(b *ir.Builder, in []ir.Value) []ir.Value {
		all := build(b, in)
		out := make([]ir.Value, len(r.places))
		for j, i := range r.places {
			out[j] = all[i]
		}
		return out
	}
}

// attribute converts an argument to what ir takes for a kind of parameter.
func attribute(k ir.ParamKind, x any) (any, error) {
	switch k {
	case ir.KindBool:
		if n, ok := x.(int); ok {
			return n != 0, nil
		}
	case ir.KindFloat, ir.KindOptFloat:
		if n, ok := x.(int); ok {
			return float64(n), nil
		}
	case ir.KindInts, ir.KindOptInts:
		switch x := x.(type) {
		case []int64:
			out := make([]int, len(x))
			for i, n := range x {
				out[i] = int(n)
			}
			return out, nil
		case int:
			return []int{x}, nil
		}
	case ir.KindTensor, ir.KindScalar, ir.KindOptScalar, ir.KindNumber, ir.KindInt, ir.KindOptInt, ir.KindStr, ir.KindDType, ir.KindOptDType:
	default:
		return nil, fmt.Errorf("%w: a %T", ir.ErrArg, x)
	}
	return x, nil
}

// stridesFrom returns the strides of the results: elementwise ops keep those of
// their operands, others give row-major results.
func stridesFrom(sp *ir.Spec, in []*tensor) func(i int, s ir.Shape) []int64 {
	if sp.Category != ir.Pointwise && sp.Category != ir.Complex {
		return nil
	}
	return func(_ int, s ir.Shape) []int64 {
		for _, t := range in {
			if x, err := shapeOf(t); err == nil && x.SameDims(s) {
				return denseLike(t)
			}
		}
		return nil
	}
}

// fromBuffers makes tensors of results, which it releases.
func fromBuffers(bufs []backend.Buffer, strides func(i int, s ir.Shape) []int64) ([]*tensor, error) {
	outs := make([]*tensor, len(bufs))
	var err error
	for i, b := range bufs {
		if err == nil {
			var at []int64
			if strides != nil {
				at = strides(i, b.Shape())
			}
			outs[i], err = newFromBuffer(b.(*hostmem.Buffer), at)
		}
		b.Release()
	}
	return all(err, outs...)
}

// fromBackend copies a buffer into a new tensor.
func fromBackend(b backend.Buffer) (*tensor, error) {
	if h, ok := b.(*hostmem.Buffer); ok {
		return newFromBuffer(h, nil)
	}
	data, err := b.Bytes(context.Background())
	if err != nil {
		return nil, err
	}
	t, err := newTensor(b.Shape())
	if err == nil {
		copy(tensorBytes(t), data)
	}
	return t, err
}
