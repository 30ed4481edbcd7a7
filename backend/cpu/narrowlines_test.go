package cpu

import (
	"fmt"
	"math"
	"testing"
)

// Scans of lines of 16-bit floats, which are widened a few lines at a time, give what the same lines as f32 give, rounded;
// so do lines that lie beside each other. NaNs, infinities, zeros of both signs and subnormals are among the elements.
func TestNarrowLines(t *testing.T) {
	b := New()
	for _, dims := range []string{"0,3", "3,0", "1,1", "7,5", "4,1100", "9,700", "2,70000", "5,3,40"} {
		for _, dtype := range []string{"bf16", "f16"} {
			for _, dim := range []int{0, 1} {
				for _, call := range []string{"%s = cumsum(%s, %d)", "%s = cumprod(%s, %d)", "%s, %%w = cummax(%s, %d)", "%s, %%w = cummin(%s, %d)"} {
					testNarrowLines(t, b, dims, dtype, call, dim, "y")
					if call[4] == '%' {
						testNarrowLines(t, b, dims, dtype, call, dim, "w")
					}
				}
			}
		}
	}
}

func testNarrowLines(t *testing.T, b *Backend, dims, dtype, call string, dim int, output string) {
	t.Helper()
	run := func(scanned string) []float32 {
		return runOptimized(t, b, program(t, fmt.Sprintf(`program @scan { %%in = parameter "in" : f32[%s]
			%%0 = mul(%%in, 3.0)
			%%1 = reciprocal(floor(%%0))
			%%2 = where(gt(%%in, 0.9), mul(%%in, 1e-40), %%1)
			%%3 = where(gt(%%in, -0.99), %%2, sqrt(%%in))
			%%n = cast(%%3, dtype=%s)
			%%x = cast(%%n, dtype=f32)
			%s
			%%z = cast(cast(%%%s, dtype=%s), dtype=f32)
			return %%z }`, dims, dtype, fmt.Sprintf(call, "%y", scanned, dim), output, dtype)), b.Supports)
	}
	want, got := run("%x"), run("%n")
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s of %s[%s]: element %d of %%%s is %v, want %v", call, dtype, dims, i, output, got[i], want[i])
		}
	}
}
