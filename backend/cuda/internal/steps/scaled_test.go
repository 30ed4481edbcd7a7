package steps

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// TestScaledWithoutLibrary runs products of 8-bit floats and of bytes by kernels.
func TestScaledWithoutLibrary(t *testing.T) {
	runPrograms(t, map[string]string{
		"by number": `program @p {
			%x = parameter "x" : f8e4m3fn[5,16]
			%y = parameter "y" : f8e5m2[7,16]
			%a = parameter "a" : f32[1,1]
			%b = parameter "b" : f32[]
			%v = parameter "v" : bf16[7]
			%r = parameter "r" : f32[1]
			%t = permute(%y, [1,0])
			return _scaled_mm(%x, %t, %a, %b, %v, None, bf16), _scaled_mm(%x, %t, %a, %b, None, %r)
		}`,
		"by row": `program @p {
			%x = parameter "x" : f8e5m2[5,16]
			%y = parameter "y" : f8e5m2[16,3]
			%a = parameter "a" : f32[5,1]
			%b = parameter "b" : f32[1,3]
			return _scaled_mm(%x, %y, %a, %b, out_dtype=f32)
		}`,
		"no depth, one element, nothing": `program @p {
			%x = parameter "x" : f8e5m2[2,0]
			%y = parameter "y" : f8e5m2[0,3]
			%w = parameter "w" : f8e5m2[1,2]
			%z = parameter "z" : f8e5m2[2,1]
			%a = parameter "a" : f32[]
			%v = parameter "v" : f32[3]
			return _scaled_mm(%x, %y, %a, %a, %v, out_dtype=f32), _scaled_mm(%w, %z, %a, %a, out_dtype=f32), _scaled_mm(permute(%y, [1,0]), permute(%x, [1,0]), %a, %a),
				_scaled_mm(permute(%y, [1,0]), slice(permute(%x, [1,0]), 1, 0, 0, 1), %a, %a)
		}`,
		"integers": `program @p {
			%x = parameter "x" : i8[5,16]
			%y = parameter "y" : i8[7,16]
			%u = parameter "u" : u8[5,16]
			%t = permute(%y, [1,0])
			return _int_mm(%x, %t), _int_mm(%u, %t)
		}`,
	})
}

// library is a stand-in that takes products, but those that it refuses.
type library struct {
	refuse func(p *Product) bool
	asked  []string
}

func (l *library) product(p *Product) (int, any, bool) {
	lies := func(m Matrix) string {
		if m.Trans {
			return fmt.Sprintf("columns %d", m.LD)
		}
		return fmt.Sprintf("rows %d", m.LD)
	}
	l.asked = append(l.asked, fmt.Sprintf("%v×%v=%v %s, %s scales=%d bias=%v", p.Left, p.Right, p.DType, lies(p.A), lies(p.B), p.Scales, p.Bias))
	return 0, nil, l.refuse == nil || !l.refuse(p)
}

