//go:build linux && cgo

package host

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// creationKernels are the ops that make tensors, or fill them.
var creationKernels = map[string]eagerFunc{
	"full": func(v values) ([]*tensor, error) {
		d := ir.F32
		if _, ok := v["fill_value"].(int); ok {
			d = ir.I64
		}
		return filled(v.ints("size"), v.dtype(d), v.float("fill_value", 0))
	},
	"new_empty": func(v values) ([]*tensor, error) { return filledLike(v) },
	"new_zeros": func(v values) ([]*tensor, error) { return filledLike(v) },
	"fill_": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		return nil, fill(t, v.float("value", 0))
	},
	"cat": func(v values) ([]*tensor, error) {
		list := catOperands(v)
		out, err := eagerRow(aten.Cat, values{"tensors": list, "dim": v.int("dim", 0)})
		if err == nil && channelsLastAll(list) {
			return relaid(out[0])
		}
		return out, err
	},
}

func channelsLastAll(ts []*tensor) bool {
	for _, t := range ts {
		if t == nil || t.ndim < 4 || t.ndim > 5 || !channelsLast(t) {
			return false
		}
	}
	return len(ts) > 0
}

// catOperands returns what cat joins: PyTorch ignores empty tensors of one dimension.
func catOperands(v values) []*tensor {
	var list []*tensor
	ts, _ := v["tensors"].([]*tensor)
	for _, t := range ts {
		if t != nil && (t.ndim != 1 || t.numel > 0) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return ts
	}
	return list
}

// relaid moves the channels of an image innermost; it consumes t.
func relaid(t *tensor) ([]*tensor, error) {
	defer release(t)
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	to, err := newStrided(s, channelsLastStrides(s.Dims()))
	if err != nil {
		return nil, err
	}
	return all(copyTensor(to, t), to)
}

func filled(size []int64, d ir.DType, x float64) ([]*tensor, error) {
	dims := make([]int, len(size))
	for i, n := range size {
		dims[i] = int(n)
	}
	s, err := ir.NewShape(d, dims)
	if err != nil {
		return nil, err
	}
	t, err := newTensor(s)
	if err != nil {
		return nil, err
	}
	return all(fill(t, x), t)
}

func filledLike(v values) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	return filled(v.ints("size"), v.dtype(dtypeOf(t)), 0)
}

// fill sets all elements of a tensor to a number.
func fill(t *tensor, x float64) error {
	a := array[float64]{data: []float64{x}}
	one, err := save(a, ir.F64)
	if err != nil {
		return err
	}
	defer release(one)
	return copyTensor(t, one)
}

func lookup(name string) ir.Op {
	op, ok := ir.Lookup(name)
	if !ok {
		panic("host: ir has no op " + name)
	}
	return op
}

// expanded is load with broadcasting.
func expanded[T number](t *tensor, dims []int) (array[T], error) {
	wide, err := newTensor(ir.MakeShape(widest[T](), dims...))
	if err != nil {
		return array[T]{}, err
	}
	defer release(wide)
	if err := copyTensor(wide, t); err != nil {
		return array[T]{}, err
	}
	return array[T]{append([]T(nil), elements[T](wide)...), dims}, nil
}
