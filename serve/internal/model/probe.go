package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// probeRows is how many rows the model is tried with where it takes several numbers of
// them.
const probeRows = 3

// probe runs the model on made-up values: to learn its outputs, to find out whether its
// first dimension is a batch of rows that do not depend on each other, and to warm it
// up. A model that refuses such values is none the worse for it: Note tells. stateful
// says that two runs on the same values differ.
func (m *Model) probe(ctx context.Context) (stateful bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	p := prober{m: m, rows: probeRows, other: 8}
	if !p.example() {
		m.Note = "shapes and datatypes of the inputs are not known, so the model was not tried"
		return false, nil
	}
	first, err := p.try(ctx, p.works)
	if err != nil {
		p.plain()
		if first, err = p.try(ctx, p.works); err != nil {
			return false, m.refuse(ctx, err)
		}
	}
	m.learn(first)
	m.tried = []sizes{sizesOf(p.works.Inputs, first)}
	again, err := p.try(ctx, p.works)
	if err != nil {
		return false, m.refuse(ctx, err)
	}
	if !same(first, again) {
		return true, nil
	}
	m.learnOthers(ctx)
	if rows, fixed := m.batchDimension(); rows != 0 {
		if reason := p.independent(ctx, first, fixed); reason != "" {
			m.Note = reason
			return false, ctx.Err()
		}
		m.Rows, m.FixedRows = rows, fixed
		m.describeBatch()
	}
	return false, ctx.Err()
}

// refuse says what a run that failed means: the end of the context and a model that
// cannot be served are errors.
func (m *Model) refuse(ctx context.Context, err error) error {
	var e *inference.Error
	if errors.As(err, &e) && e.Kind == inference.Unimplemented {
		return err
	}
	m.Note = fmt.Sprintf("the model was not tried: on made-up values it fails (%v)", err)
	return ctx.Err()
}

// describeBatch sets the first dimension of the outputs, and of the inputs of a fixed
// batch, to one that varies.
func (m *Model) describeBatch() {
	for i := range m.Outputs {
		m.Outputs[i].Shape[0] = -1
	}
}

// learn takes the datatypes and sizes of outputs from a run.
func (m *Model) learn(outs []inference.Tensor) {
	for i, t := range outs {
		m.Outputs[i].Datatype, m.Outputs[i].Shape = t.Datatype, slices.Clone(t.Shape)
	}
}

// learnOthers runs the model with other sizes, to see which sizes of outputs vary.
func (m *Model) learnOthers(ctx context.Context) {
	p := prober{m: m, rows: probeRows - 1, other: 6}
	if !p.example() {
		return
	}
	p.plain()
	outs, err := p.try(ctx, p.works)
	if err != nil {
		return
	}
	m.tried = append(m.tried, sizesOf(p.works.Inputs, outs))
	for i, t := range outs {
		o := &m.Outputs[i]
		if len(o.Shape) != len(t.Shape) {
			o.Shape = []int64{-1}
			continue
		}
		for d := range o.Shape {
			if o.Shape[d] != t.Shape[d] {
				o.Shape[d] = -1
			}
		}
	}
}

// batchDimension returns how many rows the first dimension of all inputs may have, if
// they share it: -1 without a bound, 0 if they do not. fixed says that there is one
// number only.
func (m *Model) batchDimension() (rows int64, fixed bool) {
	if len(m.Inputs) == 0 {
		return 0, false
	}
	for i := range m.Inputs {
		dims := m.Inputs[i].Dims
		if len(dims) == 0 || dims[0] != m.Inputs[0].Dims[0] || dims[0].Symbol == "?" {
			return 0, false
		}
	}
	d := m.Inputs[0].Dims[0]
	if d.Fixed() {
		if d.Max < 2 {
			return 0, false
		}
		return d.Max, true
	}
	if d.Min > 1 { // a single row cannot be run
		return 0, false
	}
	return d.Max, false
}

// prober makes values and runs the model on them.
type prober struct {
	m           *Model
	rows, other int64 // the sizes of the first and of other dimensions that vary
	works       *Work
}

