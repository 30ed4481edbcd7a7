package plan

import (
	"slices"

	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/strided"
)

// IsView reports whether the results of an op are views of its operand, which backends need not
// lower.
func IsView(op ir.Op) bool {
	switch op {
	case aten.Reshape, aten.Permute, aten.Expand, aten.Slice, aten.Flip, aten.Unfold, aten.ViewAsReal, aten.ViewAsComplex:
		return true
	}
	return false
}

// reordered returns what a permute, an expand or a flip makes of a view.
func (b *Builder) reordered(in *graph.Instr, v strided.View) strided.View {
	switch in.Op {
	case aten.Permute:
		return v.Permute(ir.PermuteDims(b.args(in)))
	case aten.Expand:
		return v.Expand(b.Program.Shape(in.Out).Dims())
	default:
		return v.Flip(ir.FlipDims(b.args(in)))
	}
}

// view returns the result of an op that makes a view of its operand.
func (b *Builder) view(in *graph.Instr) Value {
	s := b.Program.Shape(in.Out)
	if apart, ok := b.apart[in.Args[0]]; ok {
		if view, ok := b.sliceApart(in, apart); ok {
			return apart.As(s, view)
		}
	}
	if in.Op == aten.Permute && b.reorders && b.Kept[in.Out] {
		b.Groups.PlaceInOrder(in.Args[0], ir.PermuteDims(b.args(in)))
	}
	v := b.Computed(in.Args[0])
	view := v.View
	switch in.Op {
	case aten.Reshape:
		if b.readInPart(in.Out) {
			if _, ok := view.Reshape(s.Dims()); !ok {
				if b.apart == nil {
					b.apart = map[graph.ID]Value{}
				}
				b.apart[in.Out] = v
				return v
			}
		}
		return b.reshape(in, v, s)
	case aten.Permute, aten.Expand, aten.Flip:
		view = b.reordered(in, view)
	case aten.Slice:
		view = view.Slice(ir.SliceBounds(b.args(in)))
	case aten.Unfold:
		if view.Transposed() { // by squares once, in place of once for each window
			v = b.Copied(in, v)
			view = v.View
		}
		if view.Rank == 0 {
			view = view.Expand([]int{1})
		}
		if dim, windows, size, step := ir.UnfoldBounds(b.args(in)); s.Rank() == view.Rank {
			view = view.Slice(dim, 0, size, 1) // of a scalar
		} else {
			view = view.Unfold(dim, windows, size, step)
		}
	case aten.ViewAsReal:
		view = view.Halves()
	case aten.ViewAsComplex:
		var ok bool
		if view, ok = view.Doubled(); !ok { // pairs that do not lie as complex numbers do
			v = b.Copied(in, v)
			view, _ = v.View.Doubled()
		}
	}
	return v.As(s, view)
}

// readInPart reports whether a value is used by ops alone that read few of its elements.
func (b *Builder) readInPart(id graph.ID) bool {
	return !b.Kept[id] && !slices.ContainsFunc(b.Users[id], func(i int32) bool {
		in := &b.Program.Instrs[i]
		return in.Args[0] != id || in.Op != aten.Slice && in.Op != aten.IndexSelect && in.Op != aten.TakeElements
	})
}

// sliceApart returns the view that a slice of the reshaped value is, which is not copied where two merged
// dimensions are sliced, as those of a diagonal are, and a stride goes through what is left.
func (b *Builder) sliceApart(in *graph.Instr, v Value) (view strided.View, ok bool) {
	dim, start, n, step := ir.SliceBounds(b.args(in))
	merged := b.Program.Shape(in.Args[0]).Dims()
	if len(merged) != v.View.Rank-1 || merged[dim] != v.View.Dims[dim]*v.View.Dims[dim+1] ||
		!slices.Equal(merged[:dim], v.View.Dims[:dim]) || !slices.Equal(merged[dim+1:], v.View.Dims[dim+2:v.View.Rank]) {
		return view, false
	}
	return v.View.SliceMerged(dim, start, n, step)
}

// args returns the operands and attributes of an instruction, until it is called again.
func (b *Builder) args(in *graph.Instr) ir.Args { return b.Program.ArgsIn(&b.standIns, in) }

// Reshape returns a value with other dimensions: a view of it, or of its copy if strides cannot
// say it.
func (c *Call) Reshape(v Value, s ir.Shape) Value { return c.b.reshape(c.Instr, v, s) }

func (b *Builder) reshape(in *graph.Instr, v Value, s ir.Shape) Value {
	view, ok := v.View.Reshape(s.Dims())
	if !ok {
		v = b.Copied(in, v)
		view, _ = v.View.Reshape(s.Dims())
	}
	return v.As(s, view)
}

