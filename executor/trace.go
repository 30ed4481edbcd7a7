package executor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loris-ml/loris/cache"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/ir"
)

// trace is what Session.Trace notes while the traced function records.
type trace struct {
	read     map[*Variable]*ir.Node // a leaf of its own for each variable read
	assigned map[*Variable]*Tensor
	alias    map[*Variable]ir.Value // the views that stand for assigned values
	order    []*Variable
}

// varLeaf stands for the value that a variable has when a traced function is
// called.
type varLeaf struct{ v *Variable }

// LeafName returns "variable".
func (*varLeaf) LeafName() string { return "variable" }

// value returns what the variable is in the traced function: what the function
// has assigned, or else the leaf of its value at the call. Two variables that
// share their data now need not do so then.
func (t *trace) value(b *ir.Builder, v *Variable) ir.Value {
	if x := t.assigned[v]; x != nil {
		a, ok := t.alias[v]
		if !ok {
			a = view(b, x.value())
			t.alias[v] = a
		}
		return a
	}
	n := t.read[v]
	if n == nil {
		n = ir.NewLeaf(&varLeaf{v}, v.shape, v.device())
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

// Traced is a function compiled for one signature of inputs: calling it traces
// nothing. Values of variables are read at each call, and assignments that the
// function made are made at each call.
type Traced struct {
	s       *Session
	device  ir.Device
	hash    ir.Hash
	program *graph.Program
	params  []tracedParam
	numOut  int
	vars    []*Variable // assigned by the outputs after numOut
	random  bool
	// donors pair the values of variables with the outputs that replace them; key
	// is of the computation that knows them.
	donors []donor
	key    ir.Hash
}

// tracedParam says where a parameter of the program comes from at a call.
type tracedParam struct {
	input  int       // position among the inputs, or -1
	v      *Variable // a variable's value
	data   *Data     // a tensor that the function captured
	scalar *ir.ScalarLeaf
	dtype  ir.DType
	seed   bool // the device's running seed
}

// Trace calls fn once on stand-ins for the inputs and compiles what it
// records. fn runs on this goroutine, and no other may record with the session
// meanwhile; it may use variables and other tensors, but must not mark steps or
// read values that it records.
func (s *Session) Trace(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error)) (*Traced, error) {
	tr, err := s.record(ctx, inputs, newTensor, fn)
	if err != nil {
		return nil, err
	}
	ref, err := tr.computation(ctx)
	if err != nil {
		return nil, err
	}
	ref.Release()
	return tr, nil
}

// record is Trace without compiling.
func (s *Session) record(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error)) (*Traced, error) {
	if err := s.gate.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.gate.Release(1)
	if err := s.Readable(inputs...); err != nil {
		return nil, err
	}
	c := s.core
	c.mu.Lock()
	s.tracing = &trace{read: map[*Variable]*ir.Node{}, assigned: map[*Variable]*Tensor{}, alias: map[*Variable]ir.Value{}}
	s.scope |= bitTraced
	from, random := len(s.pending), s.random
	s.random = 0
	stand := make([]*Tensor, len(inputs))
	leaves := make(map[*ir.Node]int, len(inputs))
	for i, t := range inputs {
		n := ir.NewLeaf(&graph.ParamLeaf{Index: i, Name: fmt.Sprintf("in%d", i)}, t.shape(), t.device())
		leaves[n] = i
		stand[i] = newTensor()
		stand[i].s, stand[i].ir, stand[i].step, stand[i].bits = s, n, s.step, bitTraced
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		s.tracing, s.random = nil, random
		s.scope &^= bitTraced
		clear(s.pending[from:])
		s.pending = s.pending[:from]
	}()
	outs, err := fn(stand)
	if err != nil {
		return nil, err
	}
	if err := s.Readable(outs...); err != nil {
		return nil, fmt.Errorf("loris: compile: results: %w", err)
	}
	tr := &Traced{s: s, numOut: len(outs)}
	if err := tr.finish(outs, leaves); err != nil {
		return nil, err
	}
	return tr, nil
}

