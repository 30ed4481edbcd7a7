// Package graph turns recorded nodes into Programs: post-order, hashing, the
// flat form with its text, rewrites and gradients.
package graph

import (
	"sync/atomic"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
)

// Walker finds the nodes that values depend on. It marks the nodes it visits, so the caller must
// serialise walks over graphs that share nodes. A result is valid until the next walk over the same
// nodes.
type Walker struct {
	order []*ir.Node
	edges []uint32
	stack []frame
	bytes []byte
	in    []*ir.Node // scratch of signature, like shape
	shape []uint32
	// history is set while a gradient is taken, see GradThrough.
	history History
}

// epochs numbers the walks of the process, so that no walk takes the marks of another for its own.
var epochs atomic.Uint32

type frame struct {
	n    *ir.Node
	next int
}

// PostOrder is the outcome of a walk.
type PostOrder struct {
	// Roots are the values asked for.
	Roots []ir.Value
	// Nodes are all nodes that the roots depend on, inputs before users.
	Nodes []*ir.Node
	// Edges has, for each node of Nodes in turn, the positions of its inputs.
	// The graph hash covers them, because Merkle hashes cannot tell leaves of one shape apart: they
	// are the same for x+x and x+y.
	Edges []uint32
	epoch uint64
}

// Position returns where a node stands in Nodes.
func (p *PostOrder) Position(n *ir.Node) int { return int(uint32(n.Visit)) }

// Contains reports whether the roots depend on a node, until the next walk.
func (p *PostOrder) Contains(n *ir.Node) bool { return n.Visit>>32 == p.epoch }

// Walk returns the post-order of the roots. It uses no recursion: a chain of a
// million nodes is fine.
func (w *Walker) Walk(roots []ir.Value) PostOrder {
	epoch := uint64(epochs.Add(1))
	for epoch == 0 { // the mark of a node that was never visited
		epoch = uint64(epochs.Add(1))
	}
	w.Release()
	w.edges = w.edges[:0]
	mark := epoch << 32
	for _, r := range roots {
		if r.Node.Visit>>32 != epoch {
			w.visit(r.Node, mark)
		}
	}
	return PostOrder{Roots: roots, Nodes: w.order, Edges: w.edges, epoch: epoch}
}

func (w *Walker) visit(root *ir.Node, mark uint64) {
	root.Visit = mark
	stack := append(w.stack[:0], frame{n: root})
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		in := top.n.Inputs()
		if w.history != nil {
			in = w.inputs(top.n)
		}
		pushed := false
		for top.next < len(in) {
			c := in[top.next].Node
			top.next++
			if c.Visit>>32 == mark>>32 {
				continue
			}
			if c.IsLeaf() && w.history == nil {
				c.Visit = mark | uint64(len(w.order))
				w.order = append(w.order, c)
				continue
			}
			c.Visit = mark
			stack = append(stack, frame{n: c})
			pushed = true
			break
		}
		if pushed {
			continue
		}
		n := top.n
		for _, v := range in {
			w.edges = append(w.edges, uint32(v.Node.Visit))
		}
		n.Visit = mark | uint64(len(w.order))
		w.order = append(w.order, n)
		stack[len(stack)-1] = frame{}
		stack = stack[:len(stack)-1]
	}
	w.stack = stack
}

// inputs returns the values that the walk visits after a node: its operands, or a leaf's history.
func (w *Walker) inputs(n *ir.Node) []ir.Value {
	if w.history != nil && n.IsLeaf() {
		if v := w.history(n); !v.IsNil() {
			return []ir.Value{v}
		}
	}
	return n.Inputs()
}

// Release forgets the last walk's nodes, so that they can be freed.
func (w *Walker) Release() {
	clear(w.order)
	clear(w.in)
	w.order, w.in = w.order[:0], w.in[:0]
}

// Hash returns the graph hash, which covers the device, the roots' Merkle hashes and the positions of
// all inputs. Graphs with equal hashes are the same computation of their leaves in post-order.
func (w *Walker) Hash(p *PostOrder, dev ir.Device) ir.Hash {
	b := append(w.bytes[:0], byte(dev.Type), dev.Index)
	for _, r := range p.Roots {
		b = r.Hash().Append(b)
		pos := p.Position(r.Node)
		b = append(b, byte(pos), byte(pos>>8), byte(pos>>16), byte(pos>>24))
	}
	if len(p.Edges) > 0 {
		b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&p.Edges[0])), 4*len(p.Edges))...)
	}
	w.bytes = b
	return ir.HashBytes(b)
}