// TestScaledByLibrary says what the library is asked for, and what is left to do.
func TestScaledByLibrary(t *testing.T) {
	const f8 = "f8e4m3fn"
	for _, c := range []struct {
		name, x, y, scales, body string
		old                      bool // a device without 8-bit products
		refuse                   func(p *Product) bool
		asked                    []string
		kernels                  int // steps that are no products
	}{
		{"as it lies", f8 + "[8,32]", "f8e5m2[48,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, out_dtype=f32)", false, nil,
			[]string{"f8e4m3fn×f8e5m2=f32 rows 32, columns 32 scales=1 bias=false"}, 0},
		{"a bias of the result's dtype", f8 + "[8,32]", f8 + "[48,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, %v, out_dtype=bf16)", false, nil,
			[]string{"f8e4m3fn×f8e4m3fn=bf16 rows 32, columns 32 scales=1 bias=true"}, 0},
		{"another bias", f8 + "[8,32]", f8 + "[48,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, %v, out_dtype=f16)", false, nil,
			[]string{"f8e4m3fn×f8e4m3fn=f32 rows 32, columns 32 scales=0 bias=false"}, 1},
		{"columns that lie apart", f8 + "[32,48]", "f8e5m2[8,32]", "", "_scaled_mm(%y, %x, %a, %b, out_dtype=f16)", false, nil,
			[]string{"f8e5m2×f8e4m3fn=f16 rows 32, columns 32 scales=1 bias=false"}, 1},
		{"parts", f8 + "[16,64]", f8 + "[48,64]", "", "_scaled_mm(slice(%x, 1, 16, 48, 1), permute(slice(%y, 1, 32, 64, 1), [1,0]), %a, %b, out_dtype=f16)", false, nil,
			[]string{"f8e4m3fn×f8e4m3fn=f16 rows 64, columns 64 scales=1 bias=false"}, 0},
		{"parts that begin anywhere", f8 + "[16,64]", f8 + "[48,64]", "", "_scaled_mm(slice(%x, 1, 1, 33, 1), permute(slice(%y, 1, 32, 64, 1), [1,0]), %a, %b, out_dtype=f16)", false, nil,
			[]string{"f8e4m3fn×f8e4m3fn=f16 rows 32, columns 64 scales=1 bias=false"}, 1},
		{"a narrow result", f8 + "[8,32]", f8 + "[48,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b)", false, nil,
			[]string{"f8e4m3fn×f8e4m3fn=f32 rows 32, columns 32 scales=0 bias=false"}, 1},
		{"by row", f8 + "[8,32]", f8 + "[48,32]", "rows", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, out_dtype=bf16)", false, nil,
			[]string{"f8e4m3fn×f8e4m3fn=bf16 rows 32, columns 32 scales=2 bias=false"}, 0},
		{"by row, of an older library", f8 + "[8,32]", f8 + "[48,32]", "rows", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, out_dtype=bf16)", false,
			func(p *Product) bool { return p.Scales == ScaledRows },
			[]string{"f8e4m3fn×f8e4m3fn=bf16 rows 32, columns 32 scales=2 bias=false", "f8e4m3fn×f8e4m3fn=f32 rows 32, columns 32 scales=0 bias=false"}, 1},
		{"an older device", f8 + "[8,32]", f8 + "[48,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, out_dtype=bf16)", true, nil,
			[]string{"f16×f16=f32 rows 32, columns 32 scales=0 bias=false"}, 2},
		{"two of 5 bits", "f8e5m2[8,32]", "f8e5m2[48,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, out_dtype=bf16)", false, nil,
			[]string{"f16×f16=f32 rows 32, columns 32 scales=0 bias=false"}, 2},
		{"odd columns", f8 + "[8,32]", f8 + "[40,32]", "", "_scaled_mm(%x, permute(%y, [1,0]), %a, %b, out_dtype=bf16)", false, nil,
			[]string{"f16×f16=f32 rows 32, columns 32 scales=0 bias=false"}, 2},
		{"bytes", "i8[8,32]", "i8[48,32]", "", "_int_mm(%x, permute(%y, [1,0]))", true, nil,
			[]string{"i8×i8=i32 rows 32, columns 32 scales=0 bias=false"}, 0},
		{"bytes that lie apart", "i8[8,32]", "i8[32,48]", "", "_int_mm(%x, %y)", true, nil,
			[]string{"i8×i8=i32 rows 32, columns 32 scales=0 bias=false"}, 1},
		{"bytes by kernels", "u8[8,32]", "i8[32,48]", "", "_int_mm(%x, %y)", true, nil, nil, 2},
	} {
		scales := `%a = parameter "a" : f32[]
			%b = parameter "b" : f32[1]`
		if c.scales != "" {
			scales = `%a = parameter "a" : f32[8,1]
			%b = parameter "b" : f32[1,48]`
		}
		p, err := graph.Parse(fmt.Sprintf(`program @p {
			%%x = parameter "x" : %s
			%%y = parameter "y" : %s
			%s
			%%v = parameter "v" : bf16[48]
			return %s
		}`, c.x, c.y, scales, c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		lib := &library{refuse: c.refuse}
		s, err := Lower(p, Options{Limits: limits, Product: lib.product, F8: !c.old})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		kernels := 0
		for i := range s.Steps {
			if s.Steps[i].Product == nil {
				kernels++
			}
		}
		if got, want := strings.Join(lib.asked, "\n"), strings.Join(c.asked, "\n"); got != want || kernels != c.kernels {
			t.Errorf("%s: asked for\n%s\nand %d kernels, want\n%s\nand %d", c.name, got, kernels, want, c.kernels)
		}
		if got := s.Outputs[0].DType(); got != p.Shape(p.Returns[0]).DType() || strings.HasPrefix(c.body, "_int") && got != ir.I32 {
			t.Errorf("%s: the result is %v", c.name, got)
		}
	}
}
