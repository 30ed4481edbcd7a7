package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// MaxRank is the largest number of dimensions of a tensor.
const MaxRank = 8

// Shape is a dtype and up to eight dimensions, outermost first. It is a
// comparable value: two shapes are equal exactly when == says so. Strides are
// a backend's business and do not appear here.
type Shape struct {
	dims  [MaxRank]int
	rank  uint8
	dtype DType
}

// MakeShape returns the shape with the given dtype and dimensions; none make
// a scalar. It panics with an error wrapping ErrShape for more than MaxRank
// dimensions, a negative one, or a size in bytes that overflows an int.
func MakeShape(dtype DType, dims ...int) Shape {
	s, err := NewShape(dtype, dims)
	if err != nil {
		panic(err)
	}
	return s
}

// NewShape is MakeShape that returns its error.
func NewShape(dtype DType, dims []int) (Shape, error) {
	if len(dims) > MaxRank {
		return Shape{}, fmt.Errorf("%w: %d dimensions, at most %d are supported", ErrShape, len(dims), MaxRank)
	}
	if !dtype.Valid() {
		return Shape{}, fmt.Errorf("%w: %v", ErrDType, dtype)
	}
	s := Shape{rank: uint8(len(dims)), dtype: dtype}
	for i, d := range dims {
		if d < 0 {
			return Shape{}, fmt.Errorf("%w: dimension %d is %d", ErrShape, i, d)
		}
		s.dims[i] = d
	}
	if !s.countable() {
		return Shape{}, fmt.Errorf("%w: %v elements overflow", ErrShape, slices.Clone(dims)) // so that dims stays on the caller's stack
	}
	return s, nil
}

// countable reports whether NewShape takes the dimensions: none is negative, and an int counts their bytes.
func (s *Shape) countable() bool {
	if !s.dtype.Valid() {
		return false
	}
	size := s.dtype.Size()
	for _, d := range s.dims[:s.rank] {
		if d < 0 || d != 0 && size > math.MaxInt/d {
			return false
		}
		if d != 0 {
			size *= d
		}
	}
	return true
}

// DType returns the element type.
func (s Shape) DType() DType { return s.dtype }

// Rank returns the number of dimensions.
func (s Shape) Rank() int { return int(s.rank) }

// Dim returns dimension i; a negative i counts from the last.
func (s Shape) Dim(i int) int {
	if i < 0 {
		i += int(s.rank)
	}
	return s.dims[:s.rank][i]
}

// Dims returns a fresh slice of the dimensions.
func (s Shape) Dims() []int { return append(make([]int, 0, s.rank), s.dims[:s.rank]...) }

// Numel returns the number of elements: 1 for a scalar, 0 if any dimension is.
func (s Shape) Numel() int {
	n := 1
	for _, d := range s.dims[:s.rank] {
		n *= d
	}
	return n
}

// Bytes returns the size of the elements laid out without gaps.
func (s Shape) Bytes() int { return s.Numel() * s.dtype.Size() }

// WithDType returns the shape with another element type.
func (s Shape) WithDType(d DType) Shape {
	s.dtype = d
	return s
}

// WithDims returns the shape with other dimensions, as MakeShape.
func (s Shape) WithDims(dims ...int) Shape { return MakeShape(s.dtype, dims...) }

// SameDims reports whether the dimensions are equal, whatever the dtypes.
func (s Shape) SameDims(o Shape) bool { return s.rank == o.rank && s.dims == o.dims }

// Around returns the shape as [outer, n, inner], where n is dimension dim; without
// dimensions all three are 1.
func (s Shape) Around(dim int) (outer, n, inner int) {
	outer, n, inner = 1, 1, 1
	for d := range s.Rank() {
		switch {
		case d < dim:
			outer *= s.Dim(d)
		case d > dim:
			inner *= s.Dim(d)
		default:
			n = s.Dim(d)
		}
	}
	return outer, n, inner
}

// Strides returns the element strides of a dense row-major layout.
func (s Shape) Strides() []int {
	st := make([]int, s.rank)
	n := 1
	for i := int(s.rank) - 1; i >= 0; i-- {
		st[i] = n
		n *= s.dims[i]
	}
	return st
}

// String returns, for example, "f32[8,64]".
func (s Shape) String() string { return string(s.Append(nil)) }

// Append appends String to b.
func (s Shape) Append(b []byte) []byte {
	b = append(b, s.dtype.String()...)
	b = append(b, '[')
	for i, d := range s.dims[:s.rank] {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	return append(b, ']')
}

// BroadcastDims returns the dimensions that a and b broadcast to (aligned at
// the last, 1 stretches), or false if they do not.
func BroadcastDims(a, b Shape) (Shape, bool) {
	if a.dims == b.dims && a.rank == b.rank {
		return a, true
	}
	if a.rank < b.rank {
		a, b = b, a
	}
	off := int(a.rank - b.rank)
	for i := 0; i < int(b.rank); i++ {
		x, y := a.dims[off+i], b.dims[i]
		switch {
		case x == y || y == 1:
		case x == 1:
			a.dims[off+i] = y
		default:
			return Shape{}, false
		}
	}
	return a, true
}
