package loris

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Graph names the graph that a model computes: see GraphOf, GraphOfProgram, GraphOfHash.
type Graph struct {
	fn      func(in ...*Tensor) []*Tensor
	inputs  []*Tensor
	program *graph.Program
	hash    Hash
}

// GraphOf is the graph that fn records on inputs of these shapes and devices. fn is called
// once, on placeholders, as by Compile.
func GraphOf(fn func(in ...*Tensor) []*Tensor, inputs ...*Tensor) Graph {
	return Graph{fn: fn, inputs: inputs}
}

// GraphOfProgram is the graph of a Program on the session's device. Its numbers are
// parameters, as in the text of Session.Dump.
func GraphOfProgram(p *graph.Program) Graph { return Graph{program: p} }

// GraphOfHash is the graph of a hash, as Session.GraphHash returns it.
func GraphOfHash(h Hash) Graph { return Graph{hash: h} }

// Plug is a model that Session.Plug substituted for the compiled computation of a graph.
// Unplug removes it.
type Plug = executor.Plug

// Plug substitutes a model for the compiled computation of a graph, for the session and
// its forks: a sync of that graph, or a call of a Function that has it, runs the model and
// compiles nothing. Report says which graphs run on models, and how often. Inputs are not
// donated to a model.
//
// For GraphOf the model takes the inputs of the function and returns its results, followed
// by the values of the variables that it assigns. After the inputs it takes either all
// other parameters of the graph in order (tensors and variables that the function uses,
// and numbers) or none of them: then it has weights of its own, and is substituted only
// where the numbers are those recorded. For a Program it takes the parameters, for a hash
// the parameters in post-order.
//
// Plug compares the Spec of the model with the graph; for the hash of a graph that is not
// in the cache, the first sync of the graph does. It is an error wrapping ErrArg, ErrShape
// or ErrDType if they do not fit, or if the graph has a model already.
func (s *Session) Plug(ctx context.Context, g Graph, m Model) (*Plug, error) {
	if err := ir.CheckContext("plug", ctx); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("loris: plug: %w: the model is nil", ErrArg)
	}
	switch {
	case g.fn != nil:
		if _, err := sessionOfAll(g.inputs); err != nil {
			return nil, err
		}
		return s.ex().PlugFunc(ctx, handles(g.inputs), newTensor, tried(g.fn), m)
	case g.program != nil:
		return s.ex().PlugProgram(g.program, s.Device(), m)
	case g.hash != (Hash{}):
		return s.ex().PlugHash(g.hash, m)
	}
	return nil, fmt.Errorf("loris: plug: %w: no graph is given", ErrArg)
}

// tried returns fn on the executor's tensors, with its mistakes as errors.
func tried(fn func(in ...*Tensor) []*Tensor) func([]*executor.Tensor) ([]*executor.Tensor, error) {
	return func(in []*executor.Tensor) (outs []*executor.Tensor, err error) {
		err = Try(func() {
			ts := fn(wrapAll(in)...)
			for i, o := range ts {
				if o == nil {
					panic(ir.NewOpError("compile", ErrArg, nil, "output %d of the function is nil", i))
				}
			}
			outs = handles(ts)
		})
		return outs, err
	}
}
