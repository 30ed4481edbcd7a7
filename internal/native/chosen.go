package native

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// The row of an operand with an index (loop.Arg.By) is found when the loops come to it: its pointer is set to that of
// the row, and where it would be without the index is kept apart. Where rows are taken several at a time each is
// found when it is read.

// wrongIndex is a jump out of the code, to where an index is noted that is out of range.
type wrongIndex struct {
	arg      int
	at, back x64.Label
}

// enterRow has operands with an index at the present row.
func (g *gen) enterRow() {
	for i := range g.k.Args {
		by := int(g.k.Args[i].By) - 1
		if by < 0 || g.short {
			continue
		}
		g.chosen(i, x64.At(g.pointer(by, x64.RAX), 0))
		from := inFrame(framePtr + 8*int32(i))
		switch {
		case g.k.Args[i].Moves:
			from = inSpill(atUnchosen + 8*int32(i))
		case g.k.Planes:
			from = inSpill(atPlane + 8*int32(i))
		}
		g.asm.ArithLoad(x64.Add, x64.RAX, from)
		if r := g.args[i]; r != x64.NoReg {
			g.asm.Mov(r, x64.RAX)
		} else {
			g.asm.MovStore(inSpill(atPointers+8*int32(i)), x64.RAX)
		}
	}
}

// chosen makes RAX what an index moves an operand by. One that is out of range is noted, and 0 is taken for it.
func (g *gen) chosen(arg int, index x64.Mem) {
	a := g.asm
	w := wrongIndex{arg, a.Label(), a.Label()}
	g.wrong = append(g.wrong, w)
	a.MovLoad(x64.RAX, index)
	a.ArithLoad(x64.Cmp, x64.RAX, inFrame(frameSize+8*int32(arg)))
	a.JumpIf(x64.AboveEq, w.at) // a negative index is a huge unsigned one
	a.Bind(w.back)
	a.IMulLoad(x64.RAX, inFrame(frameStep+8*int32(arg)))
}

// noteWrong emits what notes indices that are out of range, of which the first counts.
func (g *gen) noteWrong() {
	a := g.asm
	for _, w := range g.wrong {
		later := a.Label()
		a.Bind(w.at)
		a.MovLoad(x64.RBX, inSpill(atFault))
		a.ArithImm(x64.Cmp, x64.RBX, 0)
		a.JumpIf(x64.NotZero, later)
		a.MovStore(inSpill(atWrong), x64.RAX)
		a.MovImm(x64.RAX, int32(-1-w.arg))
		a.MovStore(inSpill(atFault), x64.RAX)
		a.Bind(later)
		a.MovImm(x64.RAX, 0)
		a.Jump(w.back)
	}
}

// choosable reports whether the rows of an operand with an index can be taken several at a time: they are one element,
// or a run of them.
func choosable(k *loop.Kernel, a *loop.Arg) bool {
	return !a.Moves && !a.Write && (a.ColStep == 0 || a.ColStep == 1 || k.Width == 1)
}

// chosenRow returns the address of one of the rows that are taken together. Rows that are not there are read as the last
// one is.
func (g *gen) chosenRow(p *place) x64.Mem {
	a, by := g.asm, int(g.k.Args[p.arg].By)-1
	step := 8 * g.k.Args[by].RowStep
	index := x64.At(x64.NoReg, p.row*step)
	if p.rest {
		there := a.Label()
		a.MovLoad(x64.RBX, inSpill(atRows))
		a.ArithImm(x64.Sub, x64.RBX, 1)
		a.ArithImm(x64.Cmp, x64.RBX, p.row)
		a.JumpIf(x64.LessEq, there)
		a.MovImm(x64.RBX, p.row)
		a.Bind(there)
		a.MovImm(x64.RAX, step)
		a.IMul(x64.RBX, x64.RAX)
		index = x64.Mem{Index: x64.RBX, Scale: 1}
	}
	index.Base = g.pointer(by, x64.RAX)
	g.chosen(p.arg, index)
	a.Arith(x64.Add, x64.RAX, g.pointer(p.arg, x64.RBX))
	return x64.At(x64.RAX, p.disp)
}

// readChosen loads an operand with an index of which rows are taken together: each row into its lanes of the vector.
func (g *gen) readChosen(arg int) val {
	a := &g.k.Args[arg]
	size, width := a.DType.Size(), g.k.Width
	rows, n := g.lanes/width, max(g.vl(a.DType.Size()), 16)
	op, back := maskedLoads[size], int32(size)
	if a.ColStep == 0 {
		op, back = broadcasts[size], 0
	}
	v := none
	for r := range rows {
		p := g.addr(place{arg: arg, row: int32(g.unit*rows + r), chosen: true, rest: g.rest && r > 0, disp: -int32(r*width) * back})
		switch {
		case width == g.lanes && a.ColStep != 0:
			return g.widen(a.DType, none, p)
		case rows == 1 && width == g.lanes:
			v = g.add(vop{op: op, len: n, dst: g.temp(n), mem: p})
		default:
			mask := g.constLanes(uint16((1<<width - 1) << (r * width)))
			v = g.add(vop{op: op, len: n, dst: g.temp(n), t: v, mem: p, c: mask, zero: v == none})
		}
	}
	return g.widen(a.DType, v, 0)
}
