package cpu

import (
	"fmt"
	"testing"
)

// TestTransposedReads holds what reads transposed operands where they lie, in part or as a whole,
// against the same of operands in order.
func TestTransposedReads(t *testing.T) {
	const rows, cols = 77, 85
	for _, d := range []string{"u8", "f16", "f32", "f64", "i64"} {
		var x, index []float64
		for i := range rows * cols {
			x = append(x, float64(i*7%101)/4)
		}
		for i := range 40 {
			index = append(index, float64(i*i%(rows*cols)))
		}
		text := fmt.Sprintf(`program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%i = parameter "i" : i64[40]
			%%t = permute(%%x, [1,0])
			%%flat = reshape(%%t, [%d])
			%%both = reshape(neg(%%t), [%[4]d])
			return diagonal(%%t, 3), diagonal(%%t, -2), index_select(%%flat, 0, %%i), slice(%%flat, 0, 5, %[4]d, 13),
				slice(flip(%%flat, [0]), 0, 1, 99, 54), sum(%%t), amax(%%t), amin(mul(%%t, %%t)), slice(%%both, 0, 0, 900, 38), %%both,
				flip(%%t, [0]), flip(%%t, [1]), flip(%%t, [0,1]), flip(%%x, [0,1]), rot90(%%x), rot90(%%x, 3), repeat_interleave(%%t, 3, 1),
				repeat_interleave(%%x, 2, 1), repeat_interleave(flip(%%x, [1]), 7, 1), unfold(%%t, 1, 3, 2), unfold(%%t, 0, 5, 3)
		}`, d, rows, cols, rows*cols)
		t.Run(d, func(t *testing.T) {
			for _, b := range []*Backend{New(), NewPortable()} {
				sameAsRef(t, b, text, 1e-3, x, index)
			}
		})
	}
}
