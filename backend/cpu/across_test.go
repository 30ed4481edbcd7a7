package cpu

import (
	"fmt"
	"testing"
)

// TestLinesAcross holds reductions of lines that lie across the memory of an operand, beside each other where no
// result depends on the order, against the reference backend, and products of integers with a row or a column.
func TestLinesAcross(t *testing.T) {
	for _, dtype := range []string{"u8", "i8", "i16", "i32", "i64", "bool", "bf16", "f32"} {
		for _, n := range []int{2, 16, 37, 131} {
			const k = 211
			var x, y []float64
			for i := range n * k {
				x = append(x, float64(i*7%23))
			}
			for i := range k {
				y = append(y, float64(i*11%13))
			}
			cast := dtype
			if dtype == "bool" {
				cast = "i16"
			}
			text := fmt.Sprintf(`program @p {
				%%x = parameter "x" : %[1]s[%[3]d,%[2]d]
				%%y = parameter "y" : %[1]s[%[3]d]
				%%t = permute(%%x, [1,0])
				%%c = cast(%%t, dtype=%[4]s)
				%%d = cast(%%y, dtype=%[4]s)
				%%m = amax(%%c, [1])
				return sum(%%t, [1]), %%m, amin(mul(%%c, %%d), [1], true), any(eq(%%c, %%d), [1]), argmax(%%c, 1), matmul(%%c, %%d), matmul(%%d, cast(%%x, dtype=%[4]s)),
					sub(%%c, reshape(%%m, [%[2]d,1])), sum(reshape(%%t, [%[2]d,1,%[3]d]), [2]), all(ge(%%c, 0), [1])
			}`, dtype, n, k, cast)
			t.Run(fmt.Sprint(dtype, n), func(t *testing.T) {
				for _, be := range []*Backend{New(), NewPortable()} {
					sameAsRef(t, be, text, 1e-2, x, y)
				}
			})
		}
	}
}
