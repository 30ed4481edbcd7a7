package graph

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// Templates keeps what Programs were rewritten to, for further ones that differ from them in sizes
// only: these are written down without a rewriting, with the same result. All of them must be rewritten
// with the same other Options. It is safe for concurrent use.
//
// The rules and the decompositions look at sizes in few ways: whether two are equal, whether one is 0
// or 1, and whether attributes are. Where a Program has the structure of another (Program.Structure)
// and its sizes are those of the other under an injective renaming that keeps 0 and 1, all of these
// answers are the same, so that the result is the other's under the same renaming. What a composite
// means may depend on sizes in any way, and is compared.
type Templates struct {
	mu    sync.Mutex
	known map[ir.Hash]*alike // guarded by mu
	size  int                // instructions of all templates; guarded by mu

	last atomic.Pointer[Template] // the one used last, which is tried without hashing a Program
}

// NewTemplates returns an empty one.
func NewTemplates() *Templates { return &Templates{known: map[ir.Hash]*alike{}} }

// alike are the Programs of one structure.
type alike struct {
	templates []*Template // the last used first
	never     bool        // they can't be templates
}

// maxAlike bounds the templates of one structure, maxTemplates and maxTemplateSize the structures and
// the instructions that are kept. All is forgotten when one of the latter is reached.
const (
	maxAlike        = 4
	maxTemplates    = 1 << 10
	maxTemplateSize = 1 << 16
)

// find returns the templates of a structure. The first Program of a structure makes none: most have no
// second one.
func (ts *Templates) find(h ir.Hash) (of []*Template, record bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k := ts.known[h]
	if k == nil {
		if len(ts.known) >= maxTemplates || ts.size > maxTemplateSize {
			clear(ts.known)
			ts.size = 0
		}
		ts.known[h] = &alike{}
		return nil, false
	}
	return slices.Clone(k.templates), !k.never
}

// use puts a template of a structure first; nil says that there can be none.
func (ts *Templates) use(h ir.Hash, t *Template) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	k := ts.known[h]
	switch {
	case k == nil:
		return // forgotten meanwhile
	case t == nil:
		k.never = true
		return
	}
	ts.last.Store(t)
	before := len(k.templates)
	k.templates = slices.DeleteFunc(k.templates, func(o *Template) bool { return o == t })
	if len(k.templates) == before {
		ts.size += len(t.in.Instrs) + len(t.out.Instrs)
	}
	if k.templates = slices.Insert(k.templates, 0, t); len(k.templates) > maxAlike {
		last := k.templates[maxAlike]
		ts.size -= len(last.in.Instrs) + len(last.out.Instrs)
		k.templates = k.templates[:maxAlike]
	}
}

// optimize is Optimize by what is known of Programs of the same structure.
func (ts *Templates) optimize(p *Program, o Options) (*Program, Stats) {
	last := ts.last.Load()
	if last != nil {
		if out := last.resized(p, o.Decompositions); out != nil {
			return out, last.statistics()
		}
	}
	h := p.Structure()
	of, record := ts.find(h)
	for _, t := range of {
		if t == last {
			continue
		}
		if out := t.resized(p, o.Decompositions); out != nil {
			ts.use(h, t)
			return out, t.statistics()
		}
	}
	if !record || !resizable(p) {
		out, st := optimize(p, o, nil)
		st.Structure = h
		return out, st
	}
	rec := &recording{}
	numbered := *p
	numbered.Instrs = slices.Clone(p.Instrs)
	for i := range numbered.Instrs {
		numbered.Instrs[i].Line = uintptr(i + 1)
	}
	out, st := optimize(&numbered, o, rec)
	st.Structure = h
	t := newTemplate(p, out, rec, o.Decompositions)
	if t != nil {
		t.stats = st
		t.stats.Applied = maps.Clone(st.Applied)
		out.template = t
	}
	ts.use(h, t)
	return out, st
}

// statistics returns those of the rewriting.
func (t *Template) statistics() Stats {
	st := t.stats
	st.Applied = maps.Clone(st.Applied)
	return st
}

// resizable reports whether a Program can be a template: loops hold Programs, and ordered ops and
// models have sizes of their own in their attributes.
func resizable(p *Program) bool {
	for i := range p.Instrs {
		if sp := p.Instrs[i].Op.Spec(); sp.Op == aten.Scan || sp.Ordered || sp.Category == ir.CustomCall || sp.Category == ir.Collective {
			return false
		}
	}
	return true
}

// recording is what a rewriting did that is not in its result.
type recording struct {
	seen map[string]bool
	uses []use
	// folded are the constants that others were computed of, and these.
	folded []any
}

// use is a use of a composite that was decomposed.
type use struct {
	op     ir.Op
	attr   string
	shapes []ir.Shape // of the operands
	same   []int      // for each operand, the first one that is the same value
	means  ir.Meaning // set in templates
}

