package native

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// width returns the bytes of the lanes that values of a dtype have: integers
// narrower than 32 bits are kept as 32, wrapped after each operation unless
// nothing looks at the other bits. A bool has 4, where it is no mask.
func width(d ir.DType) int {
	if d == ir.I64 || d == ir.F64 {
		return 8
	}
	return 4
}

// emitters are the ways to compute an op: on floats and on integers of w bytes,
// and on masks. One that is nil is not native.
type emitters struct {
	f func(g *gen, w int, x []val) val
	i func(g *gen, w int, x []val) val
	b func(g *gen, x []val) val
	// bytes is for lanes of a byte (bytes.go); words is for i16 and halves for the bits of 16-bit floats in lanes of a
	// word (words.go).
	bytes, words, halves byteOp
	// wrap says that integers of less than 32 bits must be wrapped.
	wrap bool
	// predicate says that the result is a mask, and so needs no wrapping.
	predicate bool
}

// value returns what a Value of the kernel is in the present region.
func (g *gen) value(v loop.Value) val {
	in := &g.k.Instrs[v]
	if in.Code == loop.Const {
		return g.constant(in)
	}
	if h, ok := g.homes[homeKey{v, g.homeUnit()}]; ok {
		return h
	}
	return g.values[v]
}

// homeUnit is the copy whose homes are used: lines along columns are shared by
// all copies.
func (g *gen) homeUnit() int {
	if g.k.Axis == loop.Rows {
		return g.unit
	}
	return 0
}

func (g *gen) constant(in *loop.Instr) val {
	if g.packed > 0 {
		return g.packedConstant(in)
	}
	switch in.DType {
	case ir.Bool:
		return g.constMask(in.Bits != 0)
	case ir.F32, ir.I32:
		return g.konst(4, in.Bits&0xffffffff)
	case ir.F64, ir.I64:
		return g.konst(8, in.Bits)
	}
	return g.konst(4, uint64(uint32(ir.WrapInt(in.DType, int64(in.Bits)))))
}

// lower appends the operations of an instruction to the region. Reduces are for
// the caller.
func (g *gen) lower(v loop.Value) {
	in := &g.k.Instrs[v]
	g.now = v
	switch in.Code {
	case loop.Load:
		if g.doubled.has(v) {
			g.values[v] = g.readDoubled(in.Arg)
			break
		}
		g.values[v] = g.read(in.Arg)
	case loop.Const:
	case loop.Index:
		g.values[v] = g.index()
	case loop.Apply:
		g.values[v] = g.apply(v, in)
		g.vals[g.values[v]].half = g.ofBF16[v]
	case loop.Round:
		if g.late[v] || g.packed > 0 {
			g.values[v] = g.value(in.In[0])
			break
		}
		g.values[v] = g.round(in.DType, g.value(in.In[0]))
	case loop.Store:
		g.write(in.Arg, g.value(in.In[0]))
	}
}

func (g *gen) apply(v loop.Value, in *loop.Instr) val {
	var x [3]val
	for i, o := range in.In[:in.N] {
		x[i] = g.value(o)
	}
	d := g.k.Instrs[in.In[in.N-1]].Result()
	if g.packed > 0 {
		return g.applyPacked(in, d, x[:in.N])
	}
	if in.Op == aten.Cast {
		if g.doubled.has(in.In[0]) {
			return x[0]
		}
		return g.cast(d, in.DType, x[0])
	}
	if in.Op == aten.Where {
		return g.where3(d, x)
	}
	if in.Op == aten.Div && g.quotients[v] != ir.Invalid {
		if y, ok := g.quotient(v, x[0], in.In[1]); ok {
			return y
		}
	}
	e := table[in.Op]
	var y val
	switch {
	case d.IsFloat() && e.f != nil:
		return e.f(g, width(d), x[:in.N])
	case d == ir.Bool && e.b != nil:
		return e.b(g, x[:in.N])
	case d.IsInt() && e.i != nil:
		y = e.i(g, width(d), x[:in.N])
	default:
		fail("%v of %v", in.Op, d)
	}
	if e.wrap && !e.predicate && !g.loose[v] {
		y = g.wrap(d, y)
	}
	return y
}

