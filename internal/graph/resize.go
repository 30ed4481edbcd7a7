package graph

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// renaming takes the sizes of one Program to those of another: dimensions, the attributes of uses of
// ops, and constants that may have been computed from sizes. Each is injective, and dimensions of 0 and
// 1 stay what they are.
type renaming struct {
	dims, dimsBack   map[int]int
	attrs, attrsBack map[attrKey]string
	fills, fillsBack map[any]any
}

// attrKey is the attributes of a use of an op.
type attrKey struct {
	op   ir.Op
	attr string
}

// newRenaming returns one of nothing, with room for the attributes of as many instructions.
func newRenaming(attrs int) *renaming {
	return &renaming{
		dims: map[int]int{0: 0, 1: 1}, dimsBack: map[int]int{0: 0, 1: 1},
		attrs: make(map[attrKey]string, attrs), attrsBack: make(map[attrKey]string, attrs),
		fills: map[any]any{}, fillsBack: map[any]any{},
	}
}

// pair notes that x becomes y; false if x has become another, or another y.
func pair[K, V comparable](forth map[K]V, back map[V]K, x K, y V) bool {
	was, ok := forth[x]
	if ok {
		return was == y
	}
	if _, taken := back[y]; taken {
		return false
	}
	forth[x], back[y] = y, x
	return true
}

// shape notes what a shape becomes; false if it can't.
func (r *renaming) shape(x, y ir.Shape) bool {
	if x.DType() != y.DType() || x.Rank() != y.Rank() {
		return false
	}
	for i := range x.Rank() {
		if !pair(r.dims, r.dimsBack, x.Dim(i), y.Dim(i)) {
			return false
		}
	}
	return true
}

// attr notes what attributes become; false if they can't.
func (r *renaming) attr(op ir.Op, x, y string) bool {
	if x == "" || y == "" {
		return x == y
	}
	key := attrKey{op, x}
	if was, ok := r.attrs[key]; ok {
		return was == y
	}
	back := attrKey{op, y}
	if _, taken := r.attrsBack[back]; taken || !op.Spec().Resized(x, y) {
		return false
	}
	if op == aten.Full {
		from, to := ir.Args{Spec: op.Spec(), Attr: x}, ir.Args{Spec: op.Spec(), Attr: y}
		if !pair(r.fills, r.fillsBack, from.Get("fill_value"), to.Get("fill_value")) {
			return false
		}
	}
	r.attrs[key], r.attrsBack[back] = y, x
	return true
}

// renamed returns what a shape becomes; false if a dimension is none of the Program's.
func (r *renaming) renamed(s ir.Shape) (ir.Shape, bool) {
	var dims [ir.MaxRank]int
	for i := range s.Rank() {
		to, ok := r.dims[s.Dim(i)]
		if !ok {
			return s, false
		}
		dims[i] = to
	}
	out, err := ir.NewShape(s.DType(), dims[:s.Rank()])
	return out, err == nil
}

// resized returns what p is rewritten to; nil if p differs from the Template in more than sizes.
func (t *Template) resized(p *Program, k *ir.Decompositions) *Program {
	if k == nil {
		k = ir.NewDecompositions()
	}
	if !t.sameInstrs(p) {
		return nil
	}
	r := newRenaming(len(t.inAttrs))
	if !t.pairShapes(r, p) || !t.pairAttrs(r, p) || !t.pairUses(r, k) || !t.pairConstants(r) {
		return nil
	}
	shapes, ok := t.shapes(r)
	if !ok {
		return nil
	}
	attrs, ok := t.attrs(r, shapes)
	if !ok {
		return nil
	}
	out := &Program{Name: p.Name, Params: p.Params, Returns: t.out.Returns, Instrs: slices.Clone(t.out.Instrs), Shapes: make([]ir.Shape, len(t.out.Shapes)), inferred: true}
	if t.pairNumels(r, shapes) {
		out.template = t
	}
	for i, c := range t.outShape {
		out.Shapes[i] = shapes[c]
	}
	for i := range out.Instrs {
		q, from := &out.Instrs[i], &p.Instrs[t.from[i]]
		q.Line, q.Within = from.Line, from.Called()
		if c := t.outAttr[i]; c >= 0 {
			q.Attr = attrs[c]
		}
	}
	return out
}

// sameInstrs reports whether p has the ops and operands of the Template.
func (t *Template) sameInstrs(p *Program) bool {
	if len(p.Params) != len(t.in.Params) || len(p.Instrs) != len(t.in.Instrs) || len(p.Shapes) != len(t.in.Shapes) || !slices.Equal(p.Returns, t.in.Returns) {
		return false
	}
	for i := range p.Instrs {
		x, y := &t.in.Instrs[i], &p.Instrs[i]
		if x.Op != y.Op || x.NOut != y.NOut || !slices.Equal(x.Args, y.Args) {
			return false
		}
	}
	return true
}

