// Package philox is the random number generator of Loris: Philox4x32-10 of
// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011).
//
// It is counter-based: a value is a pure function of seed, offset and element
// index, so that any backend can make any part of a tensor, in any order and on
// any number of threads, and all of them agree. The seed is the key. The block
// number, derived from the element index, is the low half of the counter and
// the offset is the high half, so that two offsets never share a block; give
// each random tensor of a program an offset of its own. The layout is that of
// cuRAND's curand_init(seed, subsequence=offset, 0).
//
// A block is four 32-bit words w0..w3. Element i of a stream is
//
//	bits, uint32   word i%4 of block i/4
//	uint64         words 2(i%2) (low) and 2(i%2)+1 (high) of block i/2
//	uniform f32    (uint32 element >> 8) · 2⁻²⁴
//	uniform f64    (uint64 element >> 11) · 2⁻⁵³
//	uniform, b ≤ 32 bits   (uint32 element >> (32−b)) · 2⁻ᵇ; f16 takes 11, bf16 8
//	integer below n        the upper 64 bits of (uint64 element) · n
//	normal         Box–Muller over block i/2: with u0 and u1 the f64 uniforms 2⌊i/2⌋
//	               and 2⌊i/2⌋+1, r = √(−2 ln(1−u0)) and θ = 2π·u1, the element is
//	               r·cos θ where i is even and r·sin θ where it is odd
//
// Uniform values are in [0, 1). Integers and uniforms are the same everywhere;
// normals depend on the logarithm, sine and cosine, which may differ in the last
// places between processor architectures.
//
// An index is taken modulo 2⁶⁴; a negative one is valid.
package philox

import (
	"math"
	"math/bits"
)

// The multipliers and the Weyl constants (of the golden ratio and √3 − 1) that
// the paper gives for Philox4x32.
const (
	mul0  = 0xD2511F53
	mul1  = 0xCD9E8D57
	weyl0 = 0x9E3779B9
	weyl1 = 0xBB67AE85

	rounds = 10
)

// Block is the Philox4x32-10 bijection of a counter under a key.
func Block(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for range rounds {
		hi0, lo0 := bits.Mul32(mul0, c0)
		hi1, lo1 := bits.Mul32(mul1, c2)
		c0, c1, c2, c3 = hi1^c1^k0, lo1, hi0^c3^k1, lo0
		k0 += weyl0
		k1 += weyl1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// block is block n of the stream.
func block(seed, offset, n uint64) [4]uint32 {
	return Block(
		[4]uint32{uint32(n), uint32(n >> 32), uint32(offset), uint32(offset >> 32)},
		[2]uint32{uint32(seed), uint32(seed >> 32)},
	)
}

// halves is the two uint64 elements of a block.
func halves(w [4]uint32) [2]uint64 {
	return [2]uint64{uint64(w[1])<<32 | uint64(w[0]), uint64(w[3])<<32 | uint64(w[2])}
}

func unit32(w uint32) float32 { return float32(w>>8) * 0x1p-24 }

func unit64(w uint64) float64 { return float64(w>>11) * 0x1p-53 }

// normals is the two normal elements of a block.
func normals(w [4]uint32) [2]float64 {
	h := halves(w)
	z0, z1 := boxMuller(h[0], h[1])
	return [2]float64{z0, z1}
}

// boxMuller makes two normal numbers of two words.
func boxMuller(w0, w1 uint64) (z0, z1 float64) {
	// 1−u0 is exact and never 0; the largest radius is √(−2 ln 2⁻⁵³) ≈ 8.57.
	r := math.Sqrt(-2 * math.Log(1-unit64(w0)))
	sin, cos := math.Sincos(2 * math.Pi * unit64(w1))
	return r * cos, r * sin
}

// Uint32 returns the 32-bit element at index.
func Uint32(seed, offset uint64, index int64) uint32 {
	i := uint64(index)
	return block(seed, offset, i>>2)[i&3]
}

// Uint64 returns the 64-bit element at index.
func Uint64(seed, offset uint64, index int64) uint64 {
	i := uint64(index)
	return halves(block(seed, offset, i>>1))[i&1]
}

// Float32 returns the uniform element at index, with 24 random bits.
func Float32(seed, offset uint64, index int64) float32 {
	return unit32(Uint32(seed, offset, index))
}

// Float64 returns the uniform element at index, with 53 random bits.
func Float64(seed, offset uint64, index int64) float64 {
	return unit64(Uint64(seed, offset, index))
}

// FloatBits returns the uniform element at index with the given number of random
// bits, at most 32. The dtypes narrower than float32 take as many as their
// significand has, 11 and 8: more would be rounded, at times up to 1.
func FloatBits(seed, offset uint64, index int64, n int) float64 {
	return math.Ldexp(float64(Uint32(seed, offset, index)>>(32-n)), -n)
}

// Uint64n returns the integer element at index in [0, n), for n > 0. Each value
// is off its fair share by at most n·2⁻⁶⁴.
func Uint64n(seed, offset uint64, index int64, n uint64) uint64 {
	hi, _ := bits.Mul64(Uint64(seed, offset, index), n)
	return hi
}

// NormFloat64 returns the standard normal element at index.
func NormFloat64(seed, offset uint64, index int64) float64 {
	i := uint64(index)
	return normals(block(seed, offset, i>>1))[i&1]
}

// Bits sets dst[i] to the 32-bit element at start+i.
func Bits(dst []uint32, seed, offset uint64, start int64) {
	for i := 0; i < len(dst); {
		n := uint64(start) + uint64(i)
		w := block(seed, offset, n>>2)
		i += copy(dst[i:], w[n&3:])
	}
}

// UniformBits sets dst[i] to the uniform element at start+i with the given number
// of random bits, from 1 to 24; with 24 that is the float32 uniform element.
func UniformBits(dst []float32, seed, offset uint64, start int64, n int) {
	if left := -uint64(start); left > 0 && left < uint64(len(dst)) { // to where indices, and blocks with them, begin again
		UniformBits(dst[:left], seed, offset, start, n)
		dst, start = dst[left:], 0
	}
	if s := stride(); s > 0 && len(dst) >= s/4 {
		head := min(int(-start&3), len(dst))
		uniformGo(dst[:head], seed, offset, uint64(start), n)
		dst, start = dst[head:], start+int64(head)
		whole := len(dst) / s * s
		uniformNative(dst[:whole], seed, offset, uint64(start)>>2, n)
		dst, start = dst[whole:], start+int64(whole)
		if len(dst) >= s/4 {
			var last [most]float32
			uniformNative(last[:s], seed, offset, uint64(start)>>2, n)
			copy(dst, last[:])
			return
		}
	}
	uniformGo(dst, seed, offset, uint64(start), n)
}

func uniformGo(dst []float32, seed, offset, start uint64, n int) {
	scale := float32(math.Ldexp(1, -n))
	for i := 0; i < len(dst); {
		at := start + uint64(i)
		w := block(seed, offset, at>>2)
		for _, x := range w[at&3:] {
			if i < len(dst) {
				dst[i] = float32(x>>(32-n)) * scale
				i++
			}
		}
	}
}