// example makes random values of the shapes that the model takes; false if they are not
// known.
func (p *prober) example() bool {
	w := &Work{Inputs: make([]inference.Tensor, len(p.m.Inputs))}
	shapes, ok := p.shapes()
	if !ok {
		return false
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range w.Inputs {
		in := &p.m.Inputs[i]
		n, ok := inference.NumElements(shapes[i])
		if !ok || n > 1<<28 {
			return false
		}
		t := inference.Tensor{Name: in.Name, Datatype: in.Datatype, Shape: shapes[i], Data: make([]byte, n*int64(in.Datatype.Size()))}
		Randomise(t.Data, in.Datatype, r)
		w.Inputs[i] = t
	}
	p.works = w
	return true
}

// shapes returns sizes that fit the bounds: rows along the dimension that is the batch if
// any is, and other elsewhere.
func (p *prober) shapes() ([][]int64, bool) {
	all := make([][]int64, len(p.m.Inputs))
	sizes := map[string]int64{}
	for i := range p.m.Inputs {
		in := &p.m.Inputs[i]
		if !in.Known {
			return nil, false
		}
		all[i] = make([]int64, len(in.Dims))
		for j, d := range in.Dims {
			n := d.Min
			if !d.Fixed() {
				n = p.other
				if j == 0 {
					n = p.rows
				}
				n = max(n, d.Min)
				if d.Max >= 0 {
					n = min(n, d.Max)
				}
			}
			all[i][j] = n
			if d.Symbol != "" {
				sizes[d.Symbol] = n
			}
		}
	}
	if p.m.runner == nil {
		return all, true
	}
	for symbol := range sizes {
		if !simple(symbol) {
			delete(sizes, symbol)
		}
	}
	// The package knows what its expressions come to.
	shapes, err := p.m.runner.ExampleShapes(sizes)
	if err != nil {
		if shapes, err = p.m.runner.ExampleShapes(nil); err != nil {
			return nil, false
		}
	}
	for i, s := range shapes {
		for j := range all[i] {
			all[i][j] = int64(s.Dim(j))
		}
	}
	return all, true
}

// simple reports whether an expression is one symbol.
func simple(symbol string) bool {
	for _, c := range symbol {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return symbol[0] > '9'
}

// plain makes all values zero, for models that refuse random ones.
func (p *prober) plain() {
	for i := range p.works.Inputs {
		clear(p.works.Inputs[i].Data)
	}
}

// try runs the model on a copy of a work, of the exact sizes that it has: some models
// write into their inputs.
func (p *prober) try(ctx context.Context, w *Work) ([]inference.Tensor, error) {
	w = &Work{Inputs: slices.Clone(w.Inputs)}
	for i := range w.Inputs {
		w.Inputs[i].Data = slices.Clone(w.Inputs[i].Data)
	}
	r, err := p.m.Run(ctx, w)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	outs := r.Outputs[0]
	for i := range outs { // kept longer than the result
		outs[i].Data = slices.Clone(outs[i].Data)
	}
	return outs, nil
}

func same(a, b []inference.Tensor) bool {
	for i := range a {
		if !slices.Equal(a[i].Shape, b[i].Shape) || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

// independent tries whether a row of the outputs depends on nothing but the same row of
// the inputs, bit for bit: not on the rows beside it, nor on its place. It returns the
// reason if not.
func (p *prober) independent(ctx context.Context, outs []inference.Tensor, fixed bool) string {
	n := p.works.Inputs[0].Shape[0]
	for i, t := range outs {
		if len(t.Shape) == 0 || t.Shape[0] != n {
			return fmt.Sprintf("requests are not batched: output %q has no dimension of rows", p.m.Outputs[i].Name)
		}
	}
	tries := []*Work{p.arranged(n, func(i int64) int64 { return (i + 1) % n })}
	if fixed {
		tries = append(tries, p.arranged(n, func(i int64) int64 {
			if i == 0 {
				return 0
			}
			return -1
		}))
	} else {
		for i := range n {
			tries = append(tries, p.arranged(1, func(int64) int64 { return i }))
		}
	}
	for k, w := range tries {
		got, err := p.try(ctx, w)
		if err != nil {
			return fmt.Sprintf("requests are not batched: a run of %d rows fails (%v)", w.Inputs[0].Shape[0], err)
		}
		for i := range outs {
			row := int64(len(outs[i].Data)) / n
			for at := range int64(len(got[i].Data)) / max(row, 1) {
				from := (at + 1) % n // the row of the first run
				switch {
				case k > 0 && fixed && at > 0:
					continue // a row of zeros
				case k > 0 && fixed:
					from = 0
				case k > 0:
					from = int64(k - 1)
				}
				if !bytes.Equal(got[i].Data[at*row:(at+1)*row], outs[i].Data[from*row:(from+1)*row]) {
					return fmt.Sprintf("requests are not batched: a row of output %q depends on other rows", p.m.Outputs[i].Name)
				}
			}
		}
	}
	return ""
}

// arranged returns a work of n rows, each that of the first work which from says; -1 is
// a row of zeros.
func (p *prober) arranged(n int64, from func(int64) int64) *Work {
	w := &Work{Inputs: slices.Clone(p.works.Inputs)}
	for i := range w.Inputs {
		t := &w.Inputs[i]
		row := int64(len(t.Data)) / t.Shape[0]
		data := make([]byte, n*row)
		for at := range n {
			if f := from(at); f >= 0 {
				copy(data[at*row:(at+1)*row], t.Data[f*row:])
			}
		}
		t.Data = data
		t.Shape = append([]int64{n}, t.Shape[1:]...)
	}
	return w
}

// Randomise fills in values that most models take: floats around zero, integers and
// booleans 0 or 1.
func Randomise(data []byte, d inference.Datatype, r *rand.Rand) {
	size := d.Size()
	for at := 0; at < len(data); at += size {
		switch d.DType() {
		case ir.F32:
			binary.LittleEndian.PutUint32(data[at:], math.Float32bits(float32(r.NormFloat64())))
		case ir.F64:
			binary.LittleEndian.PutUint64(data[at:], math.Float64bits(r.NormFloat64()))
		case ir.F16: // 1 to 2, of either sign
			binary.LittleEndian.PutUint16(data[at:], 0x3c00|uint16(r.Uint32())&0x83ff)
		case ir.BF16:
			binary.LittleEndian.PutUint16(data[at:], 0x3f80|uint16(r.Uint32())&0x807f)
		default:
			data[at] = byte(r.Uint32() & 1)
		}
	}
}
