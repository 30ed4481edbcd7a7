//go:build cuda && linux && cgo

package driver

// #cgo noescape lori_cu_graph_launch
// #cgo nocallback lori_cu_graph_launch
// #cgo noescape lori_cu_graph_set_kernel
// #cgo nocallback lori_cu_graph_set_kernel
// #include "calls.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Graph is work that was captured from a stream, or that AddKernel and AddChild
// made.
type Graph struct {
	ctx *Context
	g   C.CUgraph
}

// Node is a piece of work of a Graph; the zero Node is none. What is made of the graph
// knows its pieces by their nodes, as long as the graph is open.
type Node struct{ n C.CUgraphNode }

// NewGraph makes an empty graph.
func (c *Context) NewGraph() (*Graph, error) {
	g := &Graph{ctx: c}
	if err := c.check("cuGraphCreate", C.lori_cu_graph_create(c.drv.c, c.c, &g.g)); err != nil {
		return nil, err
	}
	return g, nil
}

// AddKernel adds a launch that comes after another node. Launches with clusters,
// cooperative ones and those that overlap can be captured only.
func (g *Graph) AddKernel(after Node, f *Function, l Launch, params []uint64) (Node, error) {
	var n Node
	how, err := f.nodeParams(l, params)
	if err != nil {
		return n, err
	}
	r := C.lori_cu_graph_add_kernel(g.ctx.drv.c, g.ctx.c, g.g, after.n, f.f, &how,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(params))), C.size_t(len(params)), &n.n)
	return n, f.check("cuGraphAddKernelNode", r)
}

// AddChild adds a copy of another graph that comes after another node.
func (g *Graph) AddChild(after Node, child *Graph) (Node, error) {
	var n Node
	r := C.lori_cu_graph_add_child(g.ctx.drv.c, g.ctx.c, g.g, after.n, child.g, &n.n)
	return n, g.ctx.check("cuGraphAddChildGraphNode", r)
}

// nodeParams checks what a node of a graph can have.
func (f *Function) nodeParams(l Launch, params []uint64) (C.lori_launch, error) {
	if !l.Plain() || len(params) > MaxParams {
		return C.lori_launch{}, fmt.Errorf("kernel %q: %w: %d parameters, or attributes, in a node of a graph", f.name, ErrInvalid, len(params))
	}
	return C.lori_launch{grid: l.Grid.c(), block: l.Block.c(), shared: C.uint32_t(l.Shared)}, nil
}

// BeginCapture makes the stream, until EndCapture, keep the work that it is
// given instead of doing it. Streams that wait for an event of it join in, and
// must be joined again by an event before the end. Nothing may wait for the
// stream meanwhile.
func (s *Stream) BeginCapture() error {
	return s.ctx.check("cuStreamBeginCapture", C.lori_cu_stream_capture(s.ctx.drv.c, s.ctx.c, s.s))
}

// EndCapture returns the work captured since BeginCapture. The stream is as
// before also when it fails.
func (s *Stream) EndCapture() (*Graph, error) {
	g := &Graph{ctx: s.ctx}
	r := C.lori_cu_stream_capture_end(s.ctx.drv.c, s.ctx.c, s.s, &g.g)
	if err := s.ctx.check("cuStreamEndCapture", r); err != nil {
		return nil, err
	}
	return g, nil
}

// Capturing reports whether the stream is capturing.
func (s *Stream) Capturing() (bool, error) {
	var yes C.int
	err := s.ctx.check("cuStreamIsCapturing", C.lori_cu_capturing(s.ctx.drv.c, s.ctx.c, s.s, &yes))
	return yes != 0, err
}

// Nodes returns how many pieces of work the graph has.
func (g *Graph) Nodes() (int, error) {
	var n C.size_t
	err := g.ctx.check("cuGraphGetNodes", C.lori_cu_graph_nodes(g.ctx.drv.c, g.ctx.c, g.g, &n))
	return int(n), err
}

// Close destroys the graph; executable ones made from it stay. Calling it again
// does nothing.
func (g *Graph) Close() error {
	if g.g == nil {
		return nil
	}
	h := g.g
	g.g = nil
	return g.ctx.check("cuGraphDestroy", C.lori_cu_graph_destroy(g.ctx.drv.c, g.ctx.c, h))
}

// GraphExec is a graph that can be launched. One launch at a time runs; a
// further one waits for it on the device.
type GraphExec struct {
	ctx *Context
	x   C.CUgraphExec
}

// Instantiate makes the graph executable.
func (g *Graph) Instantiate() (*GraphExec, error) {
	x := &GraphExec{ctx: g.ctx}
	if err := g.ctx.check("cuGraphInstantiate", C.lori_cu_graph_instantiate(g.ctx.drv.c, g.ctx.c, g.g, &x.x)); err != nil {
		return nil, err
	}
	return x, nil
}

// Launch enqueues all the work of the graph into a stream and returns at once.
func (x *GraphExec) Launch(s *Stream) error {
	return x.ctx.check("cuGraphLaunch", C.lori_cu_graph_launch(x.ctx.drv.c, x.ctx.c, x.x, s.s))
}

// SetKernel gives a node of AddKernel other parameters, grid and blocks, for launches
// from now on.
func (x *GraphExec) SetKernel(n Node, f *Function, l Launch, params []uint64) error {
	how, err := f.nodeParams(l, params)
	if err != nil {
		return err
	}
	r := C.lori_cu_graph_set_kernel(x.ctx.drv.c, x.ctx.c, x.x, n.n, f.f, &how,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(params))), C.size_t(len(params)))
	if r == 0 {
		return nil
	}
	return f.check("cuGraphExecKernelNodeSetParams", r)
}

// SetChild gives a node of AddChild the parameters of another graph of the same
// structure, for launches from now on. An error that is ErrGraphChanged says that
// the structures differ.
func (x *GraphExec) SetChild(n Node, child *Graph) error {
	return x.ctx.check("cuGraphExecChildGraphNodeSetParams", C.lori_cu_graph_set_child(x.ctx.drv.c, x.ctx.c, x.x, n.n, child.g))
}

// Close destroys the executable graph; launches that are under way finish.
// Calling it again does nothing.
func (x *GraphExec) Close() error {
	if x.x == nil {
		return nil
	}
	h := x.x
	x.x = nil
	return x.ctx.check("cuGraphExecDestroy", C.lori_cu_graph_exec_destroy(x.ctx.drv.c, x.ctx.c, h))
}
