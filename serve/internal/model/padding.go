package model

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Padding has inputs filled up along one dimension, such as that of tokens, so that requests of many
// lengths run together and a model of a fixed length takes shorter ones. It is the configuration's
// to say that this does not change what the model computes.
type Padding struct {
	// Buckets are the lengths that there are; a request gets the next one. nil takes the only
	// length of a model that was compiled for one.
	Buckets []int64
	// Inputs and Outputs are the dimensions that have the length, by name; nil Inputs takes those
	// that the model's only other varying size has, and nil Outputs those that were seen to follow it.
	Inputs, Outputs map[string]int
	// Mask is the input that says what is real; a request may leave it out. Empty for none.
	Mask string
	// Values are what inputs are filled up with, by name; 0 for the others. What is real has
	// the mask's other value of 0 and 1.
	Values map[string]float64
}

// padding is a Padding that fits the model.
type padding struct {
	buckets         []int64
	inputs, outputs []int    // the dimension by position, -1 for none
	values          [][]byte // one element by input
	mask            int      // -1 for none
	real            []byte   // an element of the mask
}

// pads compares a Padding with the model and keeps it.
func (m *Model) pads(o *Padding) error {
	p := &padding{mask: -1, inputs: unpadded(len(m.Inputs)), outputs: unpadded(len(m.Outputs))}
	if err := m.paddedInputs(o, p); err != nil {
		return err
	}
	if err := m.paddedOutputs(o, p); err != nil {
		return err
	}
	if err := m.paddingValues(o, p); err != nil {
		return err
	}
	p.buckets = slices.Clone(o.Buckets)
	slices.Sort(p.buckets)
	for i, d := range p.inputs {
		if d < 0 {
			continue
		}
		dim := m.Inputs[i].Dims[d]
		if len(p.buckets) == 0 && dim.Fixed() {
			p.buckets = []int64{dim.Max}
		}
		if len(p.buckets) == 0 {
			return badf("padding of input %q, dimension %d: its size varies, so it needs buckets", m.Inputs[i].Name, d)
		}
		for _, n := range p.buckets {
			if n < max(dim.Min, 1) || (dim.Max >= 0 && n > dim.Max) {
				return badf("padding: the bucket %d is none of the sizes that input %q takes, %s", n, m.Inputs[i].Name, m.Inputs[i].text())
			}
		}
	}
	m.padding = p
	for i, d := range p.outputs {
		if d >= 0 {
			m.Outputs[i].Shape[d] = -1
		}
	}
	return nil
}

func unpadded(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = -1
	}
	return all
}

// paddedInputs finds the dimensions of inputs that have the length.
func (m *Model) paddedInputs(o *Padding, p *padding) error {
	for name, d := range o.Inputs {
		i, ok := m.inputs[name]
		if !ok {
			return badf("padding: there is no input %q; the model takes %s", name, m.listed())
		}
		if d < 0 || d >= len(m.Inputs[i].Dims) || (d == 0 && m.Rows != 0) {
			return badf("padding: input %q has no dimension %d that is not of rows", name, d)
		}
		p.inputs[i] = d
	}
	symbol := ""
	for i := range m.Inputs {
		for j, d := range m.Inputs[i].Dims {
			if d.Fixed() || (j == 0 && m.Rows != 0) || p.inputs[i] == j {
				continue
			}
			if o.Inputs != nil || (symbol != "" && symbol != d.Symbol) || d.Symbol == "?" || !simple(d.Symbol) {
				return inference.Errorf(inference.Unimplemented, "padding: of input %q %s another size varies; one length is padded", m.Inputs[i].Name, m.Inputs[i].text())
			}
			if p.inputs[i] >= 0 {
				return inference.Errorf(inference.Unimplemented, "padding: input %q %s has the length twice", m.Inputs[i].Name, m.Inputs[i].text())
			}
			symbol, p.inputs[i] = d.Symbol, j
		}
	}
	if slices.Max(append(p.inputs, -1)) < 0 {
		return badf("padding: no size of the model varies but that of rows; name the dimensions that are padded")
	}
	return nil
}

