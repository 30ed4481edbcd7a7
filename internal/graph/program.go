package graph

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
)

// ID names a value of a Program: parameters first, then the outputs of the
// instructions in order.
type ID int32

// Instr is one use of an op in a Program.
type Instr struct {
	Op   ir.Op
	Attr string
	Args []ID
	Out  ID // the first output; the others follow
	NOut int
	Line uintptr // of the user's call, for ir.FormatLine
	// Within is the op that the user called where that is not Op but was rewritten to it.
	Within ir.Op
}

// Called returns the op that the user called: that of the instruction, or the one whose meaning it
// is part of.
func (in *Instr) Called() ir.Op {
	if in.Within != 0 {
		return in.Within
	}
	return in.Op
}

// Param is one parameter of a Program.
type Param struct {
	Name  string
	Shape ir.Shape
}

// Program is a flat graph: parameters, instructions in an order in which each
// uses only what came before, and the values returned. It must not be changed
// once it is built.
type Program struct {
	Name    string
	Params  []Param
	Shapes  []ir.Shape // by ID
	Instrs  []Instr
	Returns []ID

	inferred bool
	template *Template
}

// Inferred reports whether the Program was made by Optimize, so that operands come before their users
// and all shapes are what the rows of the table say.
func (p *Program) Inferred() bool { return p.inferred }

// ParamLeaf is the leaf that stands for a Program's parameter while nodes are
// built from it.
type ParamLeaf struct {
	Index int
	Name  string
}

// LeafName returns the parameter's name.
func (l *ParamLeaf) LeafName() string { return l.Name }

// FromPostOrder returns the Program of a walk. Its parameters are the leaves in
// post-order; leaves returns them, to bind data with.
func FromPostOrder(name string, po *PostOrder) (p *Program, leaves []*ir.Node) {
	p = &Program{Name: name}
	ids := make([]ID, len(po.Nodes))
	p.reserve(po)
	args := make([]ID, len(po.Edges))
	for i, n := range po.Nodes {
		if n.IsLeaf() {
			ids[i] = ID(len(p.Params))
			p.Params = append(p.Params, leafParam(n, len(p.Params)))
			p.Shapes = append(p.Shapes, n.Shapes()[0])
			leaves = append(leaves, n)
		}
	}
	edges := po.Edges
	for i, n := range po.Nodes {
		if n.IsLeaf() {
			continue
		}
		in := n.Inputs()
		own := args[:len(in):len(in)]
		args = args[len(in):]
		for j, v := range in {
			own[j] = ids[edges[j]] + ID(v.Index)
		}
		edges = edges[len(in):]
		ids[i] = ID(len(p.Shapes))
		p.Instrs = append(p.Instrs, Instr{Op: n.Op(), Attr: n.Attr(), Args: own, Out: ids[i], NOut: n.NumOutputs(), Line: n.Line(), Within: n.Within()})
		p.Shapes = append(p.Shapes, n.Shapes()...)
	}
	for _, r := range po.Roots {
		p.Returns = append(p.Returns, ids[po.Position(r.Node)]+ID(r.Index))
	}
	return p, leaves
}

// reserve makes room for the nodes of a walk.
func (p *Program) reserve(po *PostOrder) {
	leaves, outs := 0, 0
	for _, n := range po.Nodes {
		if outs += n.NumOutputs(); n.IsLeaf() {
			leaves++
		}
	}
	p.Params, p.Instrs = make([]Param, 0, leaves), make([]Instr, 0, len(po.Nodes)-leaves)
	p.Shapes = make([]ir.Shape, 0, outs)
}

func leafParam(n *ir.Node, i int) Param {
	if l, ok := n.Leaf().(*ParamLeaf); ok {
		return Param{Name: l.Name, Shape: n.Shapes()[0]}
	}
	return Param{Name: fmt.Sprintf("p%d", i), Shape: n.Shapes()[0]}
}

// FromValues returns the Program that computes the values from parameter
// leaves made with NewParams; every parameter appears, used or not, in order.
func FromValues(name string, params, roots []ir.Value) *Program {
	return fromOrdered(name, params, nil, roots)
}

// fromOrdered is FromValues for values that were recorded with uses of ordered ops, which become
// instructions in the order given, also those that no root depends on. That is the order in which they
// were recorded, so that none comes before its operands.
func fromOrdered(name string, params, ordered, roots []ir.Value) *Program {
	w := walkers.Get().(*Walker)
	defer walkers.Put(w)
	defer w.Release()
	po := w.Walk(slices.Concat(params, ordered, roots))
	po.Roots = roots
	p, _ := FromPostOrder(name, &po)
	return p
}

