// Package vec holds loops over contiguous floats that the dense kernels share:
// conversion from and to the 16-bit formats, activations, and the reductions of
// softmax.
package vec

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
)

// BF16 is the bits of a bfloat16.
type BF16 uint16

// F16 is the bits of an IEEE binary16.
type F16 uint16

// Float is the types that kernels compute in.
type Float interface{ float32 | float64 }

// Element is the types of tensors that the dense kernels read and write. The
// narrow ones are computed in float32.
type Element interface {
	float32 | float64 | BF16 | F16
}

// Load converts len(src) elements to the type computed in; dst is as long at
// least. The values are exact where A is not narrower than T.
func Load[A Float, T Element](dst []A, src []T) {
	dst = dst[:len(src)]
	switch s := any(src).(type) {
	case []A:
		copy(dst, s)
	case []float32:
		convert(dst, s)
	case []float64:
		convert(dst, s)
	case []BF16:
		if d, ok := any(dst).([]float32); ok {
			half.BF16sToF32s(d, patterns(s))
			return
		}
		for i, v := range s {
			dst[i] = A(half.BF16ToF32(uint16(v)))
		}
	case []F16:
		if d, ok := any(dst).([]float32); ok {
			half.F16sToF32s(d, patterns(s))
			return
		}
		for i, v := range s {
			dst[i] = A(half.F16ToF32(uint16(v)))
		}
	}
}

// Store converts len(src) values to elements, rounding to nearest even; dst is
// as long at least.
func Store[T Element, A Float](dst []T, src []A) {
	dst = dst[:len(src)]
	switch d := any(dst).(type) {
	case []A:
		copy(d, src)
	case []float32:
		convert(d, src)
	case []float64:
		convert(d, src)
	case []BF16:
		if s, ok := any(src).([]float32); ok {
			half.F32sToBF16s(patterns(d), s)
			return
		}
		for i, v := range src {
			d[i] = BF16(half.F32ToBF16(float32(v)))
		}
	case []F16:
		if s, ok := any(src).([]float32); ok {
			half.F32sToF16s(patterns(d), s)
			return
		}
		for i, v := range src {
			d[i] = F16(half.F32ToF16(float32(v)))
		}
	}
}

// patterns returns 16-bit floats as their bits.
func patterns[T BF16 | F16](s []T) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

func convert[D, S Float](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

// Wide converts one element.
func Wide[A Float, T Element](v T) A {
	var one [1]A
	Load(one[:], unsafe.Slice(&v, 1))
	return one[0]
}

// Narrow converts one value.
func Narrow[T Element, A Float](v A) T {
	var one [1]T
	Store(one[:], unsafe.Slice(&v, 1))
	return one[0]
}
