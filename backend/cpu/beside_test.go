package cpu

import (
	"fmt"
	"testing"
)

// TestShortLines holds reductions of short lines, which are computed beside each other, against the
// reference backend: of operands in order, spread over many lines, reversed and transposed.
func TestShortLines(t *testing.T) {
	for _, c := range []struct {
		dtype string
		n     int
	}{{"u8", 3}, {"u8", 9}, {"bf16", 2}, {"bf16", 11}, {"f16", 40}, {"i64", 5}, {"f64", 4}, {"f64", 12}, {"f32", 2}, {"f32", 3}, {"f32", 7}, {"f32", 24}} {
		const a, b = 9, 71
		var x, y []float64
		for i := range a * b * c.n {
			x = append(x, float64(i*7%101)/16)
		}
		for i := range b * c.n {
			y = append(y, float64(i*11%31)/8)
		}
		text := fmt.Sprintf(`program @p {
			%%x = parameter "x" : %[1]s[%[2]d,%[3]d,%[4]d]
			%%y = parameter "y" : %[1]s[%[3]d,%[4]d]
			%%s = parameter "s" : %[1]s[%[3]d,%[2]d]
			%%f = cast(%%x, dtype=f32)
			%%g = cast(%%y, dtype=f32)
			%%d = sub(reshape(slice(%%g, 0, 0, 9), [9,1,%[4]d]), reshape(%%g, [1,%[3]d,%[4]d]))
			return sum(%%x, [-1]), amax(%%x, [-1]), argmin(%%x, -1), sum(mul(%%d, %%d), [-1]), softmax(%%f, -1), any(gt(%%x, 5), [-1]),
				sum(flip(%%x, [2]), [2]), sum(permute(%%x, [1,0,2]), [2]), mul(%%x, amin(%%x, [2], true)), sum(add(reshape(%%y, [%[3]d,1,%[4]d]), reshape(%%s, [%[3]d,%[2]d,1])), [-1])
		}`, c.dtype, a, b, c.n)
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			for _, be := range []*Backend{New(), NewPortable()} {
				sameAsRef(t, be, text, 1e-2, x, y, x[:a*b])
			}
		})
	}
}
