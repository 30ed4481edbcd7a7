package container

import (
	"context"
	"fmt"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// Program is a graph.Program, or two, some of whose parameters are constants of
// the model that they become. With Compile it gives a container what it needs.
type Program struct {
	// Run computes the outputs. Its parameters that Constants or Folded name are
	// constants; the others, in order, are the model's inputs.
	Run *graph.Program
	// Fold computes the constants that Folded names, from parameters that
	// Constants names. It is nil if there are none.
	Fold *graph.Program
	// Device is where they run; its backend must be registered.
	Device ir.Device
	// Constants are the constants that have values.
	Constants []ProgramConstant
	// Folded are the parameters of Run that the outputs of Fold give, in order.
	Folded []string
}

// ProgramConstant is one constant of a Program.
type ProgramConstant struct {
	// Name is the parameter's, of Run or Fold or both.
	Name string
	// OriginalName is a second name for updates, or empty.
	OriginalName string
	// Type says what it is.
	Type backend.ConstantType
	// Value is what it is at first, dense, on any device, or nil. It stays the
	// caller's, for as long as instances are made.
	Value backend.Buffer
}

// Compile compiles the programs for their device into one instance of a model:
// a backend.ConstantModel. A parameter that is named and not there, a value or
// result of another shape is an error wrapping ir.ErrArg, ir.ErrShape or
// ir.ErrDType; those of the backend are returned as they are.
func (p *Program) Compile(ctx context.Context) (backend.Model, error) {
	if err := ir.CheckContext("container.Compile", ctx); err != nil {
		return nil, err
	}
	be, err := backend.For(p.Device)
	if err != nil {
		return nil, err
	}
	m := &programModel{backend: be, device: p.Device}
	if err := m.describe(p); err != nil {
		return nil, err
	}
	if m.run, err = compile(ctx, be, p.Run, p.Device); err != nil {
		return nil, err
	}
	if p.Fold != nil {
		if m.fold, err = compile(ctx, be, p.Fold, p.Device); err != nil {
			m.run.Close()
			return nil, err
		}
	}
	m.spec.Outputs = m.run.Spec().Outputs
	switch run := m.run.(type) {
	case backend.QueueModel:
		return &queueProgramModel{asyncProgramModel{m, run}, run}, nil
	case backend.AsyncModel:
		return &asyncProgramModel{m, run}, nil
	}
	return m, nil
}

// asyncProgramModel is a programModel whose runs go on when they have returned.
type asyncProgramModel struct {
	*programModel
	async backend.AsyncModel
}

// Finished is the model's.
func (m *asyncProgramModel) Finished() (bool, error) { return m.async.Finished() }

// Wait is the model's.
func (m *asyncProgramModel) Wait(ctx context.Context) error { return m.async.Wait(ctx) }

// queueProgramModel is an asyncProgramModel whose runs may follow each other at
// once.
type queueProgramModel struct {
	asyncProgramModel
	queue backend.QueueModel
}

// Start is Run, and returns the run.
func (m *queueProgramModel) Start(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, backend.Run, error) {
	if err := m.arguments(inputs, donated); err != nil {
		return nil, nil, err
	}
	defer clear(m.args)
	return m.queue.Start(ctx, m.args, m.marks)
}

func compile(ctx context.Context, be backend.Backend, p *graph.Program, d ir.Device) (backend.Model, error) {
	lowered, _ := graph.Optimize(p, graph.Options{Supports: be.Supports})
	return be.Compile(ctx, lowered, d, backend.CompileOptions{})
}

// programModel is a compiled Program.
type programModel struct {
	backend   backend.Backend
	device    ir.Device
	run, fold backend.Model
	spec      backend.Spec
	info      []backend.Constant
	initial   []backend.Buffer

	// By parameter of run and of fold: the constant that it is, or -1.
	runConst, foldConst []int
	// By output of fold: the constant that it gives.
	foldOut []int

	bound []backend.Buffer
	args  []backend.Buffer // of the run in progress
	marks []bool
}

// describe fills in all but the compiled models.
func (m *programModel) describe(p *Program) error {
	index := map[string]int{}
	var paramOf [2]map[string]ir.Shape
	for i, q := range []*graph.Program{p.Run, p.Fold} {
		paramOf[i] = map[string]ir.Shape{}
		if q != nil {
			for _, a := range q.Params {
				paramOf[i][a.Name] = a.Shape
			}
		}
	}
	add := func(k backend.Constant, value backend.Buffer) error {
		s, ok := paramOf[0][k.Name]
		t, inFold := paramOf[1][k.Name]
		switch _, twice := index[k.Name]; {
		case twice:
			return fmt.Errorf("%w: two constants are named %q", ir.ErrArg, k.Name)
		case !ok && !inFold:
			return fmt.Errorf("%w: no parameter is named %q", ir.ErrArg, k.Name)
		case !ok:
			s = t
		case inFold && s != t:
			return fmt.Errorf("%w: constant %q is %v to run and %v to fold", ir.ErrShape, k.Name, s, t)
		}
		if value != nil {
			if err := mismatch(value.Shape(), s); err != nil {
				return &ConstantError{Name: k.Name, Problem: err}
			}
		}
		k.Shape, k.Bytes = s, int64(s.Bytes())
		index[k.Name] = len(m.info)
		m.info, m.initial = append(m.info, k), append(m.initial, value)
		return nil
	}
	for _, k := range p.Constants {
		if err := add(backend.Constant{Name: k.Name, OriginalName: k.OriginalName, Type: k.Type}, k.Value); err != nil {
			return err
		}
	}
	for i, name := range p.Folded {
		if err := add(backend.Constant{Name: name, FromFolded: true, Type: backend.ConstantFolded}, nil); err != nil {
			return err
		}
		m.foldOut = append(m.foldOut, index[name])
		if p.Fold == nil || i >= len(p.Fold.Returns) {
			continue
		}
		if err := mismatch(p.Fold.Shape(p.Fold.Returns[i]), m.info[index[name]].Shape); err != nil {
			return &ConstantError{Name: name, Problem: err}
		}
	}
	return m.connect(p, index)
}

// connect finds the constants among the parameters.
func (m *programModel) connect(p *Program, index map[string]int) error {
	for _, q := range p.Run.Params {
		i, ok := index[q.Name]
		if !ok {
			i = -1
			m.spec.Inputs = append(m.spec.Inputs, backend.Param{Name: q.Name, Shape: q.Shape})
		}
		m.runConst = append(m.runConst, i)
	}
	m.args, m.marks = make([]backend.Buffer, len(m.runConst)), make([]bool, len(m.runConst))
	returns := 0
	if p.Fold != nil {
		returns = len(p.Fold.Returns)
		for _, q := range p.Fold.Params {
			i, ok := index[q.Name]
			if !ok || m.info[i].FromFolded {
				return fmt.Errorf("%w: folding needs %q, which is no constant that has a value", ir.ErrArg, q.Name)
			}
			m.foldConst = append(m.foldConst, i)
		}
	}
	if returns != len(p.Folded) {
		return fmt.Errorf("%w: folding computes %d values, %d are named", ir.ErrArg, returns, len(p.Folded))
	}
	return nil
}

// Spec returns the parameters that are no constants and the results.
func (m *programModel) Spec() backend.Spec { return m.spec }

// Place returns the device.
func (m *programModel) Place() ir.Device { return m.device }

// Run computes with the bound constants, which are never donated.
func (m *programModel) Run(ctx context.Context, inputs []backend.Buffer, donated []bool) ([]backend.Buffer, error) {
	if err := m.arguments(inputs, donated); err != nil {
		return nil, err
	}
	defer clear(m.args)
	return m.run.Run(ctx, m.args, m.marks)
}

// arguments puts the inputs among the bound constants.
func (m *programModel) arguments(inputs []backend.Buffer, donated []bool) error {
	if len(inputs) != len(m.spec.Inputs) {
		return fmt.Errorf("%w: %d inputs, the model takes %d", ir.ErrArg, len(inputs), len(m.spec.Inputs))
	}
	next := 0
	for j, i := range m.runConst {
		m.marks[j] = false
		if i >= 0 {
			m.args[j] = m.bound[i]
			continue
		}
		m.args[j] = inputs[next]
		m.marks[j] = donated != nil && donated[next]
		next++
	}
	return nil
}

// Close closes both models.
func (m *programModel) Close() error {
	m.bound = nil
	err := m.run.Close()
	if m.fold != nil {
		if e := m.fold.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Constants describes the constants: those with values and then those folded.
func (m *programModel) Constants() []backend.Constant { return slices.Clone(m.info) }

// InitialConstants returns the Program's values on its device.
func (m *programModel) InitialConstants(ctx context.Context) ([]backend.Buffer, error) {
	out := make([]backend.Buffer, len(m.initial))
	for i, v := range m.initial {
		var err error
		switch {
		case v != nil:
			out[i], err = m.PackConstant(ctx, i, v, false)
		case m.info[i].Bytes == 0:
			out[i], err = m.backend.Upload(ctx, m.info[i].Shape, m.device, nil)
		}
		if err != nil {
			releaseAll(out)
			return nil, &ConstantError{Name: m.info[i].Name, Problem: err}
		}
	}
	return out, nil
}

// PackConstant brings a value to the device.
func (m *programModel) PackConstant(ctx context.Context, _ int, value backend.Buffer, copy bool) (backend.Buffer, error) {
	if !copy && value.Device() == m.device {
		value.Retain()
		return value, nil
	}
	if mb, ok := m.backend.(backend.MemoryBackend); ok && value.Device().Type == m.device.Type {
		return mb.Copy(ctx, value, m.device) // as the devices order it
	}
	data, err := value.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	return m.backend.Upload(ctx, value.Shape(), m.device, data)
}

// UnpackConstant returns the value, on the device.
func (m *programModel) UnpackConstant(ctx context.Context, i int, packed backend.Buffer, copy bool) (backend.Buffer, error) {
	return m.PackConstant(ctx, i, packed, copy)
}

// BindConstants keeps the values for the next runs.
func (m *programModel) BindConstants(values []backend.Buffer) error {
	m.bound = values
	return nil
}

// FoldConstants runs the folding program.
func (m *programModel) FoldConstants(ctx context.Context) ([]backend.Buffer, error) {
	out := make([]backend.Buffer, len(m.info))
	if m.fold == nil {
		return out, nil
	}
	args := make([]backend.Buffer, len(m.foldConst))
	for j, i := range m.foldConst {
		args[j] = m.bound[i]
	}
	folded, err := m.fold.Run(ctx, args, nil)
	if err != nil {
		return nil, err
	}
	if async, ok := m.fold.(backend.AsyncModel); ok {
		if err := async.Wait(ctx); err != nil {
			releaseAll(folded)
			return nil, err
		}
	}
	for j, b := range folded {
		out[m.foldOut[j]] = b
	}
	return out, nil
}
