package native

// The operations of a body mostly depend on each other, and the processor looks ahead by few of
// them. Hence copies of a body are interleaved, operation by operation, as far as registers
// suffice.

const (
	// mostInterleaved bounds the operations of interleaved copies together: what
	// compiling them may take.
	mostInterleaved = 1400
	// mostHeld is how many quarters of the registers interleaved copies may hold; the rest is
	// for constants and accumulators.
	mostHeld = 3
)

// copiesOf returns how often a body is repeated in its loop, and how many vector
// registers the copies hold at once if they are interleaved; 0 if they are not.
// The overhead of the loop is small beside long bodies.
func (g *gen) copiesOf(body region) (copies, held int) {
	for _, copies := range []int{4, 3, 2} {
		if held, ok := g.interleaves(body, copies); ok && copies*len(body) <= mostInterleaved {
			return copies, held
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

// interleaves reports whether copies of a body can be interleaved without saving
// registers to memory for it, and how many vector registers they hold. The bounce
// buffer is one for all of them.
func (g *gen) interleaves(body region, copies int) (held int, ok bool) {
	for i := range body {
		if body[i].mem == bounce {
			return 0, false
		}
	}
	vecs, masks := g.pressure(body)
	return copies * vecs, copies*vecs <= len(g.regs[0].order)*mostHeld/4 && copies*masks <= len(g.regs[1].order)
}

// pressure returns how many vector and mask registers the values of a region need at once.
func (g *gen) pressure(ops region) (vecs, masks int) {
	g.findUses(ops)
	var live [2]int
	in := map[val]bool{}
	file := func(v val) int {
		if g.vals[v].mask && g.evex() {
			return 1
		}
		return 0
	}
	for i := range ops {
		o := &ops[i]
		for k, v := range [5]val{o.t, o.a, o.b, o.c, o.dst} {
			if v == none || g.vals[v].kind != temp {
				continue
			}
			if k == 4 && !in[v] {
				in[v] = true
				live[file(v)]++
				vecs, masks = max(vecs, live[0]), max(masks, live[1])
			}
			if in[v] && o.next[k] == never {
				delete(in, v)
				live[file(v)]--
			}
		}
	}
	return vecs, masks
}

// interleaved joins copies of a body.
func (g *gen) interleaved(copies []region) region {
	if len(copies) == 1 {
		return copies[0]
	}
	var all region
	if _, ok := g.interleaves(copies[0], len(copies)); !ok {
		for _, c := range copies {
			all = append(all, c...)
		}
		return all
	}
	for i := range copies[0] {
		for _, c := range copies {
			all = append(all, c[i])
		}
	}
	return all
}
