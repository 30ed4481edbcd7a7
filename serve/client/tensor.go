package client

import (
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/serve/internal/inference"
)

// Tensor is an input or an output.
type Tensor struct {
	Name string
	// Datatype is one of the protocol: BOOL, UINT8 to UINT64, INT8 to INT64, FP16, BF16, FP32,
	// FP64, BYTES.
	Datatype string
	Shape    []int64
	// Data holds the elements: dense, row-major, little-endian, BOOL as one byte, an element of
	// BYTES as its length in 4 bytes and the bytes.
	Data []byte
	// Parameters are those of the tensor itself, as a Request has them.
	Parameters map[string]any
}

// Elem are the types of elements that Go has.
type Elem interface {
	bool | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64
}

func datatypeOf[T Elem]() string {
	var zero T
	switch any(zero).(type) {
	case bool:
		return "BOOL"
	case uint8:
		return "UINT8"
	case uint16:
		return "UINT16"
	case uint32:
		return "UINT32"
	case uint64:
		return "UINT64"
	case int8:
		return "INT8"
	case int16:
		return "INT16"
	case int32:
		return "INT32"
	case int64:
		return "INT64"
	case float32:
		return "FP32"
	}
	return "FP64"
}

// FromSlice returns a tensor over a slice's memory. The shape's product must be the length of the
// slice; Infer says so otherwise.
func FromSlice[T Elem](name string, data []T, shape ...int64) Tensor {
	var zero T
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(zero)))
	return Tensor{Name: name, Datatype: datatypeOf[T](), Shape: shape, Data: bytes}
}

// Slice returns a tensor's elements, in the tensor's memory wherever that is aligned for them. It is
// an error if they are of another type. Uint16 is also for the bits of FP16 and BF16.
func Slice[T Elem](t *Tensor) ([]T, error) {
	var zero T
	want, size := datatypeOf[T](), int(unsafe.Sizeof(zero))
	if t.Datatype != want && (want != "UINT16" || t.Datatype != "FP16" && t.Datatype != "BF16") {
		return nil, fmt.Errorf("tensor %q is %s, not %s", t.Name, t.Datatype, want)
	}
	n := len(t.Data) / size
	if len(t.Data)%size != 0 {
		return nil, fmt.Errorf("tensor %q has %d bytes, which are no %s", t.Name, len(t.Data), want)
	}
	if n == 0 {
		return []T{}, nil
	}
	at := unsafe.Pointer(unsafe.SliceData(t.Data))
	if uintptr(at)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(at), n), nil
	}
	out := make([]T, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), n*size), t.Data)
	return out, nil
}

// check compares the shape of an input with its data.
func (t *Tensor) check() error {
	d := inference.Datatype(t.Datatype)
	if !d.Valid() {
		return fmt.Errorf("input %q: %q is no datatype", t.Name, t.Datatype)
	}
	n, ok := inference.NumElements(t.Shape)
	if !ok {
		return fmt.Errorf("input %q: the shape %v has no number of elements", t.Name, t.Shape)
	}
	if size := int64(d.Size()); size > 0 && (int64(len(t.Data))%size != 0 || int64(len(t.Data))/size != n) {
		return fmt.Errorf("input %q: %s%v has %d elements of %d bytes, and the data %d bytes", t.Name, t.Datatype, t.Shape, n, size, len(t.Data))
	}
	return nil
}
