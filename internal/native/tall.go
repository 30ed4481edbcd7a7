package native

import (
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// Lines of few rows (loop.Kernel.Height) are gone through without a loop over the rows: what is reduced stays in
// registers, and what is read of a row is still there in later passes. Where the elements of a line adjoin in memory,
// the vectors that a block of lines lies in are read whole and taken apart (columns.go).

const (
	// mostTall is how many rows there are at most, and mostOfTall how many instructions in the bodies of all of them:
	// beside more the loop costs little.
	mostTall, mostOfTall = 8, 240
)

// Tall reports whether there is code of a level for a kernel with a Height that has all rows of a line in a line.
func Tall(k *loop.Kernel, isa ISA) bool {
	if isa != AVX512 || k.Axis != loop.Rows && k.Axis != loop.None || k.Height < 1 || k.Height > mostTall {
		return false
	}
	bodies := 0
	for p := range k.Passes {
		bodies += len(k.Passes[p].Body)
		for _, v := range k.Passes[p].Final {
			if in := &k.Instrs[v]; (in.Code == loop.Load || in.Code == loop.Store) && k.Args[in.Arg].Cols == loop.Free {
				return false
			}
		}
	}
	if bodies*k.Height > mostOfTall {
		return false
	}
	for i := range k.Args {
		a := &k.Args[i]
		if a.By > 0 {
			return false
		}
		if a.Cols != loop.Free {
			continue
		}
		c := columnsOf(k, i)
		if !c.near() && (a.Write || a.DType.Size() < 4) || a.Write && (!c.adjoin || c.step != k.Height) {
			return false
		}
	}
	return true
}

// tallRows is what is known of the rows of a block of lines while they are lowered.
type tallRows struct {
	row   int           // the present one
	read  map[int][]val // by operand: what was read of each row, none where it was not
	write map[int][]val // by result whose lines adjoin: what is to be written
}

// alongTall emits a kernel whose lines are taken whole.
func (g *gen) alongTall(passes []*pass) {
	a := g.asm
	block := func(unit int) func() {
		return func() {
			g.unit = unit
			g.tallBlock(passes)
			g.unit = 0
		}
	}
	single := g.capture(block(0))
	copies, held := g.copiesOf(single)
	main := single
	if copies > 1 {
		main = g.capture(func() {
			parts := make([]region, copies)
			for u := range parts {
				parts[u] = g.capture(block(u))
			}
			g.interleave(parts)
		})
	}
	g.tail = true
	tail := g.capture(func() {
		g.startTail()
		g.tallBlock(passes)
	})
	g.tail = false
	g.pinFor(passes[0], main, held)
	g.planeLoop(func() {
		g.rewind()
		a.MovImm(column, 0)
		g.countedLoop(main, copies)
		if copies > 1 {
			g.countedLoop(single, 1)
		}
		done := a.Label()
		g.remainder(done)
		g.flush(tail)
		a.Bind(done)
	})
	g.unpin()
}

// tallBlock lowers all passes on a vector of lines.
func (g *gen) tallBlock(passes []*pass) {
	g.tall = &tallRows{read: map[int][]val{}, write: map[int][]val{}}
	for _, p := range passes {
		folds := make([][][]val, len(p.reds))
		for arg := range g.tall.read {
			if g.k.Args[arg].Write {
				delete(g.tall.read, arg)
			}
		}
		for row := range g.k.Height {
			g.tall.row = row
			g.bodyOf(p, folds)
		}
		g.tall.row = 0
		g.writeColumns()
		for i, r := range p.reds {
			g.values[r.v] = g.foldRows(r, folds[i])
		}
		g.final = true
		for _, v := range p.Final {
			g.lower(v)
		}
		g.final = false
	}
	g.tall = nil
}

// foldRows returns the result of a reduction of what all rows gave to it: the one that a loop over the rows finds.
func (g *gen) foldRows(r *reduction, rows [][]val) val {
	if r.joinsRows() {
		// A sum of f32s that begins with 0 is never -0.
		return g.op2(x64.ADDPS, g.vl(4), g.sumRows(r, rows), g.konst(4, 0))
	}
	var acc []val
	switch {
	case r.double:
		acc = r.widened(g, rows[0])
		for _, x := range rows[1:] {
			acc = r.foldWide(g, acc, r.widened(g, x))
		}
	case r.arg:
		acc = g.identities(r)
		for _, x := range rows {
			acc = r.later(g, acc, x)
		}
	case r.early:
		acc = rows[0]
		for _, x := range rows[1:] {
			acc = r.fold(g, acc, x)
		}
	default:
		acc = g.identities(r)
		for _, x := range rows {
			acc = r.fold(g, acc, x)
		}
	}
	r.acc = [][]val{acc}
	return g.finish(r, 0)
}

// sumRows adds up rows of f32s, two at a time before they are made f64. The sum of two such pairs that is rounded to f32
// is their sum as f32s.
func (g *gen) sumRows(r *reduction, rows [][]val) val {
	var pairs [][]val
	for i := 0; i < len(rows); i += 2 {
		x := rows[i]
		if i+1 < len(rows) {
			x = r.fold(g, x, rows[i+1])
		}
		pairs = append(pairs, x)
	}
	switch len(pairs) {
	case 1:
		return pairs[0][0]
	case 2:
		return r.fold(g, pairs[0], pairs[1])[0]
	}
	acc := g.halves(x64.CVTPS2PD, pairs[0][0])
	for _, x := range pairs[1:] {
		acc = r.foldWide(g, acc, g.halves(x64.CVTPS2PD, x[0]))
	}
	return g.joined(x64.CVTPD2PS, acc)
}
