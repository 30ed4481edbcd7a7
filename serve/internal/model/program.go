package model

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// maxProgram bounds the text of a program.
const maxProgram = 256 << 20

// openProgram loads a lazy program in text form. Its parameters that the file of weights
// has are constants; the others are the inputs.
func (m *Model) openProgram(ctx context.Context, path string, o Options) error {
	p, err := readProgram(path)
	if err != nil {
		return err
	}
	values := map[string]backend.Buffer{}
	if o.Weights != "" {
		if values, err = readTensors(o.Weights); err != nil {
			return err
		}
		m.files.tensors = slices.Sorted(maps.Keys(values))
	}
	device, err := ir.ParseDevice("cpu")
	if err != nil {
		return err
	}
	program := &container.Program{Run: p, Device: device}
	for i, q := range p.Params {
		v, constant := values[q.Name]
		if !constant {
			if err := m.addInput(q.Name, q.Shape); err != nil {
				releaseAll(values)
				return fmt.Errorf("parameter %d: %w", i, err)
			}
			continue
		}
		program.Constants = append(program.Constants, container.ProgramConstant{Name: q.Name, Type: backend.ConstantParameter, Value: v})
	}
	for i := range p.Returns {
		m.Outputs = append(m.Outputs, Output{Name: fmt.Sprintf("out%d", i)})
	}
	instances, most := o.pool()
	m.container, err = container.New(ctx, program.Compile, container.Config{Instances: instances, Max: most})
	if err != nil {
		releaseAll(values)
		return fmt.Errorf("%s: %w", path, err)
	}
	m.Platform = "loris_program"
	m.close = func() error {
		defer releaseAll(values) // instances that are made later begin with them
		return m.container.Close()
	}
	return nil
}

func (m *Model) addInput(name string, s ir.Shape) error {
	in := Input{Name: name, Known: true, Datatype: inference.DatatypeOf(s.DType())}
	if in.Datatype == "" {
		return inference.Errorf(inference.Unimplemented, "input %q is %v, for which the protocol has no datatype", name, s.DType())
	}
	for _, d := range s.Dims() {
		in.Dims = append(in.Dims, Dim{Min: int64(d), Max: int64(d)})
	}
	m.Inputs = append(m.Inputs, in)
	return nil
}

func readProgram(path string) (*graph.Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProgram+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxProgram {
		return nil, fmt.Errorf("%s: a program of more than %d bytes", path, maxProgram)
	}
	p, err := graph.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
