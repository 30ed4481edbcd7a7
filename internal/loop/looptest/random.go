package looptest

import (
	"math/rand/v2"
	"sync"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// exact lists the pointwise ops whose results do not depend on how they are computed, but for those
// that may divide by 0.
var exact = sync.OnceValue(func() []ir.Op {
	var ops []ir.Op
	for _, sp := range ir.Ops() {
		simple := sp.Category == ir.Pointwise && !sp.Composite() && len(sp.Schema.Params) <= 2 && sp.Op != aten.Cast
		if simple && sp.ULPs == 0 && !sp.Divides {
			ops = append(ops, sp.Op)
		}
	}
	return ops
})

// Random makes a kernel of operations whose results are exact, with extrema as
// reductions. It may have too many operands.
func Random(r *rand.Rand) *loop.Kernel { return random(r, false) }

// RandomChosen is Random with rows that an index chooses.
func RandomChosen(r *rand.Rand) *loop.Kernel { return random(r, true) }

func random(r *rand.Rand, chosen bool) *loop.Kernel {
	axis := loop.Axis(r.IntN(4))
	b := New(axis)
	dtypes := []ir.DType{ir.F32, ir.Bool, ir.I32}
	switch r.IntN(3) {
	case 0:
		dtypes = Stored
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
			arg := b.Arg(pick(), loop.Stride(r.IntN(3)), false)
			if chosen && r.IntN(4) == 0 {
				b.Choose(arg)
			}
			vals = append(vals, b.Load(arg))
		}
		for range r.IntN(40) {
			vals = append(vals, b.random(r, vals, pick))
		}
		for range 1 + r.IntN(3) {
			b.randomStore(r, vals, false)
		}
		if axis == loop.None || len(b.Args) > 20 {
			continue
		}
		for range 1 + r.IntN(2) {
			lines = append(lines, b.randomReduce(r, vals[r.IntN(len(vals))]))
		}
		x := lines[r.IntN(len(lines))]
		b.Final(b.StoreOf(b.Arg(b.Instrs[x].Result(), loop.Unit, true), x))
		b.randomStore(r, lines, true)
	}
	return &b.Kernel
}

func (b *Build) randomReduce(r *rand.Rand, x loop.Value) loop.Value {
	if d := b.Instrs[x].Result(); d.IsFloat() {
		// Which of 0 and -0 is the extremum is not defined: no -0.
		x = b.Op(aten.Add, x, b.Add(loop.Instr{Code: loop.Const, DType: d}))
	}
	op, d := aten.Amax, b.Instrs[x].Result()
	switch r.IntN(4) {
	case 0:
		op = aten.Amin
	case 1:
		op, d = aten.Argmax, ir.I64
	case 2:
		op, d = aten.Any, ir.Bool
	}
	return b.Reduce(op, d, x)
}

func (b *Build) random(r *rand.Rand, vals []loop.Value, pick func() ir.DType) loop.Value {
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
		return b.Op(aten.Where, bools[r.IntN(len(bools))], x, y)
	}
	ops := exact()
	for range 10 {
		sp := ops[r.IntN(len(ops))].Spec()
		if !Defined(sp, d) {
			continue
		}
		if len(sp.Schema.Params) == 1 {
			return b.Op(sp.Op, x)
		}
		return b.Op(sp.Op, x, y)
	}
	return b.Cast(x, loop.ComputeDType(pick()))
}

func (b *Build) randomStore(r *rand.Rand, vals []loop.Value, final bool) {
	x := vals[r.IntN(len(vals))]
	arg := b.Arg(b.Instrs[x].Result(), loop.Unit+loop.Stride(r.IntN(2)), true)
	b.Args[arg].Stream = !final && r.IntN(3) == 0 && b.Args[arg].Cols == loop.Unit
	if final {
		b.Final(b.StoreOf(arg, x))
		return
	}
	b.Store(arg, x)
}
