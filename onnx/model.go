package onnx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/model"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// arg is an input or output as the model declares it.
type arg struct {
	model.Arg
	elem elemType // 0 where the model does not say
	// sequence says that it is a list of tensors, optional that it may be left out.
	sequence, optional bool
}

// Model is a loaded model. Its floating initialisers are parameters and the running statistics
// buffers, under the names that they have in the file, so that optimisers, nn.Save and nn.Freeze work
// on it; it is a model.Model. Calls may come from several goroutines in sessions of their own.
type Model struct {
	importer.Weights
	path            string
	producer        string
	opset           int
	graph           *graph
	inputs, outputs []arg
	make            loris.Maker
	maxNodes        int // that a call records
	bytes           int // of the file and the weights beside it

	mu     sync.Mutex
	synced []string
}

var _ model.Model = (*Model)(nil)

func newModel(path string, p *pb.Model) *Model {
	m := &Model{path: path, producer: p.Producer, maxNodes: maxNodes}
	for _, o := range p.Opsets {
		if canonical(o.Domain) == "" {
			m.opset = int(o.Version)
		}
	}
	return m
}

// Signature returns what the model takes and gives. Arguments that are sequences are described by
// their elements.
func (m *Model) Signature() *model.Signature {
	s := &model.Signature{}
	for _, a := range m.inputs {
		s.Inputs = append(s.Inputs, a.Arg)
	}
	for _, a := range m.outputs {
		s.Outputs = append(s.Outputs, a.Arg)
	}
	return s
}

// Opset returns the version of the default domain's ops that the model was written for.
func (m *Model) Opset() int { return m.opset }

// Producer returns the name of what wrote the model, "" where it does not say.
func (m *Model) Producer() string { return m.producer }

// Synced lists the nodes at which calls so far had to wait for data, because a size, a branch or a
// count depends on it. A model without any is recorded as a whole, and may be compiled with
// loris.Compile.
func (m *Model) Synced() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.synced)
}

// Call records the model on inputs in the order of the signature and returns its outputs, lazy
// tensors. Trailing inputs that are optional may be left out. It blocks, and ctx ends the
// wait, only where something depends on data (see Synced). Gradients flow through it to the
// inputs and parameters. An input that does not fit is an *ir.OpError that names it, a node that
// cannot be recorded is a *NodeError.
func (m *Model) Call(ctx context.Context, inputs ...*loris.Tensor) ([]*loris.Tensor, error) {
	if err := ir.CheckContext("onnx", ctx); err != nil {
		return nil, err
	}
	return m.tensors(ctx, inputs)
}

// Forward is Call for functions that record, such as those given to loris.Compile or
// loris.Checkpoint: it never blocks, and mistakes panic with an *ir.OpError. A model in which
// something depends on data is such a mistake.
func (m *Model) Forward(inputs ...*loris.Tensor) []*loris.Tensor {
	var none context.Context // nothing is waited for
	outs, err := m.tensors(none, inputs)
	if err == nil {
		return outs
	}
	kind := ir.ErrArg
	var op *ir.OpError
	if errors.As(err, &op) {
		kind = op.Err
	}
	panic(ir.NewOpError("onnx", kind, nil, "%v", err))
}

// CallNamed is Call with inputs and outputs by the names of the signature.
func (m *Model) CallNamed(ctx context.Context, inputs map[string]*loris.Tensor) (map[string]*loris.Tensor, error) {
	args := make([]*loris.Tensor, len(m.inputs))
	known := map[string]bool{}
	for i, a := range m.inputs {
		args[i], known[a.Name] = inputs[a.Name], true
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !known[name] {
			return nil, inputError(ir.ErrArg, nil, "there is no input %q", name)
		}
	}
	outs, err := m.Call(ctx, args...)
	if err != nil {
		return nil, err
	}
	named := make(map[string]*loris.Tensor, len(outs))
	for i, a := range m.outputs {
		named[a.Name] = outs[i]
	}
	return named, nil
}

// To moves the weights to a device; calls that follow record there what has no other input. No other
// method may run meanwhile. An error leaves the model as it was.
func (m *Model) To(ctx context.Context, d loris.Device) error {
	moved := map[*loris.Variable]*loris.Variable{}
	for _, v := range m.graph.consts {
		if v.variable == nil {
			continue
		}
		t, err := v.variable.Value().To(ctx, d)
		if err != nil {
			return fmt.Errorf("onnx: to %v: %w", d, err)
		}
		moved[v.variable] = loris.NewVariable(t)
	}
	for _, v := range m.graph.consts {
		if v.variable != nil {
			v.variable = moved[v.variable]
		}
	}
	m.Replace(moved)
	m.make = m.make.With(loris.On(d))
	return nil
}

// CallNested is Call for models with sequences and optionals among inputs and outputs: each is a
// *loris.Tensor, a []any of them, or nil for an optional that is empty.
func (m *Model) CallNested(ctx context.Context, inputs ...any) ([]any, error) {
	if err := ir.CheckContext("onnx", ctx); err != nil {
		return nil, err
	}
	return m.record(ctx, inputs)
}