// decomposed notes that a use was decomposed.
func (r *recording) decomposed(a ir.Args) {
	key := binary.AppendUvarint(nil, uint64(a.Spec.Op))
	key = append(binary.AppendUvarint(key, uint64(len(a.Attr))), a.Attr...)
	u := use{op: a.Spec.Op, attr: a.Attr}
	for i, v := range a.In {
		same := slices.Index(a.In[:i+1], v)
		u.shapes, u.same = append(u.shapes, v.Shape()), append(u.same, same)
		key = v.Shape().Append(append(binary.AppendUvarint(key, uint64(same)), ' '))
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	if !r.seen[string(key)] {
		r.seen[string(key)] = true
		r.uses = append(r.uses, u)
	}
}

// computed notes a constant that a rule has computed of others.
func (r *recording) computed(out ir.Value, in []ir.Value) {
	for _, v := range append(in[:len(in):len(in)], out) {
		if c, ok := constant(v); ok && !slices.Contains(r.folded, c) {
			r.folded = append(r.folded, c)
		}
	}
}

// useScratch is memory for reading uses of composites.
type useScratch struct {
	standIns ir.StandIns
	shapes   []ir.Shape
	ids      []ID
	key      []byte
}

// args returns the use on stand-ins of the given shapes, until it is called again.
func (m *useScratch) args(u *use, attr string, shapes []ir.Shape) ir.Args {
	for len(m.ids) < len(shapes) {
		m.ids = append(m.ids, ID(len(m.ids)))
	}
	a := ir.Args{Spec: u.op.Spec(), Attr: attr, In: ir.ShapesIn(&m.standIns, shapes, m.ids[:len(shapes)])}
	for i, same := range u.same {
		a.In[i] = a.In[same]
	}
	return a
}

// Template is a Program that was rewritten, and what is needed to write down the result for a Program
// that differs from it in sizes only.
type Template struct {
	in, out *Program
	stats   Stats
	uses    []use
	folded  []any

	// By class, of which inShape, inAttr, outShape and outAttr tell those of the values and instructions
	// of in and out: -1 stands for no attributes.
	inShapes, outShapes []ir.Shape
	inAttrs, outAttrs   []attribute
	inShape, outShape   []int32
	inAttr, outAttr     []int32
	from                []int32 // by instruction of out: the one of in that it is part of the meaning of
}

// attribute is a use's attributes.
type attribute struct {
	op   ir.Op
	attr string
	at   int32 // the first instruction that has them
}

// newTemplate returns the Template of a rewriting whose lines are the numbers of instructions, which it
// replaces by the lines of these. It returns nil if there can be none.
func newTemplate(in, out *Program, rec *recording, k *ir.Decompositions) *Template {
	if k == nil {
		k = ir.NewDecompositions()
	}
	t := &Template{in: in, out: out, uses: rec.uses, folded: rec.folded, from: make([]int32, len(out.Instrs))}
	ok := true
	for i := range out.Instrs {
		q := &out.Instrs[i]
		if q.Line == 0 {
			ok = false
			continue
		}
		t.from[i] = int32(q.Line - 1)
		q.Line = in.Instrs[t.from[i]].Line
	}
	var m useScratch
	for i := range t.uses {
		u := &t.uses[i]
		u.means = k.Meaning(m.args(u, u.attr, u.shapes), &m.key)
	}
	t.inShapes, t.inShape = shapeClasses(in.Shapes)
	t.outShapes, t.outShape = shapeClasses(out.Shapes)
	t.inAttrs, t.inAttr = attrClasses(in.Instrs)
	t.outAttrs, t.outAttr = attrClasses(out.Instrs)
	if !ok || t.resized(in, k) == nil {
		return nil
	}
	return t
}

// shapeClasses returns the distinct shapes, and for each which one it is.
func shapeClasses(shapes []ir.Shape) (classes []ir.Shape, of []int32) {
	of = make([]int32, len(shapes))
	known := map[ir.Shape]int32{}
	for i, s := range shapes {
		c, ok := known[s]
		if !ok {
			c = int32(len(classes))
			known[s] = c
			classes = append(classes, s)
		}
		of[i] = c
	}
	return classes, of
}

// attrClasses returns the distinct attributes of instructions, and for each which they are.
func attrClasses(instrs []Instr) (classes []attribute, of []int32) {
	of = make([]int32, len(instrs))
	known := map[attrKey]int32{}
	for i := range instrs {
		in := &instrs[i]
		if in.Attr == "" {
			of[i] = -1
			continue
		}
		key := attrKey{in.Op, in.Attr}
		c, ok := known[key]
		if !ok {
			c = int32(len(classes))
			known[key] = c
			classes = append(classes, attribute{in.Op, in.Attr, int32(i)})
		}
		of[i] = c
	}
	return classes, of
}

// Template returns what the Program, which Optimize made, has in common with others of the same
// Template: their instructions are the same but for attributes and constants that are sizes, and sizes,
// numbers of elements among them, are equal to each other, and to 0 and 1, where they are so here. Nil
// if nothing is known.
func (p *Program) Template() *Template { return p.template }
