package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
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
func symbolsOf(shapes []map[int]Dim, inputs []ir.Shape) (list []symbol, err error) {
	if len(shapes) > len(inputs) {
		return nil, fmt.Errorf("%w: DynamicShapes has %d inputs, there are %d", ir.ErrArg, len(shapes), len(inputs))
	}
	for i, dims := range shapes {
		for d, dim := range dims {
			if d < 0 || d >= inputs[i].Rank() {
				return nil, fmt.Errorf("%w: input %d has no dimension %d to vary", ir.ErrArg, i, d)
			}
			if size := inputs[i].Dim(d); dim.Name == "" || dim.Min < 1 || dim.Min > size || size > dim.Max {
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

// variant is a program for some values of the symbols.
type variant struct {
	program   *graph.Program
	inputs    []ir.Shape
	recording *executor.Recording // of a function, or nil
}

// variants makes the programs of a model, whose sizes may vary.
type variants struct {
	symbols []symbol
	at      func(inputs []ir.Shape) (variant, error) // for inputs of other sizes
	model   func(v *variant) (*model, error)         // whose parameters are known
	inputs  []ir.Shape                               // an example
	device  string                                   // write reads it of the Options
}

// resized returns the variant where symbols have other values.
func (vs *variants) resized(value func(s *symbol, i int) int) (variant, error) {
	inputs := slices.Clone(vs.inputs)
	for k := range vs.symbols {
		s := &vs.symbols[k]
		for _, use := range s.uses {
			dims := inputs[use[0]].Dims()
			dims[use[1]] = value(s, k)
			inputs[use[0]] = inputs[use[0]].WithDims(dims...)
		}
	}
	return vs.at(inputs)
}

// plan plans the program. Where sizes vary that is done for some of them, and what differs between the
// plans is found out to be what function of the sizes.
func (vs *variants) plan(ctx context.Context, o *Options) (e *encoder, first error) {
	if len(vs.symbols) == 0 {
		return vs.planFrom(ctx, o)
	}
	for n := range origins {
		for i := range vs.symbols {
			vs.symbols[i].origin = max(vs.symbols[i].Max, samples+1) + n
		}
		e, err := vs.planFrom(ctx, o)
		if err == nil {
			return e, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// planFrom is plan for one choice of origins.
func (vs *variants) planFrom(ctx context.Context, o *Options) (*encoder, error) {
	origin, err := vs.resized(func(s *symbol, _ int) int { return s.origin })
	if err != nil {
		return nil, err
	}
	m, err := vs.model(&origin)
	if err != nil {
		return nil, err
	}
	m.symbols, m.device = vs.symbols, vs.device
	models, programs := []*model{m}, []*graph.Program{origin.program}
	if len(vs.symbols) > 0 {
		least, err := vs.resized(func(s *symbol, _ int) int { return s.Min })
		if err == nil {
			err = origin.same(&least)
		}
		if err != nil {
			return nil, fmt.Errorf("for the smallest sizes: %w", err)
		}
	}
	for n := 1; n < power(samples, len(vs.symbols)); n++ {
		at, err := vs.resized(func(s *symbol, i int) int { return s.origin - n/power(samples, i)%samples })
		if err == nil {
			err = origin.same(&at)
		}
		if err != nil {
			return nil, err
		}
		models, programs = append(models, m.withInputs(at.inputs)), append(programs, at.program)
	}
	return plan(ctx, models, programs, o)
}

func power(n, e int) int {
	p := 1
	for range e {
		p *= n
	}
	return p
}

// withInputs returns the model, which has not been described yet, for inputs of other sizes.
func (m *model) withInputs(inputs []ir.Shape) *model {
	n := *m
	n.inputs, n.constants, n.assigned = slices.Clone(m.inputs), slices.Clone(m.constants), slices.Clone(m.assigned)
	for i, s := range inputs {
		n.inputs[i].shape = s
	}
	return &n
}

var errVaries = errors.New("what is computed depends on sizes that vary")

// same returns an error unless both are the same ops on the same values for other sizes.
func (v *variant) same(w *variant) error {
	if len(v.program.Instrs) != len(w.program.Instrs) || len(v.program.Params) != len(w.program.Params) {
		return fmt.Errorf("%w: %w: %d ops, for other sizes %d", ir.ErrArg, errVaries, len(v.program.Instrs), len(w.program.Instrs))
	}
	for i := range v.program.Instrs {
		if x, y := &v.program.Instrs[i], &w.program.Instrs[i]; x.Op != y.Op || !slices.Equal(x.Args, y.Args) {
			return fmt.Errorf("%w: %w: %v at %s, for other sizes %v", ir.ErrArg, errVaries, x.Called(), ir.FormatLine(x.Line), y.Called())
		}
	}
	if v.recording == nil {
		return nil
	}
	if a, b := v.recording, w.recording; a.Results != b.Results || !slices.Equal(a.Assigned, b.Assigned) {
		return fmt.Errorf("%w: %w: it has %d results, for other sizes %d, or assigns others", ir.ErrArg, errVaries, a.Results, b.Results)
	}
	for i := range v.recording.Params {
		x, y := v.recording.Params[i], w.recording.Params[i]
		if x.Input != y.Input || x.Variable != y.Variable || x.Seed != y.Seed || x.Number != y.Number || !bytes.Equal(x.Value, y.Value) {
			return fmt.Errorf("%w: %w: a number or a tensor that it captures is another", ir.ErrArg, errVaries)
		}
	}
	return nil
}

type function = func(in ...*loris.Tensor) []*loris.Tensor

// recordAt records fn on inputs of other sizes.
func recordAt(ctx context.Context, fn function, inputs []*loris.Tensor, shapes []ir.Shape) (v variant, err error) {
	inputs = slices.Clone(inputs)
	for i, t := range inputs {
		if s := shapes[i]; s != t.Shape() {
			inputs[i] = t.Session().With(loris.On(t.Device()), loris.As(s.DType())).Zeros(s.Dims()...)
			defer inputs[i].Discard() // only its shape counts
		}
	}
	v.inputs = shapes
	if v.recording, err = record(ctx, fn, inputs); err == nil {
		v.program = v.recording.Program
	}
	return v, err
}

// programAt infers the shapes of a Program again, for inputs of other sizes: the parameters whose
// names are those of no constant.
func programAt(p *graph.Program, constants map[string]aoti.ConstantValue, inputs []ir.Shape) (v variant, err error) {
	params, n := slices.Clone(p.Params), 0
	for i := range params {
		if _, ok := constants[params[i].Name]; !ok {
			params[i].Shape = inputs[n]
			n++
		}
	}
	v.inputs, v.program = inputs, p
	if slices.EqualFunc(params, p.Params, func(a, b graph.Param) bool { return a.Shape == b.Shape }) {
		return v, nil
	}
	err = loris.Try(func() {
		leaves := graph.NewParams(params)
		v.program = graph.FromValues(p.Name, leaves, p.Build(&ir.Builder{Lines: ir.LinesOff}, leaves))
	})
	return v, err
}
