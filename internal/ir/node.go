package ir

import "unsafe"

// Node is one recorded use of an op, or a leaf, which stands for data outside the graph. It is
// immutable but for the marks Used and Visit, which the recorder and graph.Walker write under locks
// of their own. Its hash is a Merkle hash of the op, the attributes and the inputs' hashes; the hash
// of a leaf covers shape, dtype and device type, never contents.
//
// A node has 40 bytes. What does not depend on which operands it has (op, attributes, shapes, hash,
// line) is in an entry that nodes of repeated steps share.
type Node struct {
	e      *entry
	first  *Value // the operands: count of them, from here on
	count  uint32
	device Device
	flags  uint8

	// Used has bit i set when a recorded node consumes output i (the last bit
	// stands for all from 31 on). Only the recorder writes it.
	Used uint32
	// Visit is the mark of the last traversal: epoch in the high half, post-order
	// position in the low. Only graph.Walker writes it.
	Visit uint64
}

const (
	flagWrapped = 1 << iota
	flagNumber  // the node is a number's
	flagLeaf    // the node is a LeafNode's
)

// Leaf is what a leaf node stands for: device data, a scalar or a parameter of a program.
type Leaf interface{ LeafName() string }

// Value is one output of a node. Its zero value is absent.
type Value struct {
	Node  *Node
	Index int
}

// Shape returns the shape of the value.
func (v Value) Shape() Shape { return v.Node.e.shapes[v.Index] }

// DType returns the element type of the value.
func (v Value) DType() DType { return v.Node.e.shapes[v.Index].dtype }

// Rank returns the number of dimensions.
func (v Value) Rank() int { return int(v.Node.e.shapes[v.Index].rank) }

// Dim returns one dimension; a negative index counts from the last.
func (v Value) Dim(i int) int { return v.Node.e.shapes[v.Index].Dim(i) }

// IsNil reports whether the value is absent.
func (v Value) IsNil() bool { return v.Node == nil }

// wrapped reports whether the value is a plain number of the user's, which
// takes part in type promotion last (ATen's wrapped numbers).
func (v Value) wrapped() bool { return v.Node.flags&flagWrapped != 0 }

// Hash returns the hash of this output.
func (v Value) Hash() Hash { return v.key() }

func (v Value) key() Hash {
	h := v.Node.e.hash
	h.Lo += uint64(v.Index) * 0x9e3779b97f4a7c15
	return h
}

// Op returns the op, or 0 for a leaf.
func (n *Node) Op() Op { return n.e.op }

// spec returns the row of the node's op; nil for a leaf.
func (n *Node) spec() *Spec { return specs[n.e.op] }

// Inputs returns the operands; the slice must not be changed.
func (n *Node) Inputs() []Value { return unsafe.Slice(n.first, n.count) }

// Shapes returns the shapes of the outputs; the slice must not be changed.
func (n *Node) Shapes() []Shape { return n.e.shapes }

// NumOutputs returns the number of outputs.
func (n *Node) NumOutputs() int { return len(n.e.shapes) }

// Attr returns the encoded attributes.
func (n *Node) Attr() string { return n.e.attr }

// Args returns the node's operands and attributes by name.
func (n *Node) Args() Args { return Args{Spec: specs[n.e.op], Attr: n.e.attr, In: n.Inputs()} }

// Leaf returns what a leaf stands for; nil for a use of an op.
func (n *Node) Leaf() Leaf {
	if n.flags&flagNumber != 0 {
		return n.scalar()
	}
	if n.flags&flagLeaf != 0 {
		return (*LeafNode)(unsafe.Pointer(n)).leaf
	}
	return nil
}

// IsLeaf reports whether the node is a leaf.
func (n *Node) IsLeaf() bool { return n.e.op == 0 }

// Device returns where the node computes; the zero Device if nothing has
// decided it (constants only).
func (n *Node) Device() Device { return n.device }

// Line returns the code address of the user's call, for FormatLine; 0 if it was
// not recorded.
func (n *Node) Line() uintptr { return n.e.line }

