package loris

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// Elem are the Go types that elements are read as and made from. int counts as
// int64.
type Elem interface {
	bool | uint8 | int8 | int16 | int32 | int64 | int | float32 | float64 | complex64 | complex128
}

// dtypeOf returns the dtype of a Go type.
func dtypeOf[T Elem]() DType {
	var z T
	switch any(z).(type) {
	case bool:
		return Bool
	case uint8:
		return U8
	case int8:
		return I8
	case int16:
		return I16
	case int32:
		return I32
	case int64, int:
		return I64
	case float32:
		return F32
	case complex64:
		return C64
	case complex128:
		return C128
	}
	return F64
}

// Read waits for a tensor and returns a copy of its elements in row-major order as T,
// which must be able to hold every value of the tensor's dtype: float32 also reads f16,
// bf16 and the 8-bit floats, float64 any float, int and int64 any integer, complex128 also
// c64; the others read their own dtype only. Another dtype is an error wrapping ErrDType.
func Read[T Elem](ctx context.Context, t *Tensor) ([]T, error) {
	if err := ir.CheckContext("read", ctx); err != nil {
		return nil, err
	}
	shape, err := t.session("read").ReadableShape(t.ex())
	if err != nil {
		return nil, err
	}
	d := shape.DType()
	if !readable(d, dtypeOf[T]()) {
		return nil, fmt.Errorf("loris: read of %v as %v: %w: cast it first", shape, dtypeOf[T](), ErrDType)
	}
	var out []T
	err = t.ex().Read(ctx, func(b []byte) error {
		var z T
		if err := copyFits(shape, int(unsafe.Sizeof(z))); err != nil {
			return err
		}
		out = decode[T](b, d)
		return nil
	})
	return out, err
}

// copyFits returns an error if there is no memory for a copy of a tensor, in elements of size bytes.
func copyFits(s Shape, size int) error {
	err := memlimit.Check(memlimit.Times(int64(s.Numel()), int64(size)), 0)
	if err != nil {
		return fmt.Errorf("loris: read of %v: %w", s, err)
	}
	return nil
}

// readable reports whether as holds every value of d.
func readable(d, as DType) bool {
	switch as {
	case d:
		return true
	case F32:
		return d == F16 || d == BF16 || d.IsF8()
	case F64:
		return d.IsFloatOrF8()
	case I64:
		return d.IsInt()
	case C128:
		return d == C64
	}
	return false
}

// decode copies elements of dtype d, which readable has allowed.
func decode[T Elem](b []byte, d DType) []T {
	out := make([]T, len(b)/d.Size())
	switch out := any(out).(type) {
	case []bool:
		for i, x := range b {
			out[i] = x != 0
		}
	case []uint8:
		copy(out, b)
	case []int8:
		copy(out, hostmem.View[int8](b))
	case []int16:
		copy(out, hostmem.View[int16](b))
	case []int32:
		copy(out, hostmem.View[int32](b))
	case []int64:
		decodeInts(out, b, d)
	case []int:
		decodeInts(out, b, d)
	case []float32:
		decodeFloats(out, b, d)
	case []float64:
		decodeFloats(out, b, d)
	case []complex64:
		copy(out, hostmem.View[complex64](b))
	case []complex128:
		if d == C128 {
			copy(out, hostmem.View[complex128](b))
			break
		}
		for i, x := range hostmem.View[complex64](b) {
			out[i] = complex128(x)
		}
	}
	return out
}

func decodeInts[T int | int64](out []T, b []byte, d DType) {
	switch d {
	case U8:
		convert(out, b)
	case I8:
		convert(out, hostmem.View[int8](b))
	case I16:
		convert(out, hostmem.View[int16](b))
	case I32:
		convert(out, hostmem.View[int32](b))
	case I64:
		convert(out, hostmem.View[int64](b))
	}
}

func decodeFloats[T float32 | float64](out []T, b []byte, d DType) {
	switch d {
	case F16:
		for i, x := range hostmem.View[uint16](b) {
			out[i] = T(half.F16ToF32(x))
		}
	case BF16:
		for i, x := range hostmem.View[uint16](b) {
			out[i] = T(half.BF16ToF32(x))
		}
	case F8E4M3FN:
		for i, x := range b {
			out[i] = T(half.E4M3ToF32(x))
		}
	case F8E5M2:
		for i, x := range b {
			out[i] = T(half.E5M2ToF32(x))
		}
	case F32:
		convert(out, hostmem.View[float32](b))
	case F64:
		convert(out, hostmem.View[float64](b))
	}
}

func convert[T int | int64 | float32 | float64, U uint8 | int8 | int16 | int32 | int64 | float32 | float64](out []T, in []U) {
	for i, x := range in {
		out[i] = T(x)
	}
}

// Float32s returns the elements of an f32, f16, bf16 or 8-bit float tensor, as Read.
func (t *Tensor) Float32s(ctx context.Context) ([]float32, error) { return Read[float32](ctx, t) }

// Float64s returns the elements of a floating tensor, 8-bit floats included, as Read.
func (t *Tensor) Float64s(ctx context.Context) ([]float64, error) { return Read[float64](ctx, t) }

// Int64s returns the elements of an integer tensor, as Read.
func (t *Tensor) Int64s(ctx context.Context) ([]int64, error) { return Read[int64](ctx, t) }

// Int32s returns the elements of an i32 tensor, as Read.
func (t *Tensor) Int32s(ctx context.Context) ([]int32, error) { return Read[int32](ctx, t) }

