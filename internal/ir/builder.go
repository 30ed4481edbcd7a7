package ir

import (
	"encoding/binary"
	"unsafe"
)

// LinePolicy says when a Builder notes the user's source line in a node.
type LinePolicy uint8

// The policies. LinesSampled finds the line the first time that an op is recorded at its place of the
// step and reuses it in later steps, so it costs nothing in a steady loop. LinesAlways finds it for
// each op.
const (
	LinesSampled LinePolicy = iota
	LinesOff
	LinesAlways
)

// Builder makes nodes. It is not safe for concurrent use. The zero Builder is ready to use; it infers
// and hashes every node anew. NewRecorder returns one that remembers earlier steps.
type Builder struct {
	nodes   slabs[Node]
	vals    slabs[Value]
	numbers []number
	trie    *trie
	// attr and in are scratch for the arguments of a call. They are nil while a call uses them.
	attr []byte
	in   []Value
	// Operands, when set, appends the values of an argument whose type the Builder does not know, such
	// as an executor's tensor or a list of them.
	Operands func(dst []Value, v any) (vals []Value, ok bool)
	// Lines is the policy for source lines.
	Lines LinePolicy
	// Line, when not 0, is given to all nodes: rewrites keep the line of the
	// node that they replace.
	Line uintptr
	// Within is noted, beside Line, as the op that the nodes are part of the meaning of; 0 means
	// none.
	Within Op
	// DefaultDevice, when set, is the device of nodes whose operands are on none.
	DefaultDevice Device
	// Rewrite, when set, is called with every op before it is made, and may return other values to be
	// used instead.
	Rewrite func(b *Builder, op Op, attr string, in []Value) ([]Value, bool)
	// rewriting has the shapes of the results of the op that Rewrite is called with, where they are known.
	rewriting []Shape
	// Decompositions, when set, keeps what uses of ops mean for further Builders.
	Decompositions *Decompositions
	// cons, when set, makes equal uses of an op on identical inputs one node.
	cons *consTable
	// unhashed leaves the nodes without hashes: those that cons knows need none.
	unhashed bool
	entries  []entry // slab
	key      []byte  // scratch of Decompositions
	// OnNode, when set, is called after each new node.
	onNode   func(*Node)
	count    int
	taken    int     // operands since NextStep
	last     slabUse // of the step before
	replayed []*Node // scratch of Replay
}

// NewRecorder returns a Builder with a trie over the ops of past steps, so
// that a repeated step infers and hashes nothing.
func NewRecorder() *Builder { return &Builder{trie: newTrie()} }

// NewConsing returns a Builder that makes equal uses of an op on identical
// inputs one node (common-subexpression elimination).
// It has room for about the given number of nodes, which have no hashes.
func NewConsing(nodes int) *Builder {
	return &Builder{cons: newConsTable(nodes), Lines: LinesOff, unhashed: true}
}

// NextStep begins a new step, whose ops are looked up in the order of earlier steps. It starts new
// slabs: a slab shared by two steps would keep the first step's data alive.
func (b *Builder) NextStep() {
	b.nodes.drop()
	b.vals.drop()
	b.restart()
}

// Recycle is NextStep after a step of whose nodes none is used any more: further steps have their memory.
func (b *Builder) Recycle() {
	b.nodes.recycle()
	b.vals.recycle()
	b.restart()
}

func (b *Builder) restart() {
	b.last = slabUse{b.count, b.taken}
	b.count, b.taken = 0, 0
	if b.trie != nil {
		b.trie.reset()
	}
}

// Aside begins ops that are no part of the step, such as those of a function that is traced, until the
// returned function is called. They are looked up among earlier ones of their kind, in the order of
// these.
func (b *Builder) Aside() (back func()) {
	if b.trie == nil {
		return func() {}
	}
	at := b.trie.cur
	b.trie.cur = &b.trie.aside
	return func() { b.trie.cur = at }
}

// Count returns the nodes made since NextStep.
func (b *Builder) Count() int { return b.count }

// slabUse is what a step takes from its slabs.
type slabUse struct{ nodes, operands int }

func (b *Builder) slabSize() int { return min(max(b.count, minSlab), maxSlab) }

func (b *Builder) newNode() *Node {
	if len(b.nodes.left) == 0 {
		b.nodes.grow(1, slabOf(b.last.nodes-b.count, maxSlab, b.slabSize()))
	}
	n := &b.nodes.left[0]
	b.nodes.left = b.nodes.left[1:]
	b.count++
	return n
}

func (b *Builder) newValues(n int) []Value {
	if len(b.vals.left) < n {
		b.vals.grow(n, slabOf(b.last.operands-b.taken, 2*maxSlab, 2*b.slabSize()))
	}
	b.taken += n
	v := b.vals.left[:n:n]
	b.vals.left = b.vals.left[n:]
	return v
}

