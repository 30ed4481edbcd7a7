package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// rematerialize returns a Program in which cheap pointwise values are computed again where they are used
// later, in place of being kept: what the gradient of an activation needs of its forward pass, say. It
// returns p itself if there are none.
//
// A value is kept if an instruction uses it after the kernel that computes it was closed, because
// something else than a pointwise op or a reduction needed one of its results. It is computed again from
// what is in memory then in any case, or from less than it is itself, if that costs no more time than
// its way to memory and back, and reads no more than is saved: a mask is not computed again from
// numbers. Only pointwise ops are repeated, which give the same bits.
//
// What is decided depends on dtypes, on the ops, and on whether sizes are equal to each other or to 1,
// so that it is the same for all Programs of a Template: a value with fewer dimensions than 1 counts as a
// quarter of one with more.
func rematerialize(p *Program) *Program {
	r := newRemat(p)
	for _, site := range r.sites() {
		r.try(site)
	}
	if r.repeats == nil {
		return p
	}
	return r.program()
}

// nanosPerByte is what computing again may cost for each byte that need not be kept: as much as writing
// it to memory and reading it again.
const nanosPerByte = 0.2

// remat is the state of rematerialize.
type remat struct {
	p *Program
	// By value: the instruction that makes it, -1 for a parameter; the instructions that use it; the last
	// instruction at which it must be in memory; and the one at which its kernel is closed.
	def, last, closes []int32
	users             [][]int32
	pinned            map[ID]bool // values that others are computed from again
	// repeats are what is computed again, by the instruction before which it is.
	repeats map[int32][]*repeat
	again   map[ID]*repeat // by value
}

// repeat is instructions that are repeated before another one.
type repeat struct {
	at     int32
	instrs []int32
	ids    map[ID]ID // the new values, by what they are in the old Program
}

func newRemat(p *Program) *remat {
	n := len(p.Shapes)
	r := &remat{
		p: p, def: p.definitions(), last: make([]int32, n), closes: make([]int32, n), users: make([][]int32, n),
		pinned: map[ID]bool{}, again: map[ID]*repeat{},
	}
	end := int32(len(p.Instrs))
	for id := range n {
		r.last[id], r.closes[id] = -1, end
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		for _, id := range in.Args {
			r.users[id], r.last[id] = append(r.users[id], int32(i)), int32(i)
		}
	}
	for _, id := range p.Returns {
		r.last[id] = end
	}
	r.close()
	return r
}

// definitions returns the instruction that makes each value, -1 for a parameter.
func (p *Program) definitions() []int32 {
	def := make([]int32, len(p.Shapes))
	for id := range p.Params {
		def[id] = -1
	}
	for i := range p.Instrs {
		in := &p.Instrs[i]
		for k := range in.NOut {
			def[int(in.Out)+k] = int32(i)
		}
	}
	return def
}

// close finds out when the kernels of values are closed: when something needs a value that was computed of them,
// or of what they were computed of in the same kernel.
func (r *remat) close() {
	for i := len(r.p.Instrs) - 1; i >= 0; i-- {
		in := &r.p.Instrs[i]
		for _, id := range in.Args {
			at := int32(i)
			if fuses(in) {
				at = max(at, r.closes[in.Out])
			}
			r.closes[id] = min(r.closes[id], at)
		}
	}
	for i := range r.p.Instrs {
		in := &r.p.Instrs[i]
		if !fuses(in) {
			continue
		}
		for _, id := range in.Args {
			if d := r.def[id]; d >= 0 && fuses(&r.p.Instrs[d]) && int32(i) <= r.closes[id] {
				r.closes[in.Out] = min(r.closes[in.Out], r.closes[id])
			}
		}
	}
}

// fuses reports whether an instruction may be part of a kernel with others.
func fuses(in *Instr) bool {
	sp := in.Op.Spec()
	return !sp.Composite() && (sp.Category == ir.Pointwise || sp.Category == ir.Reduction || sp.Category == ir.View)
}

// repeatable reports whether an instruction can be computed again.
func repeatable(in *Instr) bool {
	sp := in.Op.Spec()
	return sp.Category == ir.Pointwise && !sp.Composite() && in.NOut == 1
}

// sites returns the values that are kept and that may be computed again, those of one kernel together,
// in the order of the Program.
func (r *remat) sites() (sites [][]ID) {
	type kernel struct {
		closes int32
		shape  ir.Shape
	}
	known := map[kernel]int{}
	for i := range r.p.Instrs {
		in := &r.p.Instrs[i]
		if _, ok := r.late(in.Out); !ok || !repeatable(in) {
			continue
		}
		key := kernel{r.closes[in.Out], r.p.Shape(in.Out).WithDType(ir.U8)}
		at, ok := known[key]
		if !ok {
			at = len(sites)
			known[key], sites = at, append(sites, nil)
		}
		sites[at] = append(sites[at], in.Out)
	}
	return sites
}

// late returns the first use of a value after its kernel is closed; not ok if there is none, or if one
// is by something that needs the value in memory, or by an op on more elements, beside which it is small.
func (r *remat) late(id ID) (first int32, ok bool) {
	if r.last[id] == int32(len(r.p.Instrs)) {
		return 0, false
	}
	for _, u := range r.users[id] {
		if u <= r.closes[id] {
			continue
		}
		if in := &r.p.Instrs[u]; !fuses(in) || in.Op.Spec().Category == ir.View || in.Op.Spec().Category == ir.Pointwise && !r.p.Shape(in.Out).SameDims(r.p.Shape(id)) {
			return 0, false
		}
		if !ok {
			first, ok = u, true
		}
	}
	return first, ok
}

