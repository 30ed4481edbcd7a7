package torchexport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
)

// run is one recording of a program.
type run struct {
	ctx     context.Context // nil where nothing may wait
	s       *loris.Session
	device  ir.Device
	symbols map[string]int64
	made    []*loris.Tensor // results of nodes
	casting bool            // in a region of torch.autocast
}

// maker makes tensors on the run's device.
func (r *run) maker() loris.Maker { return r.s.With(loris.On(r.device)) }

// call is one use of an op.
type call struct {
	*run
	f    *frame
	n    *node
	args []argument // resolved
}

// frame holds the values of a block.
type frame struct {
	*block
	slots []any
}

// block records a graph on its inputs, in the order of block.inputs.
func (r *run) block(b *block, inputs []any) []any {
	f := &frame{block: b, slots: make([]any, len(b.names))}
	if len(inputs) != len(b.inputs) {
		panic(misuse("call", "graph %q takes %d inputs, got %d", b.name, len(b.inputs), len(inputs)))
	}
	for i, slot := range b.inputs {
		if slot >= 0 {
			f.slots[slot] = inputs[i]
		}
	}
	for i := range b.nodes {
		r.node(f, &b.nodes[i])
	}
	out := make([]any, len(b.outputs))
	for i, v := range b.outputs {
		out[i] = f.resolve(v)
	}
	return out
}

// misuse returns the error of a wrong argument.
func misuse(op, format string, args ...any) *ir.OpError {
	return ir.NewOpError(op, ir.ErrArg, nil, format, args...)
}

// resolve puts values in the places of refs.
func (f *frame) resolve(v any) any {
	switch v := v.(type) {
	case ref:
		return f.slots[v]
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = f.resolve(x)
		}
		return out
	}
	return v
}

// node records one node. A mistake gets the node's name and its line of Python.
func (r *run) node(f *frame, n *node) {
	defer explain(n)
	c := &call{run: r, f: f, n: n, args: make([]argument, len(n.args))}
	for i, a := range n.args {
		c.args[i] = argument{a.name, f.resolve(a.value)}
	}
	if r.casting {
		c.casts()
	}
	results := n.op.run(c)
	at := 0
	for _, o := range n.outs {
		switch {
		case o.slice:
			list := results
			if len(results) == 1 {
				if l, ok := results[0].([]any); ok {
					list = l
				}
			}
			if len(o.list) != len(list) {
				panic(misuse(n.target, "%d results, the program names %d", len(list), len(o.list)))
			}
			for i, slot := range o.list {
				f.define(r, n, slot, list[i])
			}
		case at >= len(results):
			panic(misuse(n.target, "%d results, the program names more", len(results)))
		default:
			f.define(r, n, o.slot, results[at])
			at++
		}
	}
}

// define puts a result into its slot, of the dtype that the program says.
func (f *frame) define(r *run, n *node, slot int, v any) {
	if slot < 0 {
		return
	}
	if x, ok := v.(*tensor); ok {
		if m := f.metas[slot]; m != nil {
			x = r.fit(n, m, x)
			v = x
		}
		r.made = append(r.made, x.value())
	}
	f.slots[slot] = v
}

// fit holds a result against what the program says of it: another dtype is cast, another size is a
// mistake, and sizes without a value get one.
func (r *run) fit(n *node, m *meta, x *tensor) *tensor {
	t := x.value()
	if t.DType() != m.dtype {
		x = newTensor(t.Cast(m.dtype))
	}
	dims := t.Dims()
	ok := len(dims) == len(m.sizes)
	for i := 0; ok && i < len(dims); i++ {
		e := m.sizes[i]
		if _, bound := r.symbols[e.name]; e.op == "Symbol" && !bound {
			r.symbols[e.name] = int64(dims[i])
			continue
		}
		want, known := e.eval(r.symbols)
		ok = !known || want == int64(dims[i])
	}
	if !ok {
		want := make([]string, len(m.sizes))
		for i, e := range m.sizes {
			want[i] = e.String()
			if v, known := e.eval(r.symbols); known && e.op != "Integer" {
				want[i] += fmt.Sprintf("=%d", v)
			}
		}
		panic(ir.NewOpError(n.target, ir.ErrShape, nil, "the result is %v, the program says [%s]", t.Shape(), strings.Join(want, ", ")))
	}
	return x
}

// explain adds the node and its line of Python to a mistake. Arguments that no exporter writes, such
// as a dimension that is not there, may fail in Go; that is the file's mistake, too.
func explain(n *node) {
	p := recover()
	if p == nil {
		return
	}
	if fault, ok := p.(runtime.Error); ok {
		p = ir.NewOpError(n.target, ir.ErrArg, nil, "the node's arguments contradict its inputs: %v", fault)
	}
	err, ok := p.(error)
	var e *ir.OpError
	if !ok || !errors.As(err, &e) || strings.Contains(e.Msg, "\tat node ") {
		panic(p)
	}
	at := *e
	at.Msg += "\n\tat node " + n.name + " (" + n.target + ")"
	if n.trace != "" {
		at.Msg += ", " + n.trace
	}
	panic(&at)
}

// do records an op of the table and returns its first output.
func (r *run) do(op string, pos ...any) *loris.Tensor { return r.all(op, pos)[0] }

// all records an op of the table. Values of the program are taken, too.
func (r *run) all(op string, pos []any, named ...ir.Named) []*loris.Tensor {
	o, ok := ir.Lookup(op)
	if !ok {
		panic(misuse(op, "there is no op of this name"))
	}
	for i, v := range pos {
		pos[i] = plainValue(v)
	}
	for i := range named {
		named[i].Value = plainValue(named[i].Value)
	}
	return importer.Call(r.s, r.device, o, pos, named...)
}

// plainValue returns a value as importer.Call takes it.
func plainValue(v any) any {
	switch v := v.(type) {
	case *tensor:
		return v.value()
	case int64:
		return int(v)
	}
	return v
}

// one wraps a result.
func one(t *loris.Tensor) []any { return []any{newTensor(t)} }

// many wraps several results.
func many(ts ...*loris.Tensor) []any {
	out := make([]any, len(ts))
	for i, t := range ts {
		out[i] = newTensor(t)
	}
	return out
}
