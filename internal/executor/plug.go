package executor

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/modelcall"
	"github.com/loris-ml/loris/report"
)

// plugCost is the cost of a plugged model's Computation in the cache: small, but enough for the
// cache to drop it some time after it was unplugged.
const plugCost = 4096

// Plug substitutes a model for the computation of a graph: a sync that meets the graph runs the
// model and compiles nothing.
type Plug struct {
	c      *core
	hash   ir.Hash
	device ir.Device // the zero Device until a graph that is known by its hash alone is met
	model  backend.Callable
	key    cache.Key // of its Computation
	runs   atomic.Int64

	// order is, for each input of the model, the parameter of the graph that it takes; nil means
	// all parameters in order.
	order []int
	// numbers are parameters that the model does not take: the model replaces the graph only where
	// they have these values.
	numbers []number
	// unchecked says that the first sync that meets the graph must compare its shapes with the
	// model's; guarded by core.mu.
	unchecked bool
}

// number is the value of a parameter that is a plain number.
type number struct {
	param int
	bits  uint64
	dtype ir.DType
}

// PlugFunc plugs a model for the graph that fn records on the inputs. The model takes the inputs of
// fn, all of which fn must use. It may take the other parameters of the graph (tensors, variables,
// numbers) after them, in order; otherwise it takes none of them. If it does not, it has weights of
// its own, and a graph with other numbers than those recorded is compiled.
func (s *Session) PlugFunc(ctx context.Context, inputs []*Tensor, newTensor func() *Tensor, fn func(in []*Tensor) ([]*Tensor, error), m backend.Callable) (*Plug, error) {
	tr, err := s.record(ctx, inputs, newTensor, fn, false)
	if err != nil {
		return nil, err
	}
	p := &Plug{hash: tr.hash, device: tr.device, model: m}
	order := make([]int, len(inputs))
	for i := range order {
		order[i] = -1
	}
	var rest []int
	var numbers []number
	for i, q := range tr.params {
		switch {
		case q.input >= 0:
			order[q.input] = i
			continue
		case q.scalar != nil && !q.seed:
			numbers = append(numbers, number{i, scalarBits(q.scalar, q.dtype), q.dtype})
		}
		rest = append(rest, i)
	}
	for i, k := range order {
		if k < 0 {
			return nil, fmt.Errorf("loris: plug: %w: input %d of the function is not used", ir.ErrArg, i)
		}
	}
	switch takes := len(m.Spec().Inputs); {
	case takes == len(order) && tr.random:
		return nil, fmt.Errorf("loris: plug: %w: the graph draws random numbers and the model does not take their seed", ir.ErrArg)
	case takes == len(order):
		p.numbers = numbers
	case takes == len(order)+len(rest):
		order = append(order, rest...)
	default:
		return nil, fmt.Errorf("loris: plug: %w: the model takes %d inputs, the function has %d and its graph %d parameters",
			ir.ErrArg, takes, len(order), len(tr.params))
	}
	p.order = order
	return s.core.plug(p, tr.program)
}

// PlugProgram plugs a model for a Program on a device. The model takes the Program's parameters,
// all of which the Program must use.
func (s *Session) PlugProgram(prog *graph.Program, d ir.Device, m backend.Callable) (*Plug, error) {
	b := ir.Builder{Lines: ir.LinesOff}
	leaves := make([]ir.Value, len(prog.Params))
	for i, q := range prog.Params {
		leaves[i] = ir.NewLeaf(&graph.ParamLeaf{Index: i, Name: q.Name}, q.Shape, d).Out(0)
	}
	var w graph.Walker
	po := w.Walk(prog.Build(&b, leaves))
	p := &Plug{hash: w.Hash(&po, d), device: d, model: m, order: make([]int, len(leaves))}
	met, nodes := graph.FromPostOrder("plugged", &po)
	if len(nodes) != len(leaves) {
		return nil, fmt.Errorf("loris: plug: %w: %d of the %d parameters of the program are used", ir.ErrArg, len(nodes), len(leaves))
	}
	for i, n := range nodes {
		p.order[n.Leaf().(*graph.ParamLeaf).Index] = i
	}
	return s.core.plug(p, met)
}

// PlugHash plugs a model for the graph of a hash (GraphHash). The model takes the graph's
// parameters in post-order. Its shapes are compared with those of the graph now, if the computation
// is in the cache, or by the first sync that meets the graph, which fails if they differ.
func (s *Session) PlugHash(h ir.Hash, m backend.Callable) (*Plug, error) {
	p := &Plug{hash: h, model: m, unchecked: true}
	ref, ok := s.core.cache.Get(cache.Key(h))
	if !ok {
		return s.core.plug(p, nil)
	}
	defer ref.Release()
	p.device, p.unchecked = ref.Value().Device, false
	return s.core.plug(p, ref.Value().program)
}

// plug compares a model with the graph, unless that is nil, and registers it.
func (c *core) plug(p *Plug, prog *graph.Program) (*Plug, error) {
	if prog != nil {
		if err := p.check(programShapes(prog)); err != nil {
			return nil, err
		}
	}
	b := binary.LittleEndian.AppendUint64(p.hash.Append([]byte("plug")), c.nextID.Add(1))
	p.c, p.key = c, cache.Key(ir.HashBytes(b))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, ErrClosed
	}
	if c.plugs[p.hash] != nil {
		return nil, fmt.Errorf("loris: plug: %w: the graph %v has a model already", ir.ErrArg, p.hash)
	}
	if c.plugs == nil {
		c.plugs = map[ir.Hash]*Plug{}
	}
	c.plugs[p.hash] = p
	c.plugged.Add(1)
	return p, nil
}

