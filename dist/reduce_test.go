package dist

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
)

// TestReduceTo holds reductions of 1 to 9 ranks against the tree as it is defined, over all dtypes, and
// checks that what is kept is left alone.
func TestReduceTo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.U8, ir.I8, ir.I16, ir.I32, ir.I64} {
		for n := 1; n <= 9; n++ {
			for _, how := range []string{"sum", "max", "min", "mean"} {
				floating := slices.Contains([]ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16}, d)
				if how == "mean" && !floating {
					continue
				}
				elements := 37
				if d.Size() == 2 {
					elements += narrowRun
				}
				values := make([][]float64, n)
				parts := make([][]byte, n)
				for i := range parts {
					values[i] = make([]float64, elements)
					parts[i] = aligned(elements * d.Size())
					for k := range values[i] {
						values[i][k] = float64(r.IntN(10))
						if floating {
							values[i][k] = float64(half.BF16ToF32(half.F32ToBF16(float32(r.NormFloat64())))) // exact in f32, f64 and bf16
							if d == ir.F16 {
								values[i][k] = float64(half.F16ToF32(half.F64ToF16(values[i][k])))
							}
						}
						put(d, parts[i], k, values[i][k])
					}
				}
				want := aligned(elements * d.Size())
				column := make([]float64, n)
				for k := range elements {
					for i := range column {
						column[i] = values[i][k]
					}
					put(d, want, k, defined(column, how, d))
				}
				for keep := -1; keep < n; keep++ {
					mine := make([][]byte, n)
					for i := range parts {
						mine[i] = aligned(len(parts[i]))
						copy(mine[i], parts[i])
					}
					out := aligned(len(want))
					reduceTo(out, mine, keep, d, how)
					name := fmt.Sprintf("%v %s of %d ranks, %d kept", d, how, n, keep)
					if !bytes.Equal(out, want) {
						t.Fatalf("%s: the result differs", name)
					}
					if keep >= 0 && !bytes.Equal(mine[keep], parts[keep]) {
						t.Fatalf("%s: it was overwritten", name)
					}
				}
			}
		}
	}
}

// defined is the reduction of one place: neighbours, then neighbouring pairs.
func defined(x []float64, how string, d ir.DType) float64 {
	n := len(x)
	for len(x) > 1 {
		var next []float64
		for i := 0; i < len(x); i += 2 {
			if i+1 == len(x) {
				next = append(next, x[i])
				break
			}
			a, b := x[i], x[i+1]
			switch {
			case how == "max":
				a = max(a, b)
			case how == "min":
				a = min(a, b)
			case d == ir.F64:
				a += b
			default:
				a = float64(float32(a) + float32(b))
			}
			next = append(next, a)
		}
		x = next
	}
	if how != "mean" {
		return x[0]
	}
	if d == ir.F64 {
		return x[0] / float64(n)
	}
	return float64(float32(x[0]) / float32(n))
}

// put writes a number as an element.
func put(d ir.DType, b []byte, k int, v float64) {
	switch d {
	case ir.F32:
		as[float32](b)[k] = float32(v)
	case ir.F64:
		as[float64](b)[k] = v
	case ir.F16:
		as[uint16](b)[k] = half.F32ToF16(float32(v))
	case ir.BF16:
		as[uint16](b)[k] = half.F32ToBF16(float32(v))
	case ir.U8:
		b[k] = uint8(v)
	case ir.I8:
		as[int8](b)[k] = int8(v)
	case ir.I16:
		as[int16](b)[k] = int16(v)
	case ir.I32:
		as[int32](b)[k] = int32(v)
	case ir.I64:
		as[int64](b)[k] = int64(v)
	}
}
