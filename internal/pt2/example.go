package pt2

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// ExampleSize is what ExampleShapes takes for a dynamic size that is not given,
// if the bounds allow it.
const ExampleSize = 8

// ExampleShapes returns shapes of inputs that the model accepts, as
// aoti.Runner.ExampleShapes says.
func (s *Spec) ExampleShapes(sizes map[string]int64) ([]ir.Shape, error) {
	values := make([]int64, len(s.symbols))
	used := map[string]bool{}
	for i, sym := range s.symbols {
		given, ok := sizes[sym.name]
		used[sym.name] = true
		switch {
		case ok:
			values[i] = given
		case sym.same >= 0:
			values[i] = values[sym.same]
		case sym.input >= 0:
			values[i] = s.Inputs[sym.input].Dims[sym.dim].example()
		default:
			values[i] = unbound
		}
	}
	for name := range sizes {
		if !used[name] {
			return nil, fmt.Errorf("the model has no dynamic size %q", name)
		}
	}
	shapes := make([]ir.Shape, len(s.Inputs))
	probe := make([]shapeOnly, len(s.Inputs))
	for i := range s.Inputs {
		in := &s.Inputs[i]
		if !in.Known || in.DType == ir.Invalid {
			return nil, fmt.Errorf("the package does not tell shape and dtype of input %d: %s", i, in)
		}
		dims := make([]int, len(in.Dims))
		for d := range in.Dims {
			n := in.Dims[d].example()
			if e := in.Dims[d].size; e != nil {
				if v, ok := e.eval(values); ok && v >= 0 && v <= math.MaxInt32 {
					n = v
				}
			}
			dims[d] = int(n)
		}
		var err error
		if shapes[i], err = ir.NewShape(in.DType, dims); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		probe[i] = shapeOnly(shapes[i])
	}
	return shapes, Check(s, probe)
}

// example returns a size inside the bounds.
func (d *DimSpec) example() int64 {
	n := max(int64(ExampleSize), d.Min)
	if d.Max >= 0 {
		n = min(n, d.Max)
	}
	return n
}

// shapeOnly is a tensor on any device.
type shapeOnly ir.Shape

// Shape returns the shape.
func (s shapeOnly) Shape() ir.Shape { return ir.Shape(s) }

// Device returns any device.
func (s shapeOnly) Device() ir.Device { return ir.Device{} }
