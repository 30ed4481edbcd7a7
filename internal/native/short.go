package native

import (
	"encoding/binary"
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Rows of few columns (loop.Kernel.Width) are taken several at a time, as many as a vector has lanes for: lane
// l is column l%Width of row l/Width. Operands that lie so in memory are read and written as others are, the
// rest by permutations of the vectors that they lie in. Masks keep memory between and behind the elements
// untouched that is written, and what is behind untouched where it is read.

// mostVectors is how many vectors the elements of one lie in at most.
const mostVectors = 4

// wideIn reports whether a kernel has elements of 64 bits in its lanes.
func wideIn(k *loop.Kernel, isa ISA) (wide bool) {
	doubled := doubledLoads(k, isa)
	for i := range k.Instrs {
		in := &k.Instrs[i]
		wide = wide || width(in.Result()) == 8 && in.Code != loop.Store && !doubled.has(loop.Value(i))
	}
	return wide
}

// lanesOf returns how many elements a vector of a level has in a kernel.
func lanesOf(k *loop.Kernel, isa ISA) int {
	if size := packedSize(k, isa); size > 0 {
		return vectorBytes / size
	}
	lanes := 8
	if isa == AVX512 {
		lanes = 16
	}
	if wideIn(k, isa) {
		lanes /= 2
	}
	return lanes
}

// Short reports whether there is code of a level for a kernel that takes rows of its Width together.
func Short(k *loop.Kernel, isa ISA) bool {
	lanes := lanesOf(k, isa)
	if isa != AVX512 || k.Axis != loop.None || len(k.Passes) != 1 || k.Width < 1 || k.Width > lanes {
		return false
	}
	for i := range k.Instrs {
		if k.Instrs[i].Code == loop.Index {
			return false
		}
	}
	for i := range k.Args {
		if a := &k.Args[i]; a.By > 0 || k.Indexes(i) {
			if a.By > 0 && !choosable(k, a) {
				return false
			}
			continue
		}
		if s := shapeOf(k, i, lanes); !s.fits(k.Args[i].DType.Size()) {
			return false
		}
	}
	return true
}

// lanesOfRows is where the elements of a vector of rows lie in an operand.
type lanesOfRows struct {
	rows, width    int // rows together, and their columns
	row, col       int // steps in elements
	lanes, vectors int
	write          bool
}

func shapeOf(k *loop.Kernel, arg, lanes int) lanesOfRows {
	a := &k.Args[arg]
	s := lanesOfRows{rows: lanes / k.Width, width: k.Width, row: int(a.RowStep), col: int(a.ColStep), lanes: lanes, write: a.Write}
	s.vectors = (s.span(s.rows) + lanes - 1) / lanes
	return s
}

// span is how many elements there are from the first to the last of some rows.
func (s *lanesOfRows) span(rows int) int { return (rows-1)*s.row + (s.width-1)*s.col + 1 }

// packed reports whether the rows adjoin.
func (s *lanesOfRows) packed() bool { return s.row == s.width && (s.col == 1 || s.width == 1) }

// one reports whether there is one element.
func (s *lanesOfRows) one() bool { return s.row == 0 && (s.col == 0 || s.width == 1) }

func (s *lanesOfRows) fits(size int) bool {
	switch {
	case s.row < 0 || s.col < 0 || s.write && (s.row == 0 || s.col == 0 && s.width > 1):
		return false
	case s.packed() || s.one() && !s.write:
		return true
	}
	if size < 4 {
		return !s.write && s.vectors == 1
	}
	return s.vectors <= mostVectors && (!s.write || s.apart())
}

// apart reports whether no two lanes are of one element. Where columns are fewer elements apart than there are rows in a
// vector, the lanes of rows that a call does not have are those of others that it has.
func (s *lanesOfRows) apart() bool {
	seen := map[int]bool{}
	for l := range s.rows * s.width {
		if seen[s.at(l)] {
			return false
		}
		seen[s.at(l)] = true
	}
	return true
}

// at is where the element of a lane lies, counted from the first.
func (s *lanesOfRows) at(lane int) int { return lane/s.width*s.row + lane%s.width*s.col }

// touched returns the lanes of vector j of memory that some rows are in: to the last one where they are read.
func (s *lanesOfRows) touched(j, rows int) (mask uint16) {
	if !s.write {
		for l := range s.lanes {
			if rows > 0 && j*s.lanes+l < s.span(rows) {
				mask |= 1 << l
			}
		}
		return mask
	}
	for l := range rows * s.width {
		if p := s.at(l); p/s.lanes == j {
			mask |= 1 << (p % s.lanes)
		}
	}
	return mask
}

// maskOf lowers the mask of the lanes of vector j: that of all rows together, or of those that are left.
func (g *gen) maskOf(s *lanesOfRows, j int) val {
	name := fmt.Sprint("rows ", *s, j)
	table := g.poolVal(poolKey{w: 2, name: name}, func(b []byte) []byte {
		for rows := range s.rows + 1 {
			b = binary.LittleEndian.AppendUint16(b, s.touched(j, rows))
		}
		return b
	})
	m := x64.Mem{Index: x64.NoReg, Label: g.vals[table].lbl, Disp: 2 * int32(s.rows)}
	if g.rest {
		g.scalar(func() {
			g.asm.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: g.vals[table].lbl})
			g.asm.MovLoad(x64.RBX, inSpill(atRows))
		})
		m = x64.Mem{Base: x64.RAX, Index: x64.RBX, Scale: 2}
	}
	return g.add(vop{op: x64.KMOVWld, len: 16, dst: g.maskTemp(), mem: g.addr(place{arg: -1, mem: m})})
}

