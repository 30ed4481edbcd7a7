package fuse

import (
	"slices"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/loop"
)

// Epilogue is what a product or convolution does to its results while they are
// in the cache: the pointwise ops that follow it and see nothing else of it. The
// dense op is lowered where the last of them stands, when all operands are there.
//
//	act(links(product) + residual)
type Epilogue struct {
	// Anchor is the dense instruction.
	Anchor int32
	Links  []Link
	// Residual has the dimensions of the result; it may be NoValue.
	Residual graph.ID
	Act      Activation
	// Ops are the dense instruction and those after it.
	Ops []*graph.Instr
}

// Link is one step of a chain: the chain's value and a number, or a vector along
// the channels.
type Link struct {
	Op ir.Op // add, sub, mul or div, the chain on the left
	ID graph.ID
}

// NoValue is the ID of no value.
const NoValue = graph.ID(-1)

const (
	maxLinks = 8
	// maxReach bounds the ops among which an activation is looked for.
	maxReach = 16
)

// Rule says which links the kernel of a dense instruction can take.
type Rule struct {
	// Channel is the dimension of the result along which the vectors of links lie.
	Channel int
	// Affine allows links of all kinds; else there are factors, which are numbers,
	// and then one vector that is added.
	Affine bool
	// Factor says which numbers may be such factors; nil allows all.
	Factor func(id graph.ID) bool
	// Acts are the activations that a chain may end with; nil stands for all.
	Acts []Activation
	// Vector says that the kernel adds one vector and nothing else.
	Vector bool
}

// matcher finds epilogues.
type matcher struct {
	p *graph.Program
	*Uses
	maker []int32 // by ID: the instruction that computes it, or -1
	taken []bool  // by instruction: part of a chain
	tests []numberTest
}

// numberTest is what was found of a constant.
type numberTest struct {
	instr int32
	want  float64
	same  bool
}

// Epilogues returns, by its last instruction, nil for the others, each chain that a dense instruction
// begins, and marks in inner the instructions before that. rule says what the
// kernel of an instruction with one result can take; false if it can take nothing.
func Epilogues(p *graph.Program, u *Uses, rule func(in *graph.Instr) (Rule, bool)) (byTail []*Epilogue, inner []bool) {
	byTail, inner, _ = epilogues(p, u, rule)
	return byTail, inner
}

// epilogues is Epilogues that also returns what was found of constants.
func epilogues(p *graph.Program, u *Uses, rule func(in *graph.Instr) (Rule, bool)) (byTail []*Epilogue, inner []bool, tests []numberTest) {
	m := &matcher{p: p, Uses: u, maker: make([]int32, len(p.Shapes)), taken: make([]bool, len(p.Instrs))}
	byTail, inner = make([]*Epilogue, len(p.Instrs)), make([]bool, len(p.Instrs))
	for i := range m.maker {
		m.maker[i] = -1
	}
	for i := range p.Instrs {
		for k := range p.Instrs[i].NOut {
			m.maker[int(p.Instrs[i].Out)+k] = int32(i)
		}
	}
	for i := range p.Instrs {
		if p.Instrs[i].NOut != 1 {
			continue
		}
		r, ok := rule(&p.Instrs[i])
		if !ok {
			continue
		}
		e, chain := m.follow(int32(i), r)
		if len(chain) == 0 {
			continue
		}
		tail := slices.Max(chain)
		for _, c := range append(chain, int32(i)) {
			m.taken[c], inner[c] = true, c != tail
		}
		for _, c := range append([]int32{int32(i)}, chain...) {
			e.Ops = append(e.Ops, &p.Instrs[c])
		}
		byTail[tail] = e
	}
	return byTail, inner, m.tests
}

func (m *matcher) dtype(id graph.ID) ir.DType { return m.p.Shape(id).DType() }

