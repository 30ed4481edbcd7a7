package torchexport

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
)

// program is a checked program: names are resolved to slots, ops to what records them.
type program struct {
	version  string // of PyTorch, empty where the file does not tell
	body     *block
	inputs   []input
	outputs  []output
	ranges   map[string]bounds
	inSpec   *treeSpec
	argNames []string
	outSpec  *treeSpec
	dataSync bool         // some op needs elements while it is recorded
	changed  map[int]bool // slots of inputs that ops change in place
}

type bounds struct{ min, max int64 } // max is -1 without a bound

// input is an input of the top graph: a weight, a tensor of the caller, or a Python value that was
// fixed when the program was exported.
type input struct {
	name   string
	slot   int    // -1 for a fixed value without one
	weight string // its name among the weights; empty for the caller's
	kind   importer.Kind
	v      *loris.Variable
	user   bool // the caller gives it
	fixed  bool // a Python value of the export, which the caller does not give
}

// output is an output of the top graph.
type output struct {
	arg    any    // a ref, or a fixed value
	target string // of a mutation: the name of the weight or of the user input
	kind   outputKind
}

type outputKind uint8

const (
	userOutput outputKind = iota
	weightMutation
	inputMutation
	tokenOutput
)

// block is a graph: the program's, or one that an op calls.
type block struct {
	name    string
	inputs  []int // slots
	outputs []any
	nodes   []node
	metas   map[int]*meta // of slots that hold tensors
	names   []string      // of slots
}

// ref stands for the value in a slot.
type ref int

type node struct {
	name, target string // add_1, aten.add.Tensor
	op           *operation
	args         []argument
	outs         []out
	trace        string // the Python line, for errors
}

type argument struct {
	name  string
	value any
}

// out is what becomes of one result of a node: a slot, several for a list, or none.
type out struct {
	slot  int // -1: dropped
	list  []int
	slice bool // a list
}

// meta is what the graph says of a tensor.
type meta struct {
	dtype   ir.DType
	sizes   []*expr
	strides []*expr // nil where the graph does not tell
}

// dims evaluates the sizes; false if a symbol has no value.
func (m *meta) dims(symbols map[string]int64) ([]int, bool) { return evalAll(m.sizes, symbols) }

func evalAll(es []*expr, symbols map[string]int64) ([]int, bool) {
	out := make([]int, len(es))
	for i, e := range es {
		n, ok := e.eval(symbols)
		if !ok || n < 0 || n > math.MaxInt {
			return nil, false
		}
		out[i] = int(n)
	}
	return out, true
}

const supportedMajor = 8

// readProgram reads and checks the JSON of a program.
func readProgram(text []byte) (*program, error) {
	var j jsonProgram
	if err := decodeJSON(quoteNonFinite(text), &j); err != nil {
		return nil, err
	}
	if j.SchemaVersion.Major != supportedMajor {
		return nil, fmt.Errorf("version %d.%d of the schema: only %d is supported, which PyTorch 2.6 to 2.15 write",
			j.SchemaVersion.Major, j.SchemaVersion.Minor, supportedMajor)
	}
	r := &reader{unsupported: map[string]*UnsupportedNode{}}
	body, err := r.block(&j.GraphModule.Graph, "", 0)
	if err != nil {
		return nil, err
	}
	p := &program{version: j.TorchVersion, body: body, ranges: map[string]bounds{}, dataSync: r.dataSync}
	for name, c := range j.RangeConstraints {
		b := bounds{0, -1}
		if c.Min != nil {
			b.min = *c.Min
		}
		if c.Max != nil && *c.Max < 1<<53 {
			b.max = *c.Max
		}
		p.ranges[name] = b
	}
	if err := r.signature(p, &j.GraphModule); err != nil {
		return nil, err
	}
	if len(r.unsupported) > 0 {
		return nil, r.unsupportedError()
	}
	p.changed = body.changed()
	return p, nil
}

// reader resolves names while a program is read.
type reader struct {
	unsupported map[string]*UnsupportedNode
	dataSync    bool
	nodes       int
}

// scope is a block while it is read.
type scope struct {
	*block
	slots map[string]int
}

func (s *scope) define(name string) (int, error) {
	if _, have := s.slots[name]; have {
		return 0, fmt.Errorf("two values have the name %q", name)
	}
	slot := len(s.names)
	s.slots[name] = slot
	s.names = append(s.names, name)
	return slot, nil
}

const maxBlocks = 32 // how deep graphs of ops may nest