// paddedOutputs finds the dimensions of outputs that have the length.
func (m *Model) paddedOutputs(o *Padding, p *padding) error {
	for name, d := range o.Outputs {
		i, err := m.FindOutput(name)
		if err != nil {
			return err
		}
		if d < 0 || d >= len(m.Outputs[i].Shape) || (d == 0 && m.Rows != 0) {
			return badf("padding: output %q has no dimension %d that is not of rows", name, d)
		}
		p.outputs[i] = d
	}
	if o.Outputs != nil {
		return nil
	}
	for i, d := range p.inputs {
		if d < 0 || len(m.tried) < 2 {
			continue
		}
		length := [2]int64{m.tried[0].in[i][d], m.tried[1].in[i][d]}
		for j := range m.Outputs {
			for k := range m.Outputs[j].Shape {
				if a, b := m.tried[0].out[j], m.tried[1].out[j]; length[0] != length[1] && len(a) == len(b) && a[k] == length[0] && b[k] == length[1] {
					p.outputs[j] = k
				}
			}
		}
	}
	return nil
}

// paddingValues makes the elements that inputs are filled up with.
func (m *Model) paddingValues(o *Padding, p *padding) error {
	values := make([]float64, len(m.Inputs))
	for name, v := range o.Values {
		i, ok := m.inputs[name]
		if !ok || p.inputs[i] < 0 {
			return badf("padding: there is a value for %q, which is no padded input", name)
		}
		values[i] = v
	}
	if o.Mask != "" {
		i, ok := m.inputs[o.Mask]
		if !ok || p.inputs[i] < 0 || (values[i] != 0 && values[i] != 1) {
			return badf("padding: the mask %q is no padded input with the value 0 or 1", o.Mask)
		}
		p.mask = i
	}
	for i, v := range values {
		d := m.Inputs[i].Datatype.DType()
		if p.inputs[i] < 0 {
			p.values = append(p.values, nil)
			continue
		}
		if d.IsIntegral() && v != math.Trunc(v) {
			return badf("padding: the value %v of input %q is no %s", v, m.Inputs[i].Name, m.Inputs[i].Datatype)
		}
		p.values = append(p.values, elements.AppendNumber(nil, d, v))
		if i == p.mask {
			p.real = elements.AppendNumber(nil, d, 1-v)
		}
	}
	return nil
}

// Varies reports whether requests choose a size of an input.
func (m *Model) Varies(input, dim int) bool {
	d := m.Inputs[input].Dims[dim]
	return !d.Fixed() || (dim == 0 && m.FixedRows) || m.padded(input, dim)
}

func (m *Model) padded(input, dim int) bool {
	return m.padding != nil && m.padding.inputs[input] == dim
}

// addMask makes the mask of a request that has none: all is real.
func (m *Model) addMask(w *Work) {
	if m.padding == nil || m.padding.mask < 0 || w.Inputs[m.padding.mask].Datatype != "" {
		return
	}
	p := m.padding
	in := &m.Inputs[p.mask]
	t := inference.Tensor{Name: in.Name, Datatype: in.Datatype, Shape: make([]int64, len(in.Dims))}
	for j, d := range in.Dims {
		t.Shape[j] = d.Min
		for i := range w.Inputs {
			other := w.Inputs[i].Shape
			switch of := p.inputs[i]; {
			case i == p.mask || w.Inputs[i].Datatype == "":
			case j == p.inputs[p.mask] && of >= 0 && of < len(other):
				t.Shape[j] = other[of]
			case j == 0 && m.Rows != 0 && len(other) > 0:
				t.Shape[j] = other[0]
			}
		}
	}
	n, ok := inference.NumElements(t.Shape)
	// One that is larger than what it masks is of a shape that nobody sent.
	if ok && slices.ContainsFunc(w.Inputs, func(other inference.Tensor) bool { return n <= int64(len(other.Data)) }) {
		t.Data = bytes.Repeat(p.real, int(n))
		w.Inputs[p.mask] = t
	}
}

