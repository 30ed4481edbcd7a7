package loris

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// Bucket rounds sizes up to a few, so that inputs of many sizes need few compilations: the dimension
// that varies is padded on the host, and a mask says which part of it is real. docs/shapes.md says
// what it costs to go without.
type Bucket func(n int) int

// BucketPowers rounds up to least, 2·least, 4·least and so on; least must be positive. At most half
// of a padded dimension is padding, and sizes up to n need about log2(n/least) compilations.
func BucketPowers(least int) Bucket {
	positive("bucket_powers", least)
	return func(n int) int {
		size := least
		for size < n {
			size *= 2
		}
		return size
	}
}

// BucketSteps rounds up to a multiple of step, which must be positive; 0 becomes step. Less than step
// is padding, and sizes up to n need n/step compilations.
func BucketSteps(step int) Bucket {
	positive("bucket_steps", step)
	return func(n int) int { return max(1, (n+step-1)/step) * step }
}

// BucketSizes rounds up to the least of the given sizes that is large enough. A size beyond all of
// them panics with an *OpError that wraps ErrShape.
func BucketSizes(sizes ...int) Bucket {
	sorted := slices.Sorted(slices.Values(sizes))
	return func(n int) int {
		i, _ := slices.BinarySearch(sorted, n)
		if i == len(sorted) {
			panic(ir.NewOpError("bucket", ErrShape, nil, "size %d is beyond the buckets %v", n, sorted))
		}
		return sorted[i]
	}
}

func positive(op string, n int) {
	if n < 1 {
		panic(ir.NewOpError(op, ErrArg, nil, "the size must be positive, not %d", n))
	}
}

// Mask returns a bool tensor of size b(n): true for the first n elements. It is made on the host, so
// that no graph depends on n.
func (b Bucket) Mask(m Maker, n int) *Tensor {
	real := make([]bool, b(n))
	for i := range n {
		real[i] = true
	}
	return m.FromSlice(real)
}

// Padded returns the tensor of data, which has the given dimensions in row-major order, with dimension
// dim (negative: from the last) rounded up by b and filled with value, and the mask of b for it. Both
// are made on the host: with sizes of the same buckets nothing is compiled. Without dims the data has
// one dimension. Mistakes panic with an *OpError that wraps ErrShape or ErrIndex.
func Padded[T Elem](m Maker, b Bucket, data []T, dim int, value T, dims ...int) (x, mask *Tensor) {
	if dims == nil {
		dims = []int{len(data)}
	}
	shape := makeShape("padded", dtypeOf[T](), dims)
	if shape.Numel() != len(data) {
		panic(ir.NewOpError("padded", ErrShape, nil, "%d elements do not fill %v", len(data), shape))
	}
	if dim < -len(dims) || dim >= len(dims) {
		panic(ir.NewOpError("padded", ErrIndex, nil, "there is no dimension %d in %v", dim, shape))
	}
	dim = (dim + len(dims)) % len(dims)
	outer, n, inner := shape.Around(dim)
	to := b(n)
	out := make([]T, 0, outer*to*inner)
	for i := range outer {
		out = append(out, data[i*n*inner:(i+1)*n*inner]...)
		for range (to - n) * inner {
			out = append(out, value)
		}
	}
	padded := slices.Clone(dims)
	padded[dim] = to
	return m.FromSlice(out, padded...), b.Mask(m, n)
}
