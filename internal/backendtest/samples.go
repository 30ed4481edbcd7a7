package backendtest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// sample is one small Program with inputs.
type sample struct {
	name   string
	prog   *graph.Program
	inputs [][]byte
}

// maker collects the samples of one op on one dtype, which is that of the
// operands that carry data.
type maker struct {
	op      ir.Op
	dtype   ir.DType
	short   bool
	rng     *rand.Rand
	samples []sample
}

// makers has the sample-makers of primitives that are neither functions of one element nor of two;
// the files samples_*.go fill it in, by family.
var makers = map[string]func(m *maker){}

// makerOf returns the sample-maker of a primitive; nil if it has none.
func makerOf(sp *ir.Spec) func(m *maker) {
	if f := makers[sp.Name]; f != nil {
		return f
	}
	return pointwiseSamples(sp)
}

// samplesOf returns the samples of an op on a dtype, always the same; none if
// the op is not defined on it.
func samplesOf(sp *ir.Spec, d ir.DType, short bool) []sample {
	f := makerOf(sp)
	if f == nil {
		return nil
	}
	h := fnv.New64a()
	fmt.Fprint(h, sp.Name, d)
	m := &maker{op: sp.Op, dtype: d, short: short, rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
	f(m)
	return m.samples
}

// add adds a sample unless the op refuses the dtype.
func (m *maker) add(name string, in []input, build func(b *ir.Builder, x []ir.Value) []ir.Value) {
	p, data, err := record(name, in, build)
	if errors.Is(err, ir.ErrDType) {
		return
	}
	if err != nil {
		panic(fmt.Errorf("backendtest: sample %q of %v: %w", name, m.op, err))
	}
	for i := range p.Instrs {
		if p.Args(&p.Instrs[i]).Decomposition() != nil {
			return // on complex numbers, which backends only move
		}
	}
	m.samples = append(m.samples, sample{name, p, data})
}

// call adds a sample of the op itself: the inputs are its first arguments, and
// rest follows.
func (m *maker) call(name string, in []input, rest ...any) {
	m.add(name, in, func(b *ir.Builder, x []ir.Value) []ir.Value {
		args := make([]any, 0, len(x)+len(rest))
		for _, v := range x {
			args = append(args, v)
		}
		var named []ir.Named
		for _, a := range rest {
			if n, ok := a.(ir.Named); ok {
				named = append(named, n)
			} else {
				args = append(args, a)
			}
		}
		return b.Call(m.op, args, named...)
	})
}

// random returns elements of the maker's dtype.
func (m *maker) random(dims ...int) input { return random(m.rng, m.dtype, dims...) }

// record builds a Program over the inputs; a mistake in building it is returned.
func record(name string, in []input, build func(b *ir.Builder, x []ir.Value) []ir.Value) (p *graph.Program, data [][]byte, err error) {
	params := make([]graph.Param, len(in))
	for i, x := range in {
		params[i] = graph.Param{Name: fmt.Sprintf("in%d", i), Shape: x.shape}
		data = append(data, x.data)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ir.OpError:
			err = r
		default:
			panic(r)
		}
	}()
	b := ir.Builder{Lines: ir.LinesOff}
	leaves := graph.NewParams(params)
	return graph.FromValues(name, leaves, build(&b, leaves)), data, nil
}
