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
