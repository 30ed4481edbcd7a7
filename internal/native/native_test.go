package native

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// build makes kernels for tests.
type build struct{ loop.Kernel }

func newBuild(axis loop.Axis) *build {
	b := &build{}
	b.Axis = axis
	b.Passes = []loop.Pass{{}}
	return b
}

func (b *build) pass() *loop.Pass { return &b.Passes[len(b.Passes)-1] }

func (b *build) arg(d ir.DType, s loop.Stride, write bool) int {
	b.Args = append(b.Args, loop.Arg{DType: d, Cols: s, Write: write})
	return len(b.Args) - 1
}

func (b *build) add(in loop.Instr) loop.Value {
	b.Instrs = append(b.Instrs, in)
	v := loop.Value(len(b.Instrs) - 1)
	b.pass().Body = append(b.pass().Body, v)
	return v
}

func (b *build) final(in loop.Instr) loop.Value {
	b.Instrs = append(b.Instrs, in)
	v := loop.Value(len(b.Instrs) - 1)
	b.pass().Final = append(b.pass().Final, v)
	return v
}

func (b *build) loadOf(arg int) loop.Instr {
	return loop.Instr{Code: loop.Load, DType: loop.ComputeDType(b.Args[arg].DType), Arg: arg}
}

func (b *build) load(arg int) loop.Value { return b.add(b.loadOf(arg)) }

func (b *build) f32(x float32) loop.Value {
	return b.add(loop.Instr{Code: loop.Const, DType: ir.F32, Bits: uint64(math.Float32bits(x))})
}

func (b *build) applyOf(op ir.Op, d ir.DType, in ...loop.Value) loop.Instr {
	i := loop.Instr{Code: loop.Apply, Op: op, DType: d, N: uint8(len(in))}
	copy(i.In[:], in)
	return i
}

// op applies an op that keeps the dtype, or gives bool.
func (b *build) op(op ir.Op, in ...loop.Value) loop.Value {
	d := b.Instrs[in[len(in)-1]].Result()
	if op.Spec().Predicate {
		d = ir.Bool
	}
	return b.add(b.applyOf(op, d, in...))
}

func (b *build) cast(x loop.Value, d ir.DType) loop.Value { return b.add(b.applyOf(ir.OpCast, d, x)) }

func (b *build) storeOf(arg int, v loop.Value) loop.Instr {
	return loop.Instr{Code: loop.Store, Arg: arg, In: [3]loop.Value{v}, N: 1}
}

func (b *build) store(arg int, v loop.Value) { b.add(b.storeOf(arg, v)) }

func (b *build) reduce(op ir.Op, d ir.DType, x loop.Value) loop.Value {
	return b.add(loop.Instr{Code: loop.Reduce, Op: op, DType: d, In: [3]loop.Value{x}, N: 1})
}

// grid is the memory of a kernel's operands, twice: for native code and for Eval.
type grid struct {
	rows, cols int
	data       [2][][]byte
	frame      [2]loop.Frame
}

// element writes an interesting random element.
func element(r *rand.Rand, d ir.DType, b []byte) {
	special := r.IntN(12)
	switch d {
	case ir.Bool:
		b[0] = byte(r.IntN(2))
	case ir.U8, ir.I8:
		b[0] = byte(r.Uint32())
		if special == 0 {
			b[0] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
		}
	case ir.I16:
		*(*int16)(unsafe.Pointer(&b[0])) = int16(r.Uint32()) >> r.IntN(15)
	case ir.I32:
		*(*int32)(unsafe.Pointer(&b[0])) = int32(r.Uint32()) >> r.IntN(31)
	case ir.I64:
		*(*int64)(unsafe.Pointer(&b[0])) = int64(r.Uint64()) >> r.IntN(63)
	case ir.F16:
		*(*uint16)(unsafe.Pointer(&b[0])) = half.F32ToF16(float32(float(r, special)))
	case ir.BF16:
		*(*uint16)(unsafe.Pointer(&b[0])) = half.F32ToBF16(float32(float(r, special)))
	case ir.F32:
		*(*float32)(unsafe.Pointer(&b[0])) = float32(float(r, special))
	case ir.F64:
		*(*float64)(unsafe.Pointer(&b[0])) = float(r, special)
	}
}

var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -2.5, 1.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -1e-42, 3e38, -3e38, 2147483648, 1e10, -1e19, 300, 87.5, -104}

func float(r *rand.Rand, special int) float64 {
	if special == 0 {
		return specials[r.IntN(len(specials))]
	}
	x := r.NormFloat64()
	if special < 4 {
		x *= 50
	}
	return x
}

// newGrid fills operands with random elements. Rows and columns of all but the
// Free ones are packed, with a gap between rows.
func newGrid(r *rand.Rand, k *loop.Kernel, rows, cols, spill int, fill func(r *rand.Rand, arg int, d ir.DType, b []byte)) *grid {
	g := &grid{rows: rows, cols: cols}
	for i, a := range k.Args {
		size := a.DType.Size()
		col := size
		switch a.Cols {
		case loop.Fixed:
			col = 0
		case loop.Free:
			col = 3 * size
		}
		row := max(col*cols, size) + 2*size
		data := make([]byte, row*rows+size*64)
		for at := 0; at < len(data); at += size {
			fill(r, i, a.DType, data[at:])
		}
		for side := range g.data {
			own := append([]byte{}, data...)
			g.data[side] = append(g.data[side], own)
			g.frame[side].Ptr[i] = unsafe.Pointer(&own[0])
			g.frame[side].Row[i], g.frame[side].Col[i] = row, col
		}
	}
	for side := range g.frame {
		g.frame[side].Rows, g.frame[side].Cols = rows, cols
		g.frame[side].First = 5
		g.frame[side].Spill = aligned(spill)
	}
	return g
}