func programShapes(p *graph.Program) (params, returns []ir.Shape) {
	for _, id := range p.Returns {
		returns = append(returns, p.Shape(id))
	}
	return p.Shapes[:len(p.Params)], returns
}

// check compares the graph's shapes with what the model's Spec says.
func (p *Plug) check(params, returns []ir.Shape) error {
	spec := p.model.Spec()
	in := params
	if p.order != nil {
		in = make([]ir.Shape, len(p.order))
		for i, k := range p.order {
			in[i] = params[k]
		}
	}
	if err := modelcall.Fit(spec.Inputs, in); err != nil {
		return fmt.Errorf("loris: plug: %w", err)
	}
	if len(spec.Outputs) != len(returns) {
		return fmt.Errorf("loris: plug: %w: the model returns %d outputs, the graph %d", ir.ErrArg, len(spec.Outputs), len(returns))
	}
	for i, o := range spec.Outputs {
		if o.Shape.DType().Valid() && o.Shape != returns[i] {
			return fmt.Errorf("loris: plug: %w: output %d (%s) of the model is %v, the graph's is %v", ir.ErrShape, i, o.Name, o.Shape, returns[i])
		}
	}
	return nil
}

// Hash returns the hash of the graph.
func (p *Plug) Hash() ir.Hash { return p.hash }

// Unplug lets the graph be compiled again. Runs in flight go on.
// Calling it again does nothing.
func (p *Plug) Unplug() {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.c.plugs[p.hash] == p {
		delete(p.c.plugs, p.hash)
		p.c.plugged.Add(-1)
	}
}

// findPlug returns the model for a graph with these numbers, or nil; core.mu is held.
func (c *core) findPlug(h ir.Hash, scalars []scalarParam) *Plug {
	p := c.plugs[h]
	if p == nil {
		return nil
	}
	for _, want := range p.numbers {
		for _, sp := range scalars {
			if sp.index == want.param && scalarBits(sp.leaf, want.dtype) != want.bits {
				return nil
			}
		}
	}
	return p
}

// pluggedFor returns the model for a graph with these numbers, or nil, and compares the shapes of a
// graph that is met for the first time. core.mu is not held.
func (c *core) pluggedFor(h ir.Hash, scalars []scalarParam, d ir.Device, shapes func() (params, returns []ir.Shape)) (*Plug, error) {
	if c.plugged.Load() == 0 {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.findPlug(h, scalars)
	if p == nil || !p.unchecked {
		return p, nil
	}
	if err := p.check(shapes()); err != nil {
		return nil, err
	}
	p.unchecked, p.device = false, d
	return p, nil
}

// shapes returns the shapes of the parameters and of the roots.
func (po *PostOrderData) shapes() (params, returns []ir.Shape) {
	for _, n := range po.Nodes {
		if n.IsLeaf() {
			params = append(params, n.Shapes()[0])
		}
	}
	for _, r := range po.Roots {
		returns = append(returns, r.Shape())
	}
	return params, returns
}

// computation returns the Computation that runs the model.
func (p *Plug) computation(ctx context.Context, d ir.Device) (*cache.Ref[*Computation], error) {
	ref, _, err := p.c.getOrBuild(ctx, p.key, func(context.Context) (*Computation, int64, error) {
		return &Computation{Device: d, Hash: p.hash, plug: p, pace: new(pace)}, plugCost, nil
	})
	if err == nil {
		p.c.stats.hits.Add(1)
	}
	return ref, err
}

// run runs the model, checks the shapes of its outputs and copies them to the device.
func (p *Plug) run(ctx context.Context, in []backend.Buffer, want []*Data, d ir.Device) ([]backend.Buffer, error) {
	args := in
	if p.order != nil {
		args = make([]backend.Buffer, len(p.order))
		for i, k := range p.order {
			args[i] = in[k]
		}
	}
	p.runs.Add(1)
	outs, err := p.model.Call(ctx, args, nil)
	if err != nil {
		return nil, fmt.Errorf("plugged model: %w", err)
	}
	if err := p.accept(ctx, args, outs, want, d); err != nil {
		for _, b := range outs {
			b.Release()
		}
		return nil, fmt.Errorf("plugged model: %w", err)
	}
	return outs, nil
}

// accept checks the outputs. It copies those that are on another device, and inputs that the model
// returned, since each value of the graph needs data of its own.
func (p *Plug) accept(ctx context.Context, in, outs []backend.Buffer, want []*Data, d ir.Device) error {
	if len(outs) != len(want) {
		return fmt.Errorf("%w: it returned %d outputs, the graph has %d", ir.ErrArg, len(outs), len(want))
	}
	for i, b := range outs {
		if b.Shape() != want[i].shape {
			return fmt.Errorf("%w: output %d is %v, the graph's is %v", ir.ErrShape, i, b.Shape(), want[i].shape)
		}
		if b.Device() == d && !slices.Contains(in, b) {
			continue
		}
		be, err := backend.For(d)
		if err != nil {
			return err
		}
		data, err := b.Bytes(ctx)
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		moved, err := be.Upload(ctx, b.Shape(), d, data)
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		outs[i] = moved
		b.Release()
	}
	return nil
}

// pluggedGraphs lists the plugs by hash; core.mu is held.
func (c *core) pluggedGraphs() []report.Plugged {
	var out []report.Plugged
	for _, p := range c.plugs {
		out = append(out, report.Plugged{Hash: p.hash, Device: p.device, Model: fmt.Sprintf("%T", p.model), Runs: p.runs.Load()})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Hash.String() < out[j].Hash.String() })
	return out
}