// pairShapes notes what the shapes become; false if they can't.
func (t *Template) pairShapes(r *renaming, p *Program) bool {
	is := make([]*ir.Shape, len(t.inShapes))
	for i, c := range t.inShape {
		s := &p.Shapes[i]
		switch {
		case is[c] == nil:
			is[c] = s
			if !r.shape(t.inShapes[c], *s) {
				return false
			}
		case *is[c] != *s:
			return false
		}
	}
	return true
}

// pairAttrs notes what the attributes become; false if they can't.
func (t *Template) pairAttrs(r *renaming, p *Program) bool {
	for _, a := range t.inAttrs {
		if !r.attr(a.op, a.attr, p.Instrs[a.at].Attr) {
			return false
		}
	}
	for i, c := range t.inAttr {
		switch attr := p.Instrs[i].Attr; {
		case c < 0:
			if attr != "" {
				return false
			}
		case attr != p.Instrs[t.inAttrs[c].at].Attr:
			return false
		}
	}
	return true
}

// pairUses notes what the parts of composites become; false if a composite means something else.
func (t *Template) pairUses(r *renaming, k *ir.Decompositions) bool {
	var m useScratch
	pair := func(op ir.Op, attrs [2]string, shapes [2][]ir.Shape) bool {
		for j := range shapes[0] {
			if !r.shape(shapes[0][j], shapes[1][j]) {
				return false
			}
		}
		return r.attr(op, attrs[0], attrs[1])
	}
	for i := range t.uses {
		u := &t.uses[i]
		attr, ok := u.attr, true
		if attr != "" {
			if attr, ok = r.attrs[attrKey{u.op, attr}]; !ok {
				return false
			}
		}
		m.shapes = m.shapes[:0]
		for _, s := range u.shapes {
			to, known := r.renamed(s)
			if !known {
				return false
			}
			m.shapes = append(m.shapes, to)
		}
		if !u.means.Alike(k.Meaning(m.args(u, attr, m.shapes), &m.key), pair) {
			return false
		}
	}
	return true
}

// pairConstants reports whether the constants that others were computed of are what they were, and so
// are these.
func (t *Template) pairConstants(r *renaming) bool {
	for _, v := range t.folded {
		if !pair(r.fills, r.fillsBack, v, v) {
			return false
		}
	}
	return true
}

// shapes returns the shapes of the result by class.
func (t *Template) shapes(r *renaming) (shapes []ir.Shape, ok bool) {
	shapes = make([]ir.Shape, len(t.outShapes))
	for c, s := range t.outShapes {
		if shapes[c], ok = r.renamed(s); !ok {
			return nil, false
		}
	}
	return shapes, true
}

// pairNumels reports whether numbers of elements are equal to each other and to dimensions where they
// are so in the Template.
func (t *Template) pairNumels(r *renaming, shapes []ir.Shape) bool {
	for c, s := range t.outShapes {
		if !pair(r.dims, r.dimsBack, s.Numel(), shapes[c].Numel()) {
			return false
		}
	}
	return true
}

// attrs returns the attributes of the result by class.
func (t *Template) attrs(r *renaming, shapes []ir.Shape) (attrs []string, ok bool) {
	attrs = make([]string, len(t.outAttrs))
	for c, a := range t.outAttrs {
		if attrs[c], ok = r.attrs[attrKey{a.op, a.attr}]; ok {
			continue
		}
		// A rule made the instruction.
		out := t.out.Instrs[a.at].Out
		if attrs[c], ok = r.made(a, t.out.Shapes[out], shapes[t.outShape[out]]); !ok {
			return nil, false
		}
	}
	return attrs, true
}

// made returns the attributes of an instruction that a rule has made, whose result was of shape from
// and is of shape to; false if it is none that rules make.
func (r *renaming) made(a attribute, from, to ir.Shape) (attr string, ok bool) {
	b := ir.Builder{Lines: ir.LinesOff}
	var write func(s ir.Shape, fill any) string
	var fill any
	switch a.op {
	case aten.Permute, aten.Cast:
		return a.attr, true // they have no sizes
	case aten.Reshape:
		write = func(s ir.Shape, _ any) string { return b.Reshape(ir.ShapeOnly(s), s.Dims()...).Node.Attr() }
	case aten.Expand:
		write = func(s ir.Shape, _ any) string { return b.Expand(ir.ShapeOnly(s), s.Dims()...).Node.Attr() }
	case aten.Full:
		write = func(s ir.Shape, fill any) string { return b.Full(s.Dims(), fill, s.DType()).Node.Attr() }
		fill = ir.Args{Spec: a.op.Spec(), Attr: a.attr}.Get("fill_value")
	default:
		return "", false
	}
	if write(from, fill) != a.attr {
		return "", false
	}
	if now, changed := r.fills[fill]; changed {
		fill = now
	}
	return write(to, fill), true
}
