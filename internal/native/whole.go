package native

import (
	"github.com/loris-ml/loris/internal/loop"
)

const (
	// mostWhole is how many vectors a row has at most that is gone through without a loop over its columns, and
	// mostOfWhole how many instructions a kernel: beside longer ones the loop costs little.
	mostWhole, mostOfWhole = 4, 24
)

// Whole reports whether there is code of a level for a kernel with a Width that has all vectors of a row in a line:
// for rows of several vectors that are not Short.
func Whole(k *loop.Kernel, isa ISA) bool {
	lanes := lanesOf(k, isa)
	return k.Axis == loop.None && len(k.Passes) == 1 && len(k.Instrs) <= mostOfWhole &&
		k.Width > 16 && k.Width <= mostWhole*lanes && (isa == AVX512 || k.Width%lanes == 0)
}

// alongWhole emits a kernel whose rows have all their vectors in a line.
func (g *gen) alongWhole(p *pass) {
	vectors, rest := g.k.Width/g.lanes, g.k.Width%g.lanes
	hoisted := g.capture(func() { g.hoist(p) })
	_, held := g.copiesOf(g.capture(func() { g.body(p, 1) }))
	row := g.capture(func() {
		g.stored = map[int]val{}
		g.body(p, vectors)
		if rest > 0 {
			g.unit, g.tail, g.behind = vectors, true, true
			g.startTail()
			g.bodyOf(p, nil)
			g.unit, g.tail, g.behind = 0, false, false
		}
		g.stored = nil
	})
	g.rewind()
	g.keepRemainder()
	g.asm.MovImm(column, 0)
	g.pinFor(p, row, held)
	g.rowLoop(func() {
		g.flush(hoisted)
		g.flush(row)
	})
	g.unpin()
}