// walkers are those of fromOrdered, for their memory.
var walkers = sync.Pool{New: func() any { return new(Walker) }}

// NewParams returns fresh leaves for the parameters.
func NewParams(params []Param) []ir.Value {
	out := make([]ir.Value, len(params))
	for i, q := range params {
		out[i] = ir.NewLeaf(&ParamLeaf{Index: i, Name: q.Name}, q.Shape, ir.Device{}).Out(0)
	}
	return out
}

// HeldBytes returns the memory that the Program takes. Names and attributes count although several
// Programs may share them.
func (p *Program) HeldBytes() int64 {
	n := int(unsafe.Sizeof(*p)) + len(p.Name) + cap(p.Params)*int(unsafe.Sizeof(Param{})) + cap(p.Shapes)*int(unsafe.Sizeof(ir.Shape{})) +
		cap(p.Instrs)*int(unsafe.Sizeof(Instr{})) + cap(p.Returns)*int(unsafe.Sizeof(ID(0)))
	for i := range p.Params {
		n += len(p.Params[i].Name)
	}
	for i := range p.Instrs {
		n += len(p.Instrs[i].Attr) + len(p.Instrs[i].Args)*int(unsafe.Sizeof(ID(0)))
	}
	return int64(n)
}

// Shape returns the shape of a value.
func (p *Program) Shape(id ID) ir.Shape { return p.Shapes[id] }

// Args returns the operands and attributes of an instruction by name. The
// operands are stand-ins that know their shapes only.
func (p *Program) Args(in *Instr) ir.Args {
	return ir.Args{Spec: in.Op.Spec(), Attr: in.Attr, In: ir.ShapesOnly(p.Shapes, in.Args)}
}

// ArgsIn is Args with stand-ins in memory that the next call for the same StandIns uses again.
func (p *Program) ArgsIn(s *ir.StandIns, in *Instr) ir.Args {
	return ir.Args{Spec: in.Op.Spec(), Attr: in.Attr, In: ir.ShapesIn(s, p.Shapes, in.Args)}
}

// Outs returns the shapes of an instruction's outputs.
func (p *Program) Outs(in *Instr) []ir.Shape { return p.Shapes[in.Out : int(in.Out)+in.NOut] }

// Build replays the Program into a Builder on the given parameter values and
// returns the results.
func (p *Program) Build(b *ir.Builder, params []ir.Value) []ir.Value {
	return p.build(b, params, func(ins *Instr, in []ir.Value) []ir.Value { return b.Emit(ins.Op, ins.Attr, in...) })
}

// replay is Build for parameters of the Program's shapes, so that those of all values are known. It
// also returns a result of each use of an ordered op, in their order.
func (p *Program) replay(b *ir.Builder, params []ir.Value) (roots, ordered []ir.Value) {
	roots = p.build(b, params, func(ins *Instr, in []ir.Value) []ir.Value {
		outs := b.EmitShaped(ins.Op, ins.Attr, p.Outs(ins), in...)
		if ins.Op.Spec().Ordered {
			ordered = append(ordered, outs[0])
		}
		return outs
	})
	return roots, ordered
}

func (p *Program) build(b *ir.Builder, params []ir.Value, emit func(ins *Instr, in []ir.Value) []ir.Value) []ir.Value {
	vals := make([]ir.Value, len(p.Shapes))
	copy(vals, params)
	var in []ir.Value
	for i := range p.Instrs {
		ins := &p.Instrs[i]
		in = in[:0]
		for _, id := range ins.Args {
			in = append(in, vals[id])
		}
		b.Line, b.Within = ins.Line, ins.Called()
		copy(vals[ins.Out:], emit(ins, in))
	}
	b.Line, b.Within = 0, 0
	out := make([]ir.Value, len(p.Returns))
	for i, id := range p.Returns {
		out[i] = vals[id]
	}
	return out
}

// Hash returns the hash of the Program: that of the graph it was made from,
// with parameters in order. Names and lines do not enter.
func (p *Program) Hash() ir.Hash {
	b := ir.Builder{Lines: ir.LinesOff}
	params := NewParams(p.Params)
	roots := p.Build(&b, params)
	var w Walker
	po := w.Walk(append(append([]ir.Value(nil), params...), roots...))
	return w.Hash(&po, ir.Device{})
}
