package gemm

import (
	"fmt"
	"math"
	"testing"
)

// TestRows compares the loops over rows of all kernels with their formulas.
func TestRows(t *testing.T) {
	t.Run("f32", testRows[float32])
	t.Run("f64", testRows[float64])
}

func testRows[A Float](t *testing.T) {
	list := kernelsFor[A]()
	saved := list[0]
	defer func() { list[0] = saved }()
	for _, kn := range append([]*kernel[A](nil), list...) {
		list[0] = kn
		for _, n := range []int{0, 1, 7, 16, 32, 33, 64, 75} {
			t.Run(fmt.Sprint(kn.name, "/", n), func(t *testing.T) {
				for _, relu := range []bool{false, true} {
					checkAddRow[A](t, n, relu)
				}
				for _, short := range []int{0, 3} {
					checkScaleRows[A](t, n, max(n-short, 0))
				}
			})
		}
	}
}

func checkAddRow[A Float](t *testing.T, n int, relu bool) {
	x, y, want := make([]A, n), make([]A, n), make([]A, n)
	for i := range x {
		x[i], y[i] = A(i%7)-3, A(i%5)-2
		if i == n/2 {
			x[i] = A(math.NaN())
		}
		if want[i] = x[i] + y[i]; relu && want[i] < 0 {
			want[i] = 0
		}
	}
	AddRow(x, y, relu)
	for i, v := range x {
		if v != want[i] && (v == v || want[i] == want[i]) {
			t.Errorf("relu %v: sum %d is %v, want %v", relu, i, v, want[i])
		}
	}
}

func checkScaleRows[A Float](t *testing.T, row, n int) {
	x, y := make([]A, 3*row), make([]A, n)
	for i := range x {
		x[i] = A(i%11) - 5
	}
	for i := range y {
		y[i] = A(i + 1)
	}
	ScaleRows(x, y, row)
	for i, v := range x {
		want := A(i%11) - 5
		if i%row < n {
			want *= A(i%row + 1)
		}
		if v != want {
			t.Errorf("%d of %d: element %d is %v, want %v", n, row, i, v, want)
		}
	}
}
