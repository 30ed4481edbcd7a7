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
	"strconv"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/ir"
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
	strides := make([][]int64, len(bufs))
	for i, b := range bufs {
		if r.strides != nil {
			strides[i] = r.strides(i, b.Shape())
		}
	}
	outs, err := fromBuffers(bufs, strides)
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

// decomposeRow is an op of ir.
func decomposeRow(op ir.Op, v values) (*decomposition, error) {
	sp := op.Spec()
	in := make([]*tensor, 0, len(sp.Schema.Params))
	what := append(make([]byte, 0, 192), sp.Name...) // most keys, with the shapes that come behind
	// Each argument is what the builder takes, or the position of an operand.
	type operand int
	type operands []int
	args := make([]any, len(sp.Schema.Params))
	for i, p := range sp.Schema.Params {
		x, ok := v[p.Name]
		if !ok {
			if !p.HasDef && !p.Kind.Optional() {
				return nil, fmt.Errorf("%w: %s has no argument %q", ir.ErrArg, sp.Name, p.Name)
			}
			args[i] = p.Default
			what = appendArg(what, p.Default)
			continue
		}
		switch x := x.(type) {
		case *tensor:
			args[i] = operand(len(in))
			in = append(in, x)
			what = append(what, ",T"...)
		case []*tensor:
			list := make(operands, len(x))
			for j, t := range x {
				list[j] = -1
				if t != nil {
					list[j] = len(in)
					in = append(in, t)
				}
			}
			args[i] = list
			what = fmt.Appendf(what, ",%v", list)
		default:
			a, err := attribute(p.Kind, x)
			if err != nil {
				return nil, fmt.Errorf("%s: argument %q: %w", sp.Name, p.Name, err)
			}
			args[i] = a
			what = appendArg(what, a)
		}
	}
	build := func(b *ir.Builder, vals []ir.Value) []ir.Value {
		bound := make([]any, len(args))
		for i, a := range args {
			switch a := a.(type) {
			case operand:
				bound[i] = vals[a]
			case operands:
				list := make([]ir.Value, len(a))
				for j, k := range a {
					if k >= 0 {
						list[j] = vals[k]
					}
				}
				bound[i] = list
			default:
				bound[i] = a
				if k := sp.Schema.Params[i].Kind; a != nil && (k.Operand()) {
					bound[i] = b.WrappedConst(a)
				}
			}
		}
		return b.Call(op, bound)
	}
	r := &decomposition{what: what, in: in, build: build, strides: layoutOf(sp, v, in)}
	r.leaveOut(v, sp)
	return r, nil
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
func fromBuffers(bufs []*hostmem.Buffer, strides [][]int64) ([]*tensor, error) {
	outs := make([]*tensor, len(bufs))
	var err error
	for i, b := range bufs {
		if err == nil {
			outs[i], err = newFromBuffer(b, strides[i])
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
