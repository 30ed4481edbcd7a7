package model

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Inspect says what the file of a model says of itself, without running anything of it. name chooses
// one of several models in a package, and weights is the file of a lazy program's constants; both may
// be empty.
func Inspect(path, name, weights string) (*inference.Package, error) {
	if strings.EqualFold(filepath.Ext(path), ".lir") {
		return inspectProgram(path, weights)
	}
	report, err := aoti.Inspect(path)
	if err != nil {
		return nil, err
	}
	m, err := report.Model(name)
	if err != nil {
		return nil, err
	}
	p := &inference.Package{
		Kind: "AOTInductor, " + report.Kind.String(), Target: strings.Join(nonEmpty(m.Device, m.Platform, m.Machine), ", "), ISA: m.ISA, Generation: m.Generation,
		Constants: []inference.ConstantDescription{}, Missing: m.Missing, Refused: m.Refused,
	}
	for _, k := range m.Constants {
		p.Constants = append(p.Constants, inference.ConstantDescription{
			Name: cmp.Or(k.OriginalName, k.Name), Datatype: k.DType, Shape: append([]int64{}, k.Sizes...), Bytes: k.Bytes, Folded: k.Folded,
		})
	}
	return p, nil
}

func nonEmpty(words ...string) (all []string) {
	for _, w := range words {
		if w != "" {
			all = append(all, w)
		}
	}
	return all
}

func inspectProgram(path, weights string) (*inference.Package, error) {
	program, err := readProgram(path)
	if err != nil {
		return nil, err
	}
	p := &inference.Package{Kind: "lazy program", Ops: len(program.Instrs), Constants: []inference.ConstantDescription{}}
	if weights == "" {
		return p, nil
	}
	f, err := safetensors.Open(weights)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for _, q := range program.Params {
		if info, ok := f.Lookup(q.Name); ok {
			p.Constants = append(p.Constants, inference.ConstantDescription{
				Name: info.Name, Datatype: string(info.DType), Shape: append([]int64{}, info.Shape...), Bytes: int64(q.Shape.Bytes()),
			})
		}
	}
	return p, nil
}

// Describe fills in what is known of the model since it was opened.
func (m *Model) Describe(d *inference.Description) {
	d.Inputs, d.Outputs = []inference.TensorDescription{}, []inference.TensorDescription{}
	for i := range m.Inputs {
		in := &m.Inputs[i]
		d.Inputs = append(d.Inputs, inference.TensorDescription{Name: in.Name, Datatype: in.Datatype, Shape: in.text()})
	}
	for _, o := range m.Outputs {
		out := Input{}
		for i, n := range o.Shape {
			dim := Dim{Min: n, Max: n}
			if n < 0 {
				dim = Dim{Symbol: "any", Max: -1}
				if i == 0 && m.Rows != 0 {
					dim.Symbol = "rows"
				}
			}
			out.Dims = append(out.Dims, dim)
		}
		d.Outputs = append(d.Outputs, inference.TensorDescription{Name: o.Name, Datatype: o.Datatype, Shape: out.text()})
	}
	d.Note, d.Instances = m.Note, m.instances
}