func aligned(n int) unsafe.Pointer {
	b := make([]byte, n+64)
	at := uintptr(unsafe.Pointer(&b[0]))
	return unsafe.Pointer(&b[(64-at%64)%64])
}

func elements(r *rand.Rand, _ int, d ir.DType, b []byte) { element(r, d, b) }

// check runs a kernel natively and by Eval and compares all memory.
func check(t *testing.T, k *loop.Kernel, isa ISA, rows, cols int, ulps float64, seed uint64) {
	t.Helper()
	c, err := Compile(k, isa)
	if err != nil {
		t.Fatalf("%v\n%v", err, k)
	}
	compareRun(t, k, c, newGrid(rand.New(rand.NewPCG(seed, 1)), k, rows, cols, c.SpillBytes(), elements), ulps)
}

func compareRun(t *testing.T, k *loop.Kernel, c *Code, g *grid, ulps float64) {
	t.Helper()
	c.Run(&g.frame[0])
	loop.Eval(k, &g.frame[1])
	for i, a := range k.Args {
		size := a.DType.Size()
		for at := 0; at+size <= len(g.data[0][i]); at += size {
			got, want := g.data[0][i][at:at+size], g.data[1][i][at:at+size]
			if why := differ(a.DType, got, want, ulps); why != "" {
				t.Fatalf("%v, %d×%d, operand %d, element %d (row of %d): %s\n%v", c.ISA(), g.rows, g.cols, i, at/size, g.frame[0].Row[i]/size, why, k)
			}
		}
	}
}

// differ tells how two elements differ by more than some units in the last place.
func differ(d ir.DType, got, want []byte, ulps float64) string {
	if string(got) == string(want) {
		return ""
	}
	var x, y, unit float64
	switch d {
	case ir.F32:
		p, q := *(*float32)(unsafe.Pointer(&got[0])), *(*float32)(unsafe.Pointer(&want[0]))
		x, y = float64(p), float64(q)
		a := float32(math.Abs(y))
		unit = float64(math.Nextafter32(a, float32(math.Inf(1))) - a)
		if a == math.MaxFloat32 {
			unit = 0x1p104
		}
	case ir.F64:
		x, y = *(*float64)(unsafe.Pointer(&got[0])), *(*float64)(unsafe.Pointer(&want[0]))
		unit = math.Nextafter(math.Abs(y), math.Inf(1)) - math.Abs(y)
	case ir.F16:
		x, y = float64(half.F16ToF32(*(*uint16)(unsafe.Pointer(&got[0])))), float64(half.F16ToF32(*(*uint16)(unsafe.Pointer(&want[0]))))
		unit = math.Max(math.Abs(y)*0x1p-10, 0x1p-24)
	case ir.BF16:
		x, y = float64(half.BF16ToF32(*(*uint16)(unsafe.Pointer(&got[0])))), float64(half.BF16ToF32(*(*uint16)(unsafe.Pointer(&want[0]))))
		unit = math.Abs(y) * 0x1p-7
	default:
		return fmt.Sprintf("%x, want %x", got, want)
	}
	if (math.IsNaN(x) && math.IsNaN(y)) || math.Abs(x-y) <= ulps*unit && math.Signbit(x) == math.Signbit(y) {
		return ""
	}
	return fmt.Sprintf("%v, want %v, %.3g units", x, y, math.Abs(x-y)/unit)
}

// lengths returns numbers of columns with all tails of the vectors, or some.
func lengths() (all []int) {
	if testing.Short() {
		return []int{1, 3, 8, 17, 39, 67}
	}
	for n := 1; n <= 67; n++ {
		all = append(all, n)
	}
	return all
}

func TestAdd(t *testing.T) {
	for _, isa := range Available() {
		for cols := 1; cols < 140; cols++ {
			b := newBuild(loop.None)
			x, y, z := b.arg(ir.F32, loop.Unit, false), b.arg(ir.F32, loop.Unit, false), b.arg(ir.F32, loop.Unit, true)
			b.store(z, b.op(ir.OpMul, b.op(ir.OpAdd, b.load(x), b.load(y)), b.f32(3)))
			check(t, &b.Kernel, isa, 3, cols, 0, uint64(cols))
		}
	}
}

// TestCheck holds Check to what Compile says of kernels with code, without, and
// malformed.
func TestCheck(t *testing.T) {
	sum := func(d ir.DType) *loop.Kernel {
		b := newBuild(loop.None)
		x, z := b.arg(d, loop.Unit, false), b.arg(d, loop.Unit, true)
		b.store(z, b.op(ir.OpAdd, b.load(x), b.load(x)))
		return &b.Kernel
	}
	fixed := sum(ir.F32)
	fixed.Args[1].Cols = loop.Fixed // a store that does not move
	late := sum(ir.F32)
	late.Instrs[2].In[0] = 7 // a value of later
	for _, isa := range Available() {
		for name, c := range map[string]struct {
			k    *loop.Kernel
			want error
		}{
			"sum":       {sum(ir.F32), nil},
			"no code":   {fixed, ErrUnsupported},
			"malformed": {late, loop.ErrKernel},
		} {
			_, built := Compile(c.k, isa)
			if err := Check(c.k, isa); !errors.Is(err, c.want) || !errors.Is(built, c.want) {
				t.Errorf("%v, %s: Check says %v and Compile %v, want %v", isa, name, err, built, c.want)
			}
		}
	}
}
