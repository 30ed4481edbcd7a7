package loris

import (
	"context"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
)

// Maker makes tensors with settings other than the defaults: of a dtype, on a device, in
// a session. The zero Maker makes tensors in the default session, on its device, and of
// f32 or the dtype that the arguments suggest. Mistakes panic with an *OpError.
type Maker struct {
	session *Session
	device  Device
	dtype   DType
}

// MakerOption is a setting of [With]: [As], [On] or [In].
type MakerOption interface{ makerOption() }

type (
	deviceOption  struct{ device Device }
	sessionOption struct{ session *Session }
)

func (asOption) makerOption()      {}
func (deviceOption) makerOption()  {}
func (sessionOption) makerOption() {}

// On sets the device that a Maker makes tensors on.
func On(d Device) MakerOption { return deviceOption{d} }

// In sets the session that a Maker makes tensors in.
func In(s *Session) MakerOption { return sessionOption{s} }

// With returns a Maker with the given settings.
func With(opts ...MakerOption) Maker { return Maker{}.With(opts...) }

// With returns a Maker of tensors in this session, with the given settings.
func (s *Session) With(opts ...MakerOption) Maker { return Maker{session: s}.With(opts...) }

// With returns a Maker with some settings changed.
func (m Maker) With(opts ...MakerOption) Maker {
	for _, o := range opts {
		switch o := o.(type) {
		case asOption:
			m.dtype = o.v.(DType)
		case deviceOption:
			m.device = o.device
		case sessionOption:
			m.session = o.session
		default:
			panic(ir.NewOpError("with", ErrArg, nil, "a setting is nil"))
		}
	}
	return m
}

// Session returns the session that the Maker makes tensors in.
func (m Maker) Session() *Session {
	if m.session != nil {
		return m.session
	}
	return Default()
}

// Device returns the device that the Maker makes tensors on.
func (m Maker) Device() Device {
	if !m.device.IsAny() {
		return m.device
	}
	return m.Session().Device()
}

// DType returns the Maker's dtype, or def if it has none.
func (m Maker) DType(def DType) DType {
	if m.dtype.Valid() {
		return m.dtype
	}
	return def
}

// call records a creation op.
func (m Maker) call(op ir.Op, pos ...any) *Tensor {
	out := new(executor.Tensor)
	m.Session().ex().CallOn(m.device, op, out, pos)
	return (*Tensor)(out)
}

// named is call of a function that users know under another name than the op's.
func (m Maker) named(name string, op ir.Op, pos ...any) *Tensor {
	defer renamed(op, name)
	return m.call(op, pos...)
}

// renamed, deferred, gives a mistake in an op the name of the function that the user called.
func renamed(op ir.Op, name string) {
	r := recover()
	if r == nil {
		return
	}
	if e, ok := r.(*OpError); ok && e.Op == op.String() {
		e.Op = name
	}
	panic(r)
}

// FromSlice returns a tensor of the data, a slice of an Elem type, in row-major
// order; without dims it has one dimension. The data is copied. A Maker with a dtype
// casts to it.
func (m Maker) FromSlice(data any, dims ...int) *Tensor {
	b, n, d := sliceBytes(data)
	if d == ir.Invalid {
		panic(ir.NewOpError("from_slice", ErrDType, nil, "%T is not a slice of bool, an integer, a float or a complex type", data))
	}
	if dims == nil {
		dims = []int{n}
	}
	t := m.FromBytes(b, makeShape("from_slice", d, dims))
	if to := m.DType(d); to != d {
		return t.Cast(to)
	}
	return t
}

// FromBytes returns a tensor of elements in the layout of Tensor.Bytes: dense, row-major
// and little endian. The data is copied.
func (m Maker) FromBytes(data []byte, shape Shape) *Tensor {
	if len(data) != shape.Bytes() {
		panic(ir.NewOpError("from_slice", ErrShape, nil, "%d bytes of data (%d elements) do not fill %v, which has %d",
			len(data), len(data)/shape.DType().Size(), shape, shape.Bytes()))
	}
	t := new(executor.Tensor)
	if err := m.Session().ex().Upload(context.Background(), t, shape, m.Device(), data); err != nil {
		panic(ir.NewOpError("from_slice", err, nil, "the data could not be uploaded"))
	}
	return (*Tensor)(t)
}

// Constant is FromBytes for data that is used in many steps, such as a mask: the data
// cache keeps the copy on the device and finds it by its contents.
func (m Maker) Constant(data []byte, shape Shape) *Tensor {
	t := new(executor.Tensor)
	if err := m.Session().ex().UploadCached(context.Background(), t, shape, m.Device(), data); err != nil {
		panic(ir.NewOpError("constant", err, nil, "the data could not be uploaded"))
	}
	return (*Tensor)(t)
}

// makeShape is MakeShape with an *OpError.
func makeShape(op string, d DType, dims []int) Shape {
	s, err := ir.NewShape(d, dims)
	if err != nil {
		panic(ir.NewOpError(op, ErrShape, nil, "dimensions %v: %v", dims, err))
	}
	return s
}

// Scalar returns a number as a tensor of rank 0, of the Maker's dtype, otherwise i64 for
// an integer, f32 for a float and bool for a bool. It is a parameter of the graphs that
// use it, so another value never recompiles.
//
// A number that an integer dtype cannot hold panics with an *OpError; a negative one for U8 wraps, as
// in PyTorch.
func (m Maker) Scalar(v any) *Tensor { return m.scalar("scalar", v) }