// pad fills up the inputs of a work that fits the model otherwise.
func (m *Model) pad(w *Work) error {
	p := m.padding
	if p == nil {
		return nil
	}
	first := -1
	for i, d := range p.inputs {
		if d < 0 {
			continue
		}
		n := w.Inputs[i].Shape[d]
		if first >= 0 && n != w.Length {
			return badf("input %q has the length %d, input %q %d", m.Inputs[i].Name, n, m.Inputs[first].Name, w.Length)
		}
		if first < 0 {
			first, w.Length = i, n
		}
	}
	at, _ := slices.BinarySearch(p.buckets, w.Length)
	if at == len(p.buckets) {
		return badf("input %q: dimension %d is %d, and the largest bucket %d", m.Inputs[first].Name, p.inputs[first], w.Length, p.buckets[at-1])
	}
	if w.Padded = p.buckets[at]; w.Padded == w.Length {
		return nil
	}
	for i, d := range p.inputs {
		if d < 0 {
			continue
		}
		t := &w.Inputs[i]
		outer, inner := strides(t.Shape, d)
		inner *= int64(t.Datatype.Size())
		shape := slices.Clone(t.Shape)
		shape[d] = w.Padded
		if n, ok := inference.NumElements(shape); !ok || n > math.MaxInt32 {
			return inference.Errorf(inference.TooLarge, "input %q has %v filled up", m.Inputs[i].Name, shape)
		}
		data := make([]byte, 0, outer*w.Padded*inner)
		rest := bytes.Repeat(p.values[i], int((w.Padded-w.Length)*inner)/len(p.values[i]))
		for o := range outer {
			data = append(data, t.Data[o*w.Length*inner:(o+1)*w.Length*inner]...)
			data = append(data, rest...)
		}
		t.Shape, t.Data = shape, data
	}
	return nil
}

// strides returns the products of the sizes before and after a dimension.
func strides(shape []int64, d int) (outer, inner int64) {
	outer, inner = 1, 1
	for i, n := range shape {
		if i < d {
			outer *= n
		} else if i > d {
			inner *= n
		}
	}
	return outer, inner
}

// cut leaves of an output what belongs to a work before it was padded.
func (m *Model) cut(t *inference.Tensor, output int, w *Work) {
	if m.padding == nil || w.Padded == w.Length {
		return
	}
	d := m.padding.outputs[output]
	if d < 0 || d >= len(t.Shape) || t.Shape[d] != w.Padded {
		return
	}
	outer, inner := strides(t.Shape, d)
	inner *= int64(t.Datatype.Size())
	data := make([]byte, 0, outer*w.Length*inner)
	for o := range outer {
		from := o * w.Padded * inner
		data = append(data, t.Data[from:from+w.Length*inner]...)
	}
	t.Shape[d], t.Data = w.Length, data
}

// sizes are the shapes of the inputs and outputs of a run on made-up values.
type sizes struct{ in, out [][]int64 }

func sizesOf(in, out []inference.Tensor) sizes {
	shapes := func(ts []inference.Tensor) (all [][]int64) {
		for _, t := range ts {
			all = append(all, slices.Clone(t.Shape))
		}
		return all
	}
	return sizes{shapes(in), shapes(out)}
}

// checkPadding is pads, if there is something to do; a model whose inputs are not known cannot.
func (m *Model) checkPadding(o *Padding) error {
	if o == nil {
		return nil
	}
	for i := range m.Inputs {
		if !m.Inputs[i].Known || m.Inputs[i].Datatype.DType() == ir.Invalid {
			return fmt.Errorf("padding: %w", badf("shape and datatype of input %q are not known", m.Inputs[i].Name))
		}
	}
	return m.pads(o)
}
