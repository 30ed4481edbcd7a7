package native

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Lines that are rows of few columns (loop.Kernel.Width) are finished as many at a time as a vector has lanes. A pass goes over
// the rows of such a group without a loop over columns and leaves of each what its lanes have accumulated. What these
// are together is found for all rows at once, and so is the Final: lane l is row l. Later passes read what is known of
// their row from there. Sums are those of a line by itself.

const (
	// mostInGroups is how many vectors a row has at most of which lines are finished together, and mostOfGroups how many
	// instructions the bodies of all of them: beside more the end of a line costs little.
	mostInGroups, mostOfGroups = 16, 200
)

// Grouped reports whether there is code of a level for a kernel with a Width that finishes several lines together.
func Grouped(k *loop.Kernel, isa ISA) bool {
	vectors := (k.Width + lanesOf(k, isa) - 1) / lanesOf(k, isa)
	if isa != AVX512 || k.Axis != loop.Columns || k.Width < 2 || vectors > mostInGroups {
		return false
	}
	bodies := 0
	for p := range k.Passes {
		bodies += len(k.Passes[p].Body)
		for _, v := range k.Passes[p].Final {
			in := &k.Instrs[v]
			if step := k.Args[in.Arg].RowStep; in.Code == loop.Store && step != 1 || in.Code == loop.Load && step != 0 && step != 1 {
				return false
			}
		}
	}
	if bodies*vectors > mostOfGroups || slices.ContainsFunc(k.Args, func(a loop.Arg) bool { return a.Stream || a.By > 0 }) {
		return false
	}
	return !slices.ContainsFunc(k.Instrs, func(in loop.Instr) bool {
		return in.Code == loop.Reduce && (in.Op == aten.Argmax || in.Op == aten.Argmin)
	})
}

// lineGroup is where the spill memory has what is known of a group of lines.
type lineGroup struct {
	accs   map[loop.Value]int32 // by reduction: the accumulators of all rows
	known  map[loop.Value]int32 // by value that a later pass uses: the elements for all rows
	used   []map[loop.Value]bool
	row    int32 // the present row
	left   int32 // rows still to do
	first  int32 // where operands have the first row
	next   int32 // and the one behind the last
	finals bool  // a Final is lowered
}

// memory takes so many vectors of the spill memory.
func (g *gen) memory(vectors int) int32 {
	at := g.slots
	g.slots += int32(64 * vectors)
	return at
}

func (g *gen) newGroup(passes []*pass) *lineGroup {
	words := (8*len(g.k.Args) + 63) / 64
	l := &lineGroup{accs: map[loop.Value]int32{}, known: map[loop.Value]int32{}, row: g.memory(1), first: g.memory(words), next: g.memory(words)}
	l.left = l.row + 8
	defined := map[loop.Value]bool{}
	for _, p := range passes {
		used := map[loop.Value]bool{}
		for _, list := range [2][]loop.Value{p.Body, p.Final} {
			for _, v := range list {
				for _, o := range g.k.Instrs[v].In[:g.k.Instrs[v].N] {
					if defined[o] && !slices.Contains(p.Final, o) {
						used[o] = true
						if _, ok := l.known[o]; !ok {
							l.known[o] = g.memory(1)
						}
					}
				}
			}
		}
		l.used = append(l.used, used)
		for _, r := range p.reds {
			l.accs[r.v], defined[r.v] = g.memory(g.lanes), true
		}
		for _, v := range p.Final {
			defined[v] = g.k.Instrs[v].Code != loop.Const && g.k.Instrs[v].Code != loop.Store
		}
	}
	return l
}

