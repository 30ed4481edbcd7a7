package emit

import (
	"math/bits"
	"strconv"

	"github.com/loris-ml/loris/internal/loop"
)

// Geometry is what a launch works on: a loop.Frame without addresses, and the
// dimensions around it.
type Geometry struct {
	Rows, Cols int
	// First is added to indices.
	First int
	// Outer are the sizes of the outer dimensions, Options.Outer of them.
	Outer []int
	// Args are the operands.
	Args []Place
}

// Place is where an operand lies.
type Place struct {
	// Offset is where it begins in a buffer that is aligned to 256 bytes; only its
	// alignment matters.
	Offset int
	// Row and Col are strides in bytes; Col counts for Free operands only.
	Row, Col int
	// Outer are the strides of the outer dimensions in bytes.
	Outer []int
}

const (
	slotRows = iota
	slotCols
	slotFirst
	slotOuters
	slotParts
	slotWork
	slotFault
	slotsBefore // those of Frame.outer
)

// operand returns the first slot of an operand: its address.
func (l *Loop) operand(a int) int {
	outer := max(l.opt.Outer, 1)
	return slotsBefore + outer + a*(3+outer)
}

// Plan returns how the kernel is launched for some sizes; nothing is launched
// where there are no elements. It depends on nothing else, so it can be made
// once for each shape.
func (l *Loop) Plan(g *Geometry, dev Limits) *Plan {
	p := &planner{l: l, g: g, dev: dev, outers: 1}
	for _, n := range g.Outer {
		p.outers *= n
	}
	if g.Rows*g.Cols*p.outers == 0 {
		return &Plan{}
	}
	width := 1
	if p.aligned() {
		width = l.width
	}
	switch l.k.Axis {
	case loop.None:
		return p.each(width)
	case loop.Rows:
		return p.rows(width, p.rowParts(width))
	}
	scheme := p.scheme(width)
	if parts := p.lineParts(p.packs(width)); scheme == "whole" && parts > 1 {
		return p.parted(width, parts)
	}
	return p.whole(scheme, width)
}

// planner makes a plan.
type planner struct {
	l      *Loop
	g      *Geometry
	dev    Limits
	outers int
}

func ceil(n, by int) int { return (n + by - 1) / by }

