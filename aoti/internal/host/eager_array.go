//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// number is the types that ops without kernels compute in: everything that a
// dtype can hold is exact in one of them.
type number interface{ int64 | float64 | complex128 }

// array is the elements of a tensor in row-major order, in memory of Go.
type array[T number] struct {
	data []T
	dims []int
}

// widest is the dtype of T.
func widest[T number]() ir.DType {
	switch any(*new(T)).(type) {
	case int64:
		return ir.I64
	case float64:
		return ir.F64
	}
	return ir.C128
}

// load reads a tensor.
func load[T number](t *tensor) (array[T], error) {
	s, err := shapeOf(t)
	if err != nil {
		return array[T]{}, err
	}
	wide, err := newTensor(s.WithDType(widest[T]()))
	if err != nil {
		return array[T]{}, err
	}
	defer release(wide)
	if err := copyTensor(wide, t); err != nil {
		return array[T]{}, err
	}
	return array[T]{append([]T(nil), elements[T](wide)...), s.Dims()}, nil
}

// rowsOf reads self, which may be a scalar, and returns the dimension along
// which its rows lie.
func rowsOf[T number](v values, otherwise int) (t *tensor, a array[T], dim int, err error) {
	if t, a, err = argument[T](v, "self"); err == nil {
		dim, err = dimension(v.int("dim", otherwise), len(a.dims))
	}
	return t, a, dim, err
}

// argument reads a tensor that must be there, and returns its handle, too.
func argument[T number](v values, name string) (*tensor, array[T], error) {
	t, err := v.tensor(name)
	if err != nil {
		return nil, array[T]{}, err
	}
	a, err := load[T](t)
	return t, a, err
}

// saveBoth makes two tensors, of the dtypes of an op that finds elements: their
// values in d, and where they were.
func saveBoth[T number](vals array[T], d ir.DType, at array[int64]) ([]*tensor, error) {
	x, err := save(vals, d)
	if err != nil {
		return nil, err
	}
	k, err := save(at, ir.I64)
	return all(err, x, k)
}

// save makes a tensor of the given dtype of the elements.
func save[T number](a array[T], d ir.DType) (*tensor, error) {
	s, err := ir.NewShape(d, a.dims)
	if err != nil {
		return nil, err
	}
	if s.Numel() != len(a.data) {
		return nil, fmt.Errorf("%w: %d elements for %v", ir.ErrShape, len(a.data), s)
	}
	t, err := newTensor(s)
	if err != nil || len(a.data) == 0 {
		return t, err
	}
	wide, err := newTensor(s.WithDType(widest[T]()))
	if err != nil {
		release(t)
		return nil, err
	}
	defer release(wide)
	copy(elements[T](wide), a.data)
	if err := copyTensor(t, wide); err != nil {
		release(t)
		return nil, err
	}
	return t, nil
}

// dtypeOf returns the dtype of a tensor that has one of Loris's.
func dtypeOf(t *tensor) ir.DType {
	d, err := scalartype.DType(int32(t.dtype))
	if err != nil {
		panic(err) // becomes the call's error
	}
	return d
}

// isInt reports whether a tensor is one of integers or bools.
func isInt(t *tensor) bool { return dtypeOf(t).IsIntegral() }

// dimension normalises a dimension of a tensor; a scalar counts as having one.
func dimension(d, rank int) (int, error) {
	n := max(rank, 1)
	if d < -n || d >= n {
		return 0, fmt.Errorf("%w: dimension %d of %d", ir.ErrShape, d, rank)
	}
	return (d + n) % n, nil
}

// eachLine calls fn for each row along a dimension: where it begins, the distance
// between its elements and their number. i counts the rows in row-major order. A
// scalar is a row of one element.
func eachLine(dims []int, dim int, fn func(i, at, step, n int)) {
	n, inner, outer := 1, 1, 1
	for i, d := range dims {
		switch {
		case i < dim:
			outer *= d
		case i == dim:
			n = d
		default:
			inner *= d
		}
	}
	for o := range outer {
		for k := range inner {
			fn(o*inner+k, o*n*inner+k, inner, n)
		}
	}
}

// without returns dims without one of them, or with 1 in its place.
func without(dims []int, dim int, keep bool) []int {
	out := append([]int(nil), dims...)
	if len(out) == 0 {
		return out
	}
	if keep {
		out[dim] = 1
		return out
	}
	return append(out[:dim], out[dim+1:]...)
}

// product is how many elements an array of the dimensions has.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// atLeast1 is dims, or one dimension of 1 for a scalar.
func atLeast1(dims []int) []int {
	if len(dims) == 0 {
		return []int{1}
	}
	return dims
}

func pick[T any](x, y T, second bool) T {
	if second {
		return y
	}
	return x
}
