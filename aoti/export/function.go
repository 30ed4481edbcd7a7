package export

import (
	"context"
	"fmt"
	"io"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Function writes a package of what fn records on inputs, of which only shapes and dtypes count. The
// variables that fn uses become the model's constants, with their present values: those of
// Options.Module under their names there, others, and tensors that fn captures, as "constant0",
// "constant1" and so on. Numbers stay what they are. Options.Constants must be empty.
//
// fn is called on placeholders, as by loris.Compile, in the session of the inputs. Layers that behave
// differently in training do so in the package, too: see nn.Module.SetTraining. It is an error
// wrapping ir.ErrArg if fn asks for numbers at each call (loris.ScalarFunc); see Program for others.
// Variables that fn assigns are state of the package: each run goes on with what the one before left.
// Random numbers come from the generator of the process that runs the package (torch.manual_seed), anew
// in each run. Function blocks until the values are there.
func Function(ctx context.Context, w io.Writer, fn func(in ...*loris.Tensor) []*loris.Tensor, inputs []*loris.Tensor, o Options) error {
	if err := ir.CheckContext("export", ctx); err != nil {
		return err
	}
	if len(o.Constants) > 0 {
		return fmt.Errorf("export: %w: the constants of a function are its variables", ir.ErrArg)
	}
	shapes := make([]ir.Shape, len(inputs))
	for i, t := range inputs {
		if t == nil {
			return fmt.Errorf("export: %w: input %d is nil", ir.ErrArg, i)
		}
		shapes[i] = t.Shape()
	}
	symbols, err := symbolsOf(o.DynamicShapes, shapes)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return (&variants{
		symbols: symbols, inputs: shapes,
		at:    func(shapes []ir.Shape) (variant, error) { return recordAt(ctx, fn, inputs, shapes) },
		model: func(v *variant) (*model, error) { return modelOf(ctx, v, &o) },
	}).write(ctx, w, &o)
}

// record records fn.
func record(ctx context.Context, fn func(in ...*loris.Tensor) []*loris.Tensor, inputs []*loris.Tensor) (*executor.Recording, error) {
	s := loris.Default()
	handles := make([]*executor.Tensor, len(inputs))
	for i, t := range inputs {
		s, handles[i] = t.Session(), (*executor.Tensor)(t)
	}
	r, err := (*executor.Session)(s).Record(ctx, handles, func() *executor.Tensor { return new(executor.Tensor) }, func(in []*executor.Tensor) (outs []*executor.Tensor, err error) {
		given := make([]*loris.Tensor, len(in))
		for i, t := range in {
			given[i] = (*loris.Tensor)(t)
		}
		err = loris.Try(func() {
			for _, t := range fn(given...) {
				outs = append(outs, (*executor.Tensor)(t))
			}
		})
		return outs, err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// modelOf returns the model of a recording with its parameters.
func modelOf(ctx context.Context, v *variant, o *Options) (*model, error) {
	m := &model{}
	for i, s := range v.inputs {
		m.inputs = append(m.inputs, m.named(fmt.Sprintf("input%d", i), s, nil))
	}
	if err := m.parametersOf(ctx, v.recording, o); err != nil {
		return nil, err
	}
	return m, m.assignAll(o.Assign, v.recording.Results)
}

// parametersOf says what the parameters of a recording are. Inputs keep the places that they have in
// the call, used or not.
func (m *model) parametersOf(ctx context.Context, r *executor.Recording, o *Options) error {
	names := map[*executor.Variable]string{}
	if o.Module != nil {
		for name, v := range o.Module.Params() {
			names[(*executor.Variable)(v)] = name
		}
		for name, v := range o.Module.Buffers() {
			names[(*executor.Variable)(v)] = name
		}
	}
	unnamed := 0
	nameOf := func(v *executor.Variable) string {
		if name, ok := names[v]; ok && v != nil {
			return name
		}
		unnamed++
		return fmt.Sprintf("constant%d", unnamed-1)
	}
	places := map[*executor.Variable]source{}
	for i, p := range r.Params {
		s := r.Program.Params[i].Shape
		switch {
		case p.Input >= 0:
			m.sources = append(m.sources, source{fromInput, p.Input})
			continue
		case p.Seed:
			m.sources = append(m.sources, source{kind: fromGenerator})
			continue
		case p.Number:
			m.addNumber(p.Value)
			continue
		}
		name, data, err := nameOf(p.Variable), p.Value, error(nil)
		if p.Variable != nil {
			if data, err = m.valueOf(ctx, name, p.Variable); err != nil {
				return err
			}
		}
		m.addConstant(name, s, data)
		places[p.Variable] = m.sources[len(m.sources)-1]
	}
	for i, v := range r.Assigned {
		to, ok := places[v]
		if !ok { // the function does not read it
			name := nameOf(v)
			data, err := m.valueOf(ctx, name, v)
			if err != nil {
				return err
			}
			to = source{fromConstant, len(m.constants)}
			m.constants = append(m.constants, m.named(name, (*loris.Variable)(v).Value().Shape(), data))
		}
		if err := m.assign(to, r.Results+i); err != nil {
			return err
		}
	}
	return nil
}

// valueOf returns the memory of a variable's present value, which stays as it is while the model is.
func (m *model) valueOf(ctx context.Context, name string, v *executor.Variable) ([]byte, error) {
	t := (*loris.Variable)(v).Value()
	data, err := (*executor.Tensor)(t).Fetch(ctx)
	if err != nil {
		return nil, fmt.Errorf("the value of %s: %w", name, err)
	}
	m.values = append(m.values, t)
	return data, nil
}
