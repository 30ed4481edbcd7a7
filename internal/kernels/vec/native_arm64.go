//go:build arm64 && !noasm

package vec

// step is how many elements the loops for NEON do at a time.
const step = 8

// addNEON adds n elements, a positive multiple of step, as do the other functions here.
//
//go:noescape
func addNEON(dst, x, y *float32, n int)

//go:noescape
func scaleNEON(dst, src *float32, f float32, n int)

//go:noescape
func mostNEON(best, x *float32, n int)

//go:noescape
func halvesNEON(even, odd, x *float32, n int)

func addNative(dst, x, y []float32) int {
	n := len(dst) / step * step
	if n > 0 {
		addNEON(&dst[0], &x[0], &y[0], n)
	}
	return n
}

func scaleNative(dst, src []float32, f float32) int {
	n := len(src) / step * step
	if n > 0 {
		scaleNEON(&dst[:n][0], &src[0], f, n)
	}
	return n
}

func mostNative(best, x []float32) int {
	n := len(best) / step * step
	if n > 0 {
		mostNEON(&best[0], &x[0], n)
	}
	return n
}

func halvesNative(even, odd, x []float32) int {
	n := len(x) / step * step
	if n > 0 {
		halvesNEON(&even[:n/2][0], &odd[:n/2][0], &x[0], n)
	}
	return n / 2
}

// The loops in Go do all elements of the rest.

func softmaxNative[A Float](_ []A, _, _, _ int, _ A, _, _, _ []A) int { return 0 }

func softmaxGradientNative[A Float](_, _ []A, _, _, _ int, _ A, _, _ []A) int { return 0 }

func dotNative[A Float](_, _ []A) (sum A, n int) { return 0, 0 }

func lstmNative(_, _, _ []float32, _, _ int) bool { return false }

func gruNative(_, _, _ []float32, _, _, _, _ int) bool { return false }

func greaterNative(_ []float32, _ []int32, _ []float32, _ int32) int { return 0 }

func greaterAlongNative(_ []float32, _ []int32, _ []float32, _, _ int32) int { return 0 }

func sumBagsNative[T float32 | BF16 | F16](_ []float32, _ []T, _ int, _, _ []int64) (bags, cols int) {
	return 1, 0
}

func greatestNative[T Number]() (l greatestLoops) { return l }
