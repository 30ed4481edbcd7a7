package fft

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProducts holds products of numbers to their definition, by each kind of kernels, and what is behind them to
// what it was.
func TestProducts(t *testing.T) {
	testProducts[float32](t, 1e-6)
	testProducts[float64](t, 1e-15)
}

func testProducts[T Float](t *testing.T, eps float64) {
	row := rowFloats[T]()
	for i, k := range available[T]() {
		for _, rows := range []int{1, 2, 5} {
			for _, step := range []int{0, 2, row, row + 6} {
				rng := rand.New(rand.NewPCG(uint64(rows), uint64(step)))
				a, w, dst := random[T](rng, rows*row), random[T](rng, (rows-1)*step+row), make([]T, rows*row+1)
				dst[rows*row] = 7
				k.products(dst[:rows*row], a, w, row, step)
				for j := 0; j < rows*row; j += 2 {
					f := w[j/row*step+j%row:]
					want := complex(float64(a[j]), float64(a[j+1])) * complex(float64(f[0]), float64(f[1]))
					if !(math.Abs(float64(dst[j])-real(want)) <= eps) || !(math.Abs(float64(dst[j+1])-imag(want)) <= eps) {
						t.Fatalf("%T, kernels %d, %d rows, factors %d apart: number %d is %v, want %v", eps, i, rows, step, j/2, dst[j:j+2], want)
					}
				}
				if dst[rows*row] != 7 {
					t.Errorf("kernels %d write behind %d rows", i, rows)
				}
			}
		}
	}
}
