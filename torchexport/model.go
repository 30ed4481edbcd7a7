package torchexport

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/model"
)

// Model is a program with its weights, as Load returns it. It implements model.Model and nn.Module.
// Its methods are safe for concurrent use but for SetFrozen and To.
type Model struct {
	program *program
	weights importer.Weights
	session *loris.Session
	device  ir.Device
}

var _ model.Model = (*Model)(nil)

// Params yields the parameters under PyTorch's names; tied ones once.
func (m *Model) Params() iter.Seq2[string, *loris.Variable] { return m.weights.Params() }

// Buffers yields the persistent buffers under PyTorch's names. Other buffers and constants belong to
// the program.
func (m *Model) Buffers() iter.Seq2[string, *loris.Variable] { return m.weights.Buffers() }

// SetTraining does nothing: a program trains or evaluates as it was exported (model.train() or
// model.eval() before torch.export.export).
func (m *Model) SetTraining(on bool) { m.weights.SetTraining(on) }

// SetFrozen makes parameters buffers, or parameters again; nn.Freeze and nn.Unfreeze call it.
func (m *Model) SetFrozen(vars map[*loris.Variable]bool, frozen bool) {
	m.weights.SetFrozen(vars, frozen)
}

// TorchVersion returns the version of PyTorch that wrote the program; empty where the file does not
// tell.
func (m *Model) TorchVersion() string { return m.program.version }

// Signature says what the model takes and returns: first the outputs of forward, then the new values
// of inputs that the program changes in place, under the names of these inputs.
func (m *Model) Signature() *model.Signature {
	p := m.program
	sig := &model.Signature{}
	names := p.inputNames()
	at := 0
	byPlaceholder := map[string]string{}
	for i := range p.inputs {
		if in := &p.inputs[i]; in.user {
			sig.Inputs = append(sig.Inputs, p.arg(names[at], p.body.metas[in.slot]))
			byPlaceholder[in.name] = names[at]
			at++
		}
	}
	outs := p.outputNames()
	at = 0
	var changed []model.Arg
	for _, o := range p.outputs {
		slot, _ := o.arg.(ref)
		meta := p.body.metas[int(slot)]
		if _, isRef := o.arg.(ref); !isRef {
			meta = nil
		}
		switch o.kind {
		case userOutput:
			if o.arg != nil {
				sig.Outputs = append(sig.Outputs, p.arg(outs[at], meta))
			}
			at++
		case inputMutation:
			changed = append(changed, p.arg(byPlaceholder[o.target], meta))
		}
	}
	for _, in := range m.changedInputs() {
		changed = append(changed, p.arg(byPlaceholder[in.name], p.body.metas[in.slot]))
	}
	sig.Outputs = append(sig.Outputs, changed...)
	return sig
}

// changedInputs are the caller's inputs that the graph changes in place by its ops.
func (m *Model) changedInputs() []*input {
	changed := m.program.changed
	var out []*input
	for i := range m.program.inputs {
		if in := &m.program.inputs[i]; in.user && changed[in.slot] {
			out = append(out, in)
		}
	}
	return out
}

// Call records the program on the inputs, in the order of the signature, and returns the outputs of
// the signature. A fixed Python value of forward is no input, and None no output; an integer is a
// tensor of rank 0. Buffers that the program changes are assigned.
//
// Wrong inputs, and mistakes that show only for these sizes, are an *loris.OpError that names the
// input, or the node with its line of Python. Call blocks, until ctx ends, only where the program needs
// elements.
func (m *Model) Call(ctx context.Context, inputs ...*loris.Tensor) (outs []*loris.Tensor, err error) {
	if err := ir.CheckContext("torchexport.Model.Call", ctx); err != nil {
		return nil, err
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			outs, err = nil, fmt.Errorf("torchexport: %w", r.err)
		case *ir.OpError:
			outs, err = nil, r
		default:
			panic(r)
		}
	}()
	return m.record(ctx, inputs), nil
}

// Forward is Call for functions that record, such as those given to loris.Compile or
// loris.Checkpoint: it never blocks, and mistakes panic with an *loris.OpError. A program that needs
// elements while it is recorded is such a mistake.
func (m *Model) Forward(inputs ...*loris.Tensor) []*loris.Tensor {
	var none context.Context // nothing is waited for
	return m.record(none, inputs)
}

