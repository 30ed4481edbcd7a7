package native

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// region is operations lowered for one place of the loops.
type region []vop

// capture lowers with f and returns what it appended. Regions lie one behind the other in memory.
func (g *gen) capture(f func()) region {
	saved := g.ops
	g.ops = saved[len(saved):]
	f()
	out := g.ops
	g.lowered += len(out)
	if g.ops = saved[:len(saved):len(saved)]; len(saved) == 0 {
		g.ops = out[len(out):]
	}
	return out[:len(out):len(out)]
}

// pass is a Pass as it is compiled: with its reductions, and the values of its
// body that are the same for a whole row.
type pass struct {
	*loop.Pass
	last    bool // no pass comes after it
	reds    []*reduction
	fixed   []loop.Value
	varying []loop.Value
	ahead   []int // operands whose next row is fetched in this pass
}

// split parts a body. Values of a row's own are hoisted out of the loop over
// columns; along Rows that loop is outside, and nothing but constants is fixed.
func (g *gen) split(p *loop.Pass) *pass {
	out := &pass{Pass: p}
	for _, v := range p.Body {
		in := &g.k.Instrs[v]
		if g.k.Axis != loop.Rows && !g.lines && g.isUniform(in) {
			g.uniform[v] = true
			if in.Code != loop.Const {
				out.fixed = append(out.fixed, v)
			}
			continue
		}
		if in.Code != loop.Const {
			out.varying = append(out.varying, v)
		}
	}
	return out
}

func (g *gen) isUniform(in *loop.Instr) bool {
	switch in.Code {
	case loop.Load:
		a := &g.k.Args[in.Arg]
		if g.short {
			return a.RowStep == 0 && !a.Write && a.By == 0
		}
		return a.Cols == loop.Fixed && !a.Write
	case loop.Const:
		return true
	case loop.Apply, loop.Round:
		for _, o := range in.In[:in.N] {
			if !g.uniform[o] {
				return false
			}
		}
		return true
	}
	return false
}

// body lowers copies of the varying part of a pass.
func (g *gen) body(p *pass, copies int) {
	for i, xs := range g.folds(p, copies) {
		g.accumulate(p.reds[i], xs)
	}
}

// folds lowers copies of the varying part of a pass, and returns what each gives to the reductions.
func (g *gen) folds(p *pass, copies int) [][][]val {
	folds := make([][][]val, len(p.reds))
	if copies == 1 {
		g.unit = 0
		g.bodyOf(p, folds)
		return folds
	}
	parts := make([]region, copies)
	for u := range parts {
		g.unit = u
		parts[u] = g.capture(func() { g.bodyOf(p, folds) })
	}
	g.interleave(parts)
	g.unit = 0
	return folds
}

// twoRows lowers copies of the varying part of a pass of which lines are columns, for two rows.
func (g *gen) twoRows(p *pass, copies int) {
	first := g.folds(p, copies)
	g.scalar(func() {
		g.advance()
		g.enterRow()
	})
	second := g.folds(p, copies)
	for i, r := range p.reds {
		for u := range copies {
			x, y := first[i][u], second[i][u]
			if r.joinsRows() {
				g.foldInto(r, r.acc[u], r.fold(g, x, y))
				continue
			}
			g.foldInto(r, r.acc[u], x)
			g.foldInto(r, r.acc[u], y)
		}
	}
}

// rowsInTwos emits a loop over rows, two at a time, and the one that is left.
func (g *gen) rowsInTwos(two, one region) {
	a := g.asm
	left, take := g.countRows()
	top, last, end := a.Label(), a.Label(), a.Label()
	a.ArithImm(x64.Cmp, left, 2)
	a.JumpIf(x64.Less, last)
	a.Bind(top)
	g.enterRow()
	g.flush(two)
	g.advance()
	take(2)
	a.ArithImm(x64.Cmp, left, 2)
	a.JumpIf(x64.GreatEq, top)
	a.Bind(last)
	a.ArithImm(x64.Cmp, left, 1)
	a.JumpIf(x64.Less, end)
	g.enterRow()
	g.flush(one)
	g.advance()
	a.Bind(end)
}

