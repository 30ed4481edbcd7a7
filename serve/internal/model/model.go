// Package model holds one version of a model in memory: an AOTInductor package or a
// lazy program with its weights. It knows what the model takes and returns, which of
// its dimensions is a batch, and turns requests into runs.
package model

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	_ "github.com/loris-ml/loris/backend/cpu" // lazy programs run on it
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/weights"
)

// Options say how to open a model.
type Options struct {
	// Weights is a safetensors file whose tensors replace constants of a package, and
	// are those of a lazy program; empty for none.
	Weights string
	// Updatable keeps named sets of the model's weights, so that they can be replaced
	// while it runs; see Weights. Every run then says which set it computed with.
	Updatable bool
	// Golden is a safetensors file of golden inputs for Updatable, as
	// weights.ReadGolden reads it; empty, or no such file, for none.
	Golden string
	// Name chooses one of several models in a package.
	Name string
	// Instances is how many there are at first, and MaxInstances how many there may be
	// when all are busy; 0 stands for one and for the number of processors.
	Instances, MaxInstances int
	// Threads bounds the threads of one run; 0 does not.
	Threads int
	// InputNames and OutputNames are further names, in the order of the model's own;
	// they are those of the metadata. Empty for none.
	InputNames, OutputNames []string
	// Padding fills up inputs along another dimension than that of rows; nil does not.
	Padding *Padding
}

// Dim is a dimension of an input.
type Dim struct {
	// Symbol names a size that varies, or is an expression of such; empty for a fixed one.
	Symbol string
	// Min and Max bound the size; Max is -1 without a bound.
	Min, Max int64
}

// Fixed reports whether there is one size only.
func (d Dim) Fixed() bool { return d.Min == d.Max }

// Input describes an input.
type Input struct {
	Name     string
	Datatype inference.Datatype
	// Known says that Datatype and Dims are known: a bare library does not tell.
	Known bool
	Dims  []Dim
}

// Output describes an output. Datatype is empty before any run has shown it; -1 in Shape
// is a size that varies.
type Output struct {
	Name     string
	Datatype inference.Datatype
	Shape    []int64
}

// Model is a loaded model. Its methods are safe for concurrent use.
type Model struct {
	// Platform says what it is, as metadata have it.
	Platform string
	Inputs   []Input
	Outputs  []Output
	// Rows is how many rows one run takes along the first dimension of all inputs and
	// outputs, where rows do not depend on each other; 0 for a model without such a
	// dimension, -1 where there is no bound. Of a FixedRows model a run takes exactly
	// that many.
	Rows      int64
	FixedRows bool
	// Note says what could not be found out about the model, and why.
	Note string

	inputs, outputs names
	container       *container.Container
	runner          *aoti.Runner  // nil for a lazy program
	weights         *weights.Sets // nil if they cannot be replaced
	close           func() error
	instances       int
	files           weightFiles
	padding         *padding // nil for none
	tried           []sizes  // of two runs with other sizes each, if there were
}

