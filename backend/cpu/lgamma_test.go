package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
)

// TestLgammaOfNarrowFloats holds lgamma of all 16-bit floats, which is computed in f32, against Go's.
func TestLgammaOfNarrowFloats(t *testing.T) {
	for d, float := range map[ir.DType]func(uint16) float32{ir.F16: half.F16ToF32, ir.BF16: half.BF16ToF32} {
		const all = 1 << 16
		text := fmt.Sprintf("program @p {\n %%x = parameter \"x\" : %v[%d]\n return lgamma(%%x)\n}", d, all)
		data := make([]byte, 2*all)
		for i := range all {
			data[2*i], data[2*i+1] = byte(i), byte(i>>8)
		}
		for _, be := range []*Backend{New(), NewPortable()} {
			got := optimizedOutputs(t, be, text, data)[0]
			for i := range all {
				x := float64(float(uint16(i)))
				want, _ := math.Lgamma(x)
				if math.IsInf(x, -1) {
					want = math.Inf(1)
				}
				g := uint16(got[2*i]) | uint16(got[2*i+1])<<8
				w := half.F64ToF16(want)
				if d == ir.BF16 {
					w = half.F64ToBF16(want)
				}
				if math.IsNaN(x) {
					continue
				}
				most := 1
				if math.Abs(want) < 0x1p-14 {
					most = 2 // beside a zero of the function
				}
				if off := int(int16(g)) - int(int16(w)); off > most || off < -most {
					t.Errorf("%v: lgamma of %v is %v, not %v", d, x, float(g), want)
				}
			}
		}
	}
}

// TestLgammaOfF32 holds lgamma of f32s of all sizes, and of many around its zeros, against Go's: within two units in the
// last place, or 10⁻⁸ between negative integers, where its parts cancel.
func TestLgammaOfF32(t *testing.T) {
	var x []float32
	for bits := uint32(0); bits < 0x7f800000; bits += 99991 {
		x = append(x, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	for i := range 20_000 {
		x = append(x, -8+float32(i)*0.0007, 1+float32(i-10_000)*0x1p-24, 2+float32(i-10_000)*0x1p-23)
	}
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	got := optimizedOutputs(t, New(), fmt.Sprintf("program @p {\n %%x = parameter \"x\" : f32[%d]\n return lgamma(%%x)\n}", len(x)), data)[0]
	worst := 0.0
	for i, v := range x {
		want, _ := math.Lgamma(float64(v))
		g := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:]))
		rounded := float32(math.Abs(want))
		off := math.Abs(float64(g) - want)
		if g == float32(want) || v < -1 && off < 1e-8 {
			continue
		}
		off /= float64(rounded - math.Nextafter32(rounded, 0))
		if worst = max(worst, off); !(off <= 2) {
			t.Fatalf("lgamma of %v is %v, not %v: %.2f units off", v, g, want, off)
		}
	}
	t.Logf("%.2f units", worst)
}