// try decides whether the values of one kernel are computed again: all that are kept, or else each for
// itself.
func (r *remat) try(site []ID) {
	site = slices.DeleteFunc(site, func(id ID) bool { return r.pinned[id] })
	if len(site) == 0 || r.replace(site) || len(site) == 1 {
		return
	}
	for i := range site {
		if !r.pinned[site[i]] {
			r.replace(site[i : i+1])
		}
	}
}

// replace has values computed again, if that saves memory and costs no more time than it saves. Values
// that others of them are computed from may stay.
func (r *remat) replace(values []ID) bool {
	c := r.cone(values)
	for stays := func(id ID) bool { return c.from[id] == kept }; slices.ContainsFunc(values, stays); {
		// Where the others are computed again depends on them alone.
		if values = slices.DeleteFunc(slices.Clone(values), stays); len(values) == 0 {
			return false
		}
		c = r.cone(values)
	}
	if c.saved <= 0 || c.read > c.saved || c.nanos > nanosPerByte*c.saved {
		return false
	}
	one := &repeat{at: c.at, ids: map[ID]ID{}}
	for _, id := range c.order {
		switch {
		case c.from[id] != repeated:
			r.pinned[id] = true
			r.last[id] = max(r.last[id], c.at)
			continue
		case slices.Contains(values, id):
			r.again[id] = one
			r.users[id] = slices.DeleteFunc(r.users[id], func(u int32) bool { return u >= c.at })
			r.last[id] = -1
			if n := len(r.users[id]); n > 0 {
				r.last[id] = r.users[id][n-1]
			}
		}
		one.instrs = append(one.instrs, r.def[id])
	}
	slices.Sort(one.instrs)
	if r.repeats == nil {
		r.repeats = map[int32][]*repeat{}
	}
	r.repeats[c.at] = append(r.repeats[c.at], one)
	return true
}

// bytes is the size of an element of a value, a quarter of that where the value is repeated along a
// dimension of another one.
func (r *remat) bytes(id, like ID) float64 {
	s, of := r.p.Shape(id), r.p.Shape(like)
	n := float64(s.DType().Size())
	if s.SameDims(of) {
		return n
	}
	if dims, ok := ir.BroadcastDims(s, of); ok && dims.SameDims(of) {
		return n / 4
	}
	return n
}

// choice is what becomes of a value that others are computed from again.
type choice uint8

const (
	repeated  choice = iota + 1
	available        // it is in memory in any case
	kept             // it must stay in memory for this
)

// cone is what some values are computed from.
type cone struct {
	r      *remat
	at     int32 // the instruction before which they are computed
	values []ID
	from   map[ID]choice
	order  []ID    // of from
	saved  float64 // bytes for each element
	nanos  float64 // that computing again takes for each element
	read   float64 // bytes of what is in memory in any case
	visits int     // that are left; then all is kept
}

// visitsPerValue bounds the walk that finds what a value is computed from: it comes again to what it has given up to
// compute again, twice as often with each step of a bisection, and more than a few ops cost more than they save.
const visitsPerValue = 128

// cone finds out how values are computed again.
func (r *remat) cone(values []ID) *cone {
	c := &cone{r: r, at: int32(len(r.p.Instrs)), values: values, from: map[ID]choice{}, visits: visitsPerValue * len(values)}
	for _, id := range values {
		first, _ := r.late(id)
		c.at = min(c.at, first)
		c.saved += r.bytes(id, values[0])
	}
	for _, id := range values {
		c.visit(id)
	}
	for _, id := range c.order {
		switch c.from[id] {
		case repeated:
			c.nanos += r.p.Instrs[r.def[id]].Op.Spec().Cost.Nanos()
		case available:
			if r.p.Shape(id).SameDims(r.p.Shape(values[0])) {
				c.read += r.bytes(id, values[0])
			}
		case kept:
			c.saved -= r.bytes(id, values[0])
		}
	}
	return c
}

// visit finds out how a value is had again, and returns how many bytes must be kept for it.
func (c *cone) visit(id ID) float64 {
	r := c.r
	if _, ok := c.from[id]; ok {
		return 0
	}
	wanted := slices.Contains(c.values, id)
	own := r.bytes(id, c.values[0])
	d := r.def[id]
	switch {
	case !wanted && r.last[id] >= c.at || d >= 0 && r.p.Instrs[d].Op == aten.Full:
		c.choose(id, available)
		return 0
	case d < 0 || !repeatable(&r.p.Instrs[d]) || c.visits == 0:
		c.choose(id, kept)
		return own
	}
	c.visits--
	before := len(c.order)
	c.choose(id, repeated)
	need := 0.0
	for _, a := range r.p.Instrs[d].Args {
		need += c.visit(a)
	}
	if need < own {
		return need
	}
	for _, a := range c.order[before:] {
		delete(c.from, a)
	}
	c.order = c.order[:before]
	c.choose(id, kept)
	return own
}

// choose notes what becomes of a value.
func (c *cone) choose(id ID, what choice) {
	c.from[id] = what
	c.order = append(c.order, id)
}

// program writes the Program with what is repeated.
func (r *remat) program() *Program {
	p := r.p
	w := newWriter(p, len(r.repeats))
	for i := range p.Instrs {
		for _, one := range r.repeats[int32(i)] {
			for _, k := range one.instrs {
				one.ids[p.Instrs[k].Out] = w.append(&p.Instrs[k], func(id ID) ID {
					if to, ok := one.ids[id]; ok {
						return to
					}
					return w.now(id)
				})
			}
		}
		w.write(&p.Instrs[i], func(id ID) ID {
			if one := r.again[id]; one != nil && int32(i) >= one.at {
				return one.ids[id]
			}
			return w.now(id)
		})
	}
	return w.program()
}
