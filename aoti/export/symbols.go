package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/internal/elfwrite"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/ir"
)

// symbol is a size that varies. Words of the plan are written as they are at its origin.
type symbol struct {
	Dim
	origin int
	uses   [][2]int // inputs and dimensions
}

// maxSymbols is LX_MAX_SYMBOLS of the glue.
const maxSymbols = 2

// samples is for how many values of each symbol a function is recorded: three say what a word is
// everywhere, if it is a polynomial of at most the second degree, and the fourth whether it is.
const samples = 4

// origins is how many origins are tried: where a size is by chance that of something else, its plan
// may be of another form.
const origins = 3

// symbolAt returns the symbol of a dimension of an input, or nil.
func (m *model) symbolAt(input, dim int) *symbol {
	for i := range m.symbols {
		if slices.Contains(m.symbols[i].uses, [2]int{input, dim}) {
			return &m.symbols[i]
		}
	}
	return nil
}

// symbolsOf reads Options.DynamicShapes.
func symbolsOf(shapes []map[int]Dim, inputs []*loris.Tensor) (list []symbol, err error) {
	if len(shapes) > len(inputs) {
		return nil, fmt.Errorf("%w: DynamicShapes has %d inputs, the function %d", ir.ErrArg, len(shapes), len(inputs))
	}
	for i, dims := range shapes {
		for d, dim := range dims {
			if inputs[i] == nil || d < 0 || d >= inputs[i].Shape().Rank() {
				return nil, fmt.Errorf("%w: input %d has no dimension %d to vary", ir.ErrArg, i, d)
			}
			if size := inputs[i].Shape().Dim(d); dim.Name == "" || dim.Min < 1 || dim.Min > size || size > dim.Max {
				return nil, fmt.Errorf("%w: dimension %d of input %d is %d, and is to vary as %+v", ir.ErrArg, d, i, size, dim)
			}
			n := slices.IndexFunc(list, func(s symbol) bool { return s.Name == dim.Name })
			if n < 0 {
				n = len(list)
				list = append(list, symbol{Dim: dim})
			}
			if list[n].Dim != dim {
				return nil, fmt.Errorf("%w: %+v and %+v have one name", ir.ErrArg, list[n].Dim, dim)
			}
			list[n].uses = append(list[n].uses, [2]int{i, d})
		}
	}
	if len(list) > maxSymbols {
		return nil, fmt.Errorf("%w: %d sizes vary, at most %d may", ir.ErrArg, len(list), maxSymbols)
	}
	slices.SortFunc(list, func(a, b symbol) int { return slices.Compare(a.uses[0][:], b.uses[0][:]) }) // maps have no order
	return list, nil
}

type function = func(in ...*loris.Tensor) []*loris.Tensor

// dynamic links the library of a function some of whose sizes vary. The function is recorded for some
// sizes, and what differs between the plans is found out to be what function of the sizes.
func dynamic(ctx context.Context, fn function, inputs []*loris.Tensor, symbols []symbol, o *Options) (m *model, lib *elfwrite.Library, first error) {
	for n := range origins {
		for i := range symbols {
			symbols[i].origin = max(symbols[i].Max, samples+1) + n
		}
		m, lib, err := dynamicFrom(ctx, fn, inputs, symbols, o)
		if err == nil {
			return m, lib, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil, first
}

// dynamicFrom is dynamic for one choice of origins.
func dynamicFrom(ctx context.Context, fn function, inputs []*loris.Tensor, symbols []symbol, o *Options) (*model, *elfwrite.Library, error) {
	origin, err := recordAt(ctx, fn, inputs, symbols, func(s *symbol, _ int) int { return s.origin })
	if err != nil {
		return nil, nil, err
	}
	m := &model{symbols: symbols}
	if err := m.parametersOf(ctx, origin.recording, origin.inputs, o); err != nil {
		return nil, nil, err
	}
	if err := m.assignAll(o.Assign, origin.recording.Results); err != nil {
		return nil, nil, err
	}
	models, programs := []*model{m}, []*graph.Program{origin.recording.Program}
	least, err := recordAt(ctx, fn, inputs, symbols, func(s *symbol, _ int) int { return s.Min })
	if err == nil {
		err = sameRecording(origin.recording, least.recording)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("for the smallest sizes: %w", err)
	}
	for n := 1; n < power(samples, len(symbols)); n++ {
		at, err := recordAt(ctx, fn, inputs, symbols, func(s *symbol, i int) int { return s.origin - n/power(samples, i)%samples })
		if err == nil {
			err = sameRecording(origin.recording, at.recording)
		}
		if err != nil {
			return nil, nil, err
		}
		models, programs = append(models, m.withInputs(at.inputs)), append(programs, at.recording.Program)
	}
	lib, err := link(models, programs, o)
	return m, lib, err
}

func power(n, e int) int {
	p := 1
	for range e {
		p *= n
	}
	return p
}

// withInputs returns the model, which has not been described yet, for inputs of other sizes.
func (m *model) withInputs(inputs []*loris.Tensor) *model {
	n := *m
	n.inputs, n.constants, n.assigned = slices.Clone(m.inputs), slices.Clone(m.constants), slices.Clone(m.assigned)
	for i, t := range inputs {
		n.inputs[i].shape = t.Shape()
	}
	return &n
}

// recorded is a function recorded on inputs of some sizes.
type recorded struct {
	recording *executor.Recording
	inputs    []*loris.Tensor
}

// recordAt records fn on inputs where symbols have other values.
func recordAt(ctx context.Context, fn function, inputs []*loris.Tensor, symbols []symbol, value func(s *symbol, i int) int) (out recorded, err error) {
	out.inputs = slices.Clone(inputs)
	for i, t := range inputs {
		if t == nil {
			continue // which record tells
		}
		dims := t.Shape().Dims()
		for k := range symbols {
			for _, use := range symbols[k].uses {
				if use[0] == i {
					dims[use[1]] = value(&symbols[k], k)
				}
			}
		}
		if !slices.Equal(dims, t.Shape().Dims()) {
			out.inputs[i] = t.Session().With(loris.On(t.Device()), loris.As(t.Shape().DType())).Zeros(dims...)
			defer out.inputs[i].Discard() // only its shape counts
		}
	}
	out.recording, err = record(ctx, fn, out.inputs)
	return out, err
}

var errVaries = errors.New("what the function computes depends on sizes that vary")

// sameRecording reports whether a function recorded the same ops on the same values for other sizes.
func sameRecording(a, b *executor.Recording) error {
	if len(a.Program.Instrs) != len(b.Program.Instrs) || len(a.Params) != len(b.Params) || a.Results != b.Results || !slices.Equal(a.Assigned, b.Assigned) {
		return fmt.Errorf("%w: %w: %d ops, for other sizes %d", ir.ErrArg, errVaries, len(a.Program.Instrs), len(b.Program.Instrs))
	}
	for i := range a.Program.Instrs {
		if x, y := &a.Program.Instrs[i], &b.Program.Instrs[i]; x.Op != y.Op || !slices.Equal(x.Args, y.Args) {
			return fmt.Errorf("%w: %w: %v at %s, for other sizes %v", ir.ErrArg, errVaries, x.Called(), ir.FormatLine(x.Line), y.Called())
		}
	}
	for i := range a.Params {
		x, y := a.Params[i], b.Params[i]
		if x.Input != y.Input || x.Variable != y.Variable || x.Seed != y.Seed || x.Number != y.Number || !bytes.Equal(x.Value, y.Value) {
			return fmt.Errorf("%w: %w: a number or a tensor that it captures is another", ir.ErrArg, errVaries)
		}
	}
	return nil
}