// CallNamed is Call with inputs and outputs by the names of the signature.
func (m *Model) CallNamed(ctx context.Context, inputs map[string]*loris.Tensor) (map[string]*loris.Tensor, error) {
	sig := m.Signature()
	args := make([]*loris.Tensor, len(sig.Inputs))
	known := map[string]bool{}
	for i, in := range sig.Inputs {
		known[in.Name] = true
		if args[i] = inputs[in.Name]; args[i] == nil {
			return nil, misuse("call", "input %q (%s) is missing", in.Name, in)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !known[name] {
			return nil, misuse("call", "there is no input %q", name)
		}
	}
	outs, err := m.Call(ctx, args...)
	if err != nil {
		return nil, err
	}
	named := make(map[string]*loris.Tensor, len(outs))
	for i, o := range sig.Outputs {
		named[o.Name] = outs[i]
	}
	return named, nil
}

// record runs the program.
func (m *Model) record(ctx context.Context, inputs []*loris.Tensor) []*loris.Tensor {
	r := &run{ctx: ctx, s: m.session, device: m.device, symbols: map[string]int64{}}
	for i, t := range inputs {
		if t == nil {
			panic(misuse("call", "input %d is nil", i))
		}
		if i == 0 {
			r.s = t.Session()
		}
	}
	values := m.bind(r, inputs)
	f := r.block(m.program.body, values)
	var outs, changed []*loris.Tensor
	for i, o := range m.program.outputs {
		switch o.kind {
		case userOutput:
			if o.arg != nil {
				outs = append(outs, r.output(f[i]))
			}
		case inputMutation:
			changed = append(changed, r.output(f[i]))
		case weightMutation:
			m.weights.Lookup(o.target).Assign(r.output(f[i]))
		}
	}
	written := m.program.changed
	for i := range m.program.inputs {
		in := &m.program.inputs[i]
		x, ok := values[i].(*tensor)
		switch {
		case !ok:
		case in.user && written[in.slot]:
			changed = append(changed, x.value())
		case in.weight != "" && x.changes > 0:
			in.v.Assign(x.value())
			x.changes = 0 // tied weights share it
		}
	}
	outs = append(outs, changed...)
	r.discard(inputs, outs)
	return outs
}

// discard marks what the program made, and does not return, as nothing that a step has to compute: a
// value that was replaced in place, say.
func (r *run) discard(inputs, outs []*loris.Tensor) {
	keep := make(map[*loris.Tensor]bool, len(inputs)+len(outs))
	for _, t := range append(slices.Clone(inputs), outs...) {
		keep[t] = true
	}
	r.s.Discard(slices.DeleteFunc(r.made, func(t *loris.Tensor) bool { return keep[t] || t.Session() != r.s })...)
}

// output returns a result as a tensor; a Python number becomes one of rank 0.
func (r *run) output(v any) *loris.Tensor {
	switch v := v.(type) {
	case *tensor:
		return v.value()
	case int64, float64, bool:
		return r.maker().Scalar(plainValue(v))
	}
	panic(misuse("call", "an output is %v", describeValue(v)))
}

// bind returns the values of the graph's inputs, and gives the symbols of their sizes values.
func (m *Model) bind(r *run, inputs []*loris.Tensor) []any {
	p := m.program
	names := p.inputNames()
	if len(inputs) != len(names) {
		panic(misuse("call", "%d inputs are given, the program takes %d: %s", len(inputs), len(names), strings.Join(names, ", ")))
	}
	values := make([]any, len(p.inputs))
	user := make([]*input, 0, len(names))
	weights := map[*loris.Variable]*tensor{}
	for i := range p.inputs {
		in := &p.inputs[i]
		switch {
		case in.weight != "":
			x := weights[in.v]
			if x == nil {
				x = newTensor(in.v.ValueIn(r.s))
				weights[in.v] = x
			}
			values[i] = x
		case in.user:
			t := inputs[len(user)]
			user = append(user, in)
			if meta := p.body.metas[in.slot]; meta != nil {
				m.checkInput(meta, names[len(user)-1], t)
				values[i] = newTensor(t)
			} else {
				values[i] = r.pythonValue(names[len(user)-1], t)
			}
		}
	}
	m.bindSizes(r, user, names, inputs)
	return values
}

// pythonValue returns the number that a tensor stands for, where the program takes one.
func (r *run) pythonValue(name string, t *loris.Tensor) any {
	if t.Numel() != 1 {
		panic(misuse("call", "input %q is a number, not %v", name, t.Shape()))
	}
	c := &call{run: r, n: &node{name: name, target: "call"}}
	return c.scalarItem(t)
}

// checkInput compares an input's dtype and rank with the signature.
func (m *Model) checkInput(meta *meta, name string, t *loris.Tensor) {
	if t.DType() == meta.dtype && t.Rank() == len(meta.sizes) {
		return
	}
	kind := ir.ErrShape
	if t.DType() != meta.dtype {
		kind = ir.ErrDType
	}
	panic(ir.NewOpError("call", kind, nil, "input %q is %v, the program takes %v", name, t.Shape(), m.program.arg(name, meta)))
}

// bindSizes gives symbols their values: first those that are a size of their own, then those inside
// expressions. Sizes that contradict each other, fixed ones or ranges are mistakes.
func (m *Model) bindSizes(r *run, user []*input, names []string, inputs []*loris.Tensor) {
	for _, solve := range []bool{false, true} {
		for i, in := range user {
			meta := m.program.body.metas[in.slot]
			if meta == nil {
				continue
			}
			for d, e := range meta.sizes {
				n := int64(inputs[i].Dim(d))
				if e.op == "Symbol" {
					if _, have := r.symbols[e.name]; !have {
						r.symbols[e.name] = n
					}
				} else if solve {
					if name, v, ok := e.solve(r.symbols, n); ok {
						r.symbols[name] = v
					}
				}
			}
		}
	}
	for i, in := range user {
		meta := m.program.body.metas[in.slot]
		if meta == nil {
			continue
		}
		for d, e := range meta.sizes {
			n := int64(inputs[i].Dim(d))
			if want, ok := e.eval(r.symbols); !ok || want != n {
				panic(ir.NewOpError("call", ir.ErrShape, nil, "input %q is %v: dimension %d must be %s%s",
					names[i], inputs[i].Shape(), d, e, valueOf(e, want, ok)))
			}
			m.checkRange(r, e, names[i], d, n)
		}
	}
}

func valueOf(e *expr, v int64, ok bool) string {
	if !ok || e.op == "Integer" {
		return ""
	}
	return fmt.Sprintf(", which is %d here", v)
}

// checkRange enforces the range of a symbol. Programs assume that sizes are not 0 and 1, and write 2 as
// the least size then, though they hold for 1, too.
func (m *Model) checkRange(r *run, e *expr, name string, dim int, n int64) {
	b, ok := m.program.ranges[e.name]
	if !ok || e.op != "Symbol" {
		return
	}
	least := b.min
	if least == 2 {
		least = 0
	}
	if n < least || b.max >= 0 && n > b.max {
		panic(ir.NewOpError("call", ir.ErrShape, nil, "input %q: dimension %d (%s) is %d, the program was exported for %s",
			name, dim, e, n, m.program.dim(e)))
	}
}

// To moves the weights to a device; calls that follow record there. No other method may run meanwhile.
// An error leaves the model as it was.
func (m *Model) To(ctx context.Context, d loris.Device) error {
	moved := map[*loris.Variable]*loris.Variable{}
	for i := range m.program.inputs {
		v := m.program.inputs[i].v
		if v == nil || moved[v] != nil {
			continue
		}
		t, err := v.Value().To(ctx, d)
		if err != nil {
			return fmt.Errorf("torchexport: to %v: %w", d, err)
		}
		moved[v] = loris.NewVariable(t)
	}
	for i := range m.program.inputs {
		if in := &m.program.inputs[i]; in.v != nil {
			in.v = moved[in.v]
		}
	}
	m.weights.Replace(moved)
	m.device = d
	return nil
}

// Nodes returns the number of ops in the graph, without those of graphs that they call.
func (m *Model) Nodes() int { return len(m.program.body.nodes) }
