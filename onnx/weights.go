package onnx

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/onnx/internal/pb"
)

// initializer makes the value of an initialiser: a Variable, or elements to compute with.
func (l *loader) initializer(t *pb.Tensor, top bool) (*value, error) {
	if e := elemType(t.DType); e.known() && !e.held() {
		l.note("initialiser %q: %v elements", t.Name, e)
		return nil, nil
	}
	if n, ok := numel(t.Dims); ok && top && t.Location == pb.External && n > maxKnown && elemType(t.DType).asStored() {
		return l.external(t)
	}
	c, err := l.files.read(t)
	if err != nil {
		return nil, err
	}
	if t.Location == pb.External {
		l.model.bytes += len(c.data)
	}
	v := &value{elem: c.elem, dims: c.dims, data: c.data}
	float := c.elem.float() && !(l.plain[t.Name] && len(c.data) <= maxKnown)
	if !top || !float && v.numel() <= maxKnown {
		v.data = slices.Clone(v.data) // the file's bytes are let go of
		return v, nil
	}
	v.variable = loris.NewVariable(l.make.FromBytes(c.data, ir.MakeShape(c.elem.dtype(), c.dims...)))
	if err := l.weight(t.Name, v.variable, float); err != nil {
		return nil, err
	}
	v.data = nil
	if v.numel() <= maxKnown {
		v.data = slices.Clone(c.data)
	}
	return v, nil
}

// external is initializer for a large tensor in a file of its own, which is read to where it stays.
func (l *loader) external(t *pb.Tensor) (*value, error) {
	e := elemType(t.DType)
	v := &value{elem: e, dims: ints(t.Dims)}
	shape, err := ir.NewShape(e.dtype(), v.dims)
	if err != nil {
		return nil, err
	}
	x, err := l.files.upload(l.ctx, l.make, t, shape)
	if err != nil {
		return nil, err
	}
	v.variable = loris.NewVariable(x)
	l.model.bytes += shape.Bytes()
	return v, l.weight(t.Name, v.variable, e.float())
}

// weight adds a weight to the model.
func (l *loader) weight(name string, v *loris.Variable, float bool) error {
	kind := importer.Buffer
	if float && !l.stats[name] {
		kind = importer.Parameter
	}
	return l.model.Add(name, v, kind)
}