// Int16s returns the elements of an i16 tensor, as Read.
func (t *Tensor) Int16s(ctx context.Context) ([]int16, error) { return Read[int16](ctx, t) }

// Int8s returns the elements of an i8 tensor, as Read.
func (t *Tensor) Int8s(ctx context.Context) ([]int8, error) { return Read[int8](ctx, t) }

// Uint8s returns the elements of a u8 tensor, as Read.
func (t *Tensor) Uint8s(ctx context.Context) ([]uint8, error) { return Read[uint8](ctx, t) }

// Bools returns the elements of a bool tensor, as Read.
func (t *Tensor) Bools(ctx context.Context) ([]bool, error) { return Read[bool](ctx, t) }

// Complex64s returns the elements of a c64 tensor, as Read.
func (t *Tensor) Complex64s(ctx context.Context) ([]complex64, error) { return Read[complex64](ctx, t) }

// Complex128s returns the elements of a complex tensor, as Read.
func (t *Tensor) Complex128s(ctx context.Context) ([]complex128, error) {
	return Read[complex128](ctx, t)
}

// Bytes waits for the tensor and returns a copy of its elements, dense,
// row-major and little endian. It reads every dtype.
func (t *Tensor) Bytes(ctx context.Context) ([]byte, error) {
	if err := ir.CheckContext("bytes", ctx); err != nil {
		return nil, err
	}
	shape, err := t.session("read").ReadableShape(t.ex())
	if err != nil {
		return nil, err
	}
	var out []byte
	err = t.ex().Read(ctx, func(b []byte) error {
		if err := copyFits(shape, shape.DType().Size()); err != nil {
			return err
		}
		out = append(out, b...)
		return nil
	})
	return out, err
}

// Item waits for a tensor of one element and returns it as a float64: integers
// are converted, a bool is 0 or 1. More or no elements are an error wrapping
// ErrShape, complex dtypes one wrapping ErrDType.
func (t *Tensor) Item(ctx context.Context) (float64, error) {
	if err := ir.CheckContext("item", ctx); err != nil {
		return 0, err
	}
	s, err := t.session("read").ReadableShape(t.ex())
	if err != nil {
		return 0, err
	}
	switch {
	case s.Numel() != 1:
		return 0, fmt.Errorf("loris: item of %v: %w: one element is needed", s, ErrShape)
	case s.DType().IsStorage() && !s.DType().IsF8():
		return 0, fmt.Errorf("loris: item of %v: %w", s, ErrDType)
	}
	var out float64
	err = t.ex().Read(ctx, func(b []byte) error {
		out = elemsOf(b, s.DType()).float(0)
		return nil
	})
	return out, err
}

// elems reads single elements of any dtype, by index.
type elems struct {
	int   func(i int) int64   // for bool and integers
	float func(i int) float64 // for all but storage-only ones
}

func elemsOf(b []byte, d DType) elems {
	if d.IsFloat() || d.IsStorage() {
		return elems{float: floatsOf(b, d)}
	}
	at := intsOf(b, d)
	return elems{int: at, float: func(i int) float64 { return float64(at(i)) }}
}

func intsOf(b []byte, d DType) func(i int) int64 {
	switch d {
	case I8:
		return at[int64](hostmem.View[int8](b))
	case I16:
		return at[int64](hostmem.View[int16](b))
	case I32:
		return at[int64](hostmem.View[int32](b))
	case I64:
		return at[int64](hostmem.View[int64](b))
	}
	return at[int64](b)
}

func floatsOf(b []byte, d DType) func(i int) float64 {
	switch d {
	case F16:
		v := hostmem.View[uint16](b)
		return func(i int) float64 { return float64(half.F16ToF32(v[i])) }
	case BF16:
		v := hostmem.View[uint16](b)
		return func(i int) float64 { return float64(half.BF16ToF32(v[i])) }
	case F32:
		return at[float64](hostmem.View[float32](b))
	case F64:
		return at[float64](hostmem.View[float64](b))
	case F8E4M3FN:
		return func(i int) float64 { return float64(half.E4M3ToF32(b[i])) }
	case F8E5M2:
		return func(i int) float64 { return float64(half.E5M2ToF32(b[i])) }
	}
	return func(int) float64 { return math.NaN() }
}

func at[R int64 | float64, U uint8 | int8 | int16 | int32 | int64 | float32 | float64](v []U) func(i int) R {
	return func(i int) R { return R(v[i]) }
}

// Fetch syncs the tensors that are pending, in one graph, waits for all, and returns
// copies of their elements in order, as Tensor.Bytes.
func Fetch(ctx context.Context, ts ...*Tensor) ([][]byte, error) {
	if err := ir.CheckContext("fetch", ctx); err != nil {
		return nil, err
	}
	s, err := sessionOfAll(ts)
	if err != nil || s == nil {
		return nil, err
	}
	out := make([][]byte, len(ts))
	err = s.ex().With(ctx, func(bufs []backend.Buffer) error {
		for i, buf := range bufs {
			b, err := backend.Contents(ctx, buf)
			if err != nil {
				return fmt.Errorf("loris: fetch of tensor %d: %w", i, err)
			}
			if err := copyFits(buf.Shape(), buf.Shape().DType().Size()); err != nil {
				return err
			}
			out[i] = append([]byte(nil), b...)
		}
		return nil
	}, handles(ts)...)
	if err != nil {
		return nil, err
	}
	return out, nil
}
