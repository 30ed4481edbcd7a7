package cpu

import (
	"fmt"
	"math"
	"testing"
)

// The kernels that choose elements give what their decompositions, which sort, give: of equal
// elements, NaNs and zeros of both signs, too.
func TestSelection(t *testing.T) {
	b := New()
	for _, dims := range []string{"7", "5,1", "300,3", "3,900", "2,40,3", "1,2000"} {
		for _, dim := range []int{0, -1} {
			for _, dtype := range []string{"f32", "f64", "bf16", "i64", "i32", "u8"} {
				for _, call := range []string{
					"topk(%x, 1, DIM)", "topk(%x, 1, DIM, largest=false)", "kthvalue(%x, 1, DIM)", "median(%x, DIM)", "median(%x, DIM, keepdim=true)",
					"nanmedian(%x, DIM)", "median(%x)", "nanmedian(%x)",
				} {
					testSelection(t, b, dims, dtype, replaceDim(call, dim))
				}
			}
		}
	}
	for _, dtype := range []string{"f32", "f64", "bf16", "i64", "u8"} {
		testSelection(t, b, "0", dtype, "median(%x)")
	}
	for _, call := range []string{
		"topk(%x, 0, 1)", "topk(%x, 16, 1)", "topk(%x, 16, 1, largest=false)", "topk(%x, 200, 1)", "topk(%x, 900, 1)", "topk(%x, 3, 0)",
		"kthvalue(%x, 900, 1)", "kthvalue(%x, 77, 1)", "kthvalue(%x, 2, 0)",
	} {
		for _, dtype := range []string{"f32", "f64", "bf16", "i64", "u8"} {
			testSelection(t, b, "3,900", dtype, call)
		}
	}
}

func replaceDim(call string, dim int) string {
	for i := range len(call) - 2 {
		if call[i:i+3] == "DIM" {
			return call[:i] + fmt.Sprint(dim) + call[i+3:]
		}
	}
	return call
}

func testSelection(t *testing.T, b *Backend, dims, dtype, call string) {
	t.Helper()
	for _, output := range []string{"%values", "%indices"} {
		// Few different elements; the roots of negative ones are NaN.
		p := program(t, fmt.Sprintf(`program @selection { %%in = parameter "in" : f32[%s]
			%%0 = mul(%%in, %%in)
			%%1 = sub(%%0, %%in)
			%%2 = mul(%%1, %%1)
			%%3 = sqrt(%%in)
			%%4 = ceil(%%3)
			%%5 = floor(%%2)
			%%6 = sub(%%5, %%4)
			%%x = cast(%s, dtype=%s)
			%%values, %%indices = %s
			%%y = cast(%s, dtype=f32)
			return %%y }`, dims, map[bool]string{true: "%6", false: "%5"}[dtype[0] != 'i' && dtype[0] != 'u'], dtype, call, output))
		want, got := runOptimized(t, b, p, nil), runOptimized(t, b, p, b.Supports)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
				t.Fatalf("%s of %s[%s]: element %d of %s is %v, want %v", call, dtype, dims, i, output, got[i], want[i])
			}
		}
	}
}
