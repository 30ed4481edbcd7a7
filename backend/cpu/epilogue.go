package cpu

import (
	"slices"

	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/ir"
)

// epilogue is what a product or convolution does to its results while they are
// in the cache: the pointwise ops that follow it and see nothing else of it. The
// dense op is lowered where the last of them stands, when all operands are there.
//
//	act(links(product) + residual)
type epilogue struct {
	anchor   int32 // the dense instruction
	links    []link
	residual graph.ID // of the result's dimensions; or noValue
	act      gemm.Activation
	ops      []*graph.Instr // the dense instruction and those after it
}

// link is one step of a chain with a number or a vector along the channels.
type link struct {
	op     ir.Op // add, sub, mul or div, the chain on the left
	id     graph.ID
	scalar bool
}

const (
	noValue  = graph.ID(-1)
	maxLinks = 8
	// maxReach bounds the ops among which an activation is looked for.
	maxReach = 16
)

// anchorRule says which links a dense op can take.
type anchorRule struct {
	// channel returns the dimension along which the vectors of links lie, or -1 if
	// this use of the op can take none.
	channel func(m *matcher, in *graph.Instr) int
	// affine allows links of all kinds; else there are factors, which are numbers,
	// and then one vector that is added.
	affine bool
}

var anchors = map[ir.Op]anchorRule{
	ir.OpMatMul: {channel: func(m *matcher, in *graph.Instr) int {
		if _, ok := floatMatmuls[m.dtype(in.Out)]; !ok || m.p.Shape(in.Args[1]).Rank() < 2 {
			return -1
		}
		return m.p.Shape(in.Out).Rank() - 1
	}},
	ir.OpConvolution: {affine: true, channel: func(m *matcher, in *graph.Instr) int {
		if _, ok := convolutions[m.dtype(in.Out)]; !ok {
			return -1
		}
		return 1
	}},
}

// matcher finds epilogues.
type matcher struct {
	*lowering
	maker []int32 // by ID: the instruction that computes it, or -1
	taken []bool  // by instruction: part of a chain
}

// matchEpilogues returns, by its last instruction, each chain that a dense op
// begins, and marks in inner the instructions before that.
func (l *lowering) matchEpilogues() (byTail map[int32]*epilogue, inner []bool) {
	m := &matcher{lowering: l, maker: make([]int32, len(l.p.Shapes)), taken: make([]bool, len(l.p.Instrs))}
	byTail, inner = map[int32]*epilogue{}, make([]bool, len(l.p.Instrs))
	for i := range m.maker {
		m.maker[i] = -1
	}
	for i := range l.p.Instrs {
		for k := range l.p.Instrs[i].NOut {
			m.maker[int(l.p.Instrs[i].Out)+k] = int32(i)
		}
	}
	for i := range l.p.Instrs {
		rule, ok := anchors[l.p.Instrs[i].Op]
		if !ok || l.p.Instrs[i].NOut != 1 || len(l.p.Instrs[i].Args) < 2 {
			continue
		}
		e, chain := m.follow(int32(i), rule)
		if len(chain) == 0 {
			continue
		}
		tail := slices.Max(chain)
		for _, c := range append(chain, int32(i)) {
			m.taken[c], inner[c] = true, c != tail
		}
		for _, c := range append([]int32{int32(i)}, chain...) {
			e.ops = append(e.ops, &l.p.Instrs[c])
		}
		byTail[tail] = e
	}
	return byTail, inner
}

func (m *matcher) dtype(id graph.ID) ir.DType { return m.p.Shape(id).DType() }

// follow walks the chain that begins at a dense instruction as far as an
// epilogue can take it and returns the instructions after the first.
func (m *matcher) follow(i int32, rule anchorRule) (e *epilogue, chain []int32) {
	e = &epilogue{anchor: i, residual: noValue}
	channel := rule.channel(m, &m.p.Instrs[i])
	if channel < 0 {
		return e, nil
	}
	for cur := m.p.Instrs[i].Out; !m.kept[cur]; {
		if act, ops, ok := m.activation(cur); ok {
			e.act = act
			return e, append(chain, ops...)
		}
		if len(m.users[cur]) != 1 {
			break
		}
		u := m.users[cur][0]
		if m.taken[u] || !m.extend(e, rule, channel, &m.p.Instrs[u], cur) {
			break
		}
		chain = append(chain, u)
		cur = m.p.Instrs[u].Out
	}
	return e, chain
}

