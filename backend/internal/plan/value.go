package plan

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// Value is where a value of a Program lies: a strided view of a buffer, with the dimensions of
// Shape.
type Value struct {
	Shape ir.Shape
	fuse.Value
}

// DenseValue returns the value that fills a buffer from its start.
func DenseValue(s ir.Shape, buf int) Value {
	return Value{s, fuse.Value{Buf: buf, View: strided.Dense(s.Dims())}}
}

// DType returns the dtype of the elements.
func (v Value) DType() ir.DType { return v.Shape.DType() }

// Size returns the bytes of an element.
func (v Value) Size() int { return v.Shape.DType().Size() }

// As returns another view of the buffer.
func (v Value) As(s ir.Shape, view strided.View) Value {
	return Value{s, fuse.Value{Buf: v.Buf, View: view}}
}

// Expand returns the value broadcast to other dimensions.
func (v Value) Expand(dims []int) Value {
	return v.As(v.Shape.WithDims(dims...), v.View.Expand(dims))
}

// Contiguous reports whether the elements are in order without gaps.
func (v Value) Contiguous() bool {
	m := v.View.Merge()
	return v.Shape.Numel() == 0 || m.Rank == 0 || m.Rank == 1 && m.Strides[0] == 1
}

// liesAs reports whether the elements are where a view of the same dimensions has them.
func (v Value) liesAs(want strided.View) bool {
	return v.Shape.Numel() == 0 || v.View.Merge() == want.Merge()
}

// Extent returns the bytes from the start of a buffer to the last element that a view has there.
func Extent(s ir.Shape, v *strided.View) int {
	if s.Numel() == 0 {
		return 0
	}
	last := v.Offset
	for i := range v.Rank {
		last += (v.Dims[i] - 1) * v.Strides[i]
	}
	return (last + 1) * s.DType().Size()
}