func (r *reader) block(g *jsonGraph, name string, depth int) (*block, error) {
	if depth > maxBlocks {
		return nil, fmt.Errorf("graphs are nested more than %d deep", maxBlocks)
	}
	s := &scope{block: &block{name: name, metas: map[int]*meta{}}, slots: map[string]int{}}
	for i := range g.Inputs {
		in, err := r.input(s, &g.Inputs[i])
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		s.inputs = append(s.inputs, in)
	}
	for i := range g.Nodes {
		n, err := r.node(s, &g.Nodes[i], depth)
		if err != nil {
			return nil, fmt.Errorf("node %d (%s): %w", i, g.Nodes[i].Target, err)
		}
		s.nodes = append(s.nodes, n)
	}
	for i := range g.Outputs {
		v, err := r.argument(s, &g.Outputs[i], depth)
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
		s.outputs = append(s.outputs, v)
	}
	for name, m := range g.TensorValues {
		slot, ok := s.slots[name]
		if !ok {
			continue
		}
		read, err := readMeta(&m)
		if err != nil {
			return nil, fmt.Errorf("value %q: %w", name, err)
		}
		s.metas[slot] = read
	}
	for i := range s.nodes {
		s.mendStates(&s.nodes[i])
	}
	return s.block, nil
}

// mendStates corrects the sizes of the last states of an LSTM: PyTorch 2.6 writes [layers, 1, batch, hidden] for
// what has no second dimension.
func (s *scope) mendStates(n *node) {
	if n.target != "aten.lstm.input" {
		return
	}
	for _, o := range n.outs {
		m := s.metas[o.slot]
		if m == nil || len(m.sizes) != 4 || m.sizes[1].op != "Integer" || m.sizes[1].n != 1 {
			continue
		}
		m.sizes = slices.Delete(m.sizes, 1, 2)
		if m.strides != nil {
			m.strides = slices.Delete(m.strides, 1, 2)
		}
	}
}

