package cpu

import (
	"fmt"
	"testing"
)

// Kernels with operands whose columns lie apart, since their rows adjoin or every second is one, or in the other order: whole,
// a part of a larger matrix, several dimensions, in sizes around those of units and of the least that
// is transposed.
func TestApartOperands(t *testing.T) {
	type sizes struct{ rows, cols int }
	for name, text := range map[string]string{
		"pointwise": `program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%y = permute(%%x, [1,0])
			return cast(add(%%y, %%y), f32), flip(%%y, [1])
		}`,
		"rows": `program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%y = cast(permute(%%x, [1,0]), f32)
			return softmax(%%y, -1), amax(%%y, [1]), argmax(%%y, 1), softmax(%%y, 0), amin(%%y, [0])
		}`,
		"parts": `program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%y = permute(slice(slice(%%x, 0, 1, 9223372036854775807, 1), 1, 1, 9223372036854775807, 1), [1,0])
			return neg(cast(%%y, f32)), add(%%y, slice(%%y, 0, 0, 1, 1))
		}`,
		"seconds": `program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%e = slice(%%x, 1, 0, 9223372036854775807, 2)
			%%o = slice(%%x, 1, 1, 9223372036854775807, 2)
			return neg(cast(%%e, f32)), add(%%o, %%o), sum(%%e, [1]), sum(%%e, [0]), amax(%%o, [0]), softmax(cast(%%o, f32), -1), stack([add(%%x, %%x), %%x], 2), stack([neg(cast(%%x, f32)), cast(%%x, f32)], 2)
		}`,
		"seconds beside sums": `program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%n = neg(cast(%%x, f32))
			return stack([%%n, relu(%%n)], 2), sum(%%n, [0]), amax(%%n, [0])
		}`,
		"turned": `program @p {
			%%x = parameter "x" : %s[%d,%d]
			%%y = flip(%%x, [1])
			%%z = flip(slice(%%x, 1, 1, 9223372036854775807, 1), [1])
			return neg(cast(%%y, f32)), add(%%x, flip(%%x, [0,1])), add(%%x, flip(%%x, [0])), sum(add(%%z, %%z), [1]), sum(%%z, [0]), amax(%%z, [0]), softmax(cast(%%y, f32), -1)
		}`,
	} {
		for _, s := range []sizes{{8, 8}, {9, 7}, {1, 3000}, {300, 70}, {4100, 9}, {303, 1001}} {
			for _, d := range []string{"f32", "f64", "bf16", "u8"} {
				t.Run(fmt.Sprint(name, s, d), func(t *testing.T) {
					program := fmt.Sprintf(text, d, s.rows, s.cols)
					values := hashed(s.rows * s.cols)
					sameAsRef(t, New(), program, 1e-6, values)
				})
			}
		}
	}
	t.Run("channels last", func(t *testing.T) {
		sameAsRef(t, New(), `program @p {
			%x = parameter "x" : f32[2,5,7,24]
			%y = parameter "y" : f32[24,1,1]
			%z = permute(%x, [0,3,1,2])
			return relu(add(%z, %y)), sum(%z, [1]), sum(%z, [2,3])
		}`, 1e-6, hashed(2*5*7*24), hashed(24))
	})
}
