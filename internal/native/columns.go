package native

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// mostNear is how far the elements of neighbouring lines are apart at most that are read by vectors.
const mostNear = 8

// columns is how lines lie in an operand of a kernel with a Height.
type columns struct {
	step   int  // from one line to the next, in elements
	adjoin bool // the elements of a line adjoin
}

func columnsOf(k *loop.Kernel, arg int) columns {
	a := &k.Args[arg]
	return columns{step: int(a.ColStep), adjoin: a.RowStep == 1 && int(a.ColStep) >= k.Height}
}

// near reports whether a block of lines lies in few vectors.
func (c *columns) near() bool { return c.step > 1 && c.step <= mostNear }

// rowBytes is how far the present row of an operand is from the first, or after how many rows it is where only the Frame
// has their stride.
func (g *gen) rowBytes(arg int) (bytes, rows int32) {
	if g.tall == nil || g.final {
		return 0, 0
	}
	a := &g.k.Args[arg]
	if a.RowStep == loop.Far {
		return 0, int32(g.tall.row)
	}
	return int32(g.tall.row*a.DType.Size()) * a.RowStep, 0
}

// keepsRows reports whether what is read of an operand is kept for other rows and passes: what is the same for all rows,
// and what takes more than a load.
func (g *gen) keepsRows(arg int) bool {
	a := &g.k.Args[arg]
	return g.tall != nil && !g.final && (a.RowStep == 0 || a.Cols == loop.Free)
}

// readOnce is readNow of what is kept.
func (g *gen) readOnce(arg int) val {
	a, t := &g.k.Args[arg], g.tall
	rows := t.read[arg]
	if rows == nil {
		rows = make([]val, g.k.Height)
		t.read[arg] = rows
	}
	at := t.row
	if a.RowStep == 0 {
		at = 0
	}
	if rows[at] != none {
		return rows[at]
	}
	c := columnsOf(g.k, arg)
	switch {
	case a.Cols != loop.Free || !c.near():
		rows[at] = g.readNow(arg)
	case c.adjoin && at == 0:
		copy(rows, g.readColumns(arg, c.step, g.k.Height))
	default:
		rows[at] = g.readColumns(arg, c.step, 1)[0]
	}
	return rows[at]
}

// readColumns loads a vector of lines whose first elements are so many apart: as many elements of each, from that of the
// present row on.
func (g *gen) readColumns(arg, step, rows int) []val {
	d := g.k.Args[arg].DType
	size := d.Size()
	stored := d
	if d == ir.Bool {
		stored = ir.U8
	}
	vectors := make([]val, step)
	for j := range vectors {
		p := g.columnPart(arg, j)
		if m := g.columnMask(step, rows, j); m != none {
			n := max(g.vl(size), 16)
			v := g.add(vop{op: maskedLoads[size], len: n, dst: g.temp(n), mem: p, c: m, zero: true})
			vectors[j] = g.widen(stored, v, 0)
		} else {
			vectors[j] = g.widen(stored, none, p)
		}
	}
	want := make([]bool, step)
	for r := range rows {
		want[r] = true
	}
	lines := g.takeApart(max(size, 4), vectors, want)[:rows]
	if d == ir.Bool {
		for r := range lines {
			lines[r] = g.nonZero(4, lines[r])
		}
	}
	return lines
}

// writeColumns stores the results whose lines adjoin, of all rows.
func (g *gen) writeColumns() {
	var args []int
	for arg := range g.tall.write {
		args = append(args, arg)
	}
	slices.Sort(args)
	for _, arg := range args {
		rows, d := g.tall.write[arg], g.k.Args[arg].DType
		delete(g.tall.write, arg)
		size, stored := d.Size(), d
		if d == ir.Bool {
			stored = ir.U8
			for r := range rows {
				rows[r] = g.pick(rows[r], 4, 1)
			}
		}
		for j, v := range g.putTogether(max(size, 4), rows) {
			m := g.columnMask(len(rows), len(rows), j)
			if m == none {
				m = g.constLanes(uint16(1<<g.lanes - 1))
			}
			g.add(vop{op: maskedStores[size], len: max(g.vl(size), 16), b: g.narrow(stored, v), mem: g.columnPart(arg, j), c: m, store: true})
		}
	}
}

// columnPart is the place of vector j of those that a block of lines lies in, from the present row on.
func (g *gen) columnPart(arg, j int) addr {
	size := g.k.Args[arg].DType.Size()
	beyond, rows := g.rowBytes(arg)
	return g.addr(place{arg: arg, free: true, disp: int32(g.unit * g.lanes), rows: rows, beyond: beyond + int32(j*g.lanes*size)})
}