func readMeta(m *jsonTensorMeta) (*meta, error) {
	d, err := dtypeOf(m.DType)
	if err != nil {
		return nil, err
	}
	out := &meta{dtype: d, sizes: make([]*expr, len(m.Sizes))}
	if len(m.Sizes) > ir.MaxRank {
		return nil, fmt.Errorf("%w: %d dimensions, at most %d are supported", ir.ErrShape, len(m.Sizes), ir.MaxRank)
	}
	for i := range m.Sizes {
		if out.sizes[i], err = readSize(&m.Sizes[i]); err != nil {
			return nil, err
		}
	}
	if len(m.Strides) != len(m.Sizes) {
		return out, nil
	}
	out.strides = make([]*expr, len(m.Strides))
	for i := range m.Strides {
		if out.strides[i], err = readSize(&m.Strides[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readSize reads a number or an expression.
func readSize(u *union) (*expr, error) {
	switch u.kind {
	case "as_int":
		e := &expr{op: "Integer"}
		return e, u.decode(&e.n)
	case "as_expr":
		var x struct {
			Text string `json:"expr_str"`
		}
		if err := u.decode(&x); err != nil {
			return nil, err
		}
		return parseExpr(x.Text)
	}
	return nil, fmt.Errorf("a size of the kind %q", u.kind)
}

// input defines an input of a graph; -1 for one that is no tensor and no symbol.
func (r *reader) input(s *scope, u *union) (int, error) {
	name, ok, err := nameOf(u)
	if err != nil || !ok {
		return -1, err
	}
	return s.define(name)
}

// nameOf returns the name of a value that a union refers to; false if it is a fixed value.
func nameOf(u *union) (string, bool, error) {
	switch u.kind {
	case "as_tensor":
		var t struct {
			Name string `json:"name"`
		}
		err := u.decode(&t)
		return t.Name, true, err
	case "as_sym_int", "as_sym_bool", "as_sym_float":
		var inner union
		if err := u.decode(&inner); err != nil {
			return "", false, err
		}
		if inner.kind != "as_name" {
			return "", false, nil
		}
		var name string
		err := inner.decode(&name)
		return name, true, err
	}
	return "", false, nil
}

const maxNodes = 1 << 20

func (r *reader) node(s *scope, j *jsonNode, depth int) (node, error) {
	if r.nodes++; r.nodes > maxNodes {
		return node{}, fmt.Errorf("more than %d nodes", maxNodes)
	}
	n := node{target: strings.TrimPrefix(j.Target, "torch.ops."), name: j.Name, trace: pythonLine(j.Metadata["stack_trace"])}
	for i := range j.Inputs {
		v, err := r.argument(s, &j.Inputs[i].Arg, depth)
		if err != nil {
			return n, fmt.Errorf("argument %q: %w", j.Inputs[i].Name, err)
		}
		n.args = append(n.args, argument{j.Inputs[i].Name, v})
	}
	for i := range j.Outputs {
		o, err := r.out(s, &j.Outputs[i])
		if err != nil {
			return n, fmt.Errorf("result %d: %w", i, err)
		}
		n.outs = append(n.outs, o)
	}
	if n.name == "" && len(n.outs) > 0 { // files of PyTorch 2.6
		if n.outs[0].slot >= 0 {
			n.name = s.names[n.outs[0].slot]
		} else if len(n.outs[0].list) > 0 {
			n.name = s.names[n.outs[0].list[0]]
		}
	}
	if n.op = findOperation(n.target); n.op == nil {
		u := r.unsupported[n.target]
		if u == nil {
			u = &UnsupportedNode{Op: n.target, Node: n.name, Line: n.trace}
			r.unsupported[n.target] = u
		}
		u.Count++
	} else if n.op.needsData {
		r.dataSync = true
	}
	return n, nil
}

// out defines what a result of a node is called.
func (r *reader) out(s *scope, u *union) (out, error) {
	switch u.kind {
	case "as_tensors":
		var ts []struct {
			Name string `json:"name"`
		}
		if err := u.decode(&ts); err != nil {
			return out{}, err
		}
		o := out{slot: -1, slice: true}
		for _, t := range ts {
			slot, err := r.defineOut(s, t.Name)
			if err != nil {
				return o, err
			}
			o.list = append(o.list, slot)
		}
		return o, nil
	case "as_optional_tensors":
		var us []union
		if err := u.decode(&us); err != nil {
			return out{}, err
		}
		o := out{slot: -1, slice: true}
		for i := range us {
			inner, err := r.out(s, &us[i])
			if err != nil {
				return o, err
			}
			o.list = append(o.list, inner.slot)
		}
		return o, nil
	}
	name, ok, err := nameOf(u)
	if err != nil || !ok {
		return out{slot: -1}, err
	}
	slot, err := r.defineOut(s, name)
	return out{slot: slot}, err
}

// defineOut is define for a result; one without a name is not used.
func (r *reader) defineOut(s *scope, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	return s.define(name)
}

// pythonLine returns the innermost line of a stack trace that is the user's: "model.py:12 in forward:
// x = self.fc(x)".
func pythonLine(trace string) string {
	lines := strings.Split(strings.TrimRight(trace, "\n "), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		text := strings.TrimSpace(lines[i])
		rest, ok := strings.CutPrefix(text, `File "`)
		if !ok {
			continue
		}
		file, rest, _ := strings.Cut(rest, `"`)
		if j := strings.LastIndexAny(file, `/\`); j >= 0 {
			file = file[j+1:]
		}
		number, where, _ := strings.Cut(strings.TrimPrefix(rest, ", line "), ", in ")
		line := file + ":" + number
		if where != "" {
			line += " in " + where
		}
		if i+1 < len(lines) {
			line += ": " + strings.TrimSpace(lines[i+1])
		}
		return line[:min(len(line), 300)]
	}
	return ""
}

// argument returns an argument by its name, nil if it is not given.
func (n *node) argument(name string) any {
	for _, a := range n.args {
		if a.name == name {
			return a.value
		}
	}
	return nil
}

// changed returns the slots of the inputs that the graph changes in place, also by views of them.
func (b *block) changed() map[int]bool {
	root := map[int]int{} // of slots that may share memory with an input
	for _, slot := range b.inputs {
		if slot >= 0 {
			root[slot] = slot
		}
	}
	changed := map[int]bool{}
	for i := range b.nodes {
		n := &b.nodes[i]
		if len(n.args) == 0 || n.op == nil {
			continue
		}
		for _, name := range n.trains() {
			if slot, ok := n.argument(name).(ref); ok {
				if from, ok := root[int(slot)]; ok {
					changed[from] = true
				}
			}
		}
		slot, ok := n.args[0].value.(ref)
		if !ok || !n.op.changes && !n.op.shares {
			continue
		}
		from, ok := root[int(slot)]
		if !ok {
			continue
		}
		if n.op.changes && n.target != "aten.detach_.default" {
			changed[from] = true
		}
		for _, o := range n.outs {
			for _, s := range append(o.list, o.slot) {
				if s >= 0 && n.op.shares {
					root[s] = from
				}
			}
		}
	}
	return changed
}
