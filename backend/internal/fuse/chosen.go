package fuse

import (
	"slices"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
	"github.com/loris-ml/loris/internal/strided"
)

// Chosen is a value that is not in memory: parts of another one that an index chooses. Both have views with the
// value's dimensions, so that a view of the value is one of each.
type Chosen struct {
	// From is where the elements lie for an index of 0.
	From Value
	// Index has i64s. Each step of it moves an element of From by Step elements; there are Size steps.
	Index      Value
	Size, Step int
	// Apart says that what computes the value copies From or Index first.
	Apart bool
	// Across says that indices lie along the columns of a kernel whose rows are the elements of what each chooses: the
	// backend moves these before it calls the kernel.
	Across bool
	// Instr is the instruction that chooses.
	Instr *graph.Instr
}

// View returns a view of the value; false if a view of one of its parts is none.
func (c Chosen) View(view func(v strided.View) (strided.View, bool)) (Chosen, bool) {
	var ok bool
	if c.From.View, ok = view(c.From.View); !ok {
		return c, false
	}
	c.Index.View, ok = view(c.Index.View)
	return c, ok
}

// Chooser is a Backend whose kernels may read values that are not in memory. It computes one at the latest when it is
// asked for its Value.
type Chooser interface {
	Backend
	// Chosen returns a value that is not in memory; false for others.
	Chosen(id graph.ID) (Chosen, bool)
	// Chooses is asked of what is Across, too, with the number of rows for that of columns. It reports whether a kernel that costs so many nanoseconds for an element, of rows of so many columns,
	// which would be in one line if the value were in memory, or not, had better read the value by its index.
	Chooses(c Chosen, cols int, nanos float64, inLine bool) bool
}

// choose decides which values from outside a group are read by their indices. It stays so until the group is closed,
// whatever is computed meanwhile.
func (gs *Groups) choose(g *group) {
	before := g.chosen // that of a group of another size
	g.chosen = nil
	defer func() {
		if !sameKeys(before, g.chosen) {
			g.template = nil
		}
	}()
	if gs.chooser == nil || g.nest == nil {
		return
	}
	operands := len(g.inputs) + len(g.kept) + g.results + 3*len(g.sinks)
	ids := slices.Clip(g.inputs)
	for _, s := range g.sinks {
		if gs.pending[s.ID] != g && !slices.Contains(ids, s.ID) {
			ids = append(ids, s.ID)
		}
	}
	for _, id := range ids {
		c, ok := gs.chooser.Chosen(id)
		if !ok || operands == loop.MaxArgs {
			continue
		}
		if c, ok = g.fitsRows(c); !ok || !gs.chooser.Chooses(c, g.rowLength(c), gs.nanos(g), gs.inLine(g)) {
			continue
		}
		if g.chosen == nil {
			g.chosen = map[graph.ID]Chosen{}
		}
		g.chosen[id] = c
		operands++
	}
}

// inLine reports whether all elements of a group are in one line, but for operands that keep them from it: nothing is
// reduced, and no result goes to a place in another value.
func (gs *Groups) inLine(g *group) bool {
	return !g.reduced && len(g.sinks) == 0 && !slices.ContainsFunc(g.members, func(i int32) bool {
		_, placed := gs.places[gs.p.Instrs[i].Out]
		return placed
	})
}

func sameKeys(a, b map[graph.ID]Chosen) bool {
	for id := range a {
		if _, ok := b[id]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// column returns the dimension of a group whose elements are next to each other in a row, or -1.
func (g *group) column() int {
	for d := g.key.shape.Rank() - 1; d >= 0; d-- {
		reduced := g.reduced && g.mask[d]
		if g.key.shape.Dim(d) > 1 && (!g.reduced || reduced == (g.axis != loop.Rows)) {
			return d
		}
	}
	return -1
}

// rowLength returns how many elements an index chooses that a kernel goes through one after the other.
func (g *group) rowLength(c Chosen) int {
	if c.Across {
		return g.key.shape.Numel() / g.lines
	}
	if d := g.column(); d >= 0 {
		return g.key.shape.Dim(d)
	}
	return 1
}

// fitsRows returns a value with the dimensions of a group, of which a whole row has one index and lies in one way, or a
// whole column where lines are computed beside each other.
func (g *group) fitsRows(c Chosen) (Chosen, bool) {
	dims, col := g.key.shape.Dims(), g.column()
	c, _ = c.View(func(v strided.View) (strided.View, bool) { return v.Expand(dims), true })
	if col >= 0 && g.reduced && g.beside && c.Index.View.Strides[col] != 0 {
		c.Across = true
		return c, c.From.View.Strides[col] == 0 && g.adjoin(&c)
	}
	if col >= 0 && (c.Index.View.Strides[col] != 0 || c.From.View.Strides[col] != 0 && c.From.View.Strides[col] != 1) {
		return c, false
	}
	return c, !g.reduced || reducedMerge(&c.From.View, &g.mask) && reducedMerge(&c.Index.View, &g.mask)
}

// adjoin reports whether what an index chooses of a line adjoins.
func (g *group) adjoin(c *Chosen) bool {
	step := 0
	for d := g.key.shape.Rank() - 1; d >= 0; d-- {
		if g.mask[d] && g.key.shape.Dim(d) > 1 {
			if c.Index.View.Strides[d] != 0 {
				return false
			}
			if step == 0 {
				step = c.From.View.Strides[d]
			}
		}
	}
	return step == 1 && reducedMerge(&c.From.View, &g.mask)
}

// chosenOperand returns the number of a value from outside that is read by its index, which is an operand, too.
func (b *builder) chosenOperand(id graph.ID, c *Chosen) int {
	from := b.arg(argKey{id, Input}, func() Arg {
		return Arg{DType: b.dtype(id), Buf: c.From.Buf, View: c.From.View, Size: c.Size, Step: c.Step, Chooser: c.Instr, Across: c.Across}
	})
	by := b.arg(argKey{id, Index}, func() Arg { return Arg{DType: ir.I64, Buf: c.Index.Buf, View: c.Index.View} })
	b.args[from].By = by + 1
	return from
}

// MoveChosen returns the kernel by which in copies a value that is not in memory to dst; false if kernels can't.
func MoveChosen(in *graph.Instr, d ir.DType, dst Value, c Chosen) (*Kernel, bool) {
	k, ok := move(in, d, dst, c.From)
	if !ok {
		return nil, false
	}
	from := &k.Args[0]
	from.By, from.Size, from.Step, from.Chooser = len(k.Args)+1, c.Size, c.Step, c.Instr
	k.Args = append(k.Args, Arg{DType: ir.I64, Buf: c.Index.Buf, View: c.Index.View, Role: Index, ID: NoValue})
	return k, k.layOut(dst.View.Dims[:dst.View.Rank], [ir.MaxRank]bool{}, new(Slab[int]))
}