// columnMask is the mask of the lanes of vector j that some rows of lines so far apart are in, with what is between them;
// none where these are all.
func (g *gen) columnMask(step, rows, j int) val {
	lanes := func(lines int) (mask uint16) {
		n := (lines-1)*step + rows - j*g.lanes
		return uint16(1<<max(min(n, g.lanes), 0) - 1)
	}
	if !g.tail {
		if m := lanes(g.lanes); m != uint16(1<<g.lanes-1) {
			return g.constLanes(m)
		}
		return none
	}
	table := g.poolVal(poolKey{w: 2, name: fmt.Sprint("columns ", step, rows, j)}, func(b []byte) []byte {
		for lines := range g.lanes + 1 {
			b = binary.LittleEndian.AppendUint16(b, lanes(lines))
		}
		return b
	})
	g.scalar(func() {
		g.asm.Lea(x64.RAX, x64.Mem{Index: x64.NoReg, Label: g.vals[table].lbl})
		g.asm.MovLoad(x64.RBX, inSpill(atTail))
	})
	m := x64.Mem{Base: x64.RAX, Index: x64.RBX, Scale: 2}
	return g.add(vop{op: x64.KMOVWld, len: 16, dst: g.maskTemp(), mem: g.addr(place{arg: -1, mem: m})})
}

// takeApart returns, of elements of w bytes in vectors one behind the other, those whose number leaves each wanted rest when
// it is divided by the number of vectors.
func (g *gen) takeApart(w int, vectors []val, want []bool) []val {
	step, n := len(vectors), g.vl(w)
	out := make([]val, step)
	switch {
	case step == 1:
		return vectors
	case step%2 == 0:
		for odd := range 2 {
			var half []val
			var wanted []bool
			for r := odd; r < step; r += 2 {
				wanted = append(wanted, want[r])
			}
			if !slices.Contains(wanted, true) {
				continue
			}
			index := g.lanesBy(fmt.Sprint("seconds from ", odd), w, func(l int) int { return 2*l + odd })
			for j := 0; j < step; j += 2 {
				half = append(half, g.fma(by(w, x64.PERMT2D, x64.PERMT2Q), n, vectors[j], index, vectors[j+1]))
			}
			for i, v := range g.takeApart(w, half, wanted) {
				out[2*i+odd] = v
			}
		}
	default:
		// Each lane is that of a wanted element in one of the vectors.
		for r := range want {
			if !want[r] {
				continue
			}
			v := vectors[0]
			for j := 1; j < step; j++ {
				v = g.blend(w, g.everyLane(step, r-j*g.lanes), vectors[j], v)
			}
			index := g.lanesBy(fmt.Sprint("every ", step, r), w, func(l int) int { return (l*step + r) % g.lanes })
			out[r] = g.op2(by(w, x64.PERMD, x64.PERMQV), n, index, v)
		}
	}
	return out
}

// putTogether is the opposite of takeApart.
func (g *gen) putTogether(w int, rows []val) []val {
	step, n := len(rows), g.vl(w)
	out := make([]val, step)
	switch {
	case step == 1:
		return rows
	case step%2 == 0:
		var half [2][]val
		for r, v := range rows {
			half[r%2] = append(half[r%2], v)
		}
		for odd := range half {
			half[odd] = g.putTogether(w, half[odd])
		}
		for j := range out {
			from := j % 2 * g.lanes / 2
			index := g.lanesBy(fmt.Sprint("in turn from ", from), w, func(l int) int { return from + l/2 + l%2*g.lanes })
			out[j] = g.fma(by(w, x64.PERMT2D, x64.PERMT2Q), n, half[0][j/2], index, half[1][j/2])
		}
	default:
		for r, v := range rows {
			index := g.lanesBy(fmt.Sprint("spread ", step, r), w, func(l int) int {
				at := l
				for at%step != r {
					at += g.lanes
				}
				return at / step
			})
			v = g.op2(by(w, x64.PERMD, x64.PERMQV), n, index, v)
			for j := range out {
				if r == 0 {
					out[j] = v
				} else {
					out[j] = g.blend(w, g.everyLane(step, r-j*g.lanes), v, out[j])
				}
			}
		}
	}
	return out
}

// everyLane returns the mask of the lanes that are as many as first, but for multiples of step.
func (g *gen) everyLane(step, first int) val {
	mask := uint16(0)
	for l := range g.lanes {
		if (l-first)%step == 0 {
			mask |= 1 << l
		}
	}
	return g.constLanes(mask)
}

// lanesBy is lanesOf with a function.
func (g *gen) lanesBy(name string, w int, of func(lane int) int) val {
	list := make([]int, g.lanes)
	for l := range list {
		list[l] = of(l)
	}
	return g.lanesOf(name, w, list...)
}
