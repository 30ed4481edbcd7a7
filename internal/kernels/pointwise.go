package kernels

import (
	"math"

	"github.com/loris-ml/loris/internal/strided"
)

// The kernels of this file set dst[i] from element i of each operand. Operands
// have at least len(dst) elements and may be dst itself.

// Add sets dst = a + b; integers wrap around.
func Add[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// Sub sets dst = a - b; integers wrap around.
func Sub[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

// Mul sets dst = a * b; integers wrap around.
func Mul[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Div sets dst = a / b.
func Div[T Float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// Max sets dst to the greater of a and b; NaN if either is.
func Max[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if y > x || y != y {
			x = y
		}
		dst[i] = x
	}
}

// Min sets dst to the smaller of a and b; NaN if either is.
func Min[T Number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i], b[i]
		if y < x || y != y {
			x = y
		}
		dst[i] = x
	}
}

// Neg sets dst = -a; integers wrap around.
func Neg[T Number](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = -a[i]
	}
}

// AbsFloat sets dst = |a|, clearing the sign of zeros and NaNs too.
func AbsFloat[T Float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Abs(float64(a[i])))
	}
}

// AbsInt sets dst = |a|; the smallest integer stays itself.
func AbsInt[T Integer](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		x := a[i]
		if x < 0 {
			x = -x
		}
		dst[i] = x
	}
}

// Relu sets dst = a where a is positive or NaN and 0 elsewhere.
func Relu[T Number](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		x := a[i]
		if x < 0 {
			x = 0
		}
		dst[i] = x
	}
}

// Sqrt sets dst to the correctly rounded square root of a.
func Sqrt[T Float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(math.Sqrt(float64(a[i])))
	}
}

// Reciprocal sets dst = 1 / a.
func Reciprocal[T Float](dst, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = 1 / a[i]
	}
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Eq sets dst to 1 where a == b and 0 elsewhere.
func Eq[T Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = flag(a[i] == b[i])
	}
}

// Ne sets dst to 1 where a != b and 0 elsewhere.
func Ne[T Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = flag(a[i] != b[i])
	}
}

// Lt sets dst to 1 where a < b and 0 elsewhere.
func Lt[T Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = flag(a[i] < b[i])
	}
}

// Le sets dst to 1 where a <= b and 0 elsewhere.
func Le[T Number](dst []uint8, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = flag(a[i] <= b[i])
	}
}

// Where sets dst to a where cond is not 0 and to b elsewhere.
func Where[T strided.Bits](dst []T, cond []uint8, a, b []T) {
	cond, a, b = cond[:len(dst)], a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x := b[i]
		if cond[i] != 0 {
			x = a[i]
		}
		dst[i] = x
	}
}

// And sets dst = a & b.
func And[T Integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] & b[i]
	}
}

// Or sets dst = a | b.
func Or[T Integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] | b[i]
	}
}

// Xor sets dst = a ^ b.
func Xor[T Integer](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
}

// Not sets dst to 1 where a is 0 and to 0 elsewhere.
func Not[T Number](dst []uint8, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = flag(a[i] == 0)
	}
}

// Convert sets dst = a in another type: the nearest float, or the integer
// modulo the width of T.
func Convert[T, S Number](dst []T, a []S) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = T(a[i])
	}
}

// Truncate sets dst to a without its fraction. NaN and numbers beyond the range of T convert as in
// PyTorch on x86: to int64, or to int32 if T is signed and narrower than int64, which gives the
// least value if that is too narrow as well; T keeps the low bits.
func Truncate[T Integer, S Float](dst []T, a []S) {
	a = a[:len(dst)]
	least, _ := Limits[T]()
	if least == 0 || int64(least) == math.MinInt64 {
		for i := range dst {
			x, y := a[i], int64(math.MinInt64)
			if x >= -0x1p63 && x < 0x1p63 {
				y = int64(x)
			}
			dst[i] = T(y)
		}
		return
	}
	for i := range dst {
		x, y := float64(a[i]), int64(math.MinInt32)
		if x > math.MinInt32-1 && x < math.MaxInt32+1 {
			y = int64(x)
		}
		dst[i] = T(y)
	}
}

// NonZero sets dst to 1 where a is not 0 (NaN is not) and to 0 elsewhere.
func NonZero[T Number](dst []uint8, a []T) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = flag(a[i] != 0)
	}
}

// Map1 sets dst = f(a), computed in W and converted to R.
func Map1[R, T, W Number](dst []R, a []T, f func(W) W) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = R(f(W(a[i])))
	}
}

// Map2 sets dst = f(a, b), computed in W and converted to R.
func Map2[R, T, W Number](dst []R, a, b []T, f func(x, y W) W) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = R(f(W(a[i]), W(b[i])))
	}
}

// Map3 sets dst = f(a, b, c), computed in W and converted to R.
func Map3[R, T, W Number](dst []R, a, b, c []T, f func(x, y, z W) W) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	for i := range dst {
		dst[i] = R(f(W(a[i]), W(b[i]), W(c[i])))
	}
}