// tensors is record for models whose inputs and outputs are tensors.
func (m *Model) tensors(ctx context.Context, inputs []*loris.Tensor) ([]*loris.Tensor, error) {
	nested := make([]any, len(inputs))
	for i, t := range inputs {
		nested[i] = t
	}
	results, err := m.record(ctx, nested)
	if err != nil {
		return nil, err
	}
	outs := make([]*loris.Tensor, len(results))
	for i, r := range results {
		t, ok := r.(*loris.Tensor)
		if !ok {
			return nil, fmt.Errorf("onnx: %s: output %q is no tensor: use CallNested", m.path, m.outputs[i].Name)
		}
		outs[i] = t
	}
	return outs, nil
}

// record records a call; without a context nothing waits for data.
func (m *Model) record(ctx context.Context, inputs []any) ([]any, error) {
	r := &run{ctx: ctx, model: m, make: m.make, budget: m.maxNodes}
	f := &frame{graph: m.graph, vals: map[string]*value{}}
	if len(inputs) > len(m.inputs) {
		return nil, inputError(ir.ErrArg, nil, "%d inputs are given, the model takes %d", len(inputs), len(m.inputs))
	}
	for i, a := range m.inputs {
		var given any
		if i < len(inputs) {
			given = inputs[i]
		}
		v, err := r.input(a, given)
		if err != nil {
			return nil, err
		}
		f.vals[a.Name] = v
		r.inputs = min(r.inputs+v.bytes(), 1<<50)
	}
	r.host = m.hostLimit(r.inputs)
	if err := checkSymbols(m.inputs, f); err != nil {
		return nil, err
	}
	if err := r.graph(f); err != nil {
		return nil, err
	}
	outs := make([]any, len(m.graph.outputs))
	for i, name := range m.graph.outputs {
		v, err := r.result(f, name)
		if err != nil {
			return nil, fmt.Errorf("onnx: %s: output %q: %w", m.path, name, err)
		}
		outs[i] = v
	}
	return outs, nil
}

// inputError is the error of an input that does not fit.
func inputError(kind error, a *arg, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if a != nil {
		text = fmt.Sprintf("input %q, %v: %s", a.Name, a.Arg, text)
	}
	return ir.NewOpError("onnx", kind, nil, "%s", text)
}

// input makes the value of an input.
func (r *run) input(a arg, given any) (*value, error) {
	switch g := given.(type) {
	case nil:
		if !a.optional {
			return nil, inputError(ir.ErrArg, &a, "it is missing")
		}
		return &value{empty: true}, nil
	case []any:
		if !a.sequence {
			return nil, inputError(ir.ErrArg, &a, "a sequence is given, a tensor is expected")
		}
		elem := a
		elem.sequence, elem.optional = false, false
		seq := sequence(nil)
		for _, e := range g {
			v, err := r.input(elem, e)
			if err != nil {
				return nil, err
			}
			seq.seq = append(seq.seq, v)
		}
		return seq, nil
	case *loris.Tensor:
		switch {
		case g == nil:
			return r.input(a, nil)
		case a.sequence:
			return nil, inputError(ir.ErrArg, &a, "a tensor is given, a sequence is expected")
		}
		r.make = g.Session().With(loris.On(g.Device()))
		return tensorInput(a, g)
	}
	return nil, inputError(ir.ErrArg, &a, "a %T is given, a *loris.Tensor is expected", given)
}

func tensorInput(a arg, t *loris.Tensor) (*value, error) {
	if a.elem == 0 {
		return out(elemOf(t.DType()), t), nil
	}
	if t.DType() != a.DType {
		return nil, inputError(ir.ErrDType, &a, "%v is given, the model takes %v", t.Shape(), a.elem)
	}
	if a.Dims != nil && t.Rank() != len(a.Dims) {
		return nil, inputError(ir.ErrShape, &a, "%v is given", t.Shape())
	}
	for i, d := range a.Dims {
		if d.Size >= 0 && t.Dim(i) != d.Size {
			return nil, inputError(ir.ErrShape, &a, "%v is given, dimension %d must be %d", t.Shape(), i, d.Size)
		}
	}
	return out(a.elem, t), nil
}

// checkSymbols holds dimensions of one name to one size.
func checkSymbols(args []arg, f *frame) error {
	type place struct {
		size int
		name string
	}
	seen := map[string]place{}
	for _, a := range args {
		v := f.vals[a.Name]
		if v.isSeq || v.empty {
			continue
		}
		for i, d := range a.Dims {
			if d.Symbol == "" {
				continue
			}
			if first, ok := seen[d.Symbol]; ok && first.size != v.dims[i] {
				return inputError(ir.ErrShape, nil, "dimension %q is %d in %q and %d in %q", d.Symbol, first.size, first.name, v.dims[i], a.Name)
			} else if !ok {
				seen[d.Symbol] = place{v.dims[i], a.Name}
			}
		}
	}
	return nil
}

// result returns an output as CallNested does.
func (r *run) result(f *frame, name string) (res any, err error) {
	c := &call{run: r, frame: f, node: &node{op: "output"}}
	defer c.recovered(&err)
	return c.nested(f.lookup(name)), nil
}

func (c *call) nested(v *value) any {
	switch {
	case v == nil || v.empty:
		return nil
	case v.isSeq:
		seq := make([]any, len(v.seq))
		for i, e := range v.seq {
			seq[i] = c.nested(e)
		}
		return seq
	}
	return c.tensor(v)
}