// power returns the least power of two that is not below n.
func power(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// packs returns how many packs a line has, or a row for None and Rows. The last
// one may be a few elements.
func (p *planner) packs(width int) int {
	n := ceil(p.g.Cols, width)
	if p.l.k.Axis == loop.Both {
		n *= p.g.Rows
	}
	return n
}

// lines returns how many there are.
func (p *planner) lines() int {
	switch p.l.k.Axis {
	case loop.Rows:
		return p.outers * p.g.Cols
	case loop.Both:
		return p.outers
	}
	return p.outers * p.g.Rows
}

// aligned reports whether packs of all operands are where such accesses may be.
// Only those forms that walk along rows do something about a part of a pack.
func (p *planner) aligned() bool {
	axis := p.l.k.Axis
	if p.l.width == 1 || p.g.Cols < p.l.width || p.g.Cols%p.l.width != 0 && axis != loop.None && axis != loop.Columns {
		return false
	}
	for i, a := range p.l.k.Args {
		if a.Cols != loop.Unit || !p.l.body[i] || p.l.isScratch(i) {
			continue
		}
		q, bytes := &p.g.Args[i], p.l.width*a.DType.Size()
		if q.Offset%bytes != 0 || p.g.Rows > 1 && q.Row%bytes != 0 {
			return false
		}
		for d, n := range p.g.Outer {
			if n > 1 && q.Outer[d]%bytes != 0 {
				return false
			}
		}
	}
	return true
}

func (l *Loop) isScratch(arg int) bool { return l.opt.Scratch != nil && l.opt.Scratch[arg] }

func (p *planner) each(width int) *Plan {
	n := ceil(p.packs(width), p.l.unroll(width))
	x := min(power(n), p.dev.block())
	y := min(power(p.g.Rows), p.dev.block()/x)
	z := min(power(p.outers), p.dev.block()/(x*y), 64)
	x = p.dev.block() / (y * z) // a block has all its threads, so that kernels may share a launch
	grid := [3]int{p.dev.blocks(ceil(n, x)), min(ceil(p.g.Rows, y), maxGridYZ), min(ceil(p.outers, z), maxGridYZ)}
	return p.plan(0, p.launch("each", width, 1, grid, [3]int{x, y, z}))
}

const (
	// manyBlocks keep every device busy.
	manyBlocks = 1024
	// fewBlocks leave one idle.
	fewBlocks = 64
	// partPacks is how many packs a part of a line has at least.
	partPacks = 2048
	// partRounds is how often a thread goes round in a part of a column at least,
	// manyRounds what takes longer than another launch.
	partRounds = 2
	manyRounds = 8
	// mostRowParts bounds the parts of columns.
	mostRowParts = 128
	// manyLines are so many that threads do better with several packs each than
	// side by side.
	manyLines = 4096
)

// lineParts returns into how many parts lines are cut.
func (p *planner) lineParts(packs int) int {
	return max(1, min(packs/partPacks, manyBlocks/p.lines()))
}

// scheme returns the form in which groups of threads have a line each: that which
// holds it in registers, if a block has enough of them.
func (p *planner) scheme(width int) string {
	if p.l.k.Axis != loop.Columns || width != p.l.width || p.g.Cols%width != 0 {
		return "whole"
	}
	for _, scheme := range []string{"held", "broad"} {
		h := holdings[scheme]
		if p.l.canHold(h) && p.packs(width) <= h.packs*min(h.threads, p.dev.Threads) {
			return scheme
		}
	}
	return "whole"
}

// whole launches groups of threads, each for a line.
func (p *planner) whole(scheme string, width int) *Plan {
	packs, lines := p.packs(width), p.lines()
	each, most := p.l.unroll(width), p.dev.block()
	if h := holdings[scheme]; h != nil {
		each, most = h.packs, min(h.threads, p.dev.Threads)
	}
	near := 32 // a warp at least, or as many threads as there are packs
	if lines >= manyLines {
		near = 8
	}
	x := min(max(power(ceil(packs, each)), min(power(packs), near)), most)
	y := max(1, p.dev.block()/x)
	grid := [3]int{p.dev.blocks(ceil(lines, y)), 1, 1}
	launch := p.launch(scheme, width, 1, grid, [3]int{x, y, 1})
	if holdings[scheme] != nil {
		return p.plan(0, launch) // registers are its scratch
	}
	return p.plan(p.scratch(grid[0]*y, &launch), launch)
}

// scratch places the scratch operands of so many lines in the workspace and
// returns its size.
func (p *planner) scratch(lines int, launches ...*Launch) int {
	return p.scratchFrom(0, lines, launches...)
}

func (p *planner) scratchFrom(at, lines int, launches ...*Launch) int {
	for i, a := range p.l.k.Args {
		if !p.l.isScratch(i) {
			continue
		}
		at = ceil(at, 16) * 16
		row := ceil(p.g.Cols*a.DType.Size(), 16) * 16
		for _, l := range launches {
			slot := p.l.operand(i)
			l.place(Address{Slot: slot, Operand: Work, Offset: at})
			l.Params[slot+1], l.Params[slot+2] = uint64(row), uint64(a.DType.Size())
		}
		at += row * lines
	}
	return at
}

// parted launches, for each pass, blocks for the parts of lines and groups that
// combine them.
func (p *planner) parted(width, parts int) *Plan {
	lines := p.lines()
	var launches []Launch
	for pass := range p.l.k.Passes {
		x := p.dev.block()
		launches = append(launches, p.launch(numbered("part", pass), width, parts, [3]int{parts, min(lines, maxGridYZ), 1}, [3]int{x, 1, 1}))
		if !p.l.combines(pass) {
			continue
		}
		x = min(max(power(parts), 32), p.dev.block())
		y := max(1, p.dev.block()/x)
		launches = append(launches, p.launch(numbered("final", pass), 1, parts, [3]int{p.dev.blocks(ceil(lines, y)), 1, 1}, [3]int{x, y, 1}))
	}
	all := make([]*Launch, len(launches))
	for i := range launches {
		all[i] = &launches[i]
	}
	return p.plan(p.scratchFrom(p.between(parts), lines, all...), launches...)
}

// between returns the bytes of what lives between launches.
func (p *planner) between(parts int) int { return p.lines() * (8*p.l.saved + 16*p.l.most*parts) }

// columns returns how threads share columns out: so many side by side have packs,
// in so many blocks. Where columns are few a line of the cache is enough.
func (p *planner) columns(width int) (x, blocks int) {
	packs := p.packs(width)
	for x = min(power(packs), 32); x > 8 && ceil(packs, x)*p.outers < manyBlocks/4; {
		x /= 2
	}
	return x, ceil(packs, x) * p.outers
}

// rowParts returns into how many parts columns are cut.
func (p *planner) rowParts(width int) int {
	x, blocks := p.columns(width)
	rounds := p.g.Rows / (p.dev.block() / x * p.l.unroll(width))
	if rounds < manyRounds {
		return 1
	}
	return max(1, min(rounds/partRounds, manyBlocks/blocks, mostRowParts))
}

// rows launches blocks of up to 32 packs of columns, with threads along y that
// share the rows.
func (p *planner) rows(width, parts int) *Plan {
	x, blocks := p.columns(width)
	y := min(power(ceil(ceil(p.g.Rows, parts), p.l.unroll(width))), p.dev.block()/x)
	if blocks <= fewBlocks {
		y = p.dev.block() / x // so that the launch may be shared
	}
	grid := [3]int{p.dev.blocks(ceil(p.packs(width), x)), min(p.outers, maxGridYZ), parts}
	if parts == 1 {
		return p.plan(0, p.launch("whole", width, 1, grid, [3]int{x, y, 1}))
	}
	var launches []Launch
	for pass := range p.l.k.Passes {
		launches = append(launches, p.launch(numbered("part", pass), width, parts, grid, [3]int{x, y, 1}))
		if !p.l.combines(pass) {
			continue
		}
		x := min(power(p.lines()), 32)
		y := min(power(parts), p.dev.block()/x)
		launches = append(launches, p.launch(numbered("final", pass), 1, parts, [3]int{p.dev.blocks(ceil(p.lines(), x)), 1, 1}, [3]int{x, y, 1}))
	}
	return p.plan(p.between(parts), launches...)
}

func numbered(form string, pass int) string { return form + strconv.Itoa(pass) }

func (p *planner) plan(work int, launches ...Launch) *Plan { return &Plan{launches, work} }

// launch fills in all slots but the addresses.
func (p *planner) launch(form string, width, parts int, grid, block [3]int) Launch {
	outer := max(p.l.opt.Outer, 1)
	n := len(p.l.k.Args)
	entry := p.l.entry(form, width)
	l := Launch{Entry: entry, Source: func() string { return p.l.Source(entry) }, Grid: grid, Block: block, part: p.l.part(form, entry)}
	l.Params = make([]uint64, slotsBefore+outer+max(n, 1)*(3+outer))
	l.Addresses = []Address{{Slot: slotWork, Operand: Work}, {Slot: slotFault, Operand: Fault}}
	for slot, v := range map[int]int{slotRows: p.g.Rows, slotCols: p.g.Cols, slotFirst: p.g.First, slotOuters: p.outers, slotParts: parts} {
		l.Params[slot] = uint64(v)
	}
	for d, n := range p.g.Outer {
		l.Params[slotsBefore+d] = uint64(n)
	}
	for a := range n {
		at, q := p.l.operand(a), &p.g.Args[a]
		l.Addresses = append(l.Addresses, Address{Slot: at, Operand: a})
		l.Params[at+1], l.Params[at+2] = uint64(q.Row), uint64(q.Col)
		for d := range p.g.Outer {
			l.Params[at+3+d] = uint64(q.Outer[d])
		}
	}
	return l
}