// Within returns the op whose meaning the node is part of, or 0.
func (n *Node) Within() Op { return n.e.within }

// Out returns output i of the node.
func (n *Node) Out(i int) Value { return Value{n, i} }

// outs returns all outputs.
func (n *Node) outs() []Value {
	vs := make([]Value, len(n.e.shapes))
	for i := range vs {
		vs[i] = Value{n, i}
	}
	return vs
}

// leafEntry returns the entry of a leaf for data of the given shape on a device.
func leafEntry(s Shape, d Device) *entry {
	m := &struct {
		e entry
		s [1]Shape
	}{s: [1]Shape{s}}
	m.e.shapes = m.s[:]
	b := append(make([]byte, 0, 96), "leaf"...)
	b = append(b, byte(d.Type))
	b = appendShape(b, s)
	m.e.hash = HashBytes(b)
	return &m.e
}

// NewLeaf returns a leaf for data of the given shape on a device.
func NewLeaf(l Leaf, s Shape, d Device) *Node { return NewLeafKind(s, d).Leaf(l) }

// LeafKind is what leaves of one shape on one device have in common.
type LeafKind struct {
	e      *entry
	device Device
}

// LeafNode is memory for a leaf, for LeafKind.In. The Node must be the first field: a *Node with flagLeaf
// is converted to a *LeafNode.
type LeafNode struct {
	node Node
	leaf Leaf
}

// NewLeafKind returns the kind of leaves for data of the given shape on a device.
func NewLeafKind(s Shape, d Device) LeafKind { return LeafKind{leafEntry(s, d), d} }

// Device returns the device of the leaves.
func (k LeafKind) Device() Device { return k.device }

// Leaf returns a leaf of the kind.
func (k LeafKind) Leaf(l Leaf) *Node { return k.In(new(LeafNode), l) }

// In is Leaf in memory of the caller's, which may be part of what the leaf stands for.
func (k LeafKind) In(n *LeafNode, l Leaf) *Node {
	n.leaf = l
	n.node.e, n.node.device, n.node.flags = k.e, k.device, flagLeaf
	return &n.node
}

// CloneLeaf returns another leaf of the same kind that stands for the same. The node must be a leaf
// that NewLeaf or LeafKind.Leaf has made.
func (n *Node) CloneLeaf() *Node { return LeafKind{n.e, n.device}.Leaf(n.Leaf()) }

func appendShape(b []byte, s Shape) []byte {
	b = append(b, byte(s.dtype), s.rank)
	for _, d := range s.dims[:s.rank] {
		b = appendInts(b, []int{d})
	}
	return b
}

// ShapeOnly returns a value that has a shape and nothing else, for reading the arguments of an
// instruction. It must not be an operand of a recorded op.
func ShapeOnly(s Shape) Value { return Value{Node: &Node{e: &entry{shapes: []Shape{s}}}} }

// ShapesOnly is ShapeOnly for the values with the given positions among shapes, which it keeps.
func ShapesOnly[ID ~int32](shapes []Shape, ids []ID) []Value {
	return ShapesIn(new(StandIns), shapes, ids)
}

// StandIns is memory for values that know their shapes only. The zero value is ready to use.
type StandIns struct {
	nodes  []standIn
	values []Value
}

type standIn struct {
	n Node
	e entry
}

// ShapesIn is ShapesOnly in memory that the next call for the same StandIns uses again.
func ShapesIn[ID ~int32](s *StandIns, shapes []Shape, ids []ID) []Value {
	if len(ids) > len(s.nodes) {
		s.nodes, s.values = make([]standIn, len(ids)), make([]Value, len(ids))
	}
	for i, id := range ids {
		q := &s.nodes[i]
		q.e.shapes = shapes[id : id+1 : id+1]
		q.n.e = &q.e
		s.values[i] = Value{Node: &q.n}
	}
	return s.values[:len(ids):len(ids)]
}