// lastTwo lowers a copy of the varying part of a pass and the tail behind it.
func (g *gen) lastTwo(p *pass) {
	folds := make([][][]val, len(p.reds))
	g.unit = 0
	g.bodyOf(p, folds)
	g.unit, g.tail, g.behind = 1, true, true
	g.startTail()
	g.bodyOf(p, folds)
	for i, r := range p.reds {
		g.accumulate(r, folds[i])
	}
	g.unit, g.tail, g.behind = 0, false, false
}

// bodyOf lowers one copy and adds what it gives to reductions.
func (g *gen) bodyOf(p *pass, folds [][][]val) {
	for _, arg := range p.ahead {
		g.fetchAhead(arg)
	}
	i := 0
	for _, v := range p.varying {
		if g.factors.has(v) && !g.tail {
			continue
		}
		if g.k.Instrs[v].Code == loop.Reduce {
			folds[i] = append(folds[i], g.folded(p.reds[i]))
			i++
			continue
		}
		g.lower(v)
	}
}

// setTailMask emits what sets the mask of a tail, with AVX-512.
func (g *gen) setTailMask() {
	g.asm.MovLoad(x64.RBX, inSpill(atTail))
	g.maskFirst()
}

// maskFirst emits what makes the mask of a tail that of as many lanes as RBX says, from the first on.
func (g *gen) maskFirst() {
	g.asm.MovImm(x64.RAX, -1)
	g.asm.(*x64.Asm).Bzhi(x64.RAX, x64.RAX, x64.RBX)
	g.setMask()
}

// startTail lowers what the operations of a tail need. Lines along columns have the mask of AVX-512 already.
func (g *gen) startTail() {
	if g.packed > 0 {
		return
	}
	if g.evex() {
		if g.k.Axis == loop.Rows || g.lines {
			g.scalar(g.setTailMask)
		}
		return
	}
	ones := g.lanesOf("tails", 4, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0)
	g.scalar(func() {
		g.asm.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: g.vals[ones].lbl})
		g.asm.MovImm(x64.RBX, 8)
		g.asm.ArithLoad(x64.Sub, x64.RBX, inSpill(atTail))
	})
	n := max(g.vl(4), 16)
	m := x64.Mem{Base: x64.RAX, Index: x64.RBX, Scale: 4}
	g.tails[0] = g.add(vop{op: x64.MOVUPS, len: n, dst: g.temp(n), mem: g.addr(place{arg: -1, mem: m})})
	if g.wide {
		g.tails[1] = g.op1(x64.PMOVSXDQ, g.vl(8), g.tails[0])
	}
}

// finals lowers the results of a pass's reductions and its Final, for one copy.
func (g *gen) finals(p *pass, unit int) {
	g.unit = unit
	for _, r := range p.reds {
		if x := g.finish(r, unit); p.last {
			g.values[r.v] = x
		} else {
			g.setHome(r.v, x)
		}
	}
	g.final = true
	for _, v := range p.Final {
		g.lower(v)
		if in := &g.k.Instrs[v]; !p.last && in.Code != loop.Store && in.Code != loop.Const {
			g.setHome(v, g.values[v])
		}
	}
	g.final = false
	g.unit = 0
}

// setHome makes a value known beyond its region.
func (g *gen) setHome(v loop.Value, x val) {
	g.keepAs(homeKey{v, g.homeUnit()}, x)
}

// keepAs makes x known beyond its region by a key.
func (g *gen) keepAs(key homeKey, x val) {
	h, ok := g.homes[key]
	if !ok {
		h = g.newHome(x)
		g.homes[key] = h
	}
	g.set(h, x)
}