// alongGroups emits a kernel that finishes several lines together.
func (g *gen) alongGroups(passes []*pass) {
	a, l := g.asm, g.newGroup(passes)
	g.group = l
	rows, finals := make([]region, len(passes)), make([]region, len(passes))
	for i, p := range passes {
		p.ahead = nil
		rows[i] = g.capture(func() { g.groupRow(p, l.used[i]) })
		finals[i] = g.capture(func() { g.groupFinals(p, l.used[i]) })
	}
	g.rewind()
	g.keepRemainder()
	a.MovImm(column, 0)
	g.keepPointers(l.first)
	a.MovLoad(x64.RAX, inFrame(frameRows))
	a.MovStore(inSpill(l.left), x64.RAX)
	top := a.Label()
	a.Bind(top)
	g.countGroup()
	for i, p := range passes {
		g.pinFor(p, rows[i], len(g.regs[0].order)/2)
		g.groupLoop(rows[i])
		if p.last {
			g.keepPointers(l.next)
		}
		if len(finals[i]) > 0 {
			g.takePointers(l.first, true)
			a.MovLoad(x64.RBX, inSpill(atRows))
			g.maskFirst()
			g.flush(finals[i])
			g.setTailMask()
		}
		if !p.last {
			g.takePointers(l.first, true)
		}
		g.unpin()
	}
	g.takePointers(l.first, true)
	g.takePointers(l.next, false)
	g.keepPointers(l.first)
	a.MovLoad(x64.RAX, inSpill(l.left))
	a.ArithLoad(x64.Sub, x64.RAX, inSpill(atRows))
	a.MovStore(inSpill(l.left), x64.RAX)
	a.JumpIf(x64.Greater, top)
	g.group = nil
}

// countGroup emits what keeps how many rows the next group has.
func (g *gen) countGroup() {
	a := g.asm
	few := a.Label()
	a.MovLoad(x64.RAX, inSpill(g.group.left))
	a.ArithImm(x64.Cmp, x64.RAX, int32(g.lanes))
	a.JumpIf(x64.LessEq, few)
	a.MovImm(x64.RAX, int32(g.lanes))
	a.Bind(few)
	a.MovStore(inSpill(atRows), x64.RAX)
}

// groupLoop emits a loop over the rows of a group.
func (g *gen) groupLoop(row region) {
	a := g.asm
	top := a.Label()
	a.MovImm(x64.RAX, 0)
	a.MovStore(inSpill(g.group.row), x64.RAX)
	a.Bind(top)
	g.flush(row)
	g.advance()
	a.MovLoad(x64.RAX, inSpill(g.group.row))
	a.ArithImm(x64.Add, x64.RAX, 1)
	a.MovStore(inSpill(g.group.row), x64.RAX)
	a.ArithLoad(x64.Cmp, x64.RAX, inSpill(atRows))
	a.JumpIf(x64.Less, top)
}

// keepPointers emits what keeps where the operands are.
func (g *gen) keepPointers(at int32) {
	for i := range g.k.Args {
		g.asm.MovStore(inSpill(at+8*int32(i)), g.pointer(i, x64.RAX))
	}
}

// takePointers is the opposite. The lines of scratch memory are the same for all groups, and may be left out.
func (g *gen) takePointers(at int32, scratch bool) {
	for i := range g.k.Args {
		if g.k.Args[i].Scratch && !scratch {
			continue
		}
		r := g.args[i]
		if r != x64.NoReg {
			g.asm.MovLoad(r, inSpill(at+8*int32(i)))
			continue
		}
		g.asm.MovLoad(x64.RAX, inSpill(at+8*int32(i)))
		g.asm.MovStore(inSpill(atPointers+8*int32(i)), x64.RAX)
	}
}

// ofRow returns a place in the spill memory that is so many bytes from one row to the next.
func (g *gen) ofRow(at int32, bytes int) addr {
	l := g.group
	scale := bytes
	g.scalar(func() { g.asm.MovLoad(x64.RBX, inSpill(l.row)) })
	for ; scale > 8; scale /= 2 {
		g.scalar(func() { g.asm.Arith(x64.Add, x64.RBX, x64.RBX) })
	}
	return g.addr(place{arg: -1, mem: x64.Mem{Base: spillBase, Index: x64.RBX, Scale: uint8(scale), Disp: at}})
}

