//go:build amd64 && !noasm

package vec

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
)

//go:generate env GOWORK=off go run -C _asm . -out ../vec_amd64.s -stubs ../stubs_amd64.go -pkg vec

// level is what the processor has; tests lower it.
var level = detect()

const (
	none = iota
	avx2
	avx512
)

func detect() int {
	switch {
	case isa.AVX512():
		return avx512
	case isa.AVX2():
		return avx2
	}
	return none
}

// lanes returns the elements of a vector; 0 stands for the loops in Go.
func lanes() int {
	switch level {
	case avx512:
		return 16
	case avx2:
		return 8
	}
	return 0
}

// lstmNative is LSTM if rows are one vector.
func lstmNative(gates, h, c []float32, units, step int) bool {
	if units != lanes() || len(c) == 0 {
		return false
	}
	rows := len(c) / units
	_, _ = gates[4*len(c)-1], h[(rows-1)*step+units-1]
	if level == avx512 {
		lstmAVX512(&gates[0], &h[0], &c[0], rows, 4*step)
	} else {
		lstmAVX2(&gates[0], &h[0], &c[0], rows, 4*step)
	}
	return true
}

// gruNative is GRU if rows are one vector.
func gruNative(gates, from, to []float32, units, rows, fromStep, step int) bool {
	if units != lanes() || rows == 0 {
		return false
	}
	_, _, _ = gates[4*units*rows-1], from[(rows-1)*fromStep+units-1], to[(rows-1)*step+units-1]
	if level == avx512 {
		gruAVX512(&gates[0], &from[0], &to[0], rows, 4*fromStep, 4*step)
	} else {
		gruAVX2(&gates[0], &from[0], &to[0], rows, 4*fromStep, 4*step)
	}
	return true
}

// scaleNative multiplies whole vectors and returns how many elements.
func scaleNative(dst, src []float32, f float32) int {
	n := whole(len(src))
	if n == 0 {
		return 0
	}
	_ = dst[n-1]
	if level == avx512 {
		scaleAVX512(&dst[0], &src[0], n, f)
	} else {
		scaleAVX2(&dst[0], &src[0], n, f)
	}
	return n
}

// addNative adds whole vectors and returns how many elements.
func addNative(dst, x, y []float32) int {
	n := whole(len(dst))
	if n == 0 {
		return 0
	}
	if level == avx512 {
		addAVX512(&dst[0], &x[0], &y[0], n)
	} else {
		addAVX2(&dst[0], &x[0], &y[0], n)
	}
	return n
}

// greaterNative does whole vectors and returns how many elements.
func greaterNative(best []float32, at []int32, x []float32, index int32) int {
	if level == none {
		return 0
	}
	n, all := 0, len(best)&^7
	if level == avx512 && all >= 16 {
		n = all &^ 15
		greaterAVX512(&best[0], &at[0], &x[0], n, index)
	}
	if n < all { // rows are often of 8 or 24 channels
		greaterAVX2(&best[n], &at[n], &x[n], all-n, index)
	}
	return all
}

// greaterAlongNative does whole vectors and returns how many elements.
func greaterAlongNative(best []float32, at []int32, x []float32, index, step int32) int {
	n := whole(len(best))
	if n == 0 {
		return 0
	}
	if level == avx512 {
		greaterAlongAVX512(&best[0], &at[0], &x[0], n, index, step)
	} else {
		greaterAlongAVX2(&best[0], &at[0], &x[0], n, index, step)
	}
	return n
}

// mostNative does whole vectors and returns how many elements.
func mostNative(best, x []float32) int {
	n := whole(len(best))
	if n == 0 {
		return 0
	}
	if level == avx512 {
		mostAVX512(&best[0], &x[0], n)
	} else {
		mostAVX2(&best[0], &x[0], n)
	}
	return n
}

// halvesNative splits whole vectors and returns how many pairs.
func halvesNative(even, odd, x []float32) int {
	n := len(x) / 2 &^ 7
	if level == none || n == 0 {
		return 0
	}
	_, _ = even[n-1], odd[n-1]
	halvesAVX2(&even[0], &odd[0], &x[0], n)
	return n
}

// rowsMost bounds the elements that a call sums: some microseconds, in which the runtime can't stop the
// goroutine.
const rowsMost = 64 << 10

// sumBagsNative does columns of whole vectors of some bags, and returns how many bags and columns those were: of one
// bag or more, and of no columns where the first bag has too many rows for a call.
func sumBagsNative[T float32 | BF16 | F16](dst []float32, rows []T, width int, index, bounds []int64) (bags, cols int) {
	cols = whole(width)
	for bags+1 < len(bounds) && (int(bounds[bags+1]-bounds[0])+bags+1)*cols <= rowsMost {
		bags++
	}
	if bags > 0 {
		sumColumns(dst[:bags*width], rows, index, bounds[:bags+1], cols, width)
		return bags, cols
	}
	each := whole(rowsMost / max(int(bounds[1]-bounds[0]), 1))
	if each == 0 {
		return 1, 0
	}
	for c := 0; c < cols; c += each {
		sumColumns(dst[c:width], rows[min(c, len(rows)):], index, bounds[:2], min(each, cols-c), width)
	}
	return 1, cols
}

// sumColumns sets the first columns of the rows of dst to the sums of bags, without a bound.
func sumColumns[T float32 | BF16 | F16](dst []float32, rows []T, index, bounds []int64, cols, width int) {
	bags := len(bounds) - 1
	if cols == 0 {
		return
	}
	_ = index[:bounds[bags]]
	to, from, at, ends, wide := &dst[0], unsafe.Pointer(unsafe.SliceData(rows)), unsafe.SliceData(index), &bounds[0], level == avx512
	switch any(T(0)).(type) {
	case float32:
		if wide {
			sumBagsF32AVX512(to, (*float32)(from), at, ends, bags, cols, width, width)
		} else {
			sumBagsF32AVX2(to, (*float32)(from), at, ends, bags, cols, width, width)
		}
	case BF16:
		if wide {
			sumBagsBF16AVX512(to, (*uint16)(from), at, ends, bags, cols, width, width)
		} else {
			sumBagsBF16AVX2(to, (*uint16)(from), at, ends, bags, cols, width, width)
		}
	case F16:
		if wide {
			sumBagsF16AVX512(to, (*uint16)(from), at, ends, bags, cols, width, width)
		} else {
			sumBagsF16AVX2(to, (*uint16)(from), at, ends, bags, cols, width, width)
		}
	}
}

func whole(n int) int {
	if level == none {
		return 0
	}
	return n &^ (lanes() - 1)
}

// greatestNative returns the loops for a type other than float32.
func greatestNative[T Number]() (l greatestLoops) {
	if level == none {
		return l
	}
	var x T
	switch any(x).(type) {
	case float64:
		return greatestLoops{greaterDoublesAVX2, mostDoublesAVX2, 4}
	case int64:
		return greatestLoops{greaterQuadsAVX2, mostQuadsAVX2, 4}
	case int32:
		return greatestLoops{greaterLongsAVX2, mostLongsAVX2, 8}
	}
	return l
}
