package cpu

import (
	"fmt"
	"testing"
)

// TestSmallProducts holds batches of small products, and of one matrix with many vectors, against the
// reference backend.
func TestSmallProducts(t *testing.T) {
	for _, c := range []string{
		"f32[70,3,3] f32[70,3,3]", "f64[70,3,5] f64[70,5,4]", "f32[9,17,4] f32[9,4,3]", "f32[7,1,3,3] f32[7,31,3,1]", "f32[3,3] f32[40,3,1]",
		"f64[5,1,4,3] f64[5,6,3,1]", "f32[2,16,16] f32[2,16,16]", "bf16[6,3,3] bf16[6,3,3]", "f32[1,2,3] f32[8,3,2]", "f32[3,1,4,2] f32[1,5,2,1]",
	} {
		t.Run(c, func(t *testing.T) {
			x, y := "", ""
			if n, err := fmt.Sscan(c, &x, &y); n != 2 {
				t.Fatal(err)
			}
			text := fmt.Sprintf(`program @p {
				%%x = parameter "x" : %s
				%%y = parameter "y" : %s
				return matmul(%%x, %%y), matmul(neg(%%x), %%y)
			}`, x, y)
			p := program(t, text)
			var values [][]float64
			for k, q := range p.Params {
				var v []float64
				for i := range q.Shape.Numel() {
					v = append(v, float64((i*7+k)%23)/8-1)
				}
				values = append(values, v)
			}
			for _, b := range []*Backend{New(), NewPortable()} {
				sameAsRef(t, b, text, 1e-2, values...)
			}
		})
	}
}

// TestSmallProductsOfTransposed holds those whose operands or results are transposed, and those that are added to a
// matrix each, against the reference backend.
func TestSmallProductsOfTransposed(t *testing.T) {
	for _, s := range [][4]int{{70, 2, 2, 2}, {9, 3, 5, 4}, {7, 16, 16, 16}, {5, 17, 3, 4}, {5, 3, 17, 4}, {6, 4, 1, 3}, {6, 1, 4, 3}, {1, 3, 3, 3}, {3, 17, 17, 17}, {4, 40, 33, 20}, {2, 5, 60, 50}, {3, 50, 40, 60}} {
		batch, m, n, k := s[0], s[1], s[2], s[3]
		for _, d := range []string{"f32", "f64"} {
			text := fmt.Sprintf(`program @p {
				%%x = parameter "x" : %[1]s[%[2]d,%[3]d,%[5]d]
				%%y = parameter "y" : %[1]s[%[2]d,%[4]d,%[5]d]
				%%z = parameter "z" : %[1]s[%[2]d,%[3]d,%[4]d]
				%%t = permute(%%y, [0,2,1])
				%%w = permute(%%x, [0,2,1])
				%%p = matmul(%%x, %%t)
				return %%p, permute(matmul(neg(%%x), %%t), [0,2,1]), add(matmul(abs(%%x), %%t), %%z),
					permute(add(matmul(sin(%%x), %%t), %%z), [0,2,1]), permute(matmul(%%y, %%w), [0,2,1]), sum(matmul(%%y, %%w), [0])
			}`, d, batch, m, n, k)
			var values [][]float64
			for i, size := range []int{m * k, n * k, m * n} {
				var v []float64
				for j := range batch * size {
					v = append(v, float64((j*7+i)%23)/8-1)
				}
				values = append(values, v)
			}
			t.Run(fmt.Sprint(d, s), func(t *testing.T) {
				for _, b := range []*Backend{New(), NewPortable()} {
					sameAsRef(t, b, text, 1e-4, values...)
				}
			})
		}
	}
}
