package native

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/ir"
)

// exactOps are those whose results do not depend on how they are computed.
var exactOps = func() (ops []ir.Op) {
	return []ir.Op{ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpDiv, ir.OpMaximum, ir.OpMinimum, ir.OpSqrt, ir.OpReciprocal, ir.OpNeg, ir.OpAbs, ir.OpSign,
		ir.OpRelu, ir.OpFloor, ir.OpRound, ir.OpEq, ir.OpLt, ir.OpGe, ir.OpLogicalAnd, ir.OpLogicalXor, ir.OpLogicalNot, ir.OpBitwiseAnd,
		ir.OpBitwiseOr, ir.OpBitwiseNot, ir.OpIsNaN, ir.OpIsFinite, ir.OpBitwiseLeftShift, ir.OpBitwiseRightShift}
}()

// randomKernel makes a kernel of operations whose results are exact, with
// extrema as reductions.
func randomKernel(r *rand.Rand) *loop.Kernel {
	axis := loop.Axis(r.IntN(4))
	b := newBuild(axis)
	dtypes := []ir.DType{ir.F32, ir.Bool, ir.I32}
	switch r.IntN(3) {
	case 0:
		dtypes = stored
	case 1:
		dtypes = []ir.DType{ir.F32, ir.F16, ir.Bool, ir.U8}
	}
	pick := func() ir.DType { return dtypes[r.IntN(len(dtypes))] }
	var lines []loop.Value // known for the line
	for pass := range 1 + r.IntN(3) {
		if pass > 0 {
			b.Passes = append(b.Passes, loop.Pass{})
		}
		vals := append([]loop.Value{}, lines...)
		for range 1 + r.IntN(4) {
			vals = append(vals, b.load(b.arg(pick(), loop.Stride(r.IntN(3)), false)))
		}
		for range r.IntN(40) {
			vals = append(vals, randomOp(r, b, vals, pick))
		}
		for range 1 + r.IntN(3) {
			randomStore(r, b, vals, false)
		}
		if axis == loop.None || len(b.Args) > 20 {
			continue
		}
		for range 1 + r.IntN(2) {
			x := vals[r.IntN(len(vals))]
			if d := b.Instrs[x].Result(); d.IsFloat() {
				// Which of 0 and -0 is the extremum is not defined: no -0.
				x = b.op(ir.OpAdd, x, b.add(loop.Instr{Code: loop.Const, DType: d}))
			}
			op, d := ir.OpAmax, b.Instrs[x].Result()
			switch r.IntN(4) {
			case 0:
				op = ir.OpAmin
			case 1:
				op, d = ir.OpArgmax, ir.I64
			case 2:
				op, d = ir.OpAny, ir.Bool
			}
			lines = append(lines, b.reduce(op, d, x))
		}
		b.finalOf(r, lines)
		randomStore(r, b, lines, true)
	}
	return &b.Kernel
}

// finalOf stores one of the line's values.
func (b *build) finalOf(r *rand.Rand, lines []loop.Value) {
	x := lines[r.IntN(len(lines))]
	d := b.Instrs[x].Result()
	b.final(b.storeOf(b.arg(d, loop.Unit, true), x))
}

func randomOp(r *rand.Rand, b *build, vals []loop.Value, pick func() ir.DType) loop.Value {
	x := vals[r.IntN(len(vals))]
	d := b.Instrs[x].Result()
	var same, bools []loop.Value
	for _, v := range vals {
		if b.Instrs[v].Result() == d {
			same = append(same, v)
		}
		if b.Instrs[v].Result() == ir.Bool {
			bools = append(bools, v)
		}
	}
	y := same[r.IntN(len(same))]
	if len(bools) > 0 && r.IntN(4) == 0 {
		return b.op(ir.OpWhere, bools[r.IntN(len(bools))], x, y)
	}
	for range 10 {
		sp := exactOps[r.IntN(len(exactOps))].Spec()
		if !defined(sp, d) {
			continue
		}
		if len(sp.Schema.Params) == 1 {
			return b.op(sp.Op, x)
		}
		return b.op(sp.Op, x, y)
	}
	return b.cast(x, loop.ComputeDType(pick()))
}

func randomStore(r *rand.Rand, b *build, vals []loop.Value, final bool) {
	x := vals[r.IntN(len(vals))]
	arg := b.arg(b.Instrs[x].Result(), loop.Unit+loop.Stride(r.IntN(2)), true)
	b.Args[arg].Stream = !final && r.IntN(3) == 0 && b.Args[arg].Cols == loop.Unit
	if final {
		b.final(b.storeOf(arg, x))
		return
	}
	b.store(arg, x)
}