// finish turns the recorded values into the program.
func (tr *Traced) finish(outs []*Tensor, leaves map[*ir.Node]int) error {
	s, c := tr.s, tr.s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	roots := make([]ir.Value, 0, len(outs))
	for _, t := range outs {
		roots = append(roots, t.value())
	}
	tr.vars = s.tracing.order
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
	po := c.walker.Walk(roots)
	defer c.walker.Release()
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
		case *Data, *held:
			p.data = dataOf(l)
			p.data.escaped = true
		case *ir.ScalarLeaf:
			p.scalar, p.dtype, p.seed = l, n.Shapes()[0].DType(), n == seed
			tr.random = tr.random || p.seed
		}
		tr.params = append(tr.params, p)
	}
	tr.hash = c.walker.Hash(&po, tr.device)
	for k, v := range tr.vars {
		if i := slices.IndexFunc(tr.params, func(p tracedParam) bool { return p.v == v }); i >= 0 {
			tr.donors = append(tr.donors, donor{i, tr.numOut + k})
		}
	}
	tr.key = aliasedHash(tr.hash, tr.donors)
	return nil
}

func (tr *Traced) computation(ctx context.Context) (*cache.Ref[*Computation], error) {
	c := tr.s.core
	if p, err := tr.plugged(); err != nil {
		return nil, err
	} else if p != nil {
		return p.computation(ctx, tr.device)
	}
	ref, ok := c.cache.Get(cache.Key(tr.key))
	if ok {
		c.stats.hits.Add(1)
		return ref, nil
	}
	ref, _, err := c.cache.GetOrBuild(ctx, cache.Key(tr.key), func(ctx context.Context) (*Computation, int64, error) {
		m, err := c.compile(ctx, tr.program, tr.device, tr.key, tr.donors)
		return m, programCost(tr.program), err
	})
	return ref, err
}

// plugged returns the model that stands for the graph, or nil.
func (tr *Traced) plugged() (*Plug, error) {
	c := tr.s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.plugs) == 0 {
		return nil, nil
	}
	var scalars []scalarParam
	for i, p := range tr.params {
		if p.scalar != nil && !p.seed {
			scalars = append(scalars, scalarParam{i, p.scalar, p.dtype})
		}
	}
	return c.pluggedFor(tr.hash, scalars, tr.device, func() (params, returns []ir.Shape) { return programShapes(tr.program) })
}

// Tracing reports whether one of the tensors was made by the function that is
// being traced with this session.
func (s *Session) Tracing(ts []*Tensor) bool {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	if s.tracing == nil {
		return false
	}
	for _, t := range ts {
		if t.bits&bitTraced != 0 && t.data == nil {
			return true
		}
	}
	return false
}

// Program returns the traced graph.
func (tr *Traced) Program() *graph.Program { return tr.program }

// Call runs the compiled function on inputs of the traced shapes and returns
// its outputs, as placeholders, once the work is scheduled. Pending inputs and
// variables are synced first.
func (tr *Traced) Call(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor) ([]*Tensor, error) {
	s, c := tr.s, tr.s.core
	if err := s.Readable(inputs...); err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.running.Done()
	if err := tr.ready(ctx, inputs); err != nil {
		return nil, err
	}
	ref, err := tr.computation(ctx)
	if err != nil {
		return nil, err
	}
	j := &syncJob{coll: &SyncTensorCollection{Device: tr.device, Hash: tr.hash}, ref: ref}
	defer j.abandon()
	// The lock comes before the parameters are gathered, so that of two calls at
	// once the later sees the variables as the earlier has assigned them.
	start := time.Now()
	if err := s.lockDevices(ctx, []*syncJob{j}); err != nil {
		return nil, err
	}
	c.stage(StageLock, start)
	if err := tr.gather(ctx, j, inputs); err != nil {
		return nil, err
	}
	a := &Async{Device: tr.device, Hash: tr.hash, params: j.params, ready: make(chan struct{}), done: make(chan struct{}), session: s}
	outs := make([]*Tensor, tr.numOut)
	c.mu.Lock()
	for i, id := range tr.program.Returns {
		d := placeholder(tr.program.Shape(id), tr.device, c.nextID.Add(1), a.ready)
		a.outputs = append(a.outputs, d)
		if i < tr.numOut {
			d.escaped = true
			outs[i] = newTensor()
			outs[i].s, outs[i].data, outs[i].step = s, d, s.step
			c.registerTensor(outs[i])
		}
	}
	tr.assign(a, j)
	c.running.Add(1)
	c.mu.Unlock()
	s.schedule(a, j)
	return outs, nil
}

