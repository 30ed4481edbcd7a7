package native

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// val is a virtual register: the result of an operation of a region, a constant of the pool, or a
// value that lives across regions.
type val int32

// none is no val: the number 0 is not given to any.
const none val = 0

// kind says where a val lives.
type kind uint8

const (
	// temp is computed once in a region and unknown outside.
	temp kind = iota
	// pooled is a constant in the pool.
	pooled
	// home lives across regions, in a slot of the spill memory or in a register
	// that is pinned for a pass. It may be written many times.
	home
)

type vinfo struct {
	kind   kind
	mask   bool      // a mask: in k registers with AVX-512, else lanes
	eights bool      // a mask of lanes of 64 bits
	full   bool      // pooled: the pool has all lanes, not one to be broadcast
	live   bool      // during pressure, it is computed and used again
	half   bool      // f32s that are rounded to bf16: their lower halves are zero
	len    uint8     // bytes of the vector
	w      uint8     // pooled: bytes of an element
	slot   int32     // home, or spilled temp: offset in the spill memory, 0 for none
	pin    x64.Reg   // home, pooled: its register in this pass
	reg    x64.Reg   // the register that holds it now
	use    int32     // during findUses, the next op that uses it
	lbl    x64.Label // pooled: its address
}

// vop is one machine operation on vals, or scalar code between.
type vop struct {
	// dst is the result. t is what it is before the operation, for those that
	// change their destination. a and b are the sources, b the one that can be in
	// memory. c is the write mask with AVX-512, the selector of vblendv without.
	dst, t, a, b, c val
	imm             byte
	zero            bool
	store           bool
	len             uint8
	op              x64.Op
	mem             addr // takes the place of b; of dst for stores
	// scalar emits code on the scratch registers, if not 0: the number, plus 1, of a function among
	// the scalars of gen. op is NoOp.
	scalar int32
	// ends says that this is a store of a tail (ends.go).
	ends bool
	// loops says that a loop begins here, in whose turns no val is in a register at first.
	loops bool
	// next has, for t, a, b and c and for dst, the next op of the region that uses
	// it.
	next [5]int32
}

// addr is a place in memory by its number among the places of gen; 0 is none.
type addr int32

// place is an address in memory: of an operand if arg is not negative.
type place struct {
	arg    int
	disp   int32   // from the operand's element in this column
	col    bool    // the operand moves with the column
	masked bool    // only the lanes of the tail are touched
	ends   bool    // the vector with which the row ends
	chosen bool    // the row is one of those taken together, which an index chooses
	row    int32   // its number
	rest   bool    // it may not be there
	free   bool    // the operand moves by a stride of its own, from column + disp
	beyond int32   // of free ones: bytes from there
	rows   int32   // the operand has moved by so many rows
	mem    x64.Mem // where arg is negative
}

// gen is the state of one compilation.
type gen struct {
	isa    ISA
	k      *loop.Kernel
	asm    assembler
	lanes  int
	wide   bool // there are elements of 64 bits
	packed int  // bytes of lanes that are as wide as what is stored, else 0

	room    *room // has the memory of ops and vals
	lowered int   // operations in all regions

	vals    []vinfo
	ops     []vop // of the region being lowered
	places  []place
	scalars []func()
	pool    []poolEntry
	at      map[poolKey]val

	slots     int32 // size of the spill memory so far
	freeSlots []int32
	regs      [2]regFile
	args      []x64.Reg // pointer register of each operand, NoReg if in memory
	rows      x64.Reg   // rows still to do, NoReg if in memory

	short  bool        // rows are taken several at a time
	lines  bool        // lines are taken whole
	tall   *tallRows   // of the block that is lowered then
	group  *lineGroup  // lines are finished several at a time
	tail   bool        // this region is for less than a vector
	behind bool        // and may have a vector of the row before it
	rest   bool        // this region is for the rows that are left, where rows are taken several at a time
	stream bool        // this region may store past the cache
	final  bool        // this region is a Final
	unit   int         // which copy of the body is lowered
	now    loop.Value  // the instruction that is lowered
	stored map[int]val // by argument: what is stored last, where all vectors of a row are in a line
	tails  [2]val      // the lanes of the tail: as a mask, and with AVX2 as lanes of 64 bits

	uniform []bool // by Value: the same for a whole row
	loose   []bool // by Value: not wrapped
	late    []bool // by Value: rounded where it is stored
	ofBF16  []bool // by Value: a number that bf16 has
	// quotients has, by Value, the narrow float of which a division has operands and result; Invalid of others.
	quotients []ir.DType
	values    []val // by Value, in the present copy
	doubled   loads // of what is loaded as an f32, which it is cast to
	homes     map[homeKey]val
	factors   loads // of what is loaded where it is multiplied

	angles *farSlots // where angles of f32 are reduced in f64

	wrong   []wrongIndex
	fenced  bool // a store went past the cache
	indexed bool // the index of the row's first element is kept
}

type homeKey struct {
	v    loop.Value
	unit int
}

// poolKey tells constants apart: by their bits, or by a name where the lanes
// differ.
type poolKey struct {
	bits uint64
	w    uint8
	name string
}

type poolEntry struct {
	v    val
	data []byte
}

// unsupported is the value with which lowering panics for kernels that are not native.
type unsupported struct{ why string }

