package cpu

import (
	"fmt"
	"math"
	"testing"
)

// TestLinesWhole holds reductions of lines of few elements and what is computed of their results against the reference,
// for lines that adjoin, that lie beside each other, that are broadcast and windows that overlap, and for results that
// are written in another order than operands are read in.
func TestLinesWhole(t *testing.T) {
	for _, d := range []string{"f32", "f64", "f16", "bf16", "i32", "u8"} {
		for n := 1; n <= 9; n++ {
			var x []float64
			for i := range 75 * n * 5 {
				x = append(x, float64(i*37%101)/8-float64(i%3))
			}
			if d == "u8" {
				for i := range x {
					x[i] = math.Abs(x[i])
				}
			}
			text := fmt.Sprintf(`program @p {
				%%flat = parameter "x" : %[1]s[%[2]d]
				%%x = reshape(%%flat, [75,5,%[3]d])
				%%m = permute(%%x, [0,2,1])
				%%wide = cast(%%x, f32)
				%%a = reshape(slice(%%flat, 0, 0, %[4]d, 1), [70,1,%[3]d])
				%%d = sub(cast(%%a, f32), reshape(slice(%%wide, 0, 0, 14, 1), [70,%[3]d]))
				%%p = mul(cast(%%x, f32), 0.5)
				return sum(%%x, [2]), amax(%%x, [2]), sum(mul(%%d, %%d), [2]), softmax(%%wide, 2), amin(%%m, [1]), argmax(%%x, 2),
					sum(unfold(%%flat, 0, %[3]d, 2), [1]), amax(unfold(%%flat, 0, %[3]d, 7), [1]), sum(%%wide, [1]), softmax(%%wide, 1),
					permute(%%p, [2,0,1]), permute(exp(mul(%%p, 0.1)), [0,2,1]), sub(%%wide, amax(%%wide, [2], true)), any(gt(%%x, 3), [2])
			}`, d, 75*n*5, n, 70*n)
			t.Run(fmt.Sprint(d, n), func(t *testing.T) {
				for _, b := range []*Backend{New(), NewPortable()} {
					sameAsRef(t, b, text, 4e-3, x)
				}
			})
		}
	}
}

// TestPermutedBack holds what is computed of permuted values and permuted back against the reference, after the rules that
// leave the order out.
func TestPermutedBack(t *testing.T) {
	var x, w []float64
	for i := range 3 * 20 * 5 * 7 {
		x = append(x, float64(i*37%101)/16-2)
	}
	for i := range 20 {
		w = append(w, float64(i%7)-3)
	}
	b := New()
	sameAsRef(t, b, `program @p {
		%x = parameter "x" : f32[3,20,5,7]
		%w = parameter "w" : f32[20]
		%t = permute(%x, [0,2,3,1])
		%h = cast(%t, f16)
		return permute(layer_norm(%t, [20], %w, %w), [0,3,1,2]), permute(softmax(%t, 3), [0,3,1,2]),
			permute(mul(%h, cast(sum(%t, [1,3], true), f16)), [0,3,1,2]), permute(add(%t, mul(%w, %w)), [0,3,1,2]),
			permute(prod(%t, [3], true), [0,3,1,2]), permute(add(reshape(%w, [20,1]), %w), [1,0]), permute(mul(%t, 2.0), [3,0,1,2])
	}`, 4e-3, x, w)
}
