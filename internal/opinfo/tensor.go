package opinfo

import (
	"fmt"
	"strings"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// DType names an element type: bool, u8, i8, i16, i32, i64, f16, bf16, f32, f64, f8e4m3fn or f8e5m2.
type DType string

// Size returns the bytes of one element, and 0 for an unknown name.
func (d DType) Size() int {
	switch d {
	case "bool", "u8", "i8", "f8e4m3fn", "f8e5m2":
		return 1
	case "i16", "f16", "bf16":
		return 2
	case "i32", "f32":
		return 4
	case "i64", "f64":
		return 8
	}
	return 0
}

// IsFloat reports whether d is a float: one of f16, bf16, f32, f64, f8e4m3fn and f8e5m2.
func (d DType) IsFloat() bool {
	switch d {
	case "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2":
		return true
	}
	return false
}

// A Tensor is a dense row-major array. Data holds the elements little endian; a bool is one byte, 0 or 1.
type Tensor struct {
	DType DType
	Shape []int // empty for a single number
	Data  []byte
}

// Len returns the number of elements.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// String returns the dtype and shape, such as f32[2,3].
func (t Tensor) String() string {
	return string(t.DType) + strings.ReplaceAll(fmt.Sprint(t.Shape), " ", ",")
}

// Float64s returns the elements as float64: exact for all dtypes but i64, which rounds above 2⁵³.
func (t Tensor) Float64s() []float64 {
	d := t.elementType()
	if d.IsFloatOrF8() {
		return elements.DecodeFloats(d, t.Data)
	}
	out := make([]float64, t.Len())
	for i := range out {
		out[i] = float64(elements.Int(d, t.Data, i))
	}
	return out
}

// Int64s returns the elements of a bool or integer tensor; it panics for a float dtype.
func (t Tensor) Int64s() []int64 {
	d := t.elementType()
	if !d.IsIntegral() {
		panic("opinfo: Int64s of " + t.String())
	}
	return elements.DecodeInts(d, t.Data)
}

// elementType returns the dtype, which validate has checked.
func (t Tensor) elementType() ir.DType {
	d, err := ir.ParseDType(string(t.DType))
	if err != nil {
		panic(err)
	}
	return d
}

// validate reports a dtype, shape or size that can't be.
func (t Tensor) validate() error {
	if t.DType.Size() == 0 {
		return fmt.Errorf("unknown dtype %q", string(t.DType))
	}
	for _, d := range t.Shape {
		if d < 0 {
			return fmt.Errorf("negative dimension in %v", t)
		}
	}
	if want := t.Len() * t.DType.Size(); len(t.Data) != want {
		return fmt.Errorf("%v has %d bytes, want %d", t, len(t.Data), want)
	}
	return nil
}
