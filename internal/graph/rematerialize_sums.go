package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// repeatForSums returns a Program in which reductions of one value along different dimensions, which no kernel computes
// together, have it computed by each: the differences of all pairs, say, whose squares are summed up, and whose products
// with the gradient are along the first elements and along the second. It would be kept in memory otherwise, and is
// larger than what it is computed from. It returns p itself if there are none.
//
// As with rematerialize only cheap pointwise ops are repeated, and what is decided depends on dtypes, on the ops and on
// whether sizes are equal to each other or to 1.
func repeatForSums(p *Program) *Program {
	reductions := 0
	for i := range p.Instrs {
		if p.Instrs[i].Op.Spec().Reduces() {
			reductions++
		}
	}
	if reductions < 2 {
		return p
	}
	s := &sums{p: p, def: p.definitions(), inMemory: p.outsideKernels(), of: map[ID]line{}, again: map[line]map[ID]ID{}, sites: map[int32]site{}, repeated: map[int32]bool{}}
	for i := range p.Instrs {
		if p.Instrs[i].Op.Spec().Reduces() {
			s.reduction(int32(i))
		}
	}
	if len(s.sites) == 0 {
		return p
	}
	return s.program()
}

// mostRepeated is of how many ops at most a value is computed for each reduction.
const mostRepeated = 32

// sums is the state of repeatForSums.
type sums struct {
	p        *Program
	def      []int32            // by value: the instruction that makes it, -1 for a parameter
	inMemory []bool             // by value: something else than pointwise ops on as many elements and reductions needs it
	of       map[ID]line        // for what a value is computed where it was recorded
	again    map[line]map[ID]ID // values that are computed again, by those of the old Program
	repeated map[int32]bool     // instructions that are repeated somewhere
	sites    map[int32]site     // by reduction
}

// site is what a reduction reads in place of what was recorded.
type site struct {
	instrs []int32   // what is repeated before it
	again  map[ID]ID // values that are, there or before
}

// line is what reductions have in common that may be in one kernel: the dimensions of the operand and those reduced.
type line struct {
	dims ir.Shape
	mask [ir.MaxRank]bool
}

// outsideKernels returns which values something needs in memory.
func (p *Program) outsideKernels() []bool {
	outside := make([]bool, len(p.Shapes))
	for i := range p.Instrs {
		in := &p.Instrs[i]
		for _, id := range in.Args {
			outside[id] = outside[id] || !p.InKernel(in, id)
		}
	}
	for _, id := range p.Returns {
		outside[id] = true
	}
	return outside
}

// reduction decides for what the operand of a reduction is computed.
func (s *sums) reduction(at int32) {
	in := &s.p.Instrs[at]
	shape := s.p.Shape(in.Args[0])
	mask, _ := ir.ReduceDims(s.p.Args(in))
	l := line{shape.WithDType(ir.U8), mask}
	values, ok := s.cone(in.Args[0], shape)
	if !ok || len(values) == 0 {
		return
	}
	other := func(id ID) bool {
		of, ok := s.of[id]
		return ok && of != l
	}
	if !slices.ContainsFunc(values, other) {
		for _, id := range values {
			s.of[id] = l
		}
		return
	}
	if s.again[l] == nil {
		s.again[l] = map[ID]ID{}
	}
	var instrs []int32
	for _, id := range values {
		s.repeated[s.def[id]] = true
		if _, ok := s.again[l][id]; !ok {
			s.again[l][id] = id
			instrs = append(instrs, s.def[id])
		}
	}
	slices.Sort(instrs)
	s.sites[at] = site{instrs, s.again[l]}
}

// cone returns the values of a shape that one is computed from, itself the first, if that is cheap and all others are
// smaller.
func (s *sums) cone(id ID, shape ir.Shape) (values []ID, ok bool) {
	nanos := 0.0
	var visit func(id ID) bool
	visit = func(id ID) bool {
		of := s.p.Shape(id)
		if !of.SameDims(shape) {
			return expands(of, shape)
		}
		if slices.Contains(values, id) {
			return true
		}
		d := s.def[id]
		if d < 0 || s.inMemory[id] || !repeatable(&s.p.Instrs[d]) || len(values) == mostRepeated {
			return false
		}
		values = append(values, id)
		nanos += s.p.Instrs[d].Op.Spec().Cost.Nanos()
		for _, a := range s.p.Instrs[d].Args {
			if !visit(a) {
				return false
			}
		}
		return true
	}
	ok = visit(id)
	return values, ok && nanos <= nanosPerByte*float64(shape.DType().Size())
}

// expands reports whether a value is repeated along a dimension of a shape.
func expands(of, shape ir.Shape) bool {
	for i, n := range shape.Dims() {
		if at := i - (shape.Rank() - of.Rank()); n != 1 && (at < 0 || of.Dim(at) == 1) {
			return true
		}
	}
	return false
}

// program writes the Program with what is repeated, and without what nothing reads any more.
func (s *sums) program() *Program {
	p, used := s.p, s.used()
	w := newWriter(p, mostRepeated)
	for i := range p.Instrs {
		in := &p.Instrs[i]
		if s.repeated[int32(i)] && !used[in.Out] {
			continue
		}
		at := s.sites[int32(i)]
		now := func(id ID) ID {
			if to, ok := at.again[id]; ok {
				return to
			}
			return w.now(id)
		}
		for _, k := range at.instrs {
			at.again[p.Instrs[k].Out] = w.append(&p.Instrs[k], now)
		}
		w.write(in, now)
	}
	return w.program()
}

// used returns which values are read where they were recorded.
func (s *sums) used() []bool {
	p := s.p
	used := make([]bool, len(p.Shapes))
	for _, id := range p.Returns {
		used[id] = true
	}
	for i := len(p.Instrs) - 1; i >= 0; i-- {
		if s.repeated[int32(i)] && !used[p.Instrs[i].Out] {
			continue
		}
		at := s.sites[int32(i)]
		for _, k := range slices.Concat(at.instrs, []int32{int32(i)}) {
			for _, id := range p.Instrs[k].Args {
				if _, ok := at.again[id]; !ok {
					used[id] = true
				}
			}
		}
	}
	return used
}
