//go:build cuda && linux && cgo

package driver

// #cgo noescape lori_cu_graph_launch
// #cgo nocallback lori_cu_graph_launch
// #include "calls.h"
import "C"

import "fmt"

// Graph is work that was captured from a stream.
type Graph struct {
	ctx *Context
	g   C.CUgraph
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

// Update gives the nodes the parameters of another graph of the same structure,
// for launches from now on. An error that is ErrGraphChanged says that the
// structures differ: a new GraphExec is needed.
func (x *GraphExec) Update(g *Graph) error {
	var why C.uint
	r := C.lori_cu_graph_update(x.ctx.drv.c, x.ctx.c, x.x, g.g, &why)
	if err := x.ctx.check("cuGraphExecUpdate", r); err != nil {
		return fmt.Errorf("%w (reason %d)", err, why)
	}
	return nil
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
