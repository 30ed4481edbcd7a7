package gemm

import "testing"

func TestTranspose(t *testing.T) {
	for _, rows := range []int{0, 1, 3, 8, 16, 31, 32, 50} {
		for _, cols := range []int{0, 1, 4, 7, 16, 33, 64} {
			testTranspose[float32](t, rows, cols)
			testTranspose[float64](t, rows, cols)
		}
	}
}

func testTranspose[A Float](t *testing.T, rows, cols int) {
	t.Helper()
	const gap = 3
	src, dst := make([]A, rows*(cols+gap)), make([]A, cols*(rows+gap))
	for i := range src {
		src[i] = A(i + 1)
	}
	Transpose(dst, rows+gap, src, cols+gap, rows, cols)
	for j := range cols {
		for i := range rows + gap {
			want := A(0) // between the rows
			if i < rows {
				want = src[i*(cols+gap)+j]
			}
			if got := dst[j*(rows+gap)+i]; got != want {
				t.Fatalf("%d×%d: element (%d, %d) is %v, want %v", rows, cols, j, i, got, want)
			}
		}
	}
}