// extend adds one arithmetic instruction on the value cur to an epilogue, if it
// is one that fits.
func (m *matcher) extend(e *epilogue, rule anchorRule, channel int, in *graph.Instr, cur graph.ID) bool {
	shape := m.p.Shape(cur)
	if len(in.Args) != 2 || in.Args[0] == in.Args[1] || m.p.Shape(in.Out) != shape {
		return false
	}
	other := in.Args[1]
	if other == cur {
		if other = in.Args[0]; in.Op != ir.OpAdd && in.Op != ir.OpMul {
			return false
		}
	}
	os := m.p.Shape(other)
	if os.DType() != shape.DType() {
		return false
	}
	l := link{op: in.Op, id: other, scalar: os.Numel() == 1}
	switch {
	case (l.scalar || alongOnly(os, shape, channel)) && m.canLink(e, rule, l, shape.Dim(channel)):
		e.links = append(e.links, l)
	case in.Op == ir.OpAdd && os == shape && e.residual == noValue && m.lies(other):
		e.residual = other
	default:
		return false
	}
	return true
}

// canLink reports whether an epilogue of so many channels can take one more link.
func (m *matcher) canLink(e *epilogue, rule anchorRule, l link, channels int) bool {
	if len(e.links) == maxLinks {
		return false
	}
	d := m.dtype(l.id)
	if rule.affine {
		// Vectors are put together in the tensors' type: not in a narrow one.
		switch l.op {
		case ir.OpAdd, ir.OpSub:
			return d == computeDType(d)
		case ir.OpMul, ir.OpDiv:
			return d == computeDType(d) && e.residual == noValue
		}
		return false
	}
	for _, have := range e.links {
		if have.op == ir.OpAdd {
			return false
		}
	}
	switch l.op {
	case ir.OpMul, ir.OpDiv:
		return l.scalar && e.residual == noValue
	case ir.OpAdd:
		return m.p.Shape(l.id).Numel() == channels
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
	return i < 0 || m.p.Instrs[i].Op.Spec().Category != ir.Pointwise || m.taken[i] || len(m.users[id]) > 1 || m.kept[id]
}

// activation looks for an activation of a value that has no other use, and
// returns its instructions. One of a 16-bit float may be computed in f32.
func (m *matcher) activation(cur graph.ID) (gemm.Activation, []int32, bool) {
	if act, ops, ok := m.pattern(cur); ok {
		return act, ops, true
	}
	d := m.dtype(cur)
	if computeDType(d) == d || len(m.users[cur]) != 1 {
		return 0, nil, false
	}
	widen := m.users[cur][0]
	wide := m.p.Instrs[widen].Out
	if m.p.Instrs[widen].Op != ir.OpCast || m.dtype(wide) != computeDType(d) || m.kept[wide] {
		return 0, nil, false
	}
	act, ops, ok := m.pattern(wide)
	if !ok {
		return 0, nil, false
	}
	result := m.p.Instrs[slices.Max(ops)].Out
	if m.kept[result] || len(m.users[result]) != 1 {
		return 0, nil, false
	}
	narrow := m.users[result][0]
	if in := &m.p.Instrs[narrow]; in.Op != ir.OpCast || m.dtype(in.Out) != d || m.taken[narrow] || m.taken[widen] {
		return 0, nil, false
	}
	return act, append(ops, widen, narrow), true
}

// pattern tries the table of activations on what is computed from a value.
func (m *matcher) pattern(cur graph.ID) (gemm.Activation, []int32, bool) {
	reach := slices.Clone(m.users[cur])
	for k := 0; k < len(reach) && len(reach) < maxReach; k++ {
		in := &m.p.Instrs[reach[k]]
		if in.Op.Spec().Category != ir.Pointwise || !m.p.Shape(in.Out).SameDims(m.p.Shape(cur)) {
			continue
		}
		for _, a := range activations {
			t := &trial{m: m, hole: cur}
			if t.matches(a.expr, in.Out) && t.closed(reach[k]) {
				return a.act, t.ops, true
			}
		}
		reach = append(reach, m.users[in.Out]...)
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
		return in.Op == ir.OpFull && sameNumber(t.m.p.Args(in).Get("fill_value"), e.value, t.m.dtype(id))
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
		turned := e.op == ir.OpMul || e.op == ir.OpAdd
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
		for _, u := range t.m.users[id] {
			if !slices.Contains(t.ops, u) {
				return false
			}
		}
		return !t.m.kept[id]
	}
	for _, i := range t.ops {
		if t.m.taken[i] || i != last && !inside(t.m.p.Instrs[i].Out) {
			return false
		}
	}
	return inside(t.hole)
}
