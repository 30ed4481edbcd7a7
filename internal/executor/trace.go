package executor

import (
	"context"
	"fmt"
	"slices"

	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tracing"
)

// trace collects what a traced function does with variables.
type trace struct {
	id       uint64
	read     map[*Variable]*ir.Node // the leaf of each variable that is read
	assigned map[*Variable]*Tensor
	alias    map[*Variable]ir.Value // the views that stand for assigned values
	order    []*Variable
	hosts    map[*ir.Node]func() float64 // numbers that each call asks for
	onCall   []func()
	onUndo   []func()
}

func newTrace(id uint64) *trace {
	return &trace{id: id, read: map[*Variable]*ir.Node{}, assigned: map[*Variable]*Tensor{}, alias: map[*Variable]ir.Value{},
		hosts: map[*ir.Node]func() float64{}}
}

// varLeaf is the leaf of the value that a variable has when the traced function is called.
type varLeaf struct{ v *Variable }

// LeafName returns "variable".
func (*varLeaf) LeafName() string { return "variable" }

// value returns the variable's value in the traced function: a view of what the function has
// assigned, or the leaf of its value at the call. Each variable has a leaf of its own, since
// variables that share data while the function is traced need not do so when it is called.
func (t *trace) value(s *Session, v *Variable) ir.Value {
	if x := t.assigned[v]; x != nil {
		a, ok := t.alias[v]
		if !ok {
			a = view(s.b, x.value())
			t.alias[v] = a
		}
		return a
	}
	n := t.read[v]
	if n == nil {
		n = ir.NewLeaf(&varLeaf{v}, v.shape, v.seen(s).device())
		t.read[v] = n
	}
	return n.Out(0)
}

func (t *trace) assign(v *Variable, x *Tensor) {
	if _, again := t.assigned[v]; !again {
		t.order = append(t.order, v)
	}
	t.assigned[v] = x
	delete(t.alias, v)
}

// Traced is a function compiled for one signature of inputs; calling it records nothing. Each call
// reads the variables that the function reads and assigns those that it assigned.
type Traced struct {
	s       *Session
	device  ir.Device
	hash    ir.Hash
	program *graph.Program
	params  []tracedParam
	numOut  int
	vars    []*Variable // assigned by the outputs after numOut
	random  bool
	host    bool // some parameter is a number that each call asks for
	onCall  []func()
	onUndo  []func()
	guards  []tracing.Guard
	// donors pair the values of variables with the outputs that replace them; key is the cache
	// key of the computation that may use these pairs.
	donors []donor
	key    ir.Hash
	// stripes are those of the variables that the function reads.
	stripes stripeSet
}

// tracedParam is the source of a parameter of the program.
type tracedParam struct {
	input  int       // position among the inputs, or -1
	v      *Variable // a variable's value
	data   *Data     // a tensor that the function captured
	scalar *ir.ScalarLeaf
	dtype  ir.DType
	seed   bool           // the device's running seed
	host   func() float64 // not nil: what scalar is at each call
}

// Trace calls fn with placeholders for the inputs and compiles what it records. fn runs on the
// calling goroutine, and no other may record with the session meanwhile. fn may use variables and
// other tensors, but must not mark steps or read values. If check is set, fn is called twice, and
// it is an error if it does not record the same both times.
func (s *Session) Trace(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error), check bool) (*Traced, error) {
	tr, err := s.record(ctx, inputs, newTensor, fn, check)
	if err != nil {
		return nil, err
	}
	plug, err := tr.plugged(tr.params)
	if err != nil {
		return nil, err
	}
	ref, err := tr.computation(ctx, plug)
	if err != nil {
		return nil, err
	}
	ref.Release()
	return tr, nil
}

// record is Trace without compiling.
func (s *Session) record(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error), check bool) (*Traced, error) {
	if err := s.gate.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.gate.Release(1)
	if err := s.Readable(inputs...); err != nil {
		return nil, err
	}
	tr, err := s.recordOnce(inputs, newTensor, fn)
	if err != nil || !check {
		return tr, err
	}
	again, err := s.recordOnce(inputs, newTensor, fn)
	if err != nil {
		return nil, err
	}
	if err := tr.same(ctx, again); err != nil {
		return nil, err
	}
	return tr, nil
}

// recordOnce calls fn and returns what it records; the gate is held.
func (s *Session) recordOnce(inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error)) (*Traced, error) {
	c := s.core
	inputs = s.localAll(inputs)
	s.lockWith(inputs)
	c.mu.Lock()
	s.tracing = newTrace(c.nextID.Add(1))
	s.scope.Or(uint32(bitTraced))
	s.lasting = true
	from, random, back := len(s.pending), s.random, s.b.Aside()
	s.random = 0
	stand := make([]*Tensor, len(inputs))
	leaves := make(map[*ir.Node]int, len(inputs))
	for i, t := range inputs {
		n := ir.NewLeaf(&graph.ParamLeaf{Index: i, Name: fmt.Sprintf("in%d", i)}, t.shape(), t.device())
		leaves[n] = i
		stand[i] = newTensor()
		stand[i].s, stand[i].ir, stand[i].step, stand[i].bits = s, n, s.step, bitTraced
	}
	s.unlockBoth()
	defer func() {
		s.lockBoth()
		defer s.unlockBoth()
		s.tracing, s.random = nil, random
		back()
		s.scope.And(^uint32(bitTraced))
		clear(s.pending[from:])
		s.pending = s.pending[:from]
	}()
	t := tracing.New(c)
	var outs []*Tensor
	var err error
	t.Run(func() { outs, err = fn(stand) })
	if failed := t.Err(); failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	if err := s.Readable(outs...); err != nil {
		return nil, fmt.Errorf("loris: compile: results: %w", err)
	}
	tr := &Traced{s: s, numOut: len(outs), guards: t.Guards()}
	if err := tr.finish(outs, leaves); err != nil {
		return nil, err
	}
	return tr, nil
}

