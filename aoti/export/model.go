package export

import (
	"fmt"
	"io"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/internal/elfwrite"
	"github.com/loris-ml/loris/aoti/internal/glue"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// model is what becomes a package.
type model struct {
	name, root string
	device     string // deviceCPU or deviceCUDA
	isa        string // what GPUs there is code for
	hash       ir.Hash
	plan       *ahead.Plan
	sources    []source // of the parameters of the Program
	inputs     []param
	constants  []param
	outputs    []param
	assigned   []assignment
	results    []ahead.Place // of the Program's returns: outputs, or places in the workspace of values to assign
	workspace  int           // bytes
	symbols    []symbol
	numbers    []byte // values of parameters that are neither inputs nor constants
	weights    int64  // bytes
	names      map[string]bool
	values     []*loris.Tensor // have the data of constants
}

// param is an input, a constant or an output.
type param struct {
	name, fqn string
	shape     ir.Shape
	data      []byte // of a constant
	offset    int64  // of a constant in the weights
	assigned  bool   // runs assign it
}

// kind returns what the interface calls a constant: instances of a model share parameters, and have
// buffers of their own.
func (q *param) kind() backend.ConstantType {
	if q.assigned {
		return backend.ConstantBuffer
	}
	return backend.ConstantParameter
}

// assignment says that a result is no output: it becomes the value of an input or of a constant.
type assignment struct {
	source source
	result int // among the Program's returns
	at     int // in the workspace
}

// target returns what is assigned, and its number among inputs and constants.
func (a *assignment) target(m *model) (*param, int64) {
	if a.source.kind == fromInput {
		return &m.inputs[a.source.index], int64(a.source.index)
	}
	return &m.constants[a.source.index], int64(len(m.inputs) + a.source.index)
}

// assign notes that a result of the Program becomes the value of an input or a constant.
func (m *model) assign(to source, result int) error {
	if slices.ContainsFunc(m.assigned, func(a assignment) bool { return a.source == to || a.result == result }) {
		return fmt.Errorf("%w: result %d or what it is assigned to is assigned twice", ir.ErrArg, result)
	}
	a := assignment{source: to, result: result}
	q, _ := a.target(m)
	q.assigned = true
	m.assigned = append(m.assigned, a)
	return nil
}

// source is what a parameter of the Program is: an input, a constant, a number or the generator.
type source struct {
	kind  sourceKind
	index int // among the inputs or the constants, or a place in the numbers
}

type sourceKind uint8

const (
	fromInput sourceKind = iota
	fromConstant
	fromNumber
	fromGenerator // of the process: the Program's own seed, which nothing reads
)

// named returns a param whose name inside the model no other has.
func (m *model) named(fqn string, s ir.Shape, data []byte) param {
	if m.names == nil {
		m.names = map[string]bool{}
	}
	return param{name: identifier(fqn, m.names), fqn: fqn, shape: s, data: data}
}

// addInput makes the next parameter of the Program an input.
func (m *model) addInput(name string, s ir.Shape) {
	m.sources = append(m.sources, source{fromInput, len(m.inputs)})
	m.inputs = append(m.inputs, m.named(name, s, nil))
}

// addConstant makes the next parameter of the Program a constant.
func (m *model) addConstant(fqn string, s ir.Shape, data []byte) {
	m.sources = append(m.sources, source{fromConstant, len(m.constants)})
	m.constants = append(m.constants, m.named(fqn, s, data))
}

// addNumber makes the next parameter of the Program a number, which stays what it is.
func (m *model) addNumber(data []byte) {
	m.sources = append(m.sources, source{fromNumber, len(m.numbers)})
	m.numbers = append(m.numbers, data...)
	m.numbers = append(m.numbers, make([]byte, -len(m.numbers)&(numberAlign-1))...)
}

// seed returns the number of the parameter that stands for the generator of the process, or -1.
func (m *model) seed() int {
	return slices.IndexFunc(m.sources, func(s source) bool { return s.kind == fromGenerator })
}

// stays reports whether a parameter of the Program has the same value in all runs with one set of
// constants.
func (m *model) stays(param int) bool {
	switch s := m.sources[param]; s.kind {
	case fromConstant:
		return !m.constants[s.index].assigned
	case fromNumber:
		return true
	}
	return false
}

// weightAlign is what the offset of each constant in the weights is a multiple of, as Inductor's.
const weightAlign = 64

// placeAlign is that of values in the workspace, what kernels of a GPU want of all memory, and numberAlign
// that of single numbers.
const (
	placeAlign  = 256
	numberAlign = 8
)

// describe fills in the outputs, and where constants lie.
func (m *model) describe(p *graph.Program) error {
	m.workspace = m.plan.Workspace
	for i, id := range p.Returns {
		s := p.Shape(id)
		n := slices.IndexFunc(m.assigned, func(a assignment) bool { return a.result == i })
		if n < 0 {
			m.results = append(m.results, ahead.Place{Space: ahead.Output, Index: len(m.outputs)})
			m.outputs = append(m.outputs, param{name: fmt.Sprintf("output%d", len(m.outputs)), shape: s})
			continue
		}
		a := &m.assigned[n]
		if q, _ := a.target(m); q.shape != s {
			return fmt.Errorf("%w: result %d is %v and cannot be assigned to %s, which is %v", ir.ErrShape, i, s, q.name, q.shape)
		}
		a.at = (m.workspace + placeAlign - 1) &^ (placeAlign - 1)
		m.workspace = a.at + s.Bytes()
		m.results = append(m.results, ahead.Place{Space: ahead.Workspace, Offset: a.at})
	}
	for i := range m.constants {
		c := &m.constants[i]
		c.offset = m.weights
		m.weights += (int64(len(c.data)) + weightAlign - 1) &^ (weightAlign - 1)
	}
	return nil
}

// encode writes the plans of models, which are one for several sizes, the first for the largest.
func encode(models []*model, compiled bool) (*encoder, error) {
	encoders := make([]*encoder, len(models))
	for i, m := range models {
		encoders[i] = newEncoder(m, compiled)
		if err := encoders[i].encode(); err != nil {
			return nil, err
		}
	}
	return encoders[0], encoders[0].vary(encoders[1:])
}

// library is the library of a package, ready to be written.
type library struct {
	isa    string // what processors there is code for
	size   int64
	write  func(w io.Writer) error
	remove func() // what only the writing needs
}

// blobs returns the plan as the object knows it.
func (e *encoder) blobs() []elfwrite.Blob {
	return []elfwrite.Blob{{Symbol: glue.Words, Data: e.bytes()}, {Symbol: glue.Text, Data: e.text}, {Symbol: glue.Literals, Data: e.literals}}
}

// link links a library of machine code.
func (e *encoder) link() (*library, error) {
	m, isa := e.m, "AVX2 AVX512"
	in := &elfwrite.Input{
		Object:      glue.AMD64,
		Export:      "AOTInductor",
		ReadOnly:    e.blobs(),
		Code:        []elfwrite.Blob{{Symbol: glue.Code, Data: e.code}},
		Table:       glue.Functions,
		Functions:   e.functions,
		Needed:      []string{neededLibrary, "libc.so.6"},
		Weights:     glue.Weights,
		WeightBytes: m.weights,
		Bounds:      weightBounds,
	}
	if m.device == deviceCUDA { // what is CUDA's is looked for when a container is made
		isa = m.isa
		in.Object, in.Optional, in.Code = glue.CUDA, true, nil
		in.ReadOnly = append(in.ReadOnly, elfwrite.Blob{Symbol: glue.Images, Data: e.images})
		in.Needed = []string{neededLibrary, "libdl.so.2", "libc.so.6"}
	}
	head, err := elfwrite.Link(in)
	if err != nil {
		return nil, err
	}
	write := func(w io.Writer) error {
		if _, err := w.Write(head.Head); err != nil {
			return err
		}
		return m.writeWeights(w)
	}
	return &library{isa: isa, size: int64(len(head.Head)) + m.weights, write: write, remove: func() {}}, nil
}

const (
	// neededLibrary is what libraries need by name, since Python loads it for itself alone.
	neededLibrary = "libtorch_cpu.so"
	// weightBounds is how the names of the ends of the weights begin.
	weightBounds = "_binary_constants_bin_"
)

// writeWeights writes the constants, each at its offset.
func (m *model) writeWeights(w io.Writer) error {
	var zeros [weightAlign]byte
	for i := range m.constants {
		c := &m.constants[i]
		if _, err := w.Write(c.data); err != nil {
			return err
		}
		if _, err := w.Write(zeros[:-len(c.data)&(weightAlign-1)]); err != nil {
			return err
		}
	}
	return nil
}
