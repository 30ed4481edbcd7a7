package opinfo

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
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
	out := make([]float64, t.Len())
	if !t.DType.IsFloat() {
		for i, v := range t.Int64s() {
			out[i] = float64(v)
		}
		return out
	}
	for i := range out {
		switch t.DType {
		case "f16":
			out[i] = half(binary.LittleEndian.Uint16(t.Data[2*i:]))
		case "f8e4m3fn":
			out[i] = e4m3(t.Data[i])
		case "f8e5m2":
			out[i] = half(uint16(t.Data[i]) << 8) // the upper half of the binary16 number
		case "bf16":
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16))
		case "f32":
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:])))
		case "f64":
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:]))
		}
	}
	return out
}

// Int64s returns the elements of a bool or integer tensor; it panics for a float dtype.
func (t Tensor) Int64s() []int64 {
	out := make([]int64, t.Len())
	for i := range out {
		switch t.DType {
		case "bool", "u8":
			out[i] = int64(t.Data[i])
		case "i8":
			out[i] = int64(int8(t.Data[i]))
		case "i16":
			out[i] = int64(int16(binary.LittleEndian.Uint16(t.Data[2*i:])))
		case "i32":
			out[i] = int64(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
		case "i64":
			out[i] = int64(binary.LittleEndian.Uint64(t.Data[8*i:]))
		default:
			panic("opinfo: Int64s of " + t.String())
		}
	}
	return out
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

// e4m3 widens an E4M3FN number: no infinities, and NaN where all bits but the sign are set.
func e4m3(bits uint8) float64 {
	exponent, fraction := int(bits>>3)&15, float64(bits&7)
	v := math.Ldexp(8+fraction, exponent-10)
	switch {
	case bits&0x7f == 0x7f:
		return math.NaN()
	case exponent == 0:
		v = math.Ldexp(fraction, -9)
	}
	if bits>>7 != 0 {
		return -v
	}
	return v
}

// half widens an IEEE 754 binary16 number.
func half(bits uint16) float64 {
	sign := 1.0
	if bits>>15 != 0 {
		sign = -1
	}
	exponent, fraction := int(bits>>10)&31, float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}
