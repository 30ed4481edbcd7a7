package export

import (
	"fmt"

	"github.com/loris-ml/loris/aoti/internal/elfwrite"
	"github.com/loris-ml/loris/aoti/internal/glue"
	"github.com/loris-ml/loris/graph"
	"github.com/loris-ml/loris/internal/ahead"
	"github.com/loris-ml/loris/ir"
)

// model is what becomes a package.
type model struct {
	name, root string
	hash       ir.Hash
	plan       *ahead.Plan
	params     []param // of the Program
	constants  []int   // those of params that are constants, in order
	inputs     int
	outputs    []param
	weights    int64 // bytes
}

// param is an input, a constant or an output.
type param struct {
	name, fqn string
	shape     ir.Shape
	constant  bool
	index     int    // among the inputs or the constants
	data      []byte // of a constant
	offset    int64  // of a constant in the weights
}

// weightAlign is what the offset of each constant in the weights is a multiple of, as Inductor's.
const weightAlign = 64

// describe fills in the outputs, and where constants lie.
func (m *model) describe(p *graph.Program) {
	for i, id := range p.Returns {
		m.outputs = append(m.outputs, param{name: fmt.Sprintf("output%d", i), shape: p.Shape(id), index: i})
	}
	for _, i := range m.constants {
		c := &m.params[i]
		c.offset = m.weights
		m.weights += (int64(len(c.data)) + weightAlign - 1) &^ (weightAlign - 1)
	}
}

// library links all but the weights.
func (m *model) library() (*elfwrite.Library, error) {
	e := newEncoder(m)
	if err := e.encode(); err != nil {
		return nil, err
	}
	return elfwrite.Link(&elfwrite.Input{
		Object: glue.AMD64,
		Export: "AOTInductor",
		ReadOnly: []elfwrite.Blob{
			{Symbol: glue.Words, Data: e.bytes()}, {Symbol: glue.Text, Data: e.text}, {Symbol: glue.Literals, Data: m.plan.Literals},
		},
		Code:        []elfwrite.Blob{{Symbol: glue.Code, Data: e.code}},
		Table:       glue.Functions,
		Functions:   e.functions,
		Needed:      []string{"libtorch_cpu.so", "libc.so.6"},
		Weights:     glue.Weights,
		WeightBytes: m.weights,
		Bounds:      "_binary_constants_bin_",
	})
}