func TestRandomKernels(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 60
	}
	for seed := range uint64(n) {
		checkRandom(t, seed, int(seed*7%97)+1)
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, cols uint8) { checkRandom(t, seed, int(cols)+1) })
}

func checkRandom(t *testing.T, seed uint64, cols int) {
	r := rand.New(rand.NewPCG(seed, 1))
	k := randomKernel(r)
	if len(k.Args) > loop.MaxArgs {
		return
	}
	for _, isa := range Available() {
		c, err := Compile(k, isa)
		if errors.Is(err, ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, k)
		}
		compareRun(t, k, c, newGrid(rand.New(rand.NewPCG(seed, 2)), k, 1+int(seed%4), cols, c.SpillBytes(), elements), 0)
	}
}

// TestSumsArePrecise sums many f32s of both signs and compares with the bound of
// reduction's comment.
func TestSumsArePrecise(t *testing.T) {
	n := 10_000_000
	if testing.Short() {
		n = 300_000
	}
	x := make([]float32, n)
	r := rand.New(rand.NewPCG(1, 2))
	var exact, size float64
	for i := range x {
		x[i] = float32(r.NormFloat64() + 0.1)
		exact += float64(x[i])
		size += math.Abs(float64(x[i]))
	}
	for _, isa := range Available() {
		for _, axis := range axes {
			c, err := Compile(sumOf(axis), isa)
			if err != nil {
				t.Fatal(err)
			}
			var sum float32
			f := loop.Frame{Rows: 1, Cols: n, Spill: aligned(c.SpillBytes())}
			if axis == loop.Rows {
				f.Rows, f.Cols = n, 1
			}
			f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&x[0]), unsafe.Pointer(&sum)
			f.Row[0] = 4
			c.Run(&f)
			if err, most := math.Abs(float64(sum)-exact), 3*0x1p-24*size+0x1p-24*math.Abs(exact); err > most {
				t.Errorf("%v along %v: %v, exact %v", isa, axis, sum, exact)
			}
		}
	}
}

// TestSweep tries each function of f32 on floats of all sizes.
func TestSweep(t *testing.T) {
	step := uint32(9973)
	if testing.Short() {
		step = 999983
	}
	var x []float32
	for bits := uint32(0); bits < math.MaxUint32-step; bits += step {
		x = append(x, math.Float32frombits(bits))
	}
	y := make([]float32, len(x))
	for _, isa := range Available() {
		for op, most := range bounds {
			if op == ir.OpPow || op == ir.OpAtan2 {
				continue
			}
			c, err := Compile(unaryF32(op), isa)
			if err != nil {
				t.Fatal(err)
			}
			f := loop.Frame{Rows: 1, Cols: len(x), Spill: aligned(c.SpillBytes())}
			f.Ptr[0], f.Ptr[1] = unsafe.Pointer(&y[0]), unsafe.Pointer(&x[0])
			k := unaryF32(op)
			if !k.Args[0].Write {
				f.Ptr[0], f.Ptr[1] = f.Ptr[1], f.Ptr[0]
			}
			c.Run(&f)
			worst := 0.0
			for i, v := range x {
				want := op.Spec().Scalar.F1(float64(v))
				worst = math.Max(worst, unitsOff(t, isa, op, v, y[i], want))
			}
			t.Logf("%v %v: %.2f units", isa, op, worst)
			if worst > most {
				t.Errorf("%v %v: %.2f units off, at most %v", isa, op, worst, most)
			}
		}
	}
}

// unitsOff returns how far a result is from the exact value.
func unitsOff(t *testing.T, isa ISA, op ir.Op, x, got float32, want float64) float64 {
	w := float32(want)
	if math.IsNaN(want) || math.IsInf(float64(w), 0) || w == 0 {
		if (got != w && !(math.IsNaN(want) && got != got)) || math.Signbit(float64(got)) != math.Signbit(want) && want == want && w == 0 {
			if w == 0 && math.Abs(float64(got)) <= 2*math.SmallestNonzeroFloat32 || math.IsInf(float64(w), 0) && math.Abs(float64(got)) >= math.MaxFloat32 {
				return 1 // at the edge of the range
			}
			t.Fatalf("%v: %v(%v) = %v, want %v", isa, op, x, got, w)
		}
		return 0
	}
	a := float32(math.Abs(want))
	unit := float64(a) - float64(math.Nextafter32(a, 0))
	return math.Abs(float64(got)-want) / unit
}
