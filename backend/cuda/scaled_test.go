//go:build cuda && linux && cgo

package cuda

import (
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestScaledProducts computes products of one-byte elements by the library, which
// sees scales, bias and layout as they are, and counts what they take.
func TestScaledProducts(t *testing.T) {
	f, b := newFake(t, 1)
	const params = `
		%x = parameter "x" : f8e4m3fn[3,32]
		%y = parameter "y" : f8e5m2[16,32]
		%a = parameter "a" : f32[3,1]
		%b = parameter "b" : f32[1,16]
		%c = parameter "c" : f32[]
		%h = parameter "h" : f16[16]
		%i = parameter "i" : i8[3,32]
		%j = parameter "j" : i8[16,32]
		%t = permute(%y, [1,0])
		%u = permute(%j, [1,0])
		`
	for _, c := range []struct {
		name, body         string
		products, launches int
	}{
		{"by number", "return _scaled_mm(%x, %t, %c, %c, out_dtype=f32)", 1, 0},
		{"by number, with a bias", "return _scaled_mm(%x, %t, %c, %c, %h, out_dtype=f16)", 1, 0},
		{"by row", "return _scaled_mm(%x, %t, %a, %b, out_dtype=bf16, use_fast_accum=true)", 1, 0},
		{"by row, with a bias", "return _scaled_mm(%x, %t, %a, %b, %h, out_dtype=f16)", 1, 0},
		{"to 8 bits", "return _scaled_mm(%x, %t, %c, %c, %h, %c)", 1, 1},
		{"an odd number of columns", "return _scaled_mm(%x, slice(%t, 1, 0, 5, 1), %c, %c, out_dtype=f32)", 1, 2},
		{"bytes", "return _int_mm(%i, %u)", 1, 0},
		{"bytes, an odd number of columns", "return _int_mm(%i, slice(%u, 1, 0, 5, 1))", 0, 2},
	} {
		checkProducts(t, f, b, c.name, params+c.body, c.products, c.launches, func(d ir.DType, got, want float64) bool {
			tolerance := map[int]float64{1: 0.13, 2: 0.008, 4: 1e-5}[d.Size()]
			return math.Abs(got-want) <= tolerance*math.Max(math.Abs(want), 1)
		})
	}
}
