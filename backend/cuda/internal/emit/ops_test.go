package emit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/loop/looptest"
)

// all lists the dtypes that operands have.
var all = append([]ir.DType{ir.F8E4M3FN, ir.F8E5M2}, looptest.Stored...)

// evalULPs is what the f64 results of Eval may be off for functions with a bound of their own in
// f64: package math loses digits near zeros of sine, cosine and tangent, which these operands meet.
const evalULPs = 64

// opKernels makes kernels of many ops each on operands of a dtype: of those that
// are exact, of others by their bounds, and of those that divide.
func opKernels(d ir.DType) (kernels []*loop.Kernel, ulps []float64) {
	type class struct {
		ulps   float64
		divide bool
	}
	byClass := map[class][]*ir.Spec{}
	c := loop.ComputeDType(d)
	for _, sp := range ir.Ops() {
		if sp.Category != ir.Pointwise || sp.Composite() || sp.Op == aten.Cast || sp.Op == aten.Where || !looptest.Defined(sp, c) {
			continue
		}
		k := class{sp.Tolerance(d), sp.Divides && !c.IsFloat()}
		if d == ir.F64 && sp.ULPs64 != 0 {
			k.ulps = max(k.ulps, evalULPs)
		}
		byClass[k] = append(byClass[k], sp)
	}
	for k, specs := range byClass {
		for list := range slices.Chunk(specs, 28) {
			b := looptest.New(loop.None)
			x, y := b.Load(b.Arg(d, loop.Unit, false)), b.Load(b.Arg(d, loop.Unit, false))
			for _, sp := range list {
				in := []loop.Value{x, y}[:len(sp.Schema.Params)]
				out := d
				if sp.Predicate {
					out = ir.Bool
				}
				b.Store(b.Arg(out, loop.Unit, true), b.Op(sp.Op, in...))
			}
			kernels, ulps = append(kernels, &b.Kernel), append(ulps, k.ulps)
		}
	}
	return kernels, ulps
}

// divisors writes operand 1 without 0.
func divisors(r *rand.Rand, arg int, d ir.DType, b []byte) {
	looptest.Elements(r, arg, d, b)
	if arg == 1 && d.IsIntegral() && allZero(b[:d.Size()]) {
		b[0] = 3
	}
}

func allZero(b []byte) bool { return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) }

// TestOps runs every op on every dtype.
func TestOps(t *testing.T) {
	d := newDevice(t)
	n := 0
	for _, dt := range all {
		kernels, ulps := opKernels(dt)
		for i, k := range kernels {
			n += len(k.Args) - 2
			d.everyWay(k, Options{}, 2, 331, divisors, ulps[i])
		}
	}
	if n < 400 {
		t.Errorf("only %d ops of dtypes were tried", n)
	}
	d.run()
}

// TestZeroDivision has an error for each op that divides integers.
func TestZeroDivision(t *testing.T) {
	d := newDevice(t)
	for _, op := range []ir.Op{aten.FloorDivide, aten.TruncDivide, aten.Remainder, aten.Fmod} {
		for _, dt := range []ir.DType{ir.I8, ir.I64, ir.F32} {
			b := looptest.New(loop.None)
			x, y := b.Load(b.Arg(dt, loop.Unit, false)), b.Load(b.Arg(dt, loop.Unit, false))
			b.Store(b.Arg(dt, loop.Unit, true), b.Op(op, x, y))
			for _, zeros := range []bool{false, true} {
				d.everyWay(&b.Kernel, Options{}, 1, 7, func(r *rand.Rand, arg int, dt ir.DType, b []byte) {
					divisors(r, arg, dt, b)
					if zeros && arg == 1 {
						clear(b[:dt.Size()])
					}
				}, 0)
			}
		}
	}
	d.run()
}

