// Package half converts between float32 and the narrow floating-point formats
// of tensors: IEEE binary16 (f16), bfloat16 (bf16), and the two OCP 8-bit
// formats, E4M3FN and E5M2.
//
// Widening is exact. Narrowing rounds to nearest, ties to even, and follows
// PyTorch in the cases IEEE 754 leaves open:
//
//   - f16, bf16 and E5M2 overflow to infinity;
//   - E4M3FN has no infinity, and everything above its largest finite value,
//     448, infinity included, saturates to that value with its sign;
//   - a NaN stays a NaN. f16 and bf16 keep its sign and the top of its payload
//     and set the quiet bit, as the conversion instructions of processors do;
//     the 8-bit formats keep its sign only;
//   - a float64 is first rounded to float32, so that the result may differ
//     from a single rounding by one unit in the last place.
//
// The slice forms convert len(src) elements, panic when dst is shorter and
// allocate nothing.
package half

import "math"

const (
	f32Sign = 0x8000_0000 // sign bit of a float32
	f32Inf  = 0x7f80_0000 // bits of +Inf; greater magnitudes are NaNs
	f32Bias = 127
)

// F16ToF32 returns the value of the binary16 pattern h. A signalling NaN comes
// back quiet.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	mag := uint32(h & 0x7fff)
	switch {
	case mag < 0x0400: // zero or subnormal, in units of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(mag)*0x1p-24))
	case mag < 0x7c00:
		return math.Float32frombits(sign | (mag<<13 + (f32Bias-15)<<23))
	case mag == 0x7c00:
		return math.Float32frombits(sign | f32Inf)
	default:
		return math.Float32frombits(sign | 0x7fc0_0000 | mag<<13)
	}
}

// F32ToF16 returns the binary16 pattern nearest to f.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &^= f32Sign
	switch {
	case b > f32Inf:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= (f32Bias+16)<<23: // 65536 and above, Inf
		return sign | 0x7c00
	case b < (f32Bias-14)<<23:
		return sign | uint16(roundToUnit(b, 0.5))
	default:
		return sign | uint16(roundMantissa(b, 13)-(f32Bias-15)<<10)
	}
}

// F64ToF16 returns the binary16 pattern nearest to float32(f).
func F64ToF16(f float64) uint16 { return F32ToF16(float32(f)) }

// BF16ToF32 returns the value of the bfloat16 pattern h; its bits are the upper
// half of the result's, also when it is a NaN.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 returns the bfloat16 pattern nearest to f.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&^f32Sign > f32Inf {
		return uint16(b>>16) | 0x0040
	}
	// The exponent widths agree, so that subnormals need no case of their own,
	// and a carry out of the largest exponent gives infinity.
	return uint16(roundMantissa(b, 16))
}

// F64ToBF16 returns the bfloat16 pattern nearest to float32(f).
func F64ToBF16(f float64) uint16 { return F32ToBF16(float32(f)) }

// E4M3ToF32 returns the value of the E4M3FN pattern h: one sign bit, four of
// exponent with bias 7, three of mantissa, no infinities, and NaN at 0x7f and
// 0xff only.
func E4M3ToF32(h uint8) float32 {
	sign := uint32(h&0x80) << 24
	mag := uint32(h & 0x7f)
	switch {
	case mag < 0x08: // zero or subnormal, in units of 2^-9
		return math.Float32frombits(sign | math.Float32bits(float32(mag)*0x1p-9))
	case mag < 0x7f:
		return math.Float32frombits(sign | (mag<<20 + (f32Bias-7)<<23))
	default:
		return math.Float32frombits(sign | 0x7fc0_0000)
	}
}

// F32ToE4M3 returns the E4M3FN pattern nearest to f, saturating at ±448.
func F32ToE4M3(f float32) uint8 {
	b := math.Float32bits(f)
	sign := uint8(b >> 24 & 0x80)
	b &^= f32Sign
	switch {
	case b > f32Inf:
		return sign | 0x7f
	case b < (f32Bias-6)<<23:
		return sign | uint8(roundToUnit(b, 0x1p14))
	default:
		return sign | uint8(min(roundMantissa(b, 20)-(f32Bias-7)<<3, 0x7e))
	}
}

// F64ToE4M3 returns the E4M3FN pattern nearest to float32(f), saturating at
// ±448.
func F64ToE4M3(f float64) uint8 { return F32ToE4M3(float32(f)) }

// E5M2ToF32 returns the value of the E5M2 pattern h, which is the upper half of
// the binary16 pattern of the same value. A signalling NaN comes back quiet.
func E5M2ToF32(h uint8) float32 { return F16ToF32(uint16(h) << 8) }

// F32ToE5M2 returns the E5M2 pattern nearest to f.
func F32ToE5M2(f float32) uint8 {
	b := math.Float32bits(f)
	sign := uint8(b >> 24 & 0x80)
	b &^= f32Sign
	switch {
	case b > f32Inf:
		return sign | 0x7f
	case b >= (f32Bias+16)<<23: // 65536 and above, Inf
		return sign | 0x7c
	case b < (f32Bias-14)<<23:
		return sign | uint8(roundToUnit(b, 0x1p7))
	default:
		return sign | uint8(roundMantissa(b, 21)-(f32Bias-15)<<2)
	}
}

// F64ToE5M2 returns the E5M2 pattern nearest to float32(f).
func F64ToE5M2(f float64) uint8 { return F32ToE5M2(float32(f)) }

// roundMantissa drops the low bits of a float32 pattern, rounding to nearest
// even. A carry moves into the exponent, which is the right result.
func roundMantissa(b uint32, drop uint) uint32 {
	half := uint32(1)<<(drop-1) - 1
	return (b + half + b>>drop&1) >> drop
}

// roundToUnit returns the magnitude b, a float32 pattern, in units of the
// spacing of the floats at magic, a power of two far above b: the addition
// rounds to that spacing, to nearest even, and leaves the count in the low bits.
func roundToUnit(b uint32, magic float32) uint32 {
	return math.Float32bits(math.Float32frombits(b)+magic) - math.Float32bits(magic)
}
