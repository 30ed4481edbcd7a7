package ir

import "slices"

// script is what was once recorded from some nodes in a place of the step, to be
// recorded again from others like them. As the trie it has entries and no nodes,
// so it binds no old data.
type script struct {
	what  any
	in    []scriptIn
	shape []uint32
	ops   []scriptOp
	args  []scriptRef // of all ops, in order
	outs  []scriptRef
	marks []uint32 // the outputs of the inputs that are consumed
	end   *entry   // where the recorder stands afterwards
}

// scriptIn is what an input has to be like. Leaves have entries of their own, so
// that of them the hash counts.
type scriptIn struct {
	e      *entry
	device Device
	flags  uint8
}

// scriptOp is a node.
type scriptOp struct {
	e      *entry
	args   int
	used   uint32
	device Device
	flags  uint8
}

// scriptRef is an output of an input or, counted on from these, of an op.
type scriptRef struct{ node, out uint32 }

// visits of a place without success up to which a script is written: from the
// second, since what never comes again is not worth it, and to one after which
// it is not expected to.
const (
	firstScript = 1
	lastScript  = 8
)

// Again records what record records. It may do so without calling it, where it was
// called before in this place of the step with the same what and shape and with
// inputs of the same ops, shapes and devices. So these have to decide all that
// record does, and in has to have all nodes, once each, that it uses: where it uses
// others, it is called each time. A node that nothing returned depends on may be
// left out, not the mark that its operands are consumed. What is compared, and
// kept as long as the Builder may be.
func (b *Builder) Again(what any, in []*Node, shape []uint32, record func() []Value) []Value {
	if !b.records() || b.OnNode != nil || b.Lines == LinesAlways || b.Line != 0 || !b.Place.IsAny() {
		return record()
	}
	at := b.trie.cur
	if s := at.script; s != nil && s.fits(what, in, shape) {
		at.misses = firstScript
		return b.play(s, in)
	}
	if at.misses < firstScript || at.misses > lastScript {
		at.misses = min(at.misses+1, lastScript+1)
		return record()
	}
	at.misses++
	var made []*Node
	b.OnNode = func(n *Node) { made = append(made, n) }
	defer func() { b.OnNode = nil }()
	outs := record()
	at.script = newScript(in, made, outs)
	if s := at.script; s != nil {
		s.what, s.shape, s.end = what, slices.Clone(shape), b.trie.cur
	}
	return outs
}

// newScript describes the nodes that were made from others; nil if it can't,
// because a node was used that is not among them.
func newScript(in, made []*Node, outs []Value) *script {
	s := &script{marks: make([]uint32, len(in))}
	nodes := slices.Concat(in, made)
	at := make(map[*Node]uint32, len(nodes))
	for i, n := range nodes {
		at[n] = uint32(i)
	}
	needed := make([]bool, len(nodes))
	for _, v := range outs {
		i, ok := at[v.Node]
		if !ok {
			return nil
		}
		needed[i] = true
	}
	for i := len(nodes) - 1; i >= len(in); i-- {
		for _, v := range nodes[i].Inputs() {
			k, ok := at[v.Node]
			if !ok || int(k) >= i {
				return nil
			}
			needed[k] = needed[k] || needed[i]
			if int(k) < len(in) {
				s.marks[k] |= useBit(v.Index)
			}
		}
	}
	for _, n := range in {
		s.in = append(s.in, scriptIn{n.e, n.device, n.flags})
	}
	// Places move up where a node is left out.
	place := make([]uint32, len(nodes))
	ref := func(v Value) scriptRef { return scriptRef{place[at[v.Node]], uint32(v.Index)} }
	for i, n := range nodes {
		place[i] = uint32(i)
		if i < len(in) || !needed[i] {
			continue
		}
		place[i] = uint32(len(in) + len(s.ops))
		for _, v := range n.Inputs() {
			s.args = append(s.args, ref(v))
		}
		s.ops = append(s.ops, scriptOp{n.e, int(n.count), n.Used, n.device, n.flags})
	}
	for _, v := range outs {
		s.outs = append(s.outs, ref(v))
	}
	return s
}

// fits reports whether the script was written for inputs like these.
func (s *script) fits(what any, in []*Node, shape []uint32) bool {
	if s.what != what || len(s.in) != len(in) || !slices.Equal(s.shape, shape) {
		return false
	}
	for i, n := range in {
		q := &s.in[i]
		if n.e != q.e && !(n.e.op == 0 && q.e.op == 0 && n.e.hash == q.e.hash) || n.device != q.device || n.flags != q.flags {
			return false
		}
	}
	return true
}

// play makes the script's nodes from other inputs.
func (b *Builder) play(s *script, in []*Node) []Value {
	nodes := append(b.played[:0], in...)
	for i, m := range s.marks {
		in[i].Used |= m
	}
	args := s.args
	for i := range s.ops {
		o := &s.ops[i]
		n, v := b.newNode(), b.newValues(o.args)
		for k, r := range args[:o.args] {
			v[k] = Value{nodes[r.node], int(r.out)}
		}
		args = args[o.args:]
		b.fill(n, o.e, v)
		n.device, n.flags, n.Used = o.device, o.flags, o.used
		nodes = append(nodes, n)
	}
	outs := make([]Value, len(s.outs))
	for i, r := range s.outs {
		outs[i] = Value{nodes[r.node], int(r.out)}
	}
	clear(nodes)
	b.played = nodes[:0]
	b.trie.cur = s.end
	return outs
}