// Place asks for a value to be computed where it belongs in a result, if a kernel is to compute
// it.
func (c *Call) Place(id graph.ID, part Value) { c.b.Groups.Place(id, part.Value) }

// CatParts makes the result of a cat, has its operands computed, if they can be, where they belong
// in it, and returns these parts. The operands that are not there have to be copied.
func (c *Call) CatParts() (parts []Value) {
	out := c.Result()
	dim, at := c.Dim("dim", out.Shape.Rank()), 0
	for i, x := range c.Args.In {
		n := x.Shape().Dim(dim)
		parts = append(parts, out.As(x.Shape(), out.View.Slice(dim, at, n, 1)))
		at += n
		switch in, ok := c.b.pieces[c.Instr.Args[i]]; {
		case !ok:
			c.Place(c.Instr.Args[i], parts[i])
		case in.Op == aten.Cat:
			delete(c.b.pieces, in.Out)
			c.b.lowerTo(in, in, nil, &parts[i])
		default:
			x := c.b.Program.Shape(in.Args[0])
			if view, ok := parts[i].View.Reshape(x.Dims()); ok {
				c.Place(in.Args[0], parts[i].As(x, view))
			}
		}
	}
	for _, id := range c.Instr.Args {
		if in, ok := c.b.pieces[id]; ok {
			delete(c.b.pieces, id)
			c.b.lower(in, in, nil)
		}
	}
	there := c.sinkParts(parts)
	for i, id := range c.Instr.Args {
		if there[i] || c.b.moveChosen(c.Instr, id, parts[i]) {
			c.Operands = append(c.Operands, parts[i])
			continue
		}
		c.Operands = append(c.Operands, c.b.Computed(id))
	}
	return parts
}

// sinkRow is how many bytes the rows of a cat's result have at most whose parts are stored by one kernel: each is a few
// cache lines then, in which parts meet.
const sinkRow = 1 << 10

// sinkParts has the kernel that is to compute one part of a cat store those, too, which are in memory or which an index
// chooses. It reports which these are.
func (c *Call) sinkParts(parts []Value) (there []bool) {
	there = make([]bool, len(parts))
	out := c.Results[0].Shape
	if dim := c.Dim("dim", out.Rank()); dim == 0 || len(parts) == 0 || out.Numel() == 0 || out.Bytes()/outerOf(out, dim) > sinkRow {
		return there
	}
	for with, id := range c.Instr.Args {
		if !c.b.Groups.Waits(id) {
			continue
		}
		for i, other := range c.Instr.Args {
			if there[i] || c.b.Groups.Waits(other) || c.Args.In[i].Shape() != c.Args.In[with].Shape() {
				continue
			}
			if _, chosen := c.b.Chosen(other); !chosen && c.b.Computed(other).Buf == parts[i].Buf {
				continue // it was computed where it belongs
			}
			there[i] = c.b.Groups.AddSink(id, &fuse.Sink{ID: other, To: parts[i].Value})
		}
	}
	return there
}

// outerOf returns the number of elements of the dimensions before one.
func outerOf(s ir.Shape, dim int) int {
	n, _, _ := s.Around(dim)
	return n
}

// partOfCat reports whether an instruction is a cat or a reshape that only another cat uses, which has it made
// where it belongs. What is reshaped waits with it, so that the parts of a stack can become one kernel.
func (b *Builder) partOfCat(in *graph.Instr) bool {
	if in.Op != aten.Cat && in.Op != aten.Reshape || b.Kept[in.Out] || len(b.Users[in.Out]) != 1 {
		return false
	}
	return b.Program.Instrs[b.Users[in.Out][0]].Op == aten.Cat
}

// Transposed reports whether an instruction that uses a value exchanges two of its dimensions and
// leaves the others.
func (b *Builder) Transposed(id graph.ID, x, y int) bool {
	return slices.ContainsFunc(b.Users[id], func(i int32) bool {
		u := &b.Program.Instrs[i]
		return u.Op == aten.Permute && exchanges(ir.PermuteDims(b.args(u)), x, y)
	})
}

func exchanges(order []int, x, y int) bool {
	for i, d := range order {
		if i == x && d != y || i == y && d != x || i != x && i != y && d != i {
			return false
		}
	}
	return true
}

// ResultTransposed makes the buffer of the next result, in which two of its dimensions are
// exchanged.
func (c *Call) ResultTransposed(x, y int) Value {
	s := c.Shapes[len(c.Results)]
	dims := s.Dims()
	dims[x], dims[y] = dims[y], dims[x]
	v := c.b.NewValue(s.WithDims(dims...))
	view := v.View
	view.Dims[x], view.Dims[y] = view.Dims[y], view.Dims[x]
	view.Strides[x], view.Strides[y] = view.Strides[y], view.Strides[x]
	v = v.As(s, view)
	c.Results = append(c.Results, v)
	return v
}