func fail(format string, args ...any) { panic(unsupported{fmt.Sprintf(format, args...)}) }

// vl returns the length of a vector of elements of w bytes. Where the lanes are
// for 32 bits, a vector of 64-bit elements has half of them.
func (g *gen) vl(w int) uint8 {
	if w == 8 && !g.wide {
		return uint8(g.lanes * 4)
	}
	return uint8(g.lanes * w)
}

func (g *gen) evex() bool { return g.isa == AVX512 }

// neon reports whether the code is for NEON, which takes the ways of AVX2 but for what it lacks.
func (g *gen) neon() bool { return g.isa == NEON }

func (g *gen) newVal(i vinfo) val {
	i.pin, i.reg = x64.NoReg, x64.NoReg
	g.vals = append(g.vals, i)
	return val(len(g.vals) - 1)
}

func (g *gen) temp(n uint8) val { return g.newVal(vinfo{kind: temp, len: n}) }

func (g *gen) maskTemp() val {
	if g.evex() {
		return g.newVal(vinfo{kind: temp, mask: true, len: 2})
	}
	return g.newVal(vinfo{kind: temp, mask: true, len: g.vl(4)})
}

// newHome returns a home for vals like v.
func (g *gen) newHome(like val) val {
	i := g.vals[like]
	h := g.newVal(vinfo{kind: home, mask: i.mask, eights: i.eights, len: i.len, half: i.half})
	g.vals[h].slot = g.newSlot()
	return h
}

func (g *gen) newSlot() int32 {
	if n := len(g.freeSlots); n > 0 {
		s := g.freeSlots[n-1]
		g.freeSlots = g.freeSlots[:n-1]
		return s
	}
	s := g.slots
	g.slots += 64
	return s
}

// set makes a home hold v.
func (g *gen) set(h, v val) {
	if g.vals[h].mask && g.evex() {
		g.add(vop{op: x64.KMOVW, len: 16, dst: h, b: v})
		return
	}
	g.add(vop{op: x64.MOVUPS, len: g.vals[h].len, dst: h, b: v})
}

// add appends an operation.
func (g *gen) add(o vop) val {
	g.ops = append(g.ops, o)
	return o.dst
}

// op1 is dst = op b.
func (g *gen) op1(op x64.Op, n uint8, b val) val {
	return g.add(vop{op: op, len: n, dst: g.temp(n), b: b})
}

// op1i is dst = op b, imm; shifts by a count too.
func (g *gen) op1i(op x64.Op, n uint8, b val, imm byte) val {
	return g.add(vop{op: op, len: n, dst: g.temp(n), b: b, imm: imm})
}

// op2 is dst = a op b.
func (g *gen) op2(op x64.Op, n uint8, a, b val) val {
	return g.add(vop{op: op, len: n, dst: g.temp(n), a: a, b: b})
}

func (g *gen) op2i(op x64.Op, n uint8, a, b val, imm byte) val {
	return g.add(vop{op: op, len: n, dst: g.temp(n), a: a, b: b, imm: imm})
}

// resize is op1 with another length of the result, which len, the length that the
// encoding has, is not.
func (g *gen) resize(op x64.Op, n, result uint8, b val, imm byte) val {
	return g.add(vop{op: op, len: n, dst: g.temp(result), b: b, imm: imm})
}

// fma is op with a destination that t is at first.
func (g *gen) fma(op x64.Op, n uint8, t, a, b val) val {
	return g.add(vop{op: op, len: n, dst: g.temp(n), t: t, a: a, b: b})
}

// scalar inserts scalar code.
func (g *gen) scalar(f func()) {
	g.scalars = append(g.scalars, f)
	g.add(vop{scalar: int32(len(g.scalars))})
}

// addr returns the address of a place.
func (g *gen) addr(p place) addr {
	g.places = append(g.places, p)
	return addr(len(g.places) - 1)
}

// konst returns the constant with bits in elements of w bytes.
func (g *gen) konst(w int, bits uint64) val {
	return g.poolVal(poolKey{bits: bits, w: uint8(w)}, func(b []byte) []byte { return appendBits(b, w, bits) })
}

// poolVal returns the constant for a key. With AVX2 the pool has all lanes,
// because an instruction can't broadcast its operand.
func (g *gen) poolVal(k poolKey, one func([]byte) []byte) val {
	if v, ok := g.at[k]; ok {
		return v
	}
	data := one(nil)
	full := len(data) > int(k.w)
	if !full && !g.evex() {
		for len(data) < 32 {
			data = one(data)
		}
		full = true
	}
	n := g.vl(int(k.w))
	if k.name != "" {
		n = uint8(len(data))
	}
	v := g.newVal(vinfo{kind: pooled, full: full, len: n, w: k.w})
	g.vals[v].lbl = g.asm.Label()
	g.pool = append(g.pool, poolEntry{v, data})
	g.at[k] = v
	return v
}

func appendBits(b []byte, w int, bits uint64) []byte {
	for range w {
		b = append(b, byte(bits))
		bits >>= 8
	}
	return b
}

// writePool appends the constants to the code, each aligned to its size or to a
// vector.
func (g *gen) writePool() {
	for _, e := range g.pool {
		align := 64
		for align > len(e.data) {
			align /= 2
		}
		g.asm.Align(align)
		g.asm.Bind(g.vals[e.v].lbl)
		g.asm.Data(e.data...)
	}
}
