package torchexport

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/model"
)

// treeSpec is how values nest (torch.utils._pytree).
type treeSpec struct {
	Type     *string         `json:"type"`
	Context  json.RawMessage `json:"context"`
	Children []*treeSpec     `json:"children_spec"`
}

// readTree reads a spec as pytree.treespec_dumps writes it: [version, spec]. nil where there is none.
func readTree(text string) (*treeSpec, error) {
	if text == "" {
		return nil, nil
	}
	var pair []json.RawMessage
	if err := json.Unmarshal([]byte(text), &pair); err != nil {
		return nil, err
	}
	if len(pair) != 2 {
		return nil, fmt.Errorf("a nesting of %d parts", len(pair))
	}
	var t treeSpec
	return &t, json.Unmarshal(pair[1], &t)
}

// leaves appends the names of the values of a spec: their paths, with dots.
func (t *treeSpec) leaves(dst []string, path string) []string {
	if t == nil || t.Type == nil {
		return append(dst, path)
	}
	keys := t.keys()
	for i, c := range t.Children {
		key := strconv.Itoa(i)
		if i < len(keys) {
			key = keys[i]
		}
		if path != "" {
			key = path + "." + key
		}
		dst = c.leaves(dst, key)
	}
	return dst
}

// keys are the names of a spec's children where it has some: a dictionary's keys, fields of a class.
func (t *treeSpec) keys() []string {
	var text string
	raw := []byte(t.Context)
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text) // the context is JSON in a string
	}
	var list []any
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	if len(list) == 2 { // a dataclass or an ordered dictionary with its class
		if inner, ok := list[0].([]any); ok {
			list = inner
		} else if inner, ok := list[1].([]any); ok {
			list = inner
		}
	}
	if len(list) != len(t.Children) {
		return nil
	}
	keys := make([]string, len(list))
	for i, k := range list {
		keys[i] = fmt.Sprint(k)
	}
	return keys
}

// signature reads what the inputs and outputs of the top graph are.
func (r *reader) signature(p *program, g *jsonGraphModule) error {
	if len(g.Signature.Inputs) != len(g.Graph.Inputs) || len(g.Signature.Outputs) != len(g.Graph.Outputs) {
		return fmt.Errorf("the signature has %d inputs and %d outputs, the graph %d and %d",
			len(g.Signature.Inputs), len(g.Signature.Outputs), len(g.Graph.Inputs), len(g.Graph.Outputs))
	}
	for i := range g.Signature.Inputs {
		in, err := readInput(&g.Signature.Inputs[i])
		if err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
		in.slot = p.body.inputs[i]
		if in.weight != "" && in.slot < 0 {
			return fmt.Errorf("input %d: the weight %q is no tensor", i, in.weight)
		}
		if in.user && in.slot < 0 {
			in.user, in.fixed = false, true
		}
		p.inputs = append(p.inputs, in)
	}
	for i := range g.Signature.Outputs {
		o, err := readOutput(&g.Signature.Outputs[i])
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		o.arg = p.body.outputs[i]
		p.outputs = append(p.outputs, o)
	}
	return r.names(p, g)
}

func readInput(u *union) (input, error) {
	var spec struct {
		Arg        json.RawMessage `json:"arg"`
		Parameter  string          `json:"parameter_name"`
		Buffer     string          `json:"buffer_name"`
		Constant   string          `json:"tensor_constant_name"`
		Persistent bool            `json:"persistent"`
		Name       string          `json:"name"`
	}
	if err := u.decode(&spec); err != nil {
		return input{}, err
	}
	in := input{name: spec.Name}
	switch u.kind {
	case "parameter", "buffer", "tensor_constant":
		in.weight = spec.Parameter + spec.Buffer + spec.Constant
		in.kind = kindOf(u.kind, spec.Persistent)
		if in.weight == "" {
			return in, fmt.Errorf("a %s without a name", u.kind)
		}
	case "user_input":
		var arg union
		if err := json.Unmarshal(spec.Arg, &arg); err != nil {
			return in, err
		}
		name, ok, err := nameOf(&arg)
		in.name, in.user, in.fixed = name, ok, !ok
		return in, err
	case "constant_input":
		in.fixed = true
	case "token":
	default:
		return in, fmt.Errorf("inputs of the kind %q are not supported", u.kind)
	}
	return in, nil
}