// hoist lowers the values of a row's own.
func (g *gen) hoist(p *pass) {
	for _, v := range p.fixed {
		g.lower(v)
	}
	used := map[loop.Value]bool{}
	for _, v := range p.varying {
		in := &g.k.Instrs[v]
		for _, o := range in.In[:in.N] {
			used[o] = true
		}
	}
	for _, v := range p.fixed {
		if used[v] {
			g.setHome(v, g.values[v])
		}
	}
	for _, v := range p.varying {
		g.hoistReciprocal(v)
	}
}

// columnLoop emits the loops over the columns of one row: over whole groups of
// copies, over whole vectors, and the tail.
func (g *gen) columnLoop(p *pass, r *regions) {
	a := g.asm
	a.MovImm(column, 0)
	if r.stream != nil {
		slow, done := a.Label(), a.Label()
		g.checkAligned(p, slow)
		g.countedLoop(r.stream, r.copies)
		a.Jump(done)
		a.Bind(slow)
		g.countedLoop(r.main, r.copies)
		a.Bind(done)
	} else {
		g.countedLoop(r.main, r.copies)
	}
	if r.pair != nil {
		g.countedLoop(r.pair, 2)
	}
	done := a.Label()
	if r.last != nil {
		alone := a.Label()
		a.Lea(x64.RAX, x64.At(column, int32(g.lanes)))
		a.ArithLoad(x64.Cmp, x64.RAX, inFrame(frameCols))
		a.JumpIf(x64.GreatEq, alone)
		g.flush(r.last)
		a.Jump(done)
		a.Bind(alone)
	}
	if r.copies > 1 {
		g.countedLoop(r.single, 1)
	}
	a.ArithLoad(x64.Cmp, column, inFrame(frameCols))
	a.JumpIf(x64.GreatEq, done)
	g.flush(r.tail)
	a.Bind(done)
}

// keepRemainder keeps how many columns the tails of all rows have, and with AVX-512 their mask.
func (g *gen) keepRemainder() {
	a := g.asm
	a.MovLoad(x64.RAX, inFrame(frameCols))
	a.ArithImm(x64.And, x64.RAX, int32(g.lanes-1))
	a.MovStore(inSpill(atTail), x64.RAX)
	if g.evex() {
		g.setTailMask()
	}
}

// countedLoop emits a loop while copies of a vector of columns are left.
func (g *gen) countedLoop(r region, copies int) {
	a := g.asm
	top, check := a.Label(), a.Label()
	step := int32(copies * g.lanes)
	a.Jump(check)
	a.Bind(top)
	g.flush(r)
	a.ArithImm(x64.Add, column, step)
	a.Bind(check)
	a.Lea(x64.RAX, x64.At(column, step))
	a.ArithLoad(x64.Cmp, x64.RAX, inFrame(frameCols))
	a.JumpIf(x64.LessEq, top)
}

// remainder keeps how many columns are left, and jumps if none are.
func (g *gen) remainder(done x64.Label) {
	a := g.asm
	a.MovLoad(x64.RAX, inFrame(frameCols))
	a.Arith(x64.Sub, x64.RAX, column)
	a.JumpIf(x64.LessEq, done)
	a.MovStore(inSpill(atTail), x64.RAX)
}

// checkAligned jumps if an operand that is to be stored past the cache is not
// aligned for it.
func (g *gen) checkAligned(p *pass, slow x64.Label) {
	a := g.asm
	for _, v := range p.Body {
		in := &g.k.Instrs[v]
		if in.Code != loop.Store || !g.streams(in.Arg) {
			continue
		}
		g.fenced = true
		a.TestImm(g.pointer(in.Arg, x64.RAX), int32(g.vl(g.k.Args[in.Arg].DType.Size()))-1)
		a.JumpIf(x64.NotZero, slow)
	}
}