// lanesFrom returns indices of lanes as a constant of elements of w bytes.
func (g *gen) lanesFrom(s *lanesOfRows, w int, kind string, of func(lane int) int) val {
	list := make([]int, s.lanes)
	for l := range s.rows * s.width {
		list[l] = of(l)
	}
	return g.lanesOf(fmt.Sprint(kind, *s), w, list...)
}

// part is the place of vector j of an operand in this copy.
func (g *gen) part(arg, j int, s *lanesOfRows) addr {
	size := g.k.Args[arg].DType.Size()
	return g.addr(place{arg: arg, disp: int32((g.unit*s.rows*s.row + j*s.lanes) * size)})
}

// readRows loads an operand of which rows are taken together and that is not packed.
func (g *gen) readRows(arg int, s *lanesOfRows) val {
	size := g.k.Args[arg].DType.Size()
	if size < 4 {
		return g.readNarrowRows(arg, s)
	}
	n, full := g.vl(size), s.lanes
	load := func(j int) val {
		if !g.rest && (j+1)*full <= s.span(s.rows) {
			return g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.part(arg, j, s)})
		}
		m := g.maskOf(s, j)
		return g.add(vop{op: maskedLoads[size], len: n, dst: g.temp(n), mem: g.part(arg, j, s), c: m, zero: true})
	}
	two := func(j int) val {
		index := g.lanesFrom(s, size, fmt.Sprint("from ", j), func(l int) int { return max(s.at(l)-j*full, 0) % (2 * full) })
		if j+1 == s.vectors {
			return g.op2(by(size, x64.PERMD, x64.PERMQV), n, index, load(j))
		}
		first := load(j)
		return g.fma(by(size, x64.PERMT2D, x64.PERMT2Q), n, first, index, load(j+1))
	}
	v := two(0)
	if s.vectors > 2 {
		later := uint64(0)
		for l := range s.rows * s.width {
			if s.at(l) >= 2*full {
				later |= 1 << l
			}
		}
		v = g.blend(size, g.constLanes(uint16(later)), two(2), v)
	}
	return v
}

// readNarrowRows is readRows of elements of less than 32 bits, which lie in one vector. They are widened first,
// since few processors permute narrow ones.
func (g *gen) readNarrowRows(arg int, s *lanesOfRows) val {
	d := g.k.Args[arg].DType
	n := max(g.vl(d.Size()), 16)
	v := g.add(vop{op: maskedLoads[d.Size()], len: n, dst: g.temp(n), mem: g.part(arg, 0, s), c: g.maskOf(s, 0), zero: true})
	stored := d
	if d == ir.Bool {
		stored = ir.U8
	}
	index := g.lanesFrom(s, 4, "from ", s.at)
	v = g.op2(x64.PERMD, g.vl(4), index, g.widen(stored, v, 0))
	if d == ir.Bool {
		return g.nonZero(4, v)
	}
	return v
}