// assign gives the variables their new values; core.mu is held. The old ones die
// where nothing but a variable has them, now or in a Step that is being recorded,
// and are donated if the function reads them: who has the device's lock comes
// before all that will read.
func (tr *Traced) assign(a *Async, j *syncJob) {
	for k, v := range tr.vars {
		old := v.data
		dies := old != nil && old.device == tr.device && old.mayDie() && v.s.scope&bitScoped == 0
		j.vars = append(j.vars, restore{v: v, old: old, new: a.outputs[tr.numOut+k], dies: dies})
	}
	if j.ref.Value().plug == nil {
		for _, d := range tr.donors {
			if r := &j.vars[d.output-tr.numOut]; r.dies && a.params[d.param] == r.old {
				a.donate(d.param)
			}
		}
	}
	for _, r := range j.vars {
		r.v.set(r.new, nil)
	}
}

// ready syncs the inputs and variables that are pending.
func (tr *Traced) ready(ctx context.Context, inputs []*Tensor) error {
	all := append([]*Tensor(nil), inputs...)
	c := tr.s.core
	c.mu.Lock()
	for _, p := range tr.params {
		if p.v != nil && p.v.pend != nil {
			all = append(all, p.v.pend)
		}
	}
	pending := false
	for _, t := range all {
		pending = pending || t.data == nil
	}
	c.mu.Unlock()
	if !pending {
		return nil
	}
	_, err := tr.s.SyncTensors(ctx, all, stepConfig)
	return err
}

// gather finds the parameters' data for one call.
func (tr *Traced) gather(ctx context.Context, j *syncJob, inputs []*Tensor) error {
	c := tr.s.core
	j.params = make([]*Data, len(tr.params))
	c.mu.Lock()
	var seed uint64
	if tr.random {
		// Every call has a stream of its own, apart from the step's.
		tr.s.calls++
		seed = forkSeed(tr.s.rngFor(tr.device).running, ^tr.s.calls)
	}
	for i, p := range tr.params {
		switch {
		case p.input >= 0:
			j.params[i] = inputs[p.input].data
		case p.v != nil:
			j.params[i] = p.v.current()
		case p.data != nil:
			j.params[i] = p.data
		case p.seed:
			j.scalars = append(j.scalars, scalarParam{i, &ir.ScalarLeaf{Int: int64(seed)}, p.dtype})
		default:
			j.scalars = append(j.scalars, scalarParam{i, p.scalar, p.dtype})
		}
		// The device's lock orders this call before steps that overwrite what is
		// there; of another device it does not.
		if d := j.params[i]; d != nil && (p.v == nil || d.device != tr.device) {
			d.escaped = true
		}
	}
	c.mu.Unlock()
	return tr.s.resolveScalars(ctx, j)
}

// DumpBackendComputation returns the text of the computation that a sync of the
// tensors would compile, after the rewrites for their backend.
func (s *Session) DumpBackendComputation(lowered bool, ts ...*Tensor) (*graph.Program, error) {
	if err := s.Readable(ts...); err != nil {
		return nil, err
	}
	s.core.mu.Lock()
	colls := s.collectSyncTensors(ts, stepConfig, nil)
	if len(colls) != 1 {
		s.core.mu.Unlock()
		return nil, errNotOneGraph
	}
	roots, _ := collectRoots(ts, colls[0].Indices)
	po, err := s.runPostOrder(roots)
	if err != nil {
		s.core.mu.Unlock()
		return nil, err
	}
	p, _ := graph.FromPostOrder("step", &po.PostOrder)
	s.core.walker.Release()
	s.core.mu.Unlock()
	if !lowered {
		return p, nil
	}
	return s.lower(p, colls[0].Device)
}