// advance moves all operands to the next row.
func (g *gen) advance() {
	a := g.asm
	for i := range g.k.Args {
		if g.k.Args[i].By > 0 {
			if g.k.Args[i].Moves {
				a.MovLoad(x64.RAX, inFrame(frameRow+8*int32(i)))
				a.ArithStore(x64.Add, inSpill(atUnchosen+8*int32(i)), x64.RAX)
			}
			continue
		}
		if r := g.args[i]; r != x64.NoReg {
			a.ArithLoad(x64.Add, r, inFrame(frameRow+8*int32(i)))
			continue
		}
		a.MovLoad(x64.RAX, inFrame(frameRow+8*int32(i)))
		a.ArithStore(x64.Add, inSpill(atPointers+8*int32(i)), x64.RAX)
	}
	if !g.indexed {
		return
	}
	if g.k.Axis == loop.Rows {
		a.MovImm(x64.RAX, 1)
	} else {
		a.MovLoad(x64.RAX, inFrame(frameCols))
	}
	a.ArithStore(x64.Add, inSpill(atIndex), x64.RAX)
}

// rewind moves all operands to the first row.
func (g *gen) rewind() {
	a := g.asm
	for i := range g.k.Args {
		first := inFrame(framePtr + 8*int32(i))
		if g.k.Planes {
			first = inSpill(atPlane + 8*int32(i))
		}
		if g.k.Args[i].By > 0 && !g.short {
			if g.k.Args[i].Moves {
				a.MovLoad(x64.RAX, first)
				a.MovStore(inSpill(atUnchosen+8*int32(i)), x64.RAX)
			}
			continue
		}
		if r := g.args[i]; r != x64.NoReg {
			a.MovLoad(r, first)
			continue
		}
		a.MovLoad(x64.RAX, first)
		a.MovStore(inSpill(atPointers+8*int32(i)), x64.RAX)
	}
	if g.indexed {
		a.MovImm(x64.RAX, 0)
		a.MovStore(inSpill(atIndex), x64.RAX)
	}
}

// planeLoop emits body for each grid of a call.
func (g *gen) planeLoop(body func()) {
	if !g.k.Planes {
		body()
		return
	}
	a := g.asm
	for i := range g.k.Args {
		a.MovLoad(x64.RAX, inFrame(framePtr+8*int32(i)))
		a.MovStore(inSpill(atPlane+8*int32(i)), x64.RAX)
	}
	a.MovLoad(x64.RAX, inFrame(framePlanes))
	a.MovStore(inSpill(atPlanes), x64.RAX)
	top := a.Label()
	a.Bind(top)
	body()
	for i := range g.k.Args {
		a.MovLoad(x64.RAX, inFrame(framePlane+8*int32(i)))
		a.ArithStore(x64.Add, inSpill(atPlane+8*int32(i)), x64.RAX)
	}
	a.MovLoad(x64.RAX, inSpill(atPlanes))
	a.ArithImm(x64.Sub, x64.RAX, 1)
	a.MovStore(inSpill(atPlanes), x64.RAX)
	a.JumpIf(x64.Greater, top)
}

// rowLoop emits body for each row and goes on to the next; it ends beyond the
// last.
func (g *gen) rowLoop(body func()) {
	a := g.asm
	top := a.Label()
	_, take := g.countRows()
	a.Bind(top)
	g.enterRow()
	body()
	g.advance()
	take(1)
	a.JumpIf(x64.Greater, top)
}

// countRows has the rows that are still to do in a register, for which the loops use RAX where they have none of
// their own. It returns that, and what takes some off, with the flags of what is left.
func (g *gen) countRows() (left x64.Reg, take func(rows int32)) {
	a := g.asm
	left, inMemory := g.rows, g.rows == x64.NoReg
	if inMemory {
		left = x64.RAX
	}
	a.MovLoad(left, inFrame(frameRows))
	if inMemory {
		a.MovStore(inSpill(atRows), left)
	}
	return left, func(rows int32) {
		if inMemory {
			a.MovLoad(left, inSpill(atRows))
		}
		a.ArithImm(x64.Sub, left, rows)
		if inMemory {
			a.MovStore(inSpill(atRows), left)
		}
	}
}