// constLanes returns a mask of lanes.
func (g *gen) constLanes(mask uint16) val {
	c := g.poolVal(poolKey{bits: uint64(mask), w: 2}, func(b []byte) []byte { return binary.LittleEndian.AppendUint16(b, mask) })
	m := x64.Mem{Index: x64.NoReg, Label: g.vals[c].lbl}
	return g.add(vop{op: x64.KMOVWld, len: 16, dst: g.maskTemp(), mem: g.addr(place{arg: -1, mem: m})})
}

// writeRows stores v to an operand of which rows are taken together and that is not packed.
func (g *gen) writeRows(arg int, s *lanesOfRows, v val) {
	size := g.k.Args[arg].DType.Size()
	n := g.vl(size)
	for j := range s.vectors {
		list := make([]int, s.lanes)
		for l := range s.rows * s.width {
			if p := s.at(l); p/s.lanes == j {
				list[p%s.lanes] = l
			}
		}
		index := g.lanesOf(fmt.Sprint("to ", j, *s), size, list...)
		placed := g.op2(by(size, x64.PERMD, x64.PERMQV), n, index, v)
		m := g.maskOf(s, j)
		g.add(vop{op: maskedStores[size], len: n, b: placed, mem: g.part(arg, j, s), c: m, store: true})
	}
}

// rowsOf returns how the rows of an operand lie that are taken together; not ok where rows are not.
func (g *gen) rowsOf(arg int) (s lanesOfRows, ok bool) {
	if !g.short {
		return s, false
	}
	return shapeOf(g.k, arg, g.lanes), true
}

// alongShort emits a kernel whose rows are taken several at a time.
func (g *gen) alongShort(p *pass) {
	a := g.asm
	rows := g.lanes / g.k.Width
	part := rows*g.k.Width < g.lanes
	copies, held := 1, 0
	g.tail = part
	hoisted := g.capture(func() { g.hoist(p) })
	single := g.capture(func() { g.body(p, 1) })
	copies, held = g.copiesOf(single)
	main := single
	if copies > 1 {
		main = g.capture(func() { g.body(p, copies) })
	}
	g.tail, g.rest = true, true
	rest := g.capture(func() { g.body(p, 1) })
	g.tail, g.rest = false, false

	g.rewind()
	a.MovLoad(x64.RAX, inFrame(frameRows))
	a.MovStore(inSpill(atRows), x64.RAX)
	a.MovImm(x64.RAX, int32(1<<(rows*g.k.Width)-1))
	g.setMask()
	g.pinFor(p, main, held)
	g.flush(hoisted)
	g.rowGroups(main, copies*rows)
	if copies > 1 {
		g.rowGroups(single, rows)
	}
	done := a.Label()
	a.MovLoad(x64.RAX, inSpill(atRows))
	a.ArithImm(x64.Cmp, x64.RAX, 0)
	a.JumpIf(x64.LessEq, done)
	a.MovImm(x64.RBX, int32(g.k.Width))
	a.IMul(x64.RBX, x64.RAX)
	g.maskFirst()
	g.flush(rest)
	a.Bind(done)
	g.unpin()
}

// setMask makes RAX the mask of the lanes of a tail.
func (g *gen) setMask() {
	g.asm.Vec(x64.Inst{Op: x64.KMOVWr, Len: 16, Reg: tailMask, V: x64.NoReg, RM: x64.RAX})
}

// rowGroups emits a loop while so many rows are left.
func (g *gen) rowGroups(r region, rows int) {
	a := g.asm
	top, check := a.Label(), a.Label()
	a.Jump(check)
	a.Bind(top)
	g.flush(r)
	for i := range g.k.Args {
		by := int32(rows * int(g.k.Args[i].RowStep) * g.k.Args[i].DType.Size())
		if p := g.args[i]; p != x64.NoReg {
			a.ArithImm(x64.Add, p, by)
			continue
		}
		a.MovLoad(x64.RAX, inSpill(atPointers+8*int32(i)))
		a.ArithImm(x64.Add, x64.RAX, by)
		a.MovStore(inSpill(atPointers+8*int32(i)), x64.RAX)
	}
	a.MovLoad(x64.RAX, inSpill(atRows))
	a.ArithImm(x64.Sub, x64.RAX, int32(rows))
	a.MovStore(inSpill(atRows), x64.RAX)
	a.Bind(check)
	a.MovLoad(x64.RAX, inSpill(atRows))
	a.ArithImm(x64.Cmp, x64.RAX, int32(rows))
	a.JumpIf(x64.GreatEq, top)
}