// Unary makes a pointwise or other op of one operand and no attributes.
func (b *Builder) Unary(op Op, x Value) Value {
	sp := specs[op]
	if sp.Promote == PromoteIntToFloat && !x.DType().IsFloat() {
		x = b.promoteTo(x, floatOf(x.DType()))
	}
	var e *entry
	if b.records() {
		e = b.trie.find1(op, x.key())
	}
	if e == nil {
		return first(b.emit(sp, "", []Value{x}, nil))
	}
	n := b.newNode()
	v := b.newValues(1)
	v[0] = x
	b.fill(n, e, v)
	n.device = x.Node.device
	x.Node.Used |= useBit(x.Index)
	return Value{Node: n}
}

// Binary makes an op of two operands and no attributes, after promotion.
func (b *Builder) Binary(op Op, x, y Value) Value {
	sp := specs[op]
	if sp.Known != nil || sp.KnownFirst != nil {
		if z, ok := b.known(sp, x, y); ok {
			return z
		}
	}
	switch sp.Promote {
	case PromoteNone:
	case PromoteDefault, PromoteIntToFloat:
		if x.DType() != y.DType() || (sp.Promote == PromoteIntToFloat && !x.DType().IsFloat()) {
			x, y = b.promote2(sp, x, y)
		}
	default:
		return first(b.emit(sp, "", b.promoteAll(sp, []Value{x, y}), nil))
	}
	var e *entry
	if b.records() && (x.Node.device == y.Node.device || x.Node.device.IsAny() || y.Node.device.IsAny()) {
		e = b.trie.find2(op, x.key(), y.key())
	}
	if e == nil {
		return first(b.emit(sp, "", []Value{x, y}, nil))
	}
	n := b.newNode()
	v := b.newValues(2)
	v[0], v[1] = x, y
	b.fill(n, e, v)
	n.device = x.Node.device
	if n.device.IsAny() {
		n.device = y.Node.device
	}
	x.Node.Used |= useBit(x.Index)
	y.Node.Used |= useBit(y.Index)
	return Value{Node: n}
}

// BinaryNumber records op(x, v), or op(v, x) if reverse is set, for a Go number v. It returns false if
// v is not a number.
func (b *Builder) BinaryNumber(op Op, x Value, v any, reverse bool) (Value, bool) {
	l, d, ok := scalarOf(v)
	if !ok {
		return Value{}, false
	}
	if p := specs[op].Promote; x.DType().IsFloat() && (p == PromoteDefault || p == PromoteIntToFloat) {
		d = x.DType() // which is what a number becomes beside a float
	}
	y := b.newNumber(l, d, Device{}, true)
	if reverse {
		x, y = y, x
	}
	if sp := specs[op]; sp.numbers != nil && !(x.DType().IsFloat() || y.DType().IsFloat()) {
		in := [2]Value{x, y}
		b.fitNumbers(sp, nil, in[:])
		x, y = in[0], in[1]
	}
	return b.Binary(op, x, y), true
}

// records reports whether the Builder does nothing but record, so that an op found in the trie needs
// no rewriting, inference or hashing.
func (b *Builder) records() bool { return b.trie != nil && b.Rewrite == nil && b.cons == nil }

func useBit(i int) uint32 { return 1 << min(i, 31) }

func (b *Builder) fill(n *Node, e *entry, in []Value) {
	n.e, n.count = e, uint32(len(in))
	n.first = unsafe.SliceData(in)
	if b.Lines == LinesAlways || b.Line != 0 {
		b.ownLine(n)
	}
	if b.onNode != nil {
		b.onNode(n)
	}
}

// ownLine gives a node a line of its own, and so an entry of its own.
func (b *Builder) ownLine(n *Node) {
	line := b.Line
	if line == 0 {
		line = UserPC()
	}
	if n.e.line == line && n.e.within == b.Within {
		return
	}
	e := *n.e
	e.within = b.Within
	e.line, e.last, e.kids, e.recording = line, nil, nil, nil
	n.e = &e
}

// Emit makes one use of an op with encoded attributes (see Args.Attr) after
// promotion, and returns its outputs. The operand slice is not kept.
func (b *Builder) Emit(op Op, attr string, in ...Value) []Value {
	sp := specs[op]
	if sp.Promote != PromoteNone {
		in = b.promoteAll(sp, in)
	}
	return outs(b.emit(sp, attr, in, nil))
}

// EmitShaped is Emit for operands that are promoted already and results whose shapes are known,
// which it keeps.
func (b *Builder) EmitShaped(op Op, attr string, shapes []Shape, in ...Value) []Value {
	return outs(b.emit(specs[op], attr, in, shapes))
}

// first and outs return one or all outputs of what emit made.
func first(n *Node, rewritten []Value) Value {
	if n == nil {
		return rewritten[0]
	}
	return Value{Node: n}
}

func outs(n *Node, rewritten []Value) []Value {
	if n == nil {
		return rewritten
	}
	return n.outs()
}

