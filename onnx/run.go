package onnx

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// maxNodes bounds the nodes that one call records, loops written out: functions that call functions
// and nested loops can ask for more than any machine has.
const maxNodes = 1 << 20

// run is the recording of one call.
type run struct {
	ctx    context.Context
	model  *Model
	make   loris.Maker
	budget int
	// inputs are the bytes of the call's inputs, host those that it may still make while recording.
	inputs, host int
}

// frame is a graph that is being recorded: its names, and the one around it.
type frame struct {
	graph  *graph
	vals   map[string]*value
	parent *frame
	attrs  map[string]*pb.Attribute // of the function that the graph is the body of
}

// call is a node that is being recorded.
type call struct {
	run   *run
	frame *frame
	node  *node
}

// row is an op: how many inputs it takes, and what it records.
type row struct {
	min, max int // max is -1 where any number may follow
	record   func(c *call, in []*value) []*value
	// fold computes the result where all inputs are known; nil where it cannot. It is tried first.
	fold func(c *call, in []*value) *value
}

func (r *row) arity() string {
	switch {
	case r.max < 0:
		return fmt.Sprintf("%d or more are expected", r.min)
	case r.min == r.max:
		return fmt.Sprintf("%d are expected", r.min)
	}
	return fmt.Sprintf("%d to %d are expected", r.min, r.max)
}

// lookup returns what a name stands for; nil where it is not defined.
func (f *frame) lookup(name string) *value {
	for ; f != nil; f = f.parent {
		if v := f.vals[name]; v != nil {
			return v
		}
		if v := f.graph.consts[name]; v != nil {
			own := *v // a call has tensors of its own
			f.vals[name] = &own
			return &own
		}
	}
	return nil
}

// sync notes that a node waits for data.
func (r *run) sync(n *node) {
	at := fmt.Sprintf("%s (node %d %q of %s)", n.op, n.index, n.name, n.graph)
	r.model.mu.Lock()
	defer r.model.mu.Unlock()
	for _, have := range r.model.synced {
		if have == at {
			return
		}
	}
	r.model.synced = append(r.model.synced, at)
}

// graph records the nodes of a frame.
func (r *run) graph(f *frame) error {
	for _, n := range f.graph.nodes {
		if err := r.node(f, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) node(f *frame, n *node) (err error) {
	c := &call{run: r, frame: f, node: n}
	defer c.recovered(&err)
	c.spend()
	in := make([]*value, len(n.in))
	for i, name := range n.in {
		if name == "" {
			continue
		}
		if in[i] = f.lookup(name); in[i] == nil {
			c.fail("input %q is not defined: its node gave fewer outputs", name)
		}
	}
	outs := c.record(in)
	for i, name := range n.out {
		if name == "" {
			continue
		}
		if i >= len(outs) || outs[i] == nil {
			c.fail("output %d, %q, is not one of the op", i, name)
		}
		if outs[i].known() && n.constant == nil {
			c.hold(len(outs[i].data))
		}
		f.vals[name] = outs[i]
	}
	return nil
}

// spend counts a node, or a step of a loop, and ends the call where it has no more of them or of time.
func (c *call) spend() {
	if c.run.budget--; c.run.budget < 0 {
		c.unsupported("a call of more than %d nodes", c.run.model.maxNodes)
	}
	if ctx := c.run.ctx; ctx != nil && ctx.Err() != nil {
		panic(&fault{err: ctx.Err()})
	}
}

// record calls what a node stands for.
func (c *call) record(in []*value) []*value {
	n := c.node
	if n.function != nil {
		return c.callFunction(n.function, in)
	}
	for i := range n.row.min {
		if in[i] == nil {
			c.fail("input %d is left out", i)
		}
	}
	if n.row.fold != nil && allKnown(in) {
		if v := n.row.fold(c, in); v != nil {
			return []*value{v}
		}
	}
	return n.row.record(c, in)
}

func allKnown(in []*value) bool {
	for _, v := range in {
		if v != nil && !v.known() {
			return false
		}
	}
	return true
}

// callFunction records a function of the model.
func (c *call) callFunction(fn *function, in []*value) []*value {
	f := &frame{graph: fn.body, vals: map[string]*value{}, attrs: maps.Clone(fn.defaults)}
	if len(in) > len(fn.body.inputs) {
		c.fail("the function takes %d inputs, %d are given", len(fn.body.inputs), len(in))
	}
	for i, name := range fn.body.inputs {
		if v := opt(in, i); v != nil {
			f.vals[name] = v
		} else {
			f.vals[name] = &value{empty: true}
		}
	}
	for name := range c.node.attrs {
		f.attrs[name] = c.attr(name)
	}
	if err := c.run.graph(f); err != nil {
		panic(&fault{err: err})
	}
	outs := make([]*value, len(fn.body.outputs))
	for i, name := range fn.body.outputs {
		outs[i] = f.lookup(name)
	}
	return outs
}

// body records a graph of an attribute with the given inputs and returns its outputs.
func (c *call) inner(g *graph, in []*value) []*value {
	if len(in) != len(g.inputs) {
		c.fail("%s takes %d inputs, the op gives it %d", g.name, len(g.inputs), len(in))
	}
	f := &frame{graph: g, vals: make(map[string]*value, len(in)), parent: c.frame, attrs: c.frame.attrs}
	for i, name := range g.inputs {
		f.vals[name] = in[i]
	}
	if err := c.run.graph(f); err != nil {
		panic(&fault{err: err})
	}
	outs := make([]*value, len(g.outputs))
	for i, name := range g.outputs {
		if outs[i] = f.lookup(name); outs[i] == nil {
			c.fail("output %q of %s is not defined", name, g.name)
		}
	}
	return outs
}

// recovered, deferred, makes a *NodeError of what a node panics with. A node within a function or a
// loop has named itself already.
func (c *call) recovered(err *error) {
	switch p := recover().(type) {
	case nil:
	case *fault:
		var inner *NodeError
		if *err = p.err; !errors.As(p.err, &inner) {
			*err = c.nodeError(p.err)
		}
	case *ir.OpError:
		*err = c.nodeError(p)
	case error:
		// An op that met a graph which the checks above let through, such as an index past a list.
		*err = c.nodeError(fmt.Errorf("%w: %w", ErrModel, p))
	default:
		panic(p)
	}
}

func (c *call) nodeError(err error) *NodeError {
	return &NodeError{Graph: c.node.graph, Index: c.node.index, Name: c.node.name, Op: c.node.op, Err: err}
}