func (g *gen) where3(d ir.DType, x [3]val) val {
	if d != ir.Bool {
		return g.blend(width(d), x[0], x[1], x[2])
	}
	return g.or(g.and(x[1], x[0]), g.andNot(x[2], x[0]))
}

// wrap keeps the low bits that a narrow integer dtype has.
func (g *gen) wrap(d ir.DType, x val) val {
	n := g.vl(4)
	switch d {
	case ir.U8:
		return g.op2(x64.PANDD, n, x, g.konst(4, 0xff))
	case ir.I8:
		return g.op1i(x64.PSRAD, n, g.op1i(x64.PSLLD, n, x, 24), 24)
	case ir.I16:
		return g.op1i(x64.PSRAD, n, g.op1i(x64.PSLLD, n, x, 16), 16)
	}
	return x
}

// index returns the positions of the lanes along the reduced axis.
func (g *gen) index() val {
	unit, axis := g.unit, g.k.Axis
	n := g.vl(8)
	if g.tall != nil && axis == loop.Rows {
		first := g.add(vop{op: x64.BROADCASTSD, len: n, dst: g.temp(n), mem: g.addr(place{arg: -1, mem: inFrame(frameFirst)})})
		return g.op2(x64.PADDQ, n, first, g.konst(8, uint64(g.tall.row)))
	}
	if axis == loop.Rows {
		unit = 0
	}
	g.scalar(func() {
		a := g.asm
		if axis == loop.Rows {
			a.MovLoad(x64.RAX, inSpill(atIndex))
		} else {
			a.Lea(x64.RAX, x64.At(column, int32(unit*g.lanes)))
			if axis == loop.Both {
				a.ArithLoad(x64.Add, x64.RAX, inSpill(atIndex))
			}
		}
		a.ArithLoad(x64.Add, x64.RAX, inFrame(frameFirst))
		a.MovStore(inSpill(atBounce), x64.RAX)
	})
	first := g.add(vop{op: x64.BROADCASTSD, len: n, dst: g.temp(n), mem: bounce})
	if axis == loop.Rows {
		return first
	}
	lanes := make([]int, g.lanes)
	for i := range lanes {
		lanes[i] = i
	}
	return g.op2(x64.PADDQ, n, first, g.lanesOf("lanes", 8, lanes...))
}

// round is an f32 rounded to a narrower float.
func (g *gen) round(d ir.DType, x val) val {
	n := g.vl(4)
	switch d {
	case ir.F16:
		return g.op1(x64.CVTPH2PS, n, g.narrow(d, x))
	case ir.BF16:
		v := g.op2(x64.PANDD, n, g.roundBF16(x), g.konst(4, 0xffff0000))
		g.vals[v].half = true
		return v
	case ir.F32:
		return x
	}
	fail("rounding to %v", d)
	return none
}

// quietNaNs has an instruction take NaNs from its source, made quiet, and all else from its destination.
const quietNaNs = 0x22

// roundBF16 returns an f32 whose upper half is the nearest bf16, ties to even. A
// NaN is made quiet, so that dropping its lower half leaves a NaN.
func (g *gen) roundBF16(x val) val {
	n := g.vl(4)
	odd := g.op2(x64.PANDD, n, g.op1i(x64.PSRLD, n, x, 16), g.konst(4, 1))
	up := g.op2(x64.PADDD, n, g.op2(x64.PADDD, n, x, g.konst(4, 0x7fff)), odd)
	if g.evex() {
		return g.fma(x64.FIXUPIMMPS, n, up, x, g.konst(4, quietNaNs))
	}
	return g.blend(4, g.cmpF(4, cmpUNORD, x, x), g.op2(x64.PORD, n, x, g.konst(4, 0x400000)), up)
}
