package onnx

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
	"github.com/loris-ml/loris/model"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// maxOpset is the newest opset of the default domain whose rules the ops follow.
const maxOpset = 25

// maxKnown bounds the elements of integer tensors that are computed with while recording; larger
// ones are Variables.
const maxKnown = 1 << 12

// Option changes how Load makes a model.
type Option func(*loader)

// With sets the session, and with it the device, that the weights are made in; without it that is
// the default session.
func With(m loris.Maker) Option { return func(l *loader) { l.make = m } }

// Load reads a model with its weights. External data is read from files in the model's folder, and
// from nowhere else. A file that is damaged is a *FormatError; ops, types and opsets that are
// not supported are one *UnsupportedError that lists them all. Load runs nothing of the model. It
// blocks while reading; ctx ends it between two weights.
func Load(ctx context.Context, path string, opts ...Option) (*Model, error) {
	if err := ir.CheckContext("onnx", ctx); err != nil {
		return nil, err
	}
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	l := &loader{ctx: ctx, path: path, files: externals{root}}
	for _, o := range opts {
		o(l)
	}
	return l.load(b)
}

// readFile reads a plain file that fits in memory.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &FormatError{Path: path, Reason: "it is no plain file"}
	}
	if err := memlimit.Check(info.Size(), 0); err != nil {
		return nil, fmt.Errorf("onnx: %s: %w", path, err)
	}
	return os.ReadFile(path)
}

// Decode is Load for the bytes of a model without external data; name stands for the file in errors.
func Decode(name string, b []byte, opts ...Option) (*Model, error) {
	l := &loader{ctx: context.Background(), path: name}
	for _, o := range opts {
		o(l)
	}
	return l.load(b)
}

// loader makes a Model of a file.
type loader struct {
	ctx   context.Context
	path  string
	make  loris.Maker
	files externals
	model *Model
	// functions are those of the model by domain, name and overload.
	functions map[string]*function
	depth     int // of functions within functions
	// plain are the initialisers that ops read as numbers while recording, stats those that are
	// statistics.
	plain, stats map[string]bool
	unsupported  map[string]bool
}

// function is a function of the model.
type function struct {
	body     *graph
	defaults map[string]*pb.Attribute
	declared []string
	source   *pb.Function
	visiting bool
	checked  bool
}

// graph is a graph or a function's body, ready to be recorded.
type graph struct {
	name    string
	nodes   []*node
	inputs  []string
	outputs []string
	consts  map[string]*value
}

// node is a node of a graph with what it calls.
type node struct {
	index    int
	graph    string
	name     string
	op       string
	version  int
	in, out  []string
	attrs    map[string]*pb.Attribute
	graphs   map[string]*graph
	row      *row
	function *function
	constant *value
}

func (l *loader) load(b []byte) (*Model, error) {
	p, err := pb.DecodeModel(b)
	if err != nil {
		return nil, formatError(l.path, err)
	}
	if p.Graph == nil {
		return nil, &FormatError{Path: l.path, Reason: "there is no graph in it"}
	}
	l.unsupported = map[string]bool{}
	l.functions = map[string]*function{}
	l.model = newModel(l.path, p)
	l.model.bytes = len(b)
	opsets := l.opsets(p.Opsets)
	for _, f := range p.Functions {
		l.functions[functionKey(f.Domain, f.Name, f.Overload)] = &function{source: f}
	}
	l.uses(p.Graph)
	g, err := l.graph(p.Graph, opsets, nil, true)
	if err != nil {
		return nil, formatError(l.path, err)
	}
	l.model.graph, l.model.make = g, l.make
	if err := l.signature(p.Graph); err != nil {
		return nil, formatError(l.path, err)
	}
	if len(l.unsupported) > 0 {
		items := make([]string, 0, len(l.unsupported))
		for item := range l.unsupported {
			items = append(items, item)
		}
		sort.Strings(items)
		return nil, &UnsupportedError{Path: l.path, Items: items}
	}
	return l.model, nil
}

// opsets returns the versions by domain, and notes those that are out of range.
func (l *loader) opsets(list []pb.Opset) map[string]int {
	versions := map[string]int{}
	for _, o := range list {
		domain := canonical(o.Domain)
		versions[domain] = int(o.Version)
		if domain == "" && (o.Version < 1 || o.Version > maxOpset) {
			l.note("opset %d: this package knows 1 to %d", o.Version, maxOpset)
		}
	}
	if len(list) == 0 {
		versions[""] = 1
	}
	return versions
}

