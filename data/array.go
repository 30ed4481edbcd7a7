package data

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// Array is a dense array in host memory.
type Array struct {
	Shape loris.Shape
	Data  []byte // little endian and row-major, Shape.Bytes() long
}

// Sample is what belongs together: an image and its label, say. A batch is one, too, whose arrays
// have a dimension more.
type Sample []Array

// Of returns an array of the values, which it shares (those of an []int are copied to i64). Without
// dimensions it has one. It panics with an *OpError if the values do not fill the dimensions.
func Of[E loris.Elem](values []E, dims ...int) Array {
	if dims == nil {
		dims = []int{len(values)}
	}
	if ints, ok := any(values).([]int); ok {
		wide := make([]int64, len(ints))
		for i, v := range ints {
			wide[i] = int64(v)
		}
		return Of(wide, dims...)
	}
	s, err := ir.NewShape(dtypeOf[E](), dims)
	if err != nil {
		panic(ir.NewOpError("data.Of", err, nil, "%d values", len(values)))
	}
	if s.Numel() != len(values) {
		panic(ir.NewOpError("data.Of", loris.ErrShape, nil, "%d values do not fill %v", len(values), s))
	}
	var z E
	return Array{s, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(z)))}
}

// Values returns the elements of an array, whose dtype is E's (i64 for int). They share the array's
// memory, unless that is not aligned or E is int. Another dtype is an error wrapping ErrDType.
func Values[E loris.Elem](a Array) ([]E, error) {
	if a.Shape.DType() != dtypeOf[E]() {
		return nil, fmt.Errorf("data: values of %v as %v: %w", a.Shape, dtypeOf[E](), loris.ErrDType)
	}
	if len(a.Data) != a.Shape.Bytes() {
		return nil, fmt.Errorf("data: %w: %d bytes of data for %v", loris.ErrShape, len(a.Data), a.Shape)
	}
	var z E
	if _, ok := any(z).(int); ok {
		wide, err := Values[int64](a)
		out := make([]E, len(wide))
		for i, v := range wide {
			out[i] = any(int(v)).(E)
		}
		return out, err
	}
	p := unsafe.Pointer(unsafe.SliceData(a.Data))
	if uintptr(p)%unsafe.Alignof(z) == 0 {
		return unsafe.Slice((*E)(p), a.Shape.Numel()), nil
	}
	out := make([]E, a.Shape.Numel())
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), len(a.Data)), a.Data)
	return out, nil
}

// dtypeOf returns the dtype of a Go type.
func dtypeOf[E loris.Elem]() loris.DType {
	var z E
	switch any(z).(type) {
	case bool:
		return loris.Bool
	case uint8:
		return loris.U8
	case int8:
		return loris.I8
	case int16:
		return loris.I16
	case int32:
		return loris.I32
	case int64, int:
		return loris.I64
	case float32:
		return loris.F32
	case complex64:
		return loris.C64
	case complex128:
		return loris.C128
	}
	return loris.F64
}

// Tensor returns a tensor of the array, made by m, which copies the data. Mistakes panic with an
// *OpError, as FromBytes does.
func (a Array) Tensor(m loris.Maker) *loris.Tensor { return m.FromBytes(a.Data, a.Shape) }

// Tensors returns a tensor of each array, made by m. It belongs on the goroutine that trains.
func (s Sample) Tensors(m loris.Maker) []*loris.Tensor {
	out := make([]*loris.Tensor, len(s))
	for i, a := range s {
		out[i] = a.Tensor(m)
	}
	return out
}

// Len returns the number of rows of a batch, the first dimension of its first array; 0 of an empty
// one.
func (s Sample) Len() int {
	if len(s) == 0 || s[0].Shape.Rank() == 0 {
		return 0
	}
	return s[0].Shape.Dim(0)
}

// Stack makes a batch of samples: each array of the batch has the samples' arrays as its rows. All
// must have the same shapes; others are an error wrapping ErrShape that names the first. It is the
// function for NewLoader that most datasets need.
func Stack(samples []Sample) (Sample, error) {
	if len(samples) == 0 {
		return nil, nil
	}
	first := samples[0]
	batch := make(Sample, len(first))
	for k, a := range first {
		n := a.Shape.Bytes()
		s, err := ir.NewShape(a.Shape.DType(), append([]int{len(samples)}, a.Shape.Dims()...))
		if err != nil {
			return nil, fmt.Errorf("data: stack: %w", err)
		}
		out := Array{s, make([]byte, s.Bytes())}
		for i, sample := range samples {
			if len(sample) != len(first) {
				return nil, fmt.Errorf("data: stack: %w: sample %d of the batch has %d arrays, the first %d", loris.ErrShape, i, len(sample), len(first))
			}
			if b := sample[k]; b.Shape != a.Shape || len(b.Data) != n {
				return nil, fmt.Errorf("data: stack: %w: array %d of sample %d of the batch is %v with %d bytes, of the first %v", loris.ErrShape, k, i, b.Shape, len(b.Data), a.Shape)
			}
			copy(out.Data[i*n:], sample[k].Data)
		}
		batch[k] = out
	}
	return batch, nil
}

// Collect makes a batch of samples that is the list of them.
func Collect[T any](samples []T) ([]T, error) { return samples, nil }

// ErrFormat says that a file is not of the format that it is read as.
var ErrFormat = errors.New("malformed file")
