package native

import (
	"slices"
	"sort"

	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/native/x64"
)

// regions are the bodies of a pass along columns.
type regions struct {
	copies                     int
	held                       int    // registers that interleaved copies need
	start                      region // accumulators, once for the line
	hoisted                    region // once a row
	main, stream, single, tail region
	pair                       region // two copies, where main has more and vectors are taken two at a time
	last                       region // a copy and the tail, where vectors are taken two at a time
	stores                     []int  // the operands whose tails may be stored with the vector before them
	finals                     region
}

// lowerPass lowers all regions of a pass of which a line is a row or everything.
func (g *gen) lowerPass(p *pass) *regions {
	r := &regions{copies: 1}
	paired := false
	r.start = g.capture(func() {
		for _, red := range p.reds {
			g.start(red, red.turns())
			paired = paired || red.paired
		}
	})
	r.hoisted = g.capture(func() { g.hoist(p) })
	r.single = g.capture(func() { g.body(p, 1) })
	r.main = r.single
	r.copies, r.held = g.copiesOf(r.single)
	if paired && r.copies%2 != 0 {
		r.copies, r.held = 2, 0
	}
	if r.copies > 1 {
		r.main = g.capture(func() { g.body(p, r.copies) })
	}
	if paired && r.copies > 2 {
		r.pair = g.capture(func() { g.body(p, 2) })
	}
	for _, v := range p.Body {
		if in := &g.k.Instrs[v]; in.Code == loop.Store && g.streams(in.Arg) && r.stream == nil {
			g.stream = true
			r.stream = g.capture(func() { g.body(p, r.copies) })
			g.stream = false
		}
	}
	g.tail, g.behind = true, true
	r.tail = g.capture(func() {
		g.startTail()
		g.body(p, 1)
	})
	r.stores = g.joinedStores(p.Body)
	g.tail, g.behind = false, false
	if paired {
		r.last = g.capture(func() { g.lastTwo(p) })
	}
	r.finals = g.capture(func() { g.finals(p, 0) })
	return r
}

// pinFor gives registers for the length of a pass to what its inner loop uses
// most: accumulators first, then values and constants. It leaves as many as are
// held by the loop itself. What has a value already is loaded.
func (g *gen) pinFor(p *pass, inner region, held int) {
	uses := map[val]int{}
	for i := range inner {
		for _, v := range [4]val{inner[i].t, inner[i].a, inner[i].b, inner[i].c} {
			if g.vals[v].kind != temp && (!g.vals[v].mask || !g.evex()) {
				uses[v]++
			}
		}
	}
	fresh := map[val]bool{} // has no value yet
	for _, r := range p.reds {
		for _, acc := range r.acc {
			for _, h := range acc {
				fresh[h] = true
				if uses[h] > 0 {
					uses[h] += 1000
				}
			}
		}
	}
	for _, v := range p.fixed {
		fresh[g.homes[homeKey{v, 0}]] = true
	}
	order := make([]val, 0, len(uses))
	for v := range uses {
		order = append(order, v)
	}
	sort.Slice(order, func(i, j int) bool {
		if a, b := uses[order[i]], uses[order[j]]; a != b {
			return a > b
		}
		return order[i] < order[j]
	})
	f := &g.regs[0]
	most := max(0, min(len(f.order)/2, len(f.order)-held))
	for _, v := range order[:min(most, len(order))] {
		f.free--
		g.vals[v].pin = f.order[f.free]
		if !fresh[v] {
			g.load(v)
		}
	}
}

// unpin ends pinFor.
func (g *gen) unpin() {
	for i := range g.vals {
		if val(i) != g.tails[0] || !g.evex() {
			g.vals[i].pin = x64.NoReg
		}
	}
	g.regs[0].free = len(g.regs[0].order)
}

