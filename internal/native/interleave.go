package native

import (
	"slices"

	"github.com/loris-ml/loris/internal/loop"
)

// The operations of a body mostly depend on each other, and the processor looks ahead by few of
// them. Hence copies of a body are interleaved, operation by operation, as far as registers
// suffice.

const (
	// mostInterleaved bounds the operations of interleaved copies together: what
	// compiling them may take.
	mostInterleaved = 1400
	// mostHeld is how many eighths of the registers interleaved copies may hold; the rest is for constants and
	// accumulators. mostHeld512 is that with AVX-512 where nothing is accumulated: a constant in memory costs nothing there.
	mostHeld, mostHeld512 = 6, 7
	// mostHeldAVX2 is that with AVX2 where nothing is accumulated, and mostHeldByTwo of two copies there: with few registers,
	// long bodies wait for their operations longer than saving some takes.
	mostHeldAVX2, mostHeldByTwo = 10, 18
	// mostSavedMasks is how many masks such copies may have in memory: masks are used late, and seldom.
	mostSavedMasks = 3
)

// copiesOf returns how often a body is repeated in its loop, and how many vector
// registers the copies hold at once if they are interleaved; 0 if they are not.
// The overhead of the loop is small beside long bodies.
func (g *gen) copiesOf(body region) (copies, held int) {
	held1, masks1, ok := g.heldBy(body)
	for _, copies := range []int{4, 3, 2} {
		if ok && copies*len(body) <= mostInterleaved && g.fits(copies, held1, masks1) {
			return copies, copies * held1
		}
	}
	switch n := len(body); {
	case n <= 20:
		return 4, 0
	case n <= 60:
		return 2, 0
	}
	return 1, 0
}

// heldBy returns how many vector and mask registers a copy of a body holds, if copies can be
// interleaved at all: the bounce buffer is one for all of them, and a loop can't hold another's turns.
func (g *gen) heldBy(body region) (vecs, masks int, ok bool) {
	for i := range body {
		if body[i].mem == bounce || body[i].loops {
			return 0, 0, false
		}
	}
	vecs, masks = g.pressure(body)
	return vecs, masks, true
}

// fits reports whether copies that hold so many registers each can be interleaved without saving too many
// registers to memory for it.
func (g *gen) fits(copies, vecs, masks int) bool {
	most, mostMasks := mostHeld, len(g.regs[1].order)
	switch {
	case g.k.Axis != loop.None:
	case g.evex():
		most, mostMasks = mostHeld512, mostMasks+mostSavedMasks
	case g.isa == AVX2 && copies == 2:
		most = mostHeldByTwo
	case g.isa == AVX2:
		most = mostHeldAVX2
	}
	return copies*vecs <= len(g.regs[0].order)*most/8 && copies*masks <= mostMasks
}

// pressure returns how many vector and mask registers the values of a region need at once.
func (g *gen) pressure(ops region) (vecs, masks int) {
	g.findUses(ops)
	var live [2]int
	for i := range ops {
		o := &ops[i]
		for k, v := range [5]val{o.t, o.a, o.b, o.c, o.dst} {
			in := &g.vals[v]
			if v == none || in.kind != temp {
				continue
			}
			file := 0
			if in.mask && g.evex() {
				file = 1
			}
			if k == 4 && !in.live {
				in.live = true
				live[file]++
				vecs, masks = max(vecs, live[0]), max(masks, live[1])
			}
			if in.live && o.next[k] == never {
				in.live = false
				live[file]--
			}
		}
	}
	return vecs, masks
}

// interleave appends several copies of a body to the region.
func (g *gen) interleave(copies []region) {
	n := len(copies)
	g.ops = slices.Grow(g.ops, n*len(copies[0]))
	vecs, masks, ok := g.heldBy(copies[0])
	if !ok || !g.fits(n, vecs, masks) {
		for _, c := range copies {
			g.ops = append(g.ops, c...)
		}
		return
	}
	for i := range copies[0] {
		for _, c := range copies {
			g.ops = append(g.ops, c[i])
		}
	}
}
