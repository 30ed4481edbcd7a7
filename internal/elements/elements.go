// Package elements reads and writes the elements of tensors in host memory, one
// at a time: little endian and row-major. It is for the reference, for tests
// and for what people read; kernels have slices of their own.
package elements

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
)

// AppendInt appends an element of an integer dtype or bool, wrapped around.
func AppendInt(b []byte, d ir.DType, v int64) []byte {
	v = ir.WrapInt(d, v)
	switch d.Size() {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(v))
}

// AppendFloat appends an element of a floating dtype, rounded; it panics for
// others.
func AppendFloat(b []byte, d ir.DType, v float64) []byte {
	switch d {
	case ir.F8E4M3FN:
		return append(b, half.F64ToE4M3(v))
	case ir.F8E5M2:
		return append(b, half.F64ToE5M2(v))
	case ir.F16:
		return binary.LittleEndian.AppendUint16(b, half.F64ToF16(v))
	case ir.BF16:
		return binary.LittleEndian.AppendUint16(b, half.F64ToBF16(v))
	case ir.F32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
	case ir.F64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	panic(fmt.Sprintf("elements: %v is no float", d))
}

// AppendNumber appends a number, an int64 or a float64, converted to a dtype.
func AppendNumber(b []byte, d ir.DType, number any) []byte {
	f, isFloat := number.(float64)
	i, _ := number.(int64)
	if d.IsIntegral() {
		if isFloat {
			i = ir.FloatToInt(d, f)
		}
		return AppendInt(b, d, i)
	}
	if !isFloat {
		f = ir.IntToFloat(d, i)
	}
	return AppendFloat(b, d, f)
}

// Int returns element i of an integer dtype or bool. A bool that is neither 0 nor
// 1 is to be seen.
func Int(d ir.DType, data []byte, i int) int64 {
	data = data[i*d.Size():]
	var v int64
	switch d.Size() {
	case 1:
		v = int64(data[0])
	case 2:
		v = int64(binary.LittleEndian.Uint16(data))
	case 4:
		v = int64(binary.LittleEndian.Uint32(data))
	default:
		v = int64(binary.LittleEndian.Uint64(data))
	}
	if d == ir.Bool {
		return v
	}
	return ir.WrapInt(d, v)
}

// Float returns element i of a floating dtype; it panics for others.
func Float(d ir.DType, data []byte, i int) float64 {
	data = data[i*d.Size():]
	switch d {
	case ir.F8E4M3FN:
		return float64(half.E4M3ToF32(data[0]))
	case ir.F8E5M2:
		return float64(half.E5M2ToF32(data[0]))
	case ir.F16:
		return float64(half.F16ToF32(binary.LittleEndian.Uint16(data)))
	case ir.BF16:
		return float64(half.BF16ToF32(binary.LittleEndian.Uint16(data)))
	case ir.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	case ir.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(data))
	}
	panic(fmt.Sprintf("elements: %v is no float", d))
}

// Number returns element i of data as a float64, whatever its dtype; of complex numbers the parts are counted.
func Number(d ir.DType, data []byte, i int) float64 {
	switch {
	case d.IsComplex():
		return Float(d.Part(), data, i)
	case d.IsFloatOrF8():
		return Float(d, data, i)
	}
	return float64(Int(d, data, i))
}

// EncodeInts returns elements of an integer dtype or bool, wrapped around.
func EncodeInts(d ir.DType, vals []int64) []byte { return encode(d, vals, AppendInt) }

// EncodeFloats returns elements of a floating dtype, rounded.
func EncodeFloats(d ir.DType, vals []float64) []byte { return encode(d, vals, AppendFloat) }

// DecodeInts returns all elements of an integer dtype or bool, as Int does.
func DecodeInts(d ir.DType, data []byte) []int64 { return decode(d, data, Int) }

// DecodeFloats returns all elements of a floating dtype.
func DecodeFloats(d ir.DType, data []byte) []float64 { return decode(d, data, Float) }

func encode[T any](d ir.DType, vals []T, one func([]byte, ir.DType, T) []byte) []byte {
	b := make([]byte, 0, len(vals)*d.Size())
	for _, v := range vals {
		b = one(b, d, v)
	}
	return b
}

func decode[T any](d ir.DType, data []byte, one func(ir.DType, []byte, int) T) []T {
	out := make([]T, len(data)/d.Size())
	for i := range out {
		out[i] = one(d, data, i)
	}
	return out
}
