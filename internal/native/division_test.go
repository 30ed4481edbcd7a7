package native

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// divisors writes elements that are not 0 where they divide.
func divisors(r *rand.Rand, arg int, d ir.DType, b []byte) {
	looptest.Elements(r, 0, d, b)
	if arg == 1 && !d.IsFloat() && integer(d, b) == 0 {
		b[0] = 1
	}
}

func integer(d ir.DType, b []byte) (v int64) {
	for i := range d.Size() {
		v |= int64(b[i]) << (8 * i)
	}
	return v
}

// TestZeroDivision has one divisor of 0, at every place of a row, and zeros that
// divide nothing behind the rows.
func TestZeroDivision(t *testing.T) {
	for _, isa := range Available() {
		for op := range divisions() {
			for _, d := range []ir.DType{ir.U8, ir.I8, ir.I16, ir.I32, ir.I64} {
				for _, s := range []loop.Stride{loop.Unit, loop.Free, loop.Fixed} {
					testZeroDivision(t, isa, op, d, s)
				}
			}
		}
	}
}

func testZeroDivision(t *testing.T, isa ISA, op ir.Op, d ir.DType, s loop.Stride) {
	b := looptest.New(loop.None)
	x, y := b.Load(b.Arg(d, loop.Unit, false)), b.Load(b.Arg(d, s, false))
	v := b.Op(op, x, y)
	b.Store(b.Arg(d, loop.Unit, true), v)
	c, err := Compile(&b.Kernel, isa)
	if err != nil {
		t.Fatal(err)
	}
	for _, cols := range []int{1, 7, 21, 37} {
		g := looptest.NewGrid(rand.New(rand.NewPCG(1, 1)), &b.Kernel, 1, cols, c.SpillBytes(), divisors)
		f, size := &g.Frame[0], d.Size()
		data := g.Data[0][1]
		last := cols * max(f.Col[1], size) // beyond the row
		if s == loop.Fixed {
			last = size
		}
		clear(data[last:])
		if got := divide(c, f); got != nil {
			t.Fatalf("%v %v of %v, %d columns: %v", isa, op, d, cols, got)
		}
		for at := 0; at < last; at += max(f.Col[1], size) {
			keep := append([]byte{}, data[at:at+size]...)
			clear(data[at : at+size])
			got := divide(c, f)
			copy(data[at:], keep)
			if z, ok := got.(loop.ZeroDivision); !ok || loop.Value(z) != v || !errors.Is(z, ir.ErrZeroDivision) {
				t.Fatalf("%v %v of %v, %d columns, 0 at byte %d: %v", isa, op, d, cols, at, got)
			}
		}
	}
}

// divide runs code and returns what it panics with.
func divide(c *Code, f *loop.Frame) (fault any) {
	defer func() { fault = recover() }()
	c.Run(f)
	return nil
}

// TestLeastByMinusOne divides the least integers by -1, which traps in the
// processor's instruction.
func TestLeastByMinusOne(t *testing.T) {
	for _, isa := range Available() {
		for op := range divisions() {
			for _, d := range []ir.DType{ir.I8, ir.I16, ir.I32, ir.I64} {
				k := kernelOf(op.Spec(), d, loop.Unit, loop.Unit)
				c, err := Compile(k, isa)
				if err != nil {
					t.Fatal(err)
				}
				fill := func(_ *rand.Rand, arg int, d ir.DType, b []byte) {
					for i := range d.Size() {
						b[i] = 0xff * byte(arg&1)
					}
					if arg == 0 {
						b[d.Size()-1] = 0x80
					}
				}
				compareRun(t, k, c, looptest.NewGrid(nil, k, 2, 21, c.SpillBytes(), fill), 0)
			}
		}
	}
}

// TestRests holds remainders and quotients without fractions of floats of all sizes against package math's, which are exact.
func TestRests(t *testing.T) {
	t.Run("f64", func(t *testing.T) { testRests(t, ir.F64, math.Float64frombits, math.MaxFloat64, 5e-324, 0x1p53, 110) })
	t.Run("f32", func(t *testing.T) {
		bits := func(b uint64) float32 { return math.Float32frombits(uint32(b)) }
		testRests(t, ir.F32, bits, math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p24, 60)
	})
}