// follow walks the chain that begins at a dense instruction as far as an
// epilogue can take it and returns the instructions after the first.
func (m *matcher) follow(i int32, rule Rule) (e *Epilogue, chain []int32) {
	e = &Epilogue{Anchor: i, Residual: NoValue}
	for cur := m.p.Instrs[i].Out; !m.Kept[cur]; {
		if act, ops, ok := m.activation(cur); ok && !rule.Vector && (rule.Acts == nil || slices.Contains(rule.Acts, act)) {
			e.Act = act
			return e, append(chain, ops...)
		}
		if len(m.Users[cur]) != 1 {
			break
		}
		u := m.Users[cur][0]
		if m.taken[u] || !m.extend(e, rule, &m.p.Instrs[u], cur) {
			break
		}
		chain = append(chain, u)
		cur = m.p.Instrs[u].Out
	}
	return e, chain
}

// extend adds one arithmetic instruction on the value cur to an epilogue, if it
// is one that fits.
func (m *matcher) extend(e *Epilogue, rule Rule, in *graph.Instr, cur graph.ID) bool {
	shape := m.p.Shape(cur)
	if len(in.Args) != 2 || in.Args[0] == in.Args[1] || m.p.Shape(in.Out) != shape {
		return false
	}
	other := in.Args[1]
	if other == cur {
		if other = in.Args[0]; in.Op != aten.Add && in.Op != aten.Mul {
			return false
		}
	}
	os := m.p.Shape(other)
	if os.DType() != shape.DType() {
		return false
	}
	l := Link{in.Op, other}
	switch {
	case (os.Numel() == 1 || alongOnly(os, shape, rule.Channel)) && m.canLink(e, rule, l, shape.Dim(rule.Channel)):
		e.Links = append(e.Links, l)
	case !rule.Vector && in.Op == aten.Add && os == shape && e.Residual == NoValue && m.lies(other):
		e.Residual = other
	default:
		return false
	}
	return true
}

// canLink reports whether an epilogue of so many channels can take one more link.
func (m *matcher) canLink(e *Epilogue, rule Rule, l Link, channels int) bool {
	if len(e.Links) == maxLinks {
		return false
	}
	d := m.dtype(l.ID)
	if rule.Affine {
		// Vectors are put together in the tensors' type: not in a narrow one.
		switch l.Op {
		case aten.Add, aten.Sub:
			return d == loop.ComputeDType(d)
		case aten.Mul, aten.Div:
			return d == loop.ComputeDType(d) && e.Residual == NoValue
		}
		return false
	}
	for _, have := range e.Links {
		if have.Op == aten.Add {
			return false
		}
	}
	switch l.Op {
	case aten.Mul, aten.Div:
		return !rule.Vector && m.p.Shape(l.ID).Numel() == 1 && e.Residual == NoValue && (rule.Factor == nil || rule.Factor(l.ID))
	case aten.Add:
		return m.p.Shape(l.ID).Numel() == channels
	}
	return false
}

// alongOnly reports whether s broadcasts to out and has elements along one
// dimension of it only.
func alongOnly(s, out ir.Shape, dim int) bool {
	off := out.Rank() - s.Rank()
	for d := range s.Rank() {
		if n := s.Dim(d); n != 1 && (d+off != dim || n != out.Dim(dim)) {
			return false
		}
	}
	return off >= 0
}

// lies reports whether a value is in memory anyway. What a pointwise op computes
// for this use only is better left to its group.
func (m *matcher) lies(id graph.ID) bool {
	i := m.maker[id]
	return i < 0 || m.p.Instrs[i].Op.Spec().Category != ir.Pointwise || m.taken[i] || len(m.Users[id]) > 1 || m.Kept[id]
}