// Open loads the model at path, runs it to learn its outputs and warm it up, and
// returns it. An Error of kind Unimplemented says that it cannot be served.
func Open(ctx context.Context, path string, o Options) (*Model, error) {
	m, err := open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	stateful, err := m.probe(ctx)
	if err == nil && stateful {
		// What the runs have changed must not be seen, and requests see one state.
		if err = m.Close(); err != nil {
			return nil, err
		}
		o.Instances, o.MaxInstances = 1, 1
		learned := m
		if m, err = open(ctx, path, o); err != nil {
			return nil, err
		}
		m.files.stateful = true
		m.Outputs, m.tried, m.Note = learned.Outputs, learned.tried, "two runs on the same values differ: the model has a state or draws random numbers"
	}
	if err == nil {
		err = m.checkPadding(o.Padding)
	}
	if err == nil && o.Updatable {
		err = m.keepWeights(ctx, path, o)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// keepWeights makes the sets of weights, if the model has any.
func (m *Model) keepWeights(ctx context.Context, path string, o Options) error {
	var golden *weights.Golden
	if o.Golden != "" {
		var err error
		if golden, err = weights.ReadGolden(o.Golden, m.container.InputNames(), m.container.OutputNames()); err != nil {
			return err
		}
	}
	source := path
	if o.Weights != "" {
		source = o.Weights
	}
	sets, err := weights.New(ctx, m.container, weights.Options{Source: filepath.Base(source), Golden: golden})
	if errors.Is(err, container.ErrNoConstants) {
		return nil
	}
	m.weights, m.files.set = sets, weights.Initial
	return err
}

func open(ctx context.Context, path string, o Options) (*Model, error) {
	m := &Model{}
	var err error
	if strings.EqualFold(filepath.Ext(path), ".lir") {
		err = m.openProgram(ctx, path, o)
	} else {
		err = m.openPackage(ctx, path, o)
	}
	if err != nil {
		return nil, err
	}
	m.instances = m.container.Instances()
	if o.MaxInstances > m.instances {
		m.instances = o.MaxInstances
	} else if o.MaxInstances == 0 {
		m.instances = max(m.instances, runtime.GOMAXPROCS(0))
	}
	if err := m.giveNames(o); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (o *Options) pool() (instances, most int) {
	instances, most = max(o.Instances, 1), o.MaxInstances
	if most == 0 {
		most = runtime.GOMAXPROCS(0)
	}
	return instances, max(instances, most)
}

func (m *Model) openPackage(ctx context.Context, path string, o Options) error {
	instances, most := o.pool()
	opts := []aoti.Option{aoti.Instances(instances), aoti.MaxInstances(most), aoti.ModelName(o.Name)}
	if o.Threads > 0 {
		opts = append(opts, aoti.Threads(o.Threads))
	}
	r, err := aoti.Load(ctx, path, opts...)
	if err != nil {
		return err
	}
	m.Platform, m.container, m.runner, m.close = "pytorch_aotinductor", r.Container, r, r.Close
	if o.Weights != "" {
		if err := m.updateFrom(ctx, o.Weights); err != nil {
			return errors.Join(err, m.Close())
		}
	}
	specs := r.Inputs()
	for i, name := range r.InputNames() {
		in := Input{Name: name}
		if i < len(specs) && specs[i].Known {
			if err := in.describe(&specs[i]); err != nil {
				return errors.Join(err, m.Close())
			}
		}
		m.Inputs = append(m.Inputs, in)
	}
	for _, name := range r.OutputNames() {
		m.Outputs = append(m.Outputs, Output{Name: name})
	}
	return nil
}

func (in *Input) describe(spec *aoti.InputSpec) error {
	if in.Datatype = inference.DatatypeOf(spec.DType); in.Datatype == "" {
		return inference.Errorf(inference.Unimplemented, "input %q is %s, for which the protocol has no datatype", in.Name, spec.TypeName)
	}
	in.Known = true
	for _, d := range spec.Dims {
		dim := Dim{Min: d.Min, Max: d.Max}
		if !dim.Fixed() {
			if dim.Symbol = d.Size; dim.Symbol == "" {
				dim.Symbol = "?"
			}
		}
		in.Dims = append(in.Dims, dim)
	}
	return nil
}

// Container returns the pool of instances with the sets of their constants.
func (m *Model) Container() *container.Container { return m.container }

// Instances returns how many runs may go on at once.
func (m *Model) Instances() int { return m.instances }

// Weights returns the sets of weights; nil if they cannot be replaced, because the
// model has none or was not opened as Updatable.
func (m *Model) Weights() *weights.Sets { return m.weights }

// AddedBytes is the size of the sets of weights that it got since it was opened.
func (m *Model) AddedBytes() int64 {
	if m.weights == nil {
		return 0
	}
	return m.weights.AddedBytes()
}

// Reopens reports whether Open with the same files gives the same model: it has no state, and no
// other weights than those that it was opened with.
func (m *Model) Reopens() bool {
	return !m.files.stateful && (m.weights == nil || m.weights.Initially())
}

// Description returns what is known of the model, without the memory that it holds: it cannot run.
func (m *Model) Description() *Model {
	return &Model{
		Platform: m.Platform, Inputs: m.Inputs, Outputs: m.Outputs, Rows: m.Rows, FixedRows: m.FixedRows, Note: m.Note,
		inputs: m.inputs, outputs: m.outputs, padding: m.padding,
	}
}

// Close waits for runs in flight and unloads the model.
func (m *Model) Close() error {
	if m.weights != nil {
		m.weights.Close()
	}
	return m.close()
}

// run computes the outputs from inputs that were checked. version is the set of
// weights that computed them, if there are several.
func (m *Model) run(ctx context.Context, inputs []backend.Buffer) (outs []backend.Buffer, version string, err error) {
	if m.weights != nil {
		return m.weights.Run(ctx, inputs)
	}
	if m.runner != nil {
		outs, err = m.runner.Run(ctx, inputs...)
	} else {
		outs, err = m.container.Run(ctx, inputs, nil)
	}
	return outs, "", err
}

func shapeOf(t ir.DType, dims []int64) (ir.Shape, error) {
	ints := make([]int, len(dims))
	for i, d := range dims {
		ints[i] = int(d)
	}
	return ir.NewShape(t, ints)
}
