//go:build linux && cgo

package host

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/ir"
)

// evalIR computes an op of ir: its parameters are found by their names.
func evalIR(op ir.Op, v values) ([]*tensor, error) {
	sp := op.Spec()
	var in []*tensor
	what := []byte(sp.Name)
	// Each argument is what the builder takes, or the position of an operand.
	type operand int
	type operands []int
	args := make([]any, len(sp.Schema.Params))
	for i, p := range sp.Schema.Params {
		x, ok := v[p.Name]
		if !ok {
			if !p.HasDef && p.Kind != ir.KindOptTensor && p.Kind != ir.KindOptScalar {
				return nil, fmt.Errorf("%w: %s has no argument %q", ir.ErrArg, sp.Name, p.Name)
			}
			args[i] = p.Default
			what = fmt.Appendf(what, ",%v", p.Default)
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
			what = fmt.Appendf(what, ",%T%v", a, a)
		}
	}
	bufs, err := eager(what, in, func(b *ir.Builder, vals []ir.Value) []ir.Value {
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
	})
	if err != nil {
		return nil, err
	}
	return fromBuffers(bufs, stridesFrom(sp, in, bufs))
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
func stridesFrom(sp *ir.Spec, in []*tensor, bufs []*hostmem.Buffer) [][]int64 {
	out := make([][]int64, len(bufs))
	if sp.Category != ir.Pointwise {
		return out
	}
	for i, b := range bufs {
		for _, t := range in {
			if s, err := shapeOf(t); err == nil && s.SameDims(b.Shape()) {
				out[i] = denseLike(t)
				break
			}
		}
	}
	return out
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

// computed runs ops of ir on tensors and returns new row-major tensors. what
// names the ops and their attributes.
func computed(what string, in []*tensor, build builder) ([]*tensor, error) {
	bufs, err := eager([]byte(what), in, build)
	if err != nil {
		return nil, err
	}
	return fromBuffers(bufs, make([][]int64, len(bufs)))
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
