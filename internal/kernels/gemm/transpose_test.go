package gemm

import "testing"

func TestTranspose(t *testing.T) {
	sizes := []int{0, 1, 3, 7, 8, 16, 31, 33, 50, 64, 255, 256, 257, 399, 512, 520}
	t.Run("f32", func(t *testing.T) { each(t, &kernels32, func(t *testing.T) { allSizes[float32](t, sizes) }) })
	t.Run("f64", func(t *testing.T) { each(t, &kernels64, func(t *testing.T) { allSizes[float64](t, sizes) }) })
}

func allSizes[A Float](t *testing.T, sizes []int) {
	for _, rows := range sizes {
		for _, cols := range sizes {
			testTranspose[A](t, rows, cols)
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
