package plan

import (
	"sort"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// What an index chooses is not copied as long as kernels alone read it, which find the chosen rows by the index
// themselves.

// MoverOfChosen is an Emitter that copies values that are not in memory.
type MoverOfChosen interface {
	Emitter
	// MoveChosen emits the copy of a value to another of its shape, and reports whether it can.
	MoveChosen(in *graph.Instr, to Value, from fuse.Chosen) bool
}

// Chosen returns a value that is not in memory.
func (b *Builder) Chosen(id graph.ID) (c fuse.Chosen, ok bool) {
	if c, ok = b.chosen[id]; !ok {
		return c, false
	}
	if b.inMemory[c.Instr.Out] { // it has been computed for something else
		b.compute(id, c.Instr)
		return c, false
	}
	return c, true
}

// ReadByIndex reports whether the result of a call may be left to those who read it: no more than most kernels.
func (c *Call) ReadByIndex(most int) bool {
	if c.Last != c.Instr || c.place != nil || c.b.inMemory[c.Instr.Out] {
		return false
	}
	n, ok := c.b.kernelUses(c.Instr.Out)
	return ok && n > 0 && n <= most
}

// kernelUses counts the uses of a value and of its views; not ok if others than kernels use it.
func (b *Builder) kernelUses(id graph.ID) (n int, ok bool) {
	if b.Kept[id] {
		return 0, false
	}
	for _, i := range b.Users[id] {
		in := &b.Program.Instrs[i]
		sp := in.Op.Spec()
		switch in.Op {
		case aten.Reshape, aten.Permute, aten.Expand, aten.Flip: // but no slices: all indices are looked at
			views, ok := b.kernelUses(in.Out)
			if !ok {
				return 0, false
			}
			n += views
			continue
		case aten.Cat:
		default:
			if sp.Composite() || sp.Category != ir.Pointwise && sp.Category != ir.Reduction {
				return 0, false
			}
		}
		n++
	}
	return n, true
}

// Choose makes the result of a call what an index chooses.
func (c *Call) Choose(of fuse.Chosen) {
	if c.b.chosen == nil {
		c.b.chosen = map[graph.ID]fuse.Chosen{}
	}
	of.Instr = c.Instr
	c.chosen = &of
}

// compute has a value computed that base chooses, or that is a view of what it does.
func (b *Builder) compute(id graph.ID, base *graph.Instr) {
	c := b.chosen[base.Out]
	delete(b.chosen, id)
	if b.inMemory == nil {
		b.inMemory = map[graph.ID]bool{}
	}
	if !b.inMemory[base.Out] {
		delete(b.chosen, base.Out)
		b.inMemory[base.Out] = true
		b.computeBase(base, c)
	}
	if id != base.Out {
		b.Alone(b.producer(id))
	}
}

// computeBase has what an index chooses copied, or its instruction lowered where that need not copy anything first.
func (b *Builder) computeBase(in *graph.Instr, c fuse.Chosen) {
	if e, ok := b.emitter.(MoverOfChosen); ok && c.Apart {
		if to := b.NewValue(b.Program.Shape(in.Out)); e.MoveChosen(in, to, c) {
			b.Values[in.Out] = to
			return
		}
	}
	b.Alone(in)
}

// producer returns the instruction that has a value as its result.
func (b *Builder) producer(id graph.ID) *graph.Instr {
	list := b.Program.Instrs
	return &list[sort.Search(len(list), func(i int) bool { return list[i].Out > id })-1]
}

// viewOfChosen makes the result of an instruction a view of a value that is not in memory, if it can be.
func (b *Builder) viewOfChosen(in *graph.Instr) bool {
	c, ok := b.Chosen(in.Args[0])
	if !ok {
		return false
	}
	if _, fused := b.kernelUses(in.Out); !fused {
		return false
	}
	s := b.Program.Shape(in.Out)
	c, ok = c.View(func(v strided.View) (strided.View, bool) {
		switch in.Op {
		case aten.Reshape:
			return v.Reshape(s.Dims())
		case aten.Permute, aten.Expand, aten.Flip:
			return b.reordered(in, v), true
		}
		return v, false
	})
	if ok {
		b.chosen[in.Out] = c
	}
	return ok
}

// moveChosen has a value that is not in memory copied to its part of a result. It reports whether that was one.
func (b *Builder) moveChosen(in *graph.Instr, id graph.ID, part Value) bool {
	e, ok := b.emitter.(MoverOfChosen)
	if !ok {
		return false
	}
	c, ok := b.Chosen(id)
	return ok && e.MoveChosen(in, part, c)
}