// alongColumns emits a kernel of which a line is a row.
func (g *gen) alongColumns(passes []*pass) {
	all := make([]*regions, len(passes))
	for i, p := range passes {
		all[i] = g.lowerPass(p)
	}
	once := len(passes) == 1 // then what is pinned stays so for all rows
	g.rewind()
	g.keepRemainder()
	g.keepInPlace(all)
	if once {
		g.pinFor(passes[0], all[0].main, all[0].held)
	}
	g.rowLoop(func() {
		for i, p := range passes {
			r := all[i]
			if !once {
				g.pinFor(p, r.main, r.held)
			}
			g.flush(r.start)
			g.flush(r.hoisted)
			g.columnLoop(p, r)
			g.flush(r.finals)
			if !once {
				g.unpin()
			}
		}
	})
}

// overAll emits a kernel whose grid is one line.
func (g *gen) overAll(passes []*pass) {
	for _, p := range passes {
		r := g.lowerPass(p)
		g.rewind()
		g.keepRemainder()
		g.keepInPlace([]*regions{r})
		g.pinFor(p, r.main, r.held)
		g.flush(r.start)
		g.rowLoop(func() {
			g.flush(r.hoisted)
			g.columnLoop(p, r)
		})
		g.rewind()
		g.flush(r.finals)
		g.unpin()
	}
}

// alongRows emits a kernel of which a line is a column: blocks of columns go
// through all rows, with their accumulators in registers.
func (g *gen) alongRows(passes []*pass) {
	a := g.asm
	a.MovImm(column, 0)
	copies := g.rowCopies(passes)
	block := func(copies int) {
		for _, p := range passes {
			g.rowsPass(p, copies)
		}
	}
	whole := func(copies int) {
		top, check := a.Label(), a.Label()
		step := int32(copies * g.lanes)
		a.Jump(check)
		a.Bind(top)
		block(copies)
		a.ArithImm(x64.Add, column, step)
		a.Bind(check)
		a.Lea(x64.RAX, x64.At(column, step))
		a.ArithLoad(x64.Cmp, x64.RAX, inFrame(frameCols))
		a.JumpIf(x64.LessEq, top)
	}
	whole(copies)
	if copies > 1 {
		whole(1)
	}
	done := a.Label()
	g.remainder(done)
	g.tail = true
	block(1)
	g.tail = false
	a.Bind(done)
}

// rowCopies returns how many vectors of columns go through the rows together.
func (g *gen) rowCopies(passes []*pass) int {
	n, accs := 0, 0
	for _, p := range passes {
		n = max(n, len(p.varying))
		sum := 0
		for _, r := range p.reds {
			sum++
			if r.double || r.arg {
				sum++
			}
		}
		accs = max(accs, sum)
	}
	for _, copies := range []int{4, 2} {
		if copies*accs <= len(g.regs[0].order)/2 && n <= 16/copies*3 {
			return copies
		}
	}
	return 1
}

// rowsPass emits one pass for a block of columns.
func (g *gen) rowsPass(p *pass, copies int) {
	start := g.capture(func() {
		for _, r := range p.reds {
			g.start(r, copies)
		}
	})
	tails := g.tails
	var setup region
	if g.tail {
		setup = g.capture(g.startTail)
		if !g.evex() {
			// The masks are used in several regions.
			setup = append(setup, g.capture(g.keepTails)...)
		}
	}
	inner := g.capture(func() { g.body(p, copies) })
	var two region
	if slices.ContainsFunc(p.reds, (*reduction).joinsRows) {
		two = g.capture(func() { g.twoRows(p, copies) })
	}
	finals := g.capture(func() {
		for u := range copies {
			g.finals(p, u)
		}
	})
	g.rewind()
	g.flush(setup)
	g.pinFor(p, inner, 0)
	g.flush(start)
	if two != nil {
		g.rowsInTwos(two, inner)
	} else {
		g.rowLoop(func() { g.flush(inner) })
	}
	g.rewind()
	g.flush(finals)
	g.unpin()
	g.tails = tails
}

// keepTails gives the masks of a tail homes.
func (g *gen) keepTails() {
	for i, m := range g.tails {
		if m != none {
			h := g.newHome(m)
			g.set(h, m)
			g.tails[i] = h
		}
	}
}
