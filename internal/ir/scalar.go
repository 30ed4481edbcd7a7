package ir

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/half"
)

// ErrZeroDivision is what the integer meanings of floor_divide, trunc_divide,
// remainder and fmod panic with for a divisor of 0 (ATen's ZeroDivisionError).
// A backend recovers it, or finds the zero itself, and returns from its run an
// error that wraps this one and names the op. It wraps ErrArg.
var ErrZeroDivision = fmt.Errorf("%w: integer division by zero", ErrArg)

// WrapInt reduces v to the range of an integer dtype by keeping its low bits,
// in two's complement; for Bool it returns 0 or 1 by v != 0. It panics for a
// dtype that is neither.
func WrapInt(d DType, v int64) int64 {
	switch d {
	case Bool:
		return b2i(v != 0)
	case U8:
		return int64(uint8(v))
	case I8:
		return int64(int8(v))
	case I16:
		return int64(int16(v))
	case I32:
		return int64(int32(v))
	case I64:
		return v
	}
	panic(fmt.Sprintf("ir: %v is not an integer dtype", d))
}

// RoundFloat returns the value of a floating dtype (the 8-bit ones included)
// nearest to v, ties to even. As in PyTorch, dtypes narrower than f32 are
// rounded by way of f32, and F8E4M3FN saturates while the others overflow to
// infinity. It panics for a dtype that is not floating.
func RoundFloat(d DType, v float64) float64 {
	switch d {
	case F64:
		return v
	case F32:
		return float64(float32(v))
	case F16:
		return float64(half.F16ToF32(half.F64ToF16(v)))
	case BF16:
		return float64(half.BF16ToF32(half.F64ToBF16(v)))
	case F8E4M3FN:
		return float64(half.E4M3ToF32(half.F64ToE4M3(v)))
	case F8E5M2:
		return float64(half.E5M2ToF32(half.F64ToE5M2(v)))
	}
	panic(fmt.Sprintf("ir: %v is not a floating dtype", d))
}

// FloatToInt is cast from a floating dtype to an integer one or Bool: towards
// zero, or v != 0 for Bool (a NaN is true). Values out of range and NaN, which
// C leaves open, give what PyTorch gives on x86. i8, i16 and i32 go through a
// 32-bit integer, u8 and i64 through a 64-bit one: v out of that integer's range
// or NaN becomes its least value, and the narrower dtypes keep the low bits, so
// that 300 is 44 in i8, 2³¹ is 0 in i16, -1 is 255 in u8.
func FloatToInt(d DType, v float64) int64 {
	switch d {
	case Bool:
		return b2i(v != 0)
	case U8, I64:
		if v >= -0x1p63 && v < 0x1p63 {
			return WrapInt(d, int64(v))
		}
		return WrapInt(d, math.MinInt64)
	}
	if v > math.MinInt32-1 && v < math.MaxInt32+1 {
		return WrapInt(d, int64(v))
	}
	return WrapInt(d, math.MinInt32)
}

// IntToFloat is cast from an integer dtype or Bool to a floating one: rounded
// as RoundFloat, after one rounding to f32 where the dtype is not F64.
func IntToFloat(d DType, v int64) float64 {
	if d == F64 {
		return float64(v)
	}
	return RoundFloat(d, float64(float32(v)))
}

// b2f and b2i are the results of predicates.
func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
