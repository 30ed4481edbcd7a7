package native

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

func TestRandomKernels(t *testing.T) {
	n := 300
	if !longtest.Enabled() {
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
	k := looptest.Random(r)
	if seed%2 == 1 {
		k = looptest.RandomChosen(r)
	}
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
		compareRun(t, k, c, looptest.NewGrid(rand.New(rand.NewPCG(seed, 2)), k, 1+int(seed%4), cols, c.SpillBytes(), looptest.Elements), 0)
	}
}

// TestSumsArePrecise sums many f32s of both signs and compares with the bound of
// reduction's comment.
func TestSumsArePrecise(t *testing.T) {
	n := 10_000_000
	if !longtest.Enabled() {
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
			f := loop.Frame{Rows: 1, Cols: n, Spill: looptest.Aligned(c.SpillBytes())}
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
	if !longtest.Enabled() {
		step = 999983
	}
	var x []float32
	for bits := uint32(0); bits < math.MaxUint32-step; bits += step {
		x = append(x, math.Float32frombits(bits))
	}
	y := make([]float32, len(x))
	for _, isa := range Available() {
		ops := functions(isa, ir.F32)
		if len(ops) < 20 {
			t.Errorf("%v: only %d functions are native", isa, len(ops))
		}
		for _, op := range ops {
			most := op.Spec().Tolerance(ir.F32)
			c, err := Compile(unaryF32(op), isa)
			if err != nil {
				t.Fatal(err)
			}
			f := loop.Frame{Rows: 1, Cols: len(x), Spill: looptest.Aligned(c.SpillBytes())}
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