// groupRow lowers a pass over one row.
func (g *gen) groupRow(p *pass, used map[loop.Value]bool) {
	for v := range g.k.Instrs {
		if v := loop.Value(v); used[v] {
			d := g.k.Instrs[v].Result()
			w := width(d)
			x := g.add(vop{op: by(w, x64.BROADCASTSS, x64.BROADCASTSD), len: g.vl(w), dst: g.temp(g.vl(w)), mem: g.ofRow(g.group.known[v], w)})
			if d == ir.Bool {
				x = g.nonZero(4, x)
			}
			g.values[v] = x
		}
	}
	for _, v := range p.fixed {
		g.lower(v)
	}
	folds := make([][][]val, len(p.reds))
	vectors, rest := g.k.Width/g.lanes, g.k.Width%g.lanes
	g.stored = map[int]val{}
	for g.unit = range vectors {
		g.bodyOf(p, folds)
	}
	if rest > 0 {
		g.unit, g.tail, g.behind = vectors, true, vectors > 0
		g.startTail()
		g.bodyOf(p, folds)
	}
	g.unit, g.tail, g.behind, g.stored = 0, false, false, nil
	for i, r := range p.reds {
		x := g.foldLine(r, folds[i], rest > 0)
		g.add(vop{op: x64.MOVUPSst, len: g.vals[x].len, b: x, mem: g.ofRow(g.group.accs[r.v], 64), store: true})
	}
}

// foldLine joins what the vectors of a row give to a reduction, in the order in which a loop over them would, but for the lanes.
func (g *gen) foldLine(r *reduction, xs [][]val, tail bool) val {
	switch {
	case r.double:
		if r.paired {
			xs = g.pairs(r, xs)
		}
		acc := r.widened(g, xs[0])
		for _, x := range xs[1:] {
			acc = r.foldWide(g, acc, r.widened(g, x))
		}
		if len(acc) == 2 {
			return g.op2(r.wideOp(), g.vl(8), acc[0], acc[1])
		}
		return acc[0]
	case r.paired:
		var turns [2][]val
		for i, x := range xs {
			turn := i % 2
			if tail && i == len(xs)-1 {
				turn = 1
			}
			if turns[turn] == nil {
				turns[turn] = x
			} else {
				turns[turn] = r.fold(g, turns[turn], x)
			}
		}
		switch {
		case turns[0] == nil:
			return turns[1][0]
		case turns[1] == nil:
			return turns[0][0]
		}
		return r.fold(g, turns[0], turns[1])[0]
	case r.early:
		for len(xs) > 1 {
			xs = g.pairs(r, xs)
		}
		return xs[0][0]
	}
	acc := xs[0]
	for _, x := range xs[1:] {
		acc = r.fold(g, acc, x)
	}
	return acc[0]
}

// pairs folds neighbours.
func (g *gen) pairs(r *reduction, xs [][]val) (joined [][]val) {
	for i := 0; i < len(xs); i += 2 {
		x := xs[i]
		if i+1 < len(xs) {
			x = r.fold(g, x, xs[i+1])
		}
		joined = append(joined, x)
	}
	return joined
}

// groupFinals lowers the end of a pass for all rows of a group.
func (g *gen) groupFinals(p *pass, used map[loop.Value]bool) {
	l := g.group
	g.final, g.tail, l.finals = true, true, true
	for _, r := range p.reds {
		g.values[r.v] = g.finishGroup(r)
	}
	for v := range g.k.Instrs {
		if v := loop.Value(v); used[v] {
			d := g.k.Instrs[v].Result()
			n := g.vl(width(d))
			x := g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.slot(l.known[v])})
			if d == ir.Bool {
				x = g.nonZero(4, x)
			}
			g.values[v] = x
		}
	}
	for _, v := range p.Final {
		g.lower(v)
	}
	for _, r := range p.reds {
		g.keepKnown(r.v)
	}
	for _, v := range p.Final {
		g.keepKnown(v)
	}
	g.final, g.tail, l.finals = false, false, false
}