// activation looks for an activation of a value that has no other use, and
// returns its instructions. One of a 16-bit float may be computed in f32.
func (m *matcher) activation(cur graph.ID) (Activation, []int32, bool) {
	if act, ops, ok := m.pattern(cur); ok {
		return act, ops, true
	}
	d := m.dtype(cur)
	if loop.ComputeDType(d) == d || len(m.Users[cur]) != 1 {
		return 0, nil, false
	}
	widen := m.Users[cur][0]
	wide := m.p.Instrs[widen].Out
	if m.p.Instrs[widen].Op != aten.Cast || m.dtype(wide) != loop.ComputeDType(d) || m.Kept[wide] {
		return 0, nil, false
	}
	act, ops, ok := m.pattern(wide)
	if !ok {
		return 0, nil, false
	}
	result := m.p.Instrs[slices.Max(ops)].Out
	if m.Kept[result] || len(m.Users[result]) != 1 {
		return 0, nil, false
	}
	narrow := m.Users[result][0]
	if in := &m.p.Instrs[narrow]; in.Op != aten.Cast || m.dtype(in.Out) != d || m.taken[narrow] || m.taken[widen] {
		return 0, nil, false
	}
	return act, append(ops, widen, narrow), true
}

// pattern tries the table of activations on what is computed from a value.
func (m *matcher) pattern(cur graph.ID) (Activation, []int32, bool) {
	reach := slices.Clone(m.Users[cur])
	for k := 0; k < len(reach) && len(reach) < maxReach; k++ {
		in := &m.p.Instrs[reach[k]]
		if in.Op.Spec().Category != ir.Pointwise || !m.p.Shape(in.Out).SameDims(m.p.Shape(cur)) {
			continue
		}
		for _, a := range activations {
			if a.expr.op != in.Op {
				continue
			}
			t := &trial{m: m, hole: cur}
			if t.matches(a.expr, in.Out) && t.closed(reach[k]) {
				return a.act, t.ops, true
			}
		}
		reach = append(reach, m.Users[in.Out]...)
	}
	return 0, nil, false
}

// trial is the matching of one pattern.
type trial struct {
	m    *matcher
	hole graph.ID
	ops  []int32 // that matched
}

// matches reports whether a value is computed by an expression of the hole.
func (t *trial) matches(e *expr, id graph.ID) bool {
	if len(e.in) == 0 && !e.number {
		return id == t.hole
	}
	i := t.m.maker[id]
	if i < 0 {
		return false
	}
	in := &t.m.p.Instrs[i]
	if e.number {
		if in.Op != aten.Full {
			return false
		}
		same := isNumber(t.m.p, in, e.value)
		t.m.tests = append(t.m.tests, numberTest{i, e.value, same})
		return same
	}
	if in.Op != e.op || len(in.Args) != len(e.in) {
		return false
	}
	before := len(t.ops)
	straight := true
	for k, x := range e.in {
		straight = straight && t.matches(x, in.Args[k])
	}
	if !straight {
		t.ops = t.ops[:before]
		turned := e.op == aten.Mul || e.op == aten.Add
		if !turned || !t.matches(e.in[0], in.Args[1]) || !t.matches(e.in[1], in.Args[0]) {
			t.ops = t.ops[:before]
			return false
		}
	}
	if !slices.Contains(t.ops, i) {
		t.ops = append(t.ops, i)
	}
	return true
}

// isNumber reports whether a full has a value.
func isNumber(p *graph.Program, in *graph.Instr, want float64) bool {
	return sameNumber(ir.Args{Spec: in.Op.Spec(), Attr: in.Attr}.Get("fill_value"), want, p.Shape(in.Out).DType())
}

func sameNumber(v any, want float64, d ir.DType) bool {
	f, ok := v.(float64)
	if i, isInt := v.(int64); isInt {
		f, ok = float64(i), true
	}
	return ok && ir.RoundFloat(d, f) == ir.RoundFloat(d, want)
}

// closed reports whether the hole and what the pattern computes before its
// result at instruction last are used by the pattern only.
func (t *trial) closed(last int32) bool {
	inside := func(id graph.ID) bool {
		for _, u := range t.m.Users[id] {
			if !slices.Contains(t.ops, u) {
				return false
			}
		}
		return !t.m.Kept[id]
	}
	for _, i := range t.ops {
		if t.m.taken[i] || i != last && !inside(t.m.p.Instrs[i].Out) {
			return false
		}
	}
	return inside(t.hole)
}
