package ir

import (
	"hash/maphash"
	"unsafe"
)

// consTable has the nodes of a Builder by op, attributes and operands, for common-subexpression
// elimination. It is a hash table with open addressing: what a node is found by is in the node.
type consTable struct {
	slots []*Node // a power of two
	count int
	seed  maphash.Seed
}

// newConsTable returns a table with room for about the given number of nodes.
func newConsTable(nodes int) *consTable {
	size := 64
	for size < 2*nodes {
		size *= 2
	}
	return &consTable{slots: make([]*Node, size), seed: maphash.MakeSeed()}
}

// hash mixes the addresses of the operands' nodes, which do not move.
func (t *consTable) hash(op Op, attr string, in []Value) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := uint64(op) * odd
	if attr != "" {
		h ^= maphash.String(t.seed, attr)
	}
	for _, v := range in {
		h = (h ^ uint64(uintptr(unsafe.Pointer(v.Node))) ^ uint64(v.Index)) * odd
		h ^= h >> 29
	}
	return h
}

// find returns the node of a use of an op, or nil and the slot for it.
func (t *consTable) find(op Op, attr string, in []Value) (n *Node, slot int) {
	mask := len(t.slots) - 1
	for slot = int(t.hash(op, attr, in)) & mask; ; slot = (slot + 1) & mask {
		n = t.slots[slot]
		if n == nil || n.uses(op, attr, in) {
			return n, slot
		}
	}
}

func (n *Node) uses(op Op, attr string, in []Value) bool {
	if n.e.op != op || int(n.count) != len(in) || n.e.attr != attr {
		return false
	}
	for i, v := range n.Inputs() {
		if v != in[i] {
			return false
		}
	}
	return true
}

// insert adds a node whose use was not found.
func (t *consTable) insert(n *Node) {
	if t.count++; 2*t.count > len(t.slots) {
		old := t.slots
		t.slots = make([]*Node, 2*len(old))
		for _, o := range old {
			if o != nil {
				t.place(o)
			}
		}
	}
	t.place(n)
}

func (t *consTable) place(n *Node) {
	_, slot := t.find(n.e.op, n.e.attr, n.Inputs())
	t.slots[slot] = n
}
