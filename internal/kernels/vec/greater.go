package vec

// Greater replaces elements of best by those of x that are greater, that are
// NaN, or that are the first (at is negative), and sets at to index there.
func Greater(best []float32, at []int32, x []float32, index int32) {
	at, x = at[:len(best)], x[:len(best)]
	n := greaterNative(best, at, x, index)
	for i := n; i < len(best); i++ {
		if v := x[i]; v > best[i] || v != v || at[i] < 0 {
			best[i], at[i] = v, index
		}
	}
}

// GreaterAlong is Greater of elements whose indices are index, index+step, ….
func GreaterAlong(best []float32, at []int32, x []float32, index, step int32) {
	at, x = at[:len(best)], x[:len(best)]
	for i := greaterAlongNative(best, at, x, index, step); i < len(best); i++ {
		if v := x[i]; v > best[i] || v != v || at[i] < 0 {
			best[i], at[i] = v, index+int32(i)*step
		}
	}
}

// Most replaces elements of best by those of x that are greater or NaN.
func Most(best, x []float32) {
	x = x[:len(best)]
	for i := mostNative(best, x); i < len(best); i++ {
		if v := x[i]; v > best[i] || v != v {
			best[i] = v
		}
	}
}

// Halves sets even and odd to the elements of x at even and at odd places.
func Halves(even, odd, x []float32) {
	for i := 2 * halvesNative(even, odd, x); i < len(x); i++ {
		if i%2 == 0 {
			even[i/2] = x[i]
		} else {
			odd[i/2] = x[i]
		}
	}
}