func readOutput(u *union) (output, error) {
	var spec struct {
		Buffer    string `json:"buffer_name"`
		Parameter string `json:"parameter_name"`
		User      string `json:"user_input_name"`
	}
	if err := u.decode(&spec); err != nil {
		return output{}, err
	}
	switch u.kind {
	case "user_output", "loss_output":
		return output{kind: userOutput}, nil
	case "buffer_mutation":
		return output{kind: weightMutation, target: spec.Buffer}, nil
	case "parameter_mutation":
		return output{kind: weightMutation, target: spec.Parameter}, nil
	case "user_input_mutation":
		return output{kind: inputMutation, target: spec.User}, nil
	case "token":
		return output{kind: tokenOutput}, nil
	}
	return output{}, fmt.Errorf("outputs of the kind %q are not supported", u.kind)
}

// names reads how inputs and outputs nest, where the file tells.
func (r *reader) names(p *program, g *jsonGraphModule) error {
	for _, e := range g.ModuleCallGraph {
		if e.FQN != "" || e.Signature == nil {
			continue
		}
		var err error
		if p.inSpec, err = readTree(e.Signature.InSpec); err != nil {
			return fmt.Errorf("nesting of the inputs: %w", err)
		}
		if p.outSpec, err = readTree(e.Signature.OutSpec); err != nil {
			return fmt.Errorf("nesting of the outputs: %w", err)
		}
		p.argNames = e.Signature.ForwardArgNames
	}
	return nil
}

// inputNames returns the names of the caller's inputs: those of forward's arguments, with the paths of
// nested ones; or of the graph's placeholders.
func (p *program) inputNames() []string {
	var placeholders []string
	for i := range p.inputs {
		if p.inputs[i].user || p.inputs[i].fixed {
			placeholders = append(placeholders, p.inputs[i].name)
		}
	}
	names := p.inSpec.inputLeaves(p.argNames)
	if len(names) != len(placeholders) {
		names = placeholders
	}
	var user []string
	at := 0
	for i := range p.inputs {
		in := &p.inputs[i]
		if in.user {
			user = append(user, names[at])
		}
		if in.user || in.fixed {
			at++
		}
	}
	return user
}

// inputLeaves returns the paths of inputs nested as (args, kwargs).
func (t *treeSpec) inputLeaves(argNames []string) []string {
	if t == nil || len(t.Children) != 2 {
		return nil
	}
	var names []string
	for i, c := range t.Children[0].Children {
		name := "arg" + strconv.Itoa(i)
		if i < len(argNames) {
			name = argNames[i]
		}
		names = c.leaves(names, name)
	}
	return t.Children[1].leaves(names, "")
}

// outputNames returns the paths of the caller's outputs in what the model returns.
func (p *program) outputNames() []string {
	n := 0
	for _, o := range p.outputs {
		if o.kind == userOutput {
			n++
		}
	}
	var names []string
	if p.outSpec != nil {
		names = p.outSpec.leaves(nil, "")
	}
	if len(names) != n {
		names = make([]string, n)
	}
	for i, name := range names {
		if name == "" || '0' <= name[0] && name[0] <= '9' {
			names[i] = strings.TrimSuffix("out"+strconv.Itoa(i)+"."+name, ".")
			if !strings.Contains(name, ".") {
				names[i] = "out" + strconv.Itoa(i)
			}
		}
	}
	return names
}

// arg describes a tensor of the signature.
func (p *program) arg(name string, m *meta) model.Arg {
	a := model.Arg{Name: name}
	if m == nil {
		return a
	}
	a.DType, a.Dims = m.dtype, make([]model.Dim, len(m.sizes))
	for i, e := range m.sizes {
		a.Dims[i] = p.dim(e)
	}
	return a
}

func (p *program) dim(e *expr) model.Dim {
	if n, ok := e.eval(nil); ok {
		return model.Dim{Size: int(n), Min: int(n), Max: int(n)}
	}
	d := model.Dim{Size: -1, Symbol: e.String(), Max: -1}
	if b, ok := p.ranges[e.name]; ok && e.op == "Symbol" {
		d.Min = int(min(max(b.min, 0), math.MaxInt32))
		if b.max >= 0 && b.max <= math.MaxInt32 {
			d.Max = int(b.max)
		}
	}
	return d
}
