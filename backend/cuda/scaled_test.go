//go:build cuda && linux && cgo

package cuda

import (
	"math"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/ref"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/elements"
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
		p, err := graph.Parse("program @p {" + params + c.body + "\n}")
		check(t, err)
		var raw [][]byte
		var in []backend.Buffer
		for i, q := range p.Params {
			d := q.Shape.DType()
			var data []byte
			for k := range q.Shape.Numel() {
				if v := 3 * math.Sin(float64(1+k*(i+2))); d.IsFloatOrF8() {
					data = elements.AppendFloat(data, d, v)
				} else {
					data = elements.AppendInt(data, d, int64(40*v))
				}
			}
			raw = append(raw, data)
			in = append(in, uploaded(t, b, q.Shape, data))
		}
		own, _ := graph.Optimize(p, graph.Options{NoRules: true})
		want, err := ref.Eval(own, raw)
		check(t, err)
		m, err := b.Compile(t.Context(), p, gpu(0), backend.CompileOptions{})
		check(t, err)
		f.Calls()
		outs, err := m.Run(t.Context(), in, nil)
		check(t, err)
		s := outs[0].Shape()
		tolerance := map[int]float64{1: 0.13, 2: 0.008, 4: 1e-5}[s.DType().Size()]
		got, err := outs[0].Bytes(t.Context())
		check(t, err)
		for k := range s.Numel() {
			var x, y float64
			if s.DType().IsFloatOrF8() {
				x, y = elements.Float(s.DType(), got, k), elements.Float(s.DType(), want[0], k)
			} else {
				x, y = float64(elements.Int(s.DType(), got, k)), float64(elements.Int(s.DType(), want[0], k))
			}
			if !(math.Abs(x-y) <= tolerance*math.Max(math.Abs(y), 1)) {
				t.Errorf("%s: element %d is %v, want %v", c.name, k, x, y)
			}
		}
		if n := calls(f, "cublasLtMatmul", "cuLaunchKernel"); n[0] != c.products || n[1] != c.launches {
			t.Errorf("%s: %d products and %d launches, want %d and %d", c.name, n[0], n[1], c.products, c.launches)
		}
		check(t, m.Close())
	}
}
