package parallel

import (
	"fmt"
	"iter"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/optim"
)

// Optimizer is an optimiser whose state, gradients and work are divided among the ranks: each keeps and
// updates its part of every parameter, and all get the parameters. It computes the bits of the optimiser
// that it divides, on any number of ranks if the group has shards (dist.WithShards).
type Optimizer struct {
	group  *dist.Group
	names  []string
	params []*loris.Variable
	parts  []*loris.Variable
	inner  *optim.Optimizer
}

// NewOptimizer divides the optimiser that build makes. build gets this rank's parts of the parameters, under
// their names and of one dimension: Group and DecayOnly decide by names. The algorithm must compute element
// by element, as all of optim but Adafactor do; another one panics with a *loris.OpError.
//
//	opt := parallel.NewOptimizer(world, model.Params(), func(parts iter.Seq2[string, *loris.Variable]) *optim.Optimizer {
//		return optim.NewAdamW(parts, 1e-3)
//	})
func NewOptimizer(g *dist.Group, params iter.Seq2[string, *loris.Variable], build func(parts iter.Seq2[string, *loris.Variable]) *optim.Optimizer) *Optimizer {
	o := &Optimizer{group: g}
	for name, v := range params {
		o.names = append(o.names, name)
		o.params = append(o.params, v)
		o.parts = append(o.parts, loris.NewVariable(g.Part(v.Value()).Discard()))
	}
	if o.inner = build(named(o.names, o.parts)); !o.inner.Elementwise() {
		panic(ir.NewOpError("parallel.NewOptimizer", loris.ErrArg, nil, "the algorithm does not compute element by element, so that parts of parameters have other steps than these"))
	}
	return o
}

func named(names []string, vs []*loris.Variable) iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for i, name := range names {
			if !yield(name, vs[i]) {
				return
			}
		}
	}
}

// Inner returns the optimiser of this rank's parts, for its rate, schedule and number of steps.
func (o *Optimizer) Inner() *optim.Optimizer { return o.inner }

// Step records a step along the means of gradients. It takes those of each of this rank's shards, one for
// each parameter in order, as dist.Group.Average does.
func (o *Optimizer) Step(shards ...[]*loris.Tensor) {
	for k, grads := range shards {
		if len(grads) != len(o.params) {
			panic(ir.NewOpError("parallel.Step", loris.ErrArg, nil, "shard %d has %d gradients for %d parameters", k, len(grads), len(o.params)))
		}
		for i, x := range grads {
			if v := o.params[i]; x == nil || !x.Shape().SameDims(v.Shape()) {
				panic(ir.NewOpError("parallel.Step", loris.ErrShape, nil, "gradient %d of shard %d is %v, the parameter %v", i, k, shapeOf(x), v.Shape()))
			}
		}
	}
	for i, v := range o.parts { // the parameters may have been loaded since
		v.Assign(o.group.Part(o.params[i].Value()))
	}
	o.inner.Step(o.group.AverageParts(shards...))
	parts, dims := make([]*loris.Tensor, len(o.parts)), make([][]int, len(o.parts))
	for i, v := range o.parts {
		parts[i], dims[i] = v.Value(), o.params[i].Shape().Dims()
	}
	for i, x := range o.group.Whole(parts, dims) {
		o.params[i].Assign(x)
	}
}

func shapeOf(x *loris.Tensor) string {
	if x == nil {
		return "missing"
	}
	return fmt.Sprint(x.Shape())
}

// Param is a parameter of which each rank keeps its part alone. Value gathers it where it is used, and the
// memory of what was gathered is free after its last use in the step.
type Param struct {
	group *dist.Group
	part  *loris.Variable
	dims  []int
}

// NewParam divides a tensor, the initial value, which is the same on all ranks.
func NewParam(g *dist.Group, whole *loris.Tensor) *Param {
	return &Param{g, loris.NewVariable(g.Part(whole).Discard()), whole.Dims()}
}

// Value records the whole parameter.
func (p *Param) Value() *loris.Tensor {
	return p.group.Whole([]*loris.Tensor{p.part.Value()}, [][]int{p.dims})[0]
}

// Part returns this rank's part, which is what an optimiser updates. A gradient with respect to it is that
// of the sum of the losses of all ranks: where the loss is a mean over a rank's part of the batch, divide it
// by the number of ranks. Sums over ranks depend in their bits on how many there are.
func (p *Param) Part() *loris.Variable { return p.part }