func canonical(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func (l *loader) note(format string, args ...any) { l.unsupported[fmt.Sprintf(format, args...)] = true }

func functionKey(domain, name, overload string) string {
	return canonical(domain) + "\x00" + name + "\x00" + overload
}

// uses notes the initialisers that are read as numbers only, and those that are running statistics.
func (l *loader) uses(g *pb.Graph) {
	l.plain, l.stats = map[string]bool{}, map[string]bool{}
	other := map[string]bool{}
	for _, n := range g.Nodes {
		for i, name := range n.Inputs {
			switch {
			case slices.Contains(numberInputs[n.OpType], i):
				l.plain[name] = true
			case n.OpType == "BatchNormalization" && i >= 3:
				l.stats[name] = true
			default:
				other[name] = true
			}
		}
	}
	for name := range other {
		delete(l.plain, name)
		delete(l.stats, name)
	}
}

// numberInputs are the inputs of ops that are numbers of the op rather than weights.
var numberInputs = map[string][]int{
	"Clip": {1, 2}, "Pad": {2}, "Resize": {1, 2, 3}, "Upsample": {1}, "Dropout": {1, 2}, "OneHot": {1, 2}, "Range": {0, 1, 2},
}

// scope says which names are defined while a graph is read.
type scope struct {
	names  map[string]bool
	parent *scope
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.parent {
		if s.names[name] {
			return true
		}
	}
	return false
}

// graph prepares a graph; top is the model's own.
func (l *loader) graph(p *pb.Graph, opsets map[string]int, around *scope, top bool) (*graph, error) {
	g := &graph{name: fmt.Sprintf("graph %q", p.Name), consts: map[string]*value{}}
	sc := &scope{names: map[string]bool{}, parent: around}
	if len(p.Sparse) > 0 {
		l.note("%s: sparse initialisers", g.name)
	}
	for _, t := range p.Initializers {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		if t.Name == "" || sc.names[t.Name] {
			return nil, fmt.Errorf("%s has two initialisers with the name %q, or one without a name", g.name, t.Name)
		}
		sc.names[t.Name] = true
		v, err := l.initializer(t, top)
		if err != nil {
			return nil, fmt.Errorf("initialiser %q of %s: %w", t.Name, g.name, err)
		}
		if v != nil {
			g.consts[t.Name] = v
		}
	}
	for _, in := range p.Inputs {
		if g.consts[in.Name] == nil {
			g.inputs = append(g.inputs, in.Name)
		}
		sc.names[in.Name] = true
	}
	for _, o := range p.Outputs {
		g.outputs = append(g.outputs, o.Name)
	}
	return g, l.nodes(g, p.Nodes, opsets, sc)
}

// nodes prepares the nodes of a graph. Every name must be defined before it is used, and once.
func (l *loader) nodes(g *graph, list []*pb.Node, opsets map[string]int, sc *scope) error {
	for _, i := range inOrder(list) {
		p := list[i]
		for _, name := range p.Inputs {
			if name != "" && !sc.has(name) {
				return fmt.Errorf("node %d %q (%s) of %s: input %q is not defined before it", i, p.Name, p.OpType, g.name, name)
			}
		}
		n, err := l.node(g, i, p, opsets, sc)
		if err != nil {
			return fmt.Errorf("node %d %q (%s) of %s: %w", i, p.Name, p.OpType, g.name, err)
		}
		for _, name := range p.Outputs {
			if name != "" && sc.names[name] {
				return fmt.Errorf("node %d %q (%s) of %s: its output %q is defined twice", i, p.Name, p.OpType, g.name, name)
			}
			sc.names[name] = true
		}
		g.nodes = append(g.nodes, n)
	}
	for _, name := range g.outputs {
		if name != "" && !sc.has(name) {
			return fmt.Errorf("output %q of %s is not defined", name, g.name)
		}
	}
	return nil
}

func (l *loader) node(g *graph, i int, p *pb.Node, opsets map[string]int, sc *scope) (*node, error) {
	n := &node{index: i, graph: g.name, name: p.Name, op: p.OpType, version: opsets[canonical(p.Domain)], in: p.Inputs, out: p.Outputs,
		attrs: map[string]*pb.Attribute{}, graphs: map[string]*graph{}}
	for _, a := range p.Attributes {
		n.attrs[a.Name] = a
		if a.G == nil {
			continue
		}
		body, err := l.graph(a.G, opsets, sc, false)
		if err != nil {
			return nil, err
		}
		n.graphs[a.Name] = body
	}
	if err := l.resolve(n, p); err != nil {
		return nil, err
	}
	if n.row != nil && n.op == "Constant" {
		return n, l.constant(n)
	}
	return n, nil
}

// resolve finds what a node calls: a function of the model, or an op.
func (l *loader) resolve(n *node, p *pb.Node) error {
	if f := l.functions[functionKey(p.Domain, p.OpType, p.Overload)]; f != nil {
		n.function = f
		return l.function(f)
	}
	key := p.OpType
	if domain := canonical(p.Domain); domain != "" {
		key = domain + "." + p.OpType
	}
	n.row = rows[key]
	at := fmt.Sprintf("%s (node %d %q of %s)", key, n.index, n.name, n.graph)
	switch {
	case n.row == nil && refused[key] != "":
		l.note("%s: %s", at, refused[key])
	case n.row == nil:
		l.note("%s", at)
	case len(n.in) < n.row.min || n.row.max >= 0 && len(n.in) > n.row.max:
		return fmt.Errorf("it has %d inputs, %s", len(n.in), n.row.arity())
	}
	return nil
}

// function prepares a function once; functions may not call themselves.
func (l *loader) function(f *function) error {
	if f.visiting {
		return fmt.Errorf("function %q calls itself", f.source.Name)
	}
	if f.checked {
		return nil
	}
	if l.depth++; l.depth > 256 {
		return fmt.Errorf("functions call each other %d deep", l.depth)
	}
	defer func() { l.depth-- }()
	f.visiting = true
	defer func() { f.visiting, f.checked = false, true }()
	p := f.source
	f.body = &graph{name: fmt.Sprintf("function %q", strings.TrimPrefix(p.Domain+"."+p.Name, ".")), inputs: p.Inputs, outputs: p.Outputs}
	f.declared = p.Attributes
	f.defaults = map[string]*pb.Attribute{}
	for _, a := range p.Defaults {
		f.defaults[a.Name] = a
	}
	sc := &scope{names: map[string]bool{}}
	for _, name := range p.Inputs {
		sc.names[name] = true
	}
	return l.nodes(f.body, p.Nodes, l.opsets(p.Opsets), sc)
}

// constant reads the tensor of a Constant node, so that calls need not.
func (l *loader) constant(n *node) error {
	a := n.attrs["value"]
	if a == nil || a.T == nil || a.RefName != "" {
		return nil
	}
	if e := elemType(a.T.DType); e.known() && !e.held() {
		l.note("Constant (node %d %q of %s): %v elements", n.index, n.name, n.graph, e)
		return nil
	}
	c, err := l.files.read(a.T)
	if err != nil {
		return err
	}
	n.constant = &value{elem: c.elem, dims: c.dims, data: slices.Clone(c.data)}
	return nil
}

// signature describes the inputs and outputs, and notes those that cannot be given.
func (l *loader) signature(p *pb.Graph) error {
	given := map[string]bool{}
	for _, name := range l.model.graph.inputs {
		given[name] = true
	}
	for _, in := range p.Inputs {
		if given[in.Name] {
			a, err := l.arg("input", in)
			if err != nil {
				return err
			}
			l.model.inputs = append(l.model.inputs, a)
		}
	}
	for _, o := range p.Outputs {
		a, err := l.arg("output", o)
		if err != nil {
			return err
		}
		l.model.outputs = append(l.model.outputs, a)
	}
	return nil
}

func (l *loader) arg(kind string, v *pb.ValueInfo) (arg, error) {
	a := arg{Arg: model.Arg{Name: v.Name}}
	t := v.Type
	for t != nil && (t.Kind == pb.KindSequence || t.Kind == pb.KindOptional) {
		a.sequence = a.sequence || t.Kind == pb.KindSequence
		a.optional = a.optional || t.Kind == pb.KindOptional
		t = t.Elem
	}
	if t == nil || t.Kind == pb.KindNone {
		return a, nil // nothing is said of it
	}
	e := elemType(t.DType)
	if t.Kind != pb.KindTensor || !e.held() {
		l.note("%s %q: %v", kind, v.Name, describe(t))
		return a, nil
	}
	a.elem, a.DType = e, e.dtype()
	if t.HasShape {
		a.Dims = make([]model.Dim, 0, len(t.Shape))
	}
	for _, d := range t.Shape {
		dim := model.Dim{Size: -1, Symbol: d.Symbol, Max: -1}
		if d.HasSize && d.Symbol == "" {
			if d.Size < 0 || d.Size > 1<<40 {
				return a, fmt.Errorf("%s %q has a dimension of size %d", kind, v.Name, d.Size)
			}
			dim = model.Dim{Size: int(d.Size)}
		}
		a.Dims = append(a.Dims, dim)
	}
	return a, nil
}

func describe(t *pb.Type) string {
	switch t.Kind {
	case pb.KindMap:
		return "a map"
	case pb.KindSparse:
		return "a sparse tensor"
	case pb.KindTensor:
		return elemType(t.DType).String() + " elements"
	}
	return "a type of another domain"
}
