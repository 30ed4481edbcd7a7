package native

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// narrowDivisors returns divisors of a 16-bit float as bits: special ones, those that are likely, and others.
func narrowDivisors(d ir.DType) (all []uint16) {
	for _, c := range []float64{0, math.Copysign(0, -1), 1, -1, 2, 3, -3, 7, 10, 255, 0.1, 12.92, 1e-8, math.Inf(1), math.Inf(-1), math.NaN()} {
		all = append(all, narrowBits(d, c))
	}
	all = append(all, 1, 2, 3, 0x8001, 0x7f, 0x80, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7f7f, 0xff7f)
	r := rand.New(rand.NewPCG(4, 2))
	for range 120 {
		all = append(all, uint16(r.Uint32()))
	}
	return all
}

// TestNarrowQuotients holds quotients of all 16-bit floats by one that is the same for a row against divisions.
func TestNarrowQuotients(t *testing.T) {
	for _, isa := range Available() {
		for _, d := range []ir.DType{ir.F16, ir.BF16} {
			k := quotientBy(d, func(b *looptest.Build) loop.Value { return b.Load(b.Arg(d, loop.Fixed, false)) })
			c, err := Compile(k, isa)
			if err != nil {
				t.Fatal(err)
			}
			for i, bits := range narrowDivisors(d) {
				sameQuotients(t, fmt.Sprint(isa, d), k, c, d, bits)
				if i%8 != 0 {
					continue
				}
				k := quotientBy(d, func(b *looptest.Build) loop.Value { return b.F32(float32(narrowFloat(d, bits))) })
				c, err := Compile(k, isa)
				if err != nil {
					t.Fatal(err)
				}
				sameQuotients(t, fmt.Sprint(isa, d, "constant"), k, c, d, bits)
			}
		}
	}
}

// quotientBy divides an operand of a 16-bit float.
func quotientBy(d ir.DType, divisor func(b *looptest.Build) loop.Value) *loop.Kernel {
	b := looptest.New(loop.None)
	x := b.Load(b.Arg(d, loop.Unit, false))
	out := b.Arg(d, loop.Unit, true)
	y := b.Op(aten.Div, x, divisor(b))
	b.Store(out, b.Add(loop.Instr{Code: loop.Round, DType: d, In: [3]loop.Value{y}, N: 1}))
	return &b.Kernel
}

func sameQuotients(t *testing.T, name string, k *loop.Kernel, c *Code, d ir.DType, divisor uint16) {
	t.Helper()
	const all = 1 << 16
	n := 0
	g := looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), k, 1, all, c.SpillBytes(), func(_ *rand.Rand, arg int, _ ir.DType, b []byte) {
		if arg == 2 {
			binary.LittleEndian.PutUint16(b, divisor)
			return
		}
		binary.LittleEndian.PutUint16(b, uint16(n))
		n++
	})
	c.Run(&g.Frame[0])
	by := narrowFloat(d, divisor)
	for i := range all {
		x := binary.LittleEndian.Uint16(g.Data[0][0][2*i:])
		got, want := binary.LittleEndian.Uint16(g.Data[0][1][2*i:]), narrowBits(d, float64(float32(narrowFloat(d, x))/float32(by)))
		if got != want && !(math.IsNaN(narrowFloat(d, got)) && math.IsNaN(narrowFloat(d, want))) {
			t.Fatalf("%s: %#04x by %#04x is %#04x, not %#04x", name, x, divisor, got, want)
		}
	}
}

func narrowFloat(d ir.DType, bits uint16) float64 {
	if d == ir.F16 {
		return float64(half.F16ToF32(bits))
	}
	return float64(half.BF16ToF32(bits))
}

func narrowBits(d ir.DType, x float64) uint16 {
	if d == ir.F16 {
		return half.F64ToF16(x)
	}
	return half.F64ToBF16(x)
}
