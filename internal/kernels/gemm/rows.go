package gemm

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
)

// AddRow sets x += y, and with relu what is then negative to 0. y is as long as x
// at least.
func AddRow[A Float](x, y []A, relu bool) {
	y = y[:len(x)]
	done := 0
	if kn := kernelsFor[A]()[0]; kn.finish != nil {
		done = finishRow(kn, x, y, nil, relu)
	}
	addTo(x[done:], y[done:])
	if relu {
		kernels.Relu(x[done:], x[done:])
	}
}

// ScaleRows multiplies the rows of the given length that x consists of by y,
// which is as long or shorter; what a row has beyond y stays.
func ScaleRows[A Float](x, y []A, row int) {
	if len(x) < row || len(y) == 0 {
		return
	}
	if kn := kernelsFor[A]()[0]; kn.times != nil && len(y) == row && row%(kn.nr/2) == 0 {
		kn.times(unsafe.SliceData(x), unsafe.SliceData(y), len(x)/row, row)
		return
	}
	for ; len(x) >= row; x = x[row:] {
		d := x[:len(y)]
		for i, f := range y {
			d[i] *= f
		}
	}
}
