package cpu

import (
	"bytes"
	"math"
	"testing"

	"github.com/loris-ml/loris/backend"
	host "github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

// What is reduced by one kernel has to be one run of elements in all that the
// kernel reads and writes. Here some operand lies so that the dimensions that are
// reduced can't be merged.
func TestReducedDimensionsApart(t *testing.T) {
	for name, text := range map[string]string{
		"written into a part of cat": `program @p {
			%x = parameter "x" : f32[3,6]
			%0 = mul(%x, sum(%x))
			return cat([%0, neg(%0)], 1)
		}`,
		"written into a padded result": `program @p {
			%x = parameter "x" : f32[3,6]
			return constant_pad_nd(mul(%x, sum(%x)), [1,2], 0.0)
		}`,
		"read from a slice": `program @p {
			%x = parameter "x" : f32[3,6]
			%0 = slice(%x, 1, 1, 5, 1)
			return mul(%0, sum(%0))
		}`,
		"read in two orders": `program @p {
			%x = parameter "x" : f32[6,6]
			%0 = add(%x, permute(%x, [1,0]))
			return mul(%0, sum(%0))
		}`,
		"with ops on the sum": `program @p {
			%x = parameter "x" : f32[2,3,6]
			%0 = tanh(%x)
			%1 = mul(tanh(sum(%0)), 3.0)
			%2 = log1p(abs(%0))
			return mul(%1, cat([%2, neg(%2)], 1))
		}`,
		"two of three dimensions": `program @p {
			%x = parameter "x" : f32[4,3,6]
			%0 = slice(%x, 2, 0, 4, 1)
			return mul(%0, amax(%0, [1,2], true))
		}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			m := mustCompile(t, b, text)
			shape := m.spec.Inputs[0].Shape
			values := make([]float64, shape.Numel())
			for i := range values {
				values[i] = float64(i+1) * 0.25
			}
			data := host.EncodeFloats(ir.F32, values)
			want, err := ref.Eval(m.program, [][]byte{data})
			if err != nil {
				t.Fatal(err)
			}
			in, err := b.Upload(ctx, shape, Device, data)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Release()
			outs, err := m.Run(ctx, []backend.Buffer{in}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer release(outs)
			raw, err := outs[0].Bytes(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got, exact := host.DecodeFloats(ir.F32, raw), host.DecodeFloats(ir.F32, want[0])
			for i := range exact {
				if math.Abs(got[i]-exact[i]) > 1e-5*math.Abs(exact[i]) {
					t.Fatalf("element %d is %v, want %v", i, got[i], exact[i])
				}
			}
		})
	}
}

// TestFlushDenormals multiplies subnormal numbers: machine code gives zero for them
// where it is asked to, and only there; what is moved stays as it is.
func TestFlushDenormals(t *testing.T) {
	p := program(t, `program @p {
		%x = parameter "x" : f32[2]
		return mul(%x, 2.0), cat([%x, %x], 0)
	}`)
	for name, b := range map[string]*Backend{"default": New(), "portable": NewPortable()} {
		x := uploaded(t, b, p, [][]byte{host.EncodeFloats(ir.F32, []float64{0x1p-140, 3})})
		for _, flush := range []bool{false, true} {
			want := []float64{0x1p-139, 6}
			if flush && b.engine != nil {
				want[0] = 0
			}
			got := outputs(t, mustPlan(t, b, p, backend.CompileOptions{FlushDenormals: flush}), x)
			if !bytes.Equal(got[0], host.EncodeFloats(ir.F32, want)) {
				t.Errorf("%s, flush %v: %x, want %v", name, flush, got[0], want)
			}
			if !bytes.Equal(got[1], host.EncodeFloats(ir.F32, []float64{0x1p-140, 3, 0x1p-140, 3})) {
				t.Errorf("%s, flush %v: moved to %x", name, flush, got[1])
			}
		}
		release(x)
	}
}

// TestPowOfSubnormals compares powers with PyTorch 2.15's; Go's logarithm takes subnormal numbers for
// larger ones.
func TestPowOfSubnormals(t *testing.T) {
	p := program(t, `program @p {
		%x = parameter "x" : f64[7]
		%y = parameter "y" : f64[7]
		return pow(%x, %y)
	}`)
	x := []float64{5e-324, 1e-310, 2e-308, 1e-310, 1e-310, -1e-310, 1e-310}
	y := []float64{0.3, 0.9, 0.3, 1, -0.5, 3, -1.02}
	want := []float64{1.018908996936868e-97, 9.999999999999815e-280, 4.901274189394937e-93, 1e-310, 1.0000000000000016e+155, 0, math.Inf(1)}
	for name, b := range map[string]*Backend{"default": New(), "portable": NewPortable()} {
		in := uploaded(t, b, p, [][]byte{host.EncodeFloats(ir.F64, x), host.EncodeFloats(ir.F64, y)})
		got := host.DecodeFloats(ir.F64, outputs(t, mustPlan(t, b, p, backend.CompileOptions{}), in)[0])
		for i, w := range want {
			if got[i] != w && !(math.Abs(got[i]/w-1) < 1e-13) {
				t.Errorf("%s: %v to the power %v is %v, want %v", name, x[i], y[i], got[i], w)
			}
		}
		release(in)
	}
}
