package vec

import "unsafe"

// Number is the types of elements that have an order here.
type Number interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64
}

// greatestLoops are the processor's loops for a type of elements, nil where it has none, and how many
// elements they do at a time.
type greatestLoops struct {
	greater func(best *byte, at *int32, x *byte, n int, index, step int32)
	most    func(best, x *byte, n int)
	lanes   int
}

// GreaterOf replaces elements of best by those of x that are greater, that are NaN, or that are the first
// (at is negative), and sets at there to index, index+step, … by their places.
func GreaterOf[T Number](best []T, at []int32, x []T, index, step int32) {
	at, x = at[:len(best)], x[:len(best)]
	i := 0
	if l := greatestNative[T](); l.greater != nil {
		if i = len(best) / l.lanes * l.lanes; i > 0 {
			l.greater((*byte)(unsafe.Pointer(&best[0])), &at[0], (*byte)(unsafe.Pointer(&x[0])), i, index, step)
		}
	}
	for ; i < len(best); i++ {
		if v := x[i]; v > best[i] || v != v || at[i] < 0 {
			best[i], at[i] = v, index+int32(i)*step
		}
	}
}

// GreaterEach is GreaterOf of groups of n elements, as many as best has: those of x lie xStep apart, and those of group
// g have the index index+g·step.
func GreaterEach[T Number](best []T, at []int32, x []T, n, xStep int, index, step int32) {
	l := greatestNative[T]()
	whole := l.greater != nil && n > 0 && n%l.lanes == 0
	for from := 0; len(best) > 0; from += xStep {
		group, places, row := best[:n], at[:n], x[from:][:n]
		if whole {
			l.greater((*byte)(unsafe.Pointer(&group[0])), &places[0], (*byte)(unsafe.Pointer(&row[0])), n, index, 0)
		} else {
			GreaterOf(group, places, row, index, 0)
		}
		best, at, index = best[n:], at[n:], index+step
	}
}

// MostOf replaces elements of best by those of x that are greater or NaN.
func MostOf[T Number](best, x []T) {
	x = x[:len(best)]
	i := 0
	if l := greatestNative[T](); l.most != nil {
		if i = len(best) / l.lanes * l.lanes; i > 0 {
			l.most((*byte)(unsafe.Pointer(&best[0])), (*byte)(unsafe.Pointer(&x[0])), i)
		}
	}
	for ; i < len(best); i++ {
		if v := x[i]; v > best[i] || v != v {
			best[i] = v
		}
	}
}