// keepKnown stores a value that a later pass uses.
func (g *gen) keepKnown(v loop.Value) {
	at, ok := g.group.known[v]
	if !ok {
		return
	}
	x, d := g.values[v], g.k.Instrs[v].Result()
	if d == ir.Bool {
		x = g.pick(x, 4, 1)
	}
	g.add(vop{op: x64.MOVUPSst, len: g.vl(width(d)), b: x, mem: g.slot(at), store: true})
}

// finishGroup returns the results of a reduction for all rows of a group.
func (g *gen) finishGroup(r *reduction) val {
	w, fold := r.w, func(x, y val) val { return r.fold(g, []val{x}, []val{y})[0] }
	if r.double {
		w, fold = 8, func(x, y val) val { return g.op2(r.wideOp(), g.vl(8), x, y) }
	}
	n := g.vl(w)
	var parts []val
	for at := 0; at < g.lanes; at += int(n) / w {
		rows := make([]val, int(n)/w)
		for i := range rows {
			rows[i] = g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.addr(place{arg: -1, mem: inSpill(g.group.accs[r.v] + int32(64*(at+i)))})})
		}
		parts = append(parts, g.acrossRows(w, n, rows, fold))
	}
	x := parts[0]
	switch {
	case r.double:
		x = g.joined(x64.CVTPD2PS, parts)
	case r.d == ir.Bool:
		return g.nonZero(4, x)
	}
	if r.in.Op == aten.Sum && r.d.IsFloat() {
		// A sum that begins with 0 is never -0.
		return g.op2(by(r.w, x64.ADDPS, x64.ADDPD), g.vl(r.w), x, g.konst(r.w, 0))
	}
	return g.wrap(r.d, x)
}

// acrossRows folds the lanes of each of as many vectors as these have lanes, by halves, as across does of one.
func (g *gen) acrossRows(w int, n uint8, rows []val, fold func(x, y val) val) val {
	number := make([][]int, len(rows)) // the rows that the parts of a vector are of
	for i := range number {
		number[i] = []int{i}
	}
	for bytes := int(n) / 2; bytes >= w; bytes /= 2 {
		for i := range len(rows) / 2 {
			x, y := rows[2*i], rows[2*i+1]
			rows[i] = fold(g.halfOf(n, x, y, bytes, 0), g.halfOf(n, x, y, bytes, 1))
			number[i] = joinedRows(number[2*i], number[2*i+1], bytes)
		}
		rows, number = rows[:len(rows)/2], number[:len(rows)/2]
	}
	place := make([]int, len(number[0]))
	for lane, row := range number[0] {
		place[row] = lane
	}
	index := g.lanesOf("rows in order", w, place...)
	return g.op2(by(w, x64.PERMD, x64.PERMQV), n, index, rows[0])
}

// halfOf returns the first or second halves of the parts of two vectors, each half of so many bytes.
func (g *gen) halfOf(n uint8, x, y val, bytes, second int) val {
	both := func(op x64.Op, first, second0 byte) val {
		return g.op2i(op, n, x, y, []byte{first, second0}[second])
	}
	switch {
	case bytes == 32:
		return both(x64.SHUFF64X2, 0x44, 0xee)
	case bytes == 16 && n == 64:
		return both(x64.SHUFF64X2, 0x88, 0xdd)
	case bytes == 16:
		return both(x64.SHUFF64X2, 0, 3)
	case bytes == 8:
		return both(x64.SHUFPS, 0x44, 0xee)
	}
	return both(x64.SHUFPS, 0x88, 0xdd)
}

// joinedRows returns the rows of the halves that halfOf returns.
func joinedRows(x, y []int, bytes int) (rows []int) {
	each := len(x) // of x before the next of y
	if bytes < 16 {
		each = 8 / bytes
	}
	for i := 0; i < len(x); i += each {
		rows = append(append(rows, x[i:i+each]...), y[i:i+each]...)
	}
	return rows
}