// finish turns the recorded values into the program.
func (tr *Traced) finish(outs []*Tensor, leaves map[*ir.Node]int) error {
	s := tr.s
	s.lockWith(outs)
	defer s.unlock()
	roots := make([]ir.Value, 0, len(outs))
	for _, t := range outs {
		roots = append(roots, t.value())
	}
	tr.vars, tr.onCall, tr.onUndo = s.tracing.order, s.tracing.onCall, s.tracing.onUndo
	for _, v := range tr.vars {
		roots = append(roots, s.tracing.assigned[v].value())
	}
	for _, r := range roots {
		switch d := r.Node.Device(); {
		case d.IsAny() || d == tr.device:
		case tr.device.IsAny():
			tr.device = d
		default:
			return fmt.Errorf("loris: compile: %w: the results are on %v and %v", ir.ErrDevice, tr.device, d)
		}
	}
	if tr.device.IsAny() {
		tr.device = s.device
	}
	seed := s.rngFor(tr.device).leaf
	po := s.walker.Walk(roots)
	defer s.walker.Release()
	var nodes []*ir.Node
	tr.program, nodes = graph.FromPostOrder("compiled", &po)
	for _, n := range nodes {
		p := tracedParam{input: -1}
		switch l := n.Leaf().(type) {
		case *graph.ParamLeaf:
			i, ok := leaves[n]
			if !ok {
				return fmt.Errorf("loris: compile: a tensor of another trace is used")
			}
			p.input = i
		case *varLeaf:
			if s.tracing.read[l.v] != n {
				return fmt.Errorf("loris: compile: a value of another trace is used")
			}
			p.v = l.v
			tr.stripes |= l.v.stripe()
		case *Data, *variableLeaf:
			p.data = dataOf(l)
			p.data.escape()
		case *ir.ScalarLeaf:
			p.scalar, p.dtype, p.seed = l, n.Shapes()[0].DType(), n == seed
			tr.random = tr.random || p.seed
			p.host = s.tracing.hosts[n]
			tr.host = tr.host || p.host != nil
		}
		tr.params = append(tr.params, p)
	}
	tr.hash = s.walker.Hash(&po, tr.device)
	for k, v := range tr.vars {
		if i := slices.IndexFunc(tr.params, func(p tracedParam) bool { return p.v == v }); i >= 0 {
			tr.donors = append(tr.donors, donor{i, tr.numOut + k})
		}
	}
	tr.key = aliasedHash(tr.hash, tr.donors)
	return nil
}

// computation returns the model that is plugged for the graph, if there is one, or the compiled
// graph.
func (tr *Traced) computation(ctx context.Context, plug *Plug) (*cache.Ref[*Computation], error) {
	c := tr.s.core
	if plug != nil {
		return plug.computation(ctx, tr.device)
	}
	ref, ok := c.cache.Get(cache.Key(tr.key))
	if ok {
		c.stats.hits.Add(1)
		return ref, nil
	}
	ref, _, err := c.getOrBuild(ctx, cache.Key(tr.key), func(ctx context.Context) (*Computation, int64, error) {
		m, err := c.compile(ctx, tr.program, tr.device, tr.key, tr.donors)
		if err != nil {
			return nil, 0, err
		}
		return m, m.cost(), nil
	})
	return ref, err
}

// plugged returns the model that is plugged for the graph, or nil; core.mu is not held.
func (tr *Traced) plugged(params []tracedParam) (*Plug, error) {
	c := tr.s.core
	if c.plugged.Load() == 0 {
		return nil, nil
	}
	var scalars []scalarParam
	for i, p := range params {
		if p.scalar != nil && !p.seed {
			scalars = append(scalars, scalarParam{i, p.scalar, p.dtype})
		}
	}
	return c.pluggedFor(tr.hash, scalars, tr.device, func() (params, returns []ir.Shape) { return programShapes(tr.program) })
}

// Guards returns the host values that the trace depends on.
func (tr *Traced) Guards() []tracing.Guard { return tr.guards }

// Tracing reports whether one of the tensors was made by the function that is
// being traced with this session.
func (s *Session) Tracing(ts []*Tensor) bool {
	s.lock()
	defer s.unlock()
	if s.tracing == nil {
		return false
	}
	for _, t := range ts {
		if t.s == s && t.bits&bitTraced != 0 && t.data == nil {
			return true
		}
	}
	return false
}

// Program returns the traced graph.
func (tr *Traced) Program() *graph.Program { return tr.program }
