//go:build (!amd64 && !arm64) || noasm

package vec

// The loops in Go do all elements.

func softmaxNative[A Float](_ []A, _, _, _ int, _ A, _, _, _ []A) int { return 0 }

func softmaxGradientNative[A Float](_, _ []A, _, _, _ int, _ A, _, _ []A) int { return 0 }

func dotNative[A Float](_, _ []A) (sum A, n int) { return 0, 0 }

func lstmNative(_, _, _ []float32, _, _ int) bool { return false }

func gruNative(_, _, _ []float32, _, _, _, _ int) bool { return false }

func scaleNative(_, _ []float32, _ float32) int { return 0 }

func greaterNative(_ []float32, _ []int32, _ []float32, _ int32) int { return 0 }

func addNative(_, _, _ []float32) int { return 0 }

func greaterAlongNative(_ []float32, _ []int32, _ []float32, _, _ int32) int { return 0 }

func mostNative(_, _ []float32) int { return 0 }

func halvesNative(_, _, _ []float32) int { return 0 }

func sumBagsNative[T float32 | BF16 | F16](_ []float32, _ []T, _ int, _, _ []int64) (bags, cols int) {
	return 1, 0
}

func greatestNative[T Number]() (l greatestLoops) { return l }
