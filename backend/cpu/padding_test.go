package cpu

import (
	"bytes"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ref"
)

// Of large results that are padded only the edges are filled.
func TestPadsLargeResults(t *testing.T) {
	for name, text := range map[string]string{
		"rows": `program @p {
			%x = parameter "x" : f32[300,600]
			return constant_pad_nd(%x, [0,0,2,1], 0.5)
		}`,
		"columns": `program @p {
			%x = parameter "x" : f32[300,600]
			return constant_pad_nd(%x, [1,3], 0.5)
		}`,
		"both, of what is computed": `program @p {
			%x = parameter "x" : f32[300,600]
			return constant_pad_nd(neg(%x), [1,0,2,1], 0.5)
		}`,
		"a dimension in the middle, one that is cropped": `program @p {
			%x = parameter "x" : f32[7,50,600]
			return constant_pad_nd(%x, [-1,1,4,0,1,-1], 0.5)
		}`,
		"cropped only": `program @p {
			%x = parameter "x" : f32[300,600]
			return constant_pad_nd(%x, [-1,-2], 0.5)
		}`,
		"a part of a concatenation": `program @p {
			%x = parameter "x" : f32[300,600]
			return cat([%x, constant_pad_nd(%x, [1,1], 0.5), neg(%x)], 1)
		}`,
		"an operand that is permuted": `program @p {
			%x = parameter "x" : f32[600,300]
			return constant_pad_nd(permute(%x, [1,0]), [1,1,1,1], 0.5)
		}`,
		"bytes": `program @p {
			%x = parameter "x" : i8[700,900]
			return constant_pad_nd(%x, [3,2,1,1], 5)
		}`,
		"the value is a parameter": `program @p {
			%x = parameter "x" : f64[300,600]
			%v = parameter "v" : f64[]
			return constant_pad_nd(%x, [1,2,0,1], %v)
		}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := program(t, text)
			data := make([][]byte, len(p.Params))
			for i, q := range p.Params {
				data[i] = make([]byte, q.Shape.Bytes())
				for j := range data[i] {
					data[i][j] = byte(j % 61)
				}
			}
			want, err := ref.Eval(p, data)
			if err != nil {
				t.Fatal(err)
			}
			for name, b := range map[string]*Backend{"default": New(), "portable": NewPortable()} {
				m, err := compile(b, p, backend.CompileOptions{})
				if err != nil {
					t.Fatal(err)
				}
				outs, err := m.Run(ctx, uploaded(t, b, p, data), nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := outs[0].Bytes(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want[0]) {
					t.Errorf("%s: not what the reference has", name)
				}
				release(outs)
			}
		})
	}
}