// emit makes a node in the general way: it rewrites, looks for an equal node, looks into the trie, and
// at last infers and hashes. shapes are those of the results where they are known. It returns the node,
// or nil and the values that a rewrite returned.
func (b *Builder) emit(sp *Spec, attr string, in []Value, shapes []Shape) (*Node, []Value) {
	dev := b.device(sp, in)
	if b.Rewrite != nil {
		outer := b.rewriting
		b.rewriting = shapes
		out, ok := b.Rewrite(b, sp.Op, attr, in)
		b.rewriting = outer
		if ok {
			return nil, out
		}
	}
	cons := b.cons != nil && !sp.Impure
	if cons {
		if n, _ := b.cons.find(sp.Op, attr, in); n != nil {
			return n, nil
		}
	}
	var e *entry
	if b.trie != nil {
		if e = b.trie.find(sp.Op, attr, in); e == nil {
			e = b.newEntry(sp, attr, in, shapes)
			b.trie.insert(e)
		}
	} else {
		e = b.newEntry(sp, attr, in, shapes)
	}
	n := b.use(e, dev, in)
	if cons {
		b.cons.insert(n)
	}
	return n, nil
}

// Results returns the shapes of the results of the op that Rewrite is called with, which it must be
// given as Rewrite was.
func (b *Builder) Results(op Op, attr string, in []Value) []Shape {
	if b.rewriting != nil {
		return b.rewriting
	}
	sp := specs[op]
	return sp.Infer(Args{Spec: sp, Attr: attr, In: in})
}

// use makes a node of an entry.
func (b *Builder) use(e *entry, dev Device, in []Value) *Node {
	n := b.newNode()
	v := b.newValues(len(in))
	copy(v, in)
	b.fill(n, e, v)
	n.device = dev
	for _, x := range in {
		x.Node.Used |= useBit(x.Index)
	}
	return n
}

// device returns the one device of the operands, or DefaultDevice if they are on none: constants only,
// or no operands. The result may be no device, too.
func (b *Builder) device(sp *Spec, in []Value) Device {
	var d Device
	for _, v := range in {
		nd := v.Node.device
		switch {
		case nd.IsAny() || nd == d:
		case d.IsAny():
			d = nd
		default:
			panic(NewOpError(sp.Name, ErrDevice, in, "operands are on %v and %v; copy one with To", d, nd))
		}
	}
	if d.IsAny() {
		d = b.DefaultDevice
	}
	return d
}

// requireCountable fails for results whose bytes an int cannot count. Whatever rule a shape comes from,
// broadcasting and casts too, it passes here, so that sizes of values never overflow.
func requireCountable(sp *Spec, in []Value, shapes []Shape) {
	for i := range shapes {
		if s := &shapes[i]; !s.countable() {
			_, err := NewShape(s.dtype, s.Dims())
			panic(NewOpError(sp.Name, ErrShape, in, "the result %v is too large: %v", *s, err))
		}
	}
}

// newEntry infers the shapes, unless they are known, and computes the hash of one use of an op.
func (b *Builder) newEntry(sp *Spec, attr string, in []Value, shapes []Shape) *entry {
	if shapes == nil {
		if a := (Args{Spec: sp, Attr: attr, In: in}); sp.Category == Pointwise && a.Decomposition() == nil {
			shapes = sp.Infer(a)
		} else {
			shapes = b.meaning(a).shapes
		}
		requireCountable(sp, in, shapes)
	}
	if len(b.entries) == 0 {
		b.entries = make([]entry, b.slabSize())
	}
	e := &b.entries[0]
	b.entries = b.entries[1:]
	e.op, e.attr, e.shapes = sp.Op, attr, shapes
	if !b.unhashed {
		if e.in = e.few[:]; len(in) <= len(e.few) {
			e.in = e.in[:len(in)]
		} else {
			e.in = make([]Hash, len(in))
		}
		e.hash = hashUse(sp, attr, in, e.in)
	}
	e.line, e.within = b.line(e), b.Within
	return e
}

// line returns the line of a new entry: that of the node that a rewrite replaces, that of the same op
// with other sizes at the same place of the step, or the user's.
func (b *Builder) line(e *entry) uintptr {
	var like *entry
	if b.trie != nil {
		like = b.trie.likeNext(e)
	}
	switch {
	case b.Line != 0 || b.Lines == LinesOff:
		return b.Line
	case like != nil:
		return like.line
	}
	return UserPC()
}

// hashUse returns the hash of a use of an op, and notes those of the operands.
func hashUse(sp *Spec, attr string, in []Value, keys []Hash) Hash {
	buf := make([]byte, 0, 128)
	buf = binary.LittleEndian.AppendUint16(buf, uint16(len(sp.Name)))
	buf = append(buf, sp.Name...)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(attr)))
	buf = append(buf, attr...)
	for i, v := range in {
		keys[i] = v.key()
		buf = keys[i].Append(buf)
	}
	return HashBytes(buf)
}