// testRests is TestRests of a type with its greatest and its least number and that of its digits.
func testRests[T float32 | float64](t *testing.T, d ir.DType, bits func(uint64) T, most, least, digits T, powers float64) {
	r := rand.New(rand.NewPCG(9, 64))
	inf := T(math.Inf(1))
	special := []T{0, T(math.Copysign(0, -1)), 1, -1, 3, 0.1, inf, -inf, T(math.NaN()), most, -most, least, digits, digits + 2, digits - 1}
	var x, y []T
	for _, a := range special {
		for _, b := range special {
			x, y = append(x, a), append(y, b)
		}
	}
	for i := range 20_000 {
		a, b := bits(r.Uint64()), bits(r.Uint64())
		if i%2 == 0 {
			b = T(float64(a) * math.Exp2(-powers*r.Float64()) * (1 + r.Float64()))
		}
		if i%8 == 2 { // near a multiple
			a = b * T(r.IntN(100))
		}
		if i%16 == 2 {
			a = T(math.Nextafter32(float32(a), 0))
		}
		if i%4 == 1 { // quotients of more bits than an f32 has
			b = T(float64(a) * math.Exp2(-24-12*r.Float64()))
		}
		x, y = append(x, a), append(y, b)
	}
	z := make([]T, len(x))
	for _, isa := range Available() {
		for _, op := range []ir.Op{aten.Fmod, aten.Remainder, aten.FloorDivide, aten.TruncDivide} {
			b := looptest.New(loop.None)
			u, v := b.Load(b.Arg(d, loop.Unit, false)), b.Load(b.Arg(d, loop.Unit, false))
			b.Store(b.Arg(d, loop.Unit, true), b.Op(op, u, v))
			c, err := Compile(&b.Kernel, isa)
			if err != nil {
				t.Fatal(err)
			}
			f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
			f.Ptr[0], f.Ptr[1], f.Ptr[2] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&z[0])
			c.Run(&f)
			for i, got := range z {
				want := T(op.Spec().Scalar.F2(float64(x[i]), float64(y[i])))
				if math.Float64bits(float64(got)) != math.Float64bits(float64(want)) && (got == got || want == want) {
					t.Fatalf("%v: %v of %v and %v is %v, want %v", isa, op, x[i], y[i], got, want)
				}
			}
		}
	}
}

// TestDivideLongs holds quotients and remainders of 64-bit integers against the definition around the
// sizes up to which they are divided as floats, alone and beside larger ones in a vector.
func TestDivideLongs(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 64))
	var special []int64
	for _, e := range []int{0, 1, 31, 32, 50, 51, 52, 53, 62, 63} {
		for d := int64(-2); d <= 2; d++ {
			special = append(special, 1<<e+d, -(1<<e)+d)
		}
	}
	var x, y []int64
	add := func(a, b int64) {
		if b != 0 {
			x, y = append(x, a), append(y, b)
		}
	}
	for _, a := range special {
		for _, b := range special {
			add(a, b)
		}
	}
	for i := range 20_000 {
		b := r.Int64() >> r.IntN(64)
		add(r.Int64()>>r.IntN(64), b)
		// Next to multiples, below 2⁵¹ in all.
		if b >>= 33; i%2 == 0 {
			add(b*r.Int64N(1<<20)+r.Int64N(3)-1, b)
		}
	}
	z := make([]int64, len(x))
	for _, isa := range Available() {
		for op := range divisions() {
			b := looptest.New(loop.None)
			u, v := b.Load(b.Arg(ir.I64, loop.Unit, false)), b.Load(b.Arg(ir.I64, loop.Unit, false))
			b.Store(b.Arg(ir.I64, loop.Unit, true), b.Op(op, u, v))
			c, err := Compile(&b.Kernel, isa)
			if err != nil {
				t.Fatal(err)
			}
			f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
			f.Ptr[0], f.Ptr[1], f.Ptr[2] = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&z[0])
			c.Run(&f)
			for i, got := range z {
				if want := op.Spec().Scalar.I2(x[i], y[i]); got != want {
					t.Fatalf("%v: %v of %v and %v is %v, want %v", isa, op, x[i], y[i], got, want)
				}
			}
		}
	}
}
