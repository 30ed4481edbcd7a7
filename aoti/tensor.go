package aoti

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// Elem are the Go types of elements. Half precision has none; see FromBytes.
type Elem interface {
	bool | uint8 | int8 | int16 | int32 | int64 | float32 | float64 | complex64 | complex128
}

func dtypeOf[T Elem]() ir.DType {
	var z T
	switch any(z).(type) {
	case bool:
		return ir.Bool
	case uint8:
		return ir.U8
	case int8:
		return ir.I8
	case int16:
		return ir.I16
	case int32:
		return ir.I32
	case int64:
		return ir.I64
	case float32:
		return ir.F32
	case float64:
		return ir.F64
	case complex64:
		return ir.C64
	}
	return ir.C128
}

// cpu is where the tensors of this package are.
func cpu() ir.Device { return ir.Device{Type: ir.RegisterDeviceType("cpu")} }

// FromSlice returns a tensor of the data, row-major, without copying it: it must
// not change while the tensor is in use. It panics with an error wrapping
// ir.ErrShape if dims do not say as many elements as there are.
func FromSlice[T Elem](data []T, dims ...int) Buffer {
	s := ir.MakeShape(dtypeOf[T](), dims...)
	b, err := hostmem.Wrap(s, cpu(), bytesOf(data), nil)
	if err != nil {
		panic(fmt.Errorf("aoti.FromSlice: %w", err))
	}
	return b
}

// FromBytes returns a tensor of the given dtype over little-endian elements,
// which must not change while it is in use. It returns an error wrapping
// ir.ErrShape if they are not as many as dims say.
func FromBytes(data []byte, dtype ir.DType, dims ...int) (Buffer, error) {
	s, err := ir.NewShape(dtype, dims)
	if err != nil {
		return nil, err
	}
	return hostmem.Wrap(s, cpu(), data, nil)
}

// NewBuffer returns a tensor of unspecified contents, for Runner.RunInto. It panics
// with an *ir.OutOfMemory where memory is short.
func NewBuffer(dtype ir.DType, dims ...int) Buffer {
	b, err := allocator.New(ir.MakeShape(dtype, dims...), cpu())
	if err != nil {
		panic(err)
	}
	return b
}

var allocator = hostmem.NewAllocator()

// Slice returns the elements of a tensor in host memory, which share its memory:
// they are valid until its last Release. T must be the type of its dtype,
// otherwise it is an error wrapping ir.ErrDType. f16 and bf16 have no Go type;
// read their Bytes.
func Slice[T Elem](b Buffer) ([]T, error) {
	if d := dtypeOf[T](); b.Shape().DType() != d {
		return nil, fmt.Errorf("%w: %v read as %v", ir.ErrDType, b.Shape(), d)
	}
	data, err := b.Bytes(context.Background())
	if err != nil {
		return nil, err
	}
	return elements[T](data), nil
}

// Float32s returns the elements of an f32 tensor, as Slice.
func Float32s(b Buffer) ([]float32, error) { return Slice[float32](b) }

// Int64s returns the elements of an i64 tensor, as Slice.
func Int64s(b Buffer) ([]int64, error) { return Slice[int64](b) }