// TestCasts converts every dtype to every other, and selects.
func TestCasts(t *testing.T) {
	d := newDevice(t)
	for _, from := range all {
		b := looptest.New(loop.None)
		x := b.Load(b.Arg(from, loop.Unit, false))
		for _, to := range all {
			v := b.Cast(x, loop.ComputeDType(to))
			b.Store(b.Arg(to, loop.Unit, true), v)
		}
		c := loop.ComputeDType(from)
		cond := b.Load(b.Arg(ir.Bool, loop.Free, false))
		for _, bits := range []uint64{1, math.MaxUint64, 1 << 63, 1 << 31, 0x7ff0000000000000, uint64(math.Float32bits(1.5)), math.Float64bits(-0.1)} {
			v := b.Op(aten.Where, cond, x, b.Add(loop.Instr{Code: loop.Const, DType: c, Bits: bits}))
			b.Store(b.Arg(c, loop.Free, true), v)
		}
		at := b.Add(loop.Instr{Code: loop.Index, DType: ir.I64})
		b.Store(b.Arg(ir.I64, loop.Unit, true), at)
		if c == ir.F32 {
			for _, to := range []ir.DType{ir.F16, ir.BF16, ir.F8E4M3FN, ir.F8E5M2} {
				b.Store(b.Arg(ir.F32, loop.Unit, true), b.Add(loop.Instr{Code: loop.Round, DType: to, In: [3]loop.Value{x}, N: 1}))
			}
		}
		d.everyWay(&b.Kernel, Options{}, 2, 531, looptest.Elements, 0)
	}
	d.run()
}

// reduction folds operands of a dtype by all ops that are exact, or by sums and
// products.
func reduction(axis loop.Axis, d ir.DType, s loop.Stride, exact bool) *loop.Kernel {
	b := looptest.New(axis)
	c := loop.ComputeDType(d)
	x := b.Load(b.Arg(d, s, false))
	sum := c
	if !d.IsFloat() {
		sum = ir.I64
	}
	out := map[loop.Value]ir.DType{}
	var order []loop.Value
	add := func(op ir.Op, d ir.DType) {
		v := b.Reduce(op, d, x)
		out[v], order = d, append(order, v)
	}
	if exact {
		if c.IsFloat() {
			x = b.Op(aten.Add, x, b.Add(loop.Instr{Code: loop.Const, DType: c})) // no -0
		}
		add(aten.Amax, c)
		add(aten.Amin, c)
		add(aten.Argmax, ir.I64)
		add(aten.Argmin, ir.I64)
		add(aten.Any, ir.Bool)
		add(aten.All, ir.Bool)
		if c.IsInt() {
			add(aten.Sum, c)
			add(aten.Prod, c)
		}
	} else {
		add(aten.Sum, sum)
		add(aten.Prod, sum)
	}
	for _, v := range order {
		b.Final(b.StoreOf(b.Arg(out[v], loop.Unit, true), v))
	}
	return &b.Kernel
}

func TestReductions(t *testing.T) {
	d := newDevice(t)
	for i, dt := range looptest.Computed {
		for _, axis := range []loop.Axis{loop.Columns, loop.Rows, loop.Both} {
			d.limits = []Limits{small, medium}[i%2]
			for _, exact := range []bool{true, false} {
				if !longtest.Enabled() && dt != ir.F32 && dt != ir.I16 {
					continue
				}
				fill, ulps := looptest.Elements, 0.0
				if !exact {
					fill, ulps = looptest.Moderate, 4
					if dt == ir.F64 {
						ulps = 300 // Eval rounds after each element too
					}
				}
				k := reduction(axis, dt, loop.Unit, exact)
				d.everyWay(k, Options{Outer: i % 2}, 2, 131, fill, ulps)
				if !longtest.Enabled() {
					continue
				}
				d.everyWay(k, Options{Outer: i % 2}, 37, 3, fill, ulps)
				if i%3 == 0 {
					d.everyWay(reduction(axis, dt, loop.Free, exact), Options{}, 3, 67, fill, ulps)
				}
			}
		}
	}
	d.run()
}