// scalar is Scalar for a function of the name op.
func (m Maker) scalar(op string, v any) *Tensor {
	t := new(executor.Tensor)
	m.Session().ex().Scalar(op, t, v, m.DType(numberDType(v)))
	if m.device.IsAny() || m.device == m.Session().Device() {
		return (*Tensor)(t)
	}
	panic(ir.NewOpError(op, ErrDevice, nil, "a scalar has no device of its own"))
}

// numberDType is the dtype of a Go number that is not an operand beside a tensor.
func numberDType(v any) DType {
	switch v.(type) {
	case float32, float64:
		return ir.DefaultDType
	case bool:
		return Bool
	}
	return I64
}

// Zeros returns a tensor of zeros, f32 by default.
func (m Maker) Zeros(dims ...int) *Tensor { return m.named("zeros", aten.Full, dims, 0, m.DType(F32)) }

// Ones returns a tensor of ones, f32 by default.
func (m Maker) Ones(dims ...int) *Tensor { return m.named("ones", aten.Full, dims, 1, m.DType(F32)) }

// Full returns a tensor filled with a number, by default of the dtype that Scalar gives
// the number. It is a parameter of the graph: another value never recompiles.
func (m Maker) Full(v any, dims ...int) *Tensor {
	return m.named("full", aten.Expand, m.With(On(Device{})).scalar("full", v).ex(), dims)
}

// Arange returns start, start+step, … before end: i64 for integers, f32 if one
// is a float.
func (m Maker) Arange(start, end, step any) *Tensor {
	d := I64
	for _, v := range []any{start, end, step} {
		if numberDType(v) == F32 {
			d = F32
		}
	}
	return m.call(aten.Arange, number(start), number(end), number(step), m.DType(d))
}

// Linspace returns steps evenly spaced numbers from start to end, both included,
// f32 by default.
func (m Maker) Linspace(start, end any, steps int) *Tensor {
	return m.call(aten.Linspace, number(start), number(end), steps, m.DType(F32))
}

// number widens a Go number to a type that attributes hold. It returns anything else as
// it is, for the op to refuse.
func number(v any) any {
	switch v := v.(type) {
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case float32:
		return float64(v)
	}
	return v
}

// Eye returns the n by n identity matrix, f32 by default.
func (m Maker) Eye(n int) *Tensor { return m.call(opEye, n, nil, m.DType(F32)) }

// FromSlice returns a tensor of the data in row-major order, in the default session;
// without dims it has one dimension. The data is copied. A length that does not fit the
// dims panics with an *OpError wrapping ErrShape.
func FromSlice[T Elem](data []T, dims ...int) *Tensor { return Maker{}.FromSlice(data, dims...) }

// F16FromSlice returns an f16 tensor of the data, rounded to the nearest.
func F16FromSlice(data []float32, dims ...int) *Tensor {
	return halfSlice(data, F16, half.F32ToF16, dims)
}

// BF16FromSlice returns a bf16 tensor of the data, rounded to the nearest.
func BF16FromSlice(data []float32, dims ...int) *Tensor {
	return halfSlice(data, BF16, half.F32ToBF16, dims)
}

func halfSlice(data []float32, d DType, round func(float32) uint16, dims []int) *Tensor {
	out := make([]uint16, len(data))
	for i, v := range data {
		out[i] = round(v)
	}
	if dims == nil {
		dims = []int{len(data)}
	}
	return Maker{}.FromBytes(bytesOf(out), makeShape("from_slice", d, dims))
}

// FromBytes is Maker.FromBytes in the default session.
func FromBytes(data []byte, shape Shape) *Tensor { return Maker{}.FromBytes(data, shape) }

// Scalar is Maker.Scalar in the default session.
func Scalar(v any) *Tensor { return Maker{}.Scalar(v) }

// Zeros returns an f32 tensor of zeros, in the default session.
func Zeros(dims ...int) *Tensor { return Maker{}.Zeros(dims...) }

// Ones returns an f32 tensor of ones, in the default session.
func Ones(dims ...int) *Tensor { return Maker{}.Ones(dims...) }

// Full is Maker.Full in the default session.
func Full(v any, dims ...int) *Tensor { return Maker{}.Full(v, dims...) }

// Arange is Maker.Arange in the default session.
func Arange(start, end, step any) *Tensor { return Maker{}.Arange(start, end, step) }

// Linspace is Maker.Linspace in the default session.
func Linspace(start, end any, steps int) *Tensor { return Maker{}.Linspace(start, end, steps) }

// Eye is Maker.Eye in the default session.
func Eye(n int) *Tensor { return Maker{}.Eye(n) }

// sliceBytes returns the memory of a slice of elements, little endian, their
// number and dtype; Invalid for anything else.
func sliceBytes(data any) (b []byte, n int, d DType) {
	switch v := data.(type) {
	case []bool:
		return bytesOf(v), len(v), Bool
	case []uint8:
		return v, len(v), U8
	case []int8:
		return bytesOf(v), len(v), I8
	case []int16:
		return bytesOf(v), len(v), I16
	case []int32:
		return bytesOf(v), len(v), I32
	case []int64:
		return bytesOf(v), len(v), I64
	case []int:
		w := make([]int64, len(v))
		for i, x := range v {
			w[i] = int64(x)
		}
		return bytesOf(w), len(v), I64
	case []float32:
		return bytesOf(v), len(v), F32
	case []float64:
		return bytesOf(v), len(v), F64
	case []complex64:
		return bytesOf(v), len(v), C64
	case []complex128:
		return bytesOf(v), len(v), C128
	}
	return nil, 0, ir.Invalid
}

// bytesOf returns a slice's memory. Loris runs on little-endian machines only,
// as its assembly and its buffers do.
func bytesOf[T bool | int8 | int16 | uint16 | int32 | int64 | float32 | float64 | complex64 | complex128](v []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(z)))
}
