package cpu

import (
	"fmt"
	"math"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
)

// TestLgammaOfNarrowFloats holds lgamma of all 16-bit floats, which is computed in f32, against Go's.
func TestLgammaOfNarrowFloats(t *testing.T) {
	for d, float := range map[ir.DType]func(uint16) float32{ir.F16: half.F16ToF32, ir.BF16: half.BF16ToF32} {
		const all = 1 << 16
		p := program(t, fmt.Sprintf("program @p {\n %%x = parameter \"x\" : %v[%d]\n return lgamma(%%x)\n}", d, all))
		data := make([]byte, 2*all)
		for i := range all {
			data[2*i], data[2*i+1] = byte(i), byte(i>>8)
		}
		for _, be := range []*Backend{New(), NewPortable()} {
			q, _ := graph.Optimize(p, graph.Options{Supports: be.Supports})
			in := uploaded(t, be, q, [][]byte{data})
			got := outputs(t, mustPlan(t, be, q, backend.CompileOptions{}), in)[0]
			release(in)
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
