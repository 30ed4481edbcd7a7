package model

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Result is what one run gave each of its works.
type Result struct {
	// Outputs are the outputs by work and then in the model's order.
	Outputs [][]inference.Tensor
	// Input, Infer and Output are how long it took to gather the inputs, to run, and
	// to hand out the outputs.
	Input, Infer, Output time.Duration
	// WeightVersion is the set of weights that computed the outputs; empty for a model
	// whose weights cannot be replaced.
	WeightVersion string

	buffers []backend.Buffer
	users   atomic.Int32

	// What most runs have room in, of one work, few inputs and one output.
	room struct {
		inputs  [4]backend.Buffer
		works   [1][]inference.Tensor
		tensors [1]inference.Tensor
		sizes   [8]int64
	}
}

// Release gives the memory of the outputs back when every work has called it.
func (r *Result) Release() {
	if r.users.Add(-1) == 0 {
		release(r.buffers)
	}
}

func release(buffers []backend.Buffer) {
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
}

// Run computes the outputs of one work, or of several that are Compatible, whose rows
// together the model takes.
func (m *Model) Run(ctx context.Context, works ...*Work) (_ *Result, err error) {
	begin := time.Now()
	r := &Result{}
	inputs, rows, err := m.gather(works, r.room.inputs[:0])
	defer release(inputs)
	if err != nil {
		return nil, err
	}
	gathered := time.Now()
	outs, version, err := m.run(ctx, inputs)
	if err != nil {
		return nil, runError(err)
	}
	ran := time.Now()
	r.buffers, r.WeightVersion, r.Input, r.Infer = outs, version, gathered.Sub(begin), ran.Sub(gathered)
	r.users.Store(int32(len(works)))
	if err := m.handOut(ctx, r, works, rows); err != nil {
		release(outs)
		return nil, err
	}
	r.Output = time.Since(ran)
	return r, nil
}

// gather returns the inputs of a run: those of a single work as they are, otherwise
// the rows of all works one after another. rows is how many the run computes. The slice is
// that of room, if it has as much.
func (m *Model) gather(works []*Work, room []backend.Buffer) (inputs []backend.Buffer, rows int64, err error) {
	for _, w := range works {
		rows += w.Rows
	}
	total := rows
	if m.FixedRows {
		total = m.Rows
	}
	inputs = slices.Grow(room, len(m.Inputs))[:len(m.Inputs)]
	for i := range inputs {
		t := &works[0].Inputs[i]
		if len(works) == 1 && total == rows {
			inputs[i], err = wrap(t)
		} else {
			inputs[i], err = join(works, i, total)
		}
		if err != nil {
			return inputs, 0, fmt.Errorf("input %q: %w", m.Inputs[i].Name, err)
		}
	}
	return inputs, total, nil
}

// wrap returns a tensor of a run over a request's data, copied only where its address
// is none that elements can have.
func wrap(t *inference.Tensor) (backend.Buffer, error) {
	if uintptr(unsafe.Pointer(unsafe.SliceData(t.Data)))%uintptr(t.Datatype.Size()) == 0 {
		var few [8]int
		dims := few[:0]
		for _, d := range t.Shape {
			dims = append(dims, int(d))
		}
		b, err := aoti.FromBytes(t.Data, t.Datatype.DType(), dims...)
		if err != nil {
			return nil, badf("%w", err)
		}
		return b, nil
	}
	shape, err := shapeOf(t.Datatype.DType(), t.Shape)
	if err != nil {
		return nil, badf("%w", err)
	}
	return fill(shape, t.Data)
}

// join returns input i of all works in one tensor with total rows, the last ones zero.
func join(works []*Work, i int, total int64) (backend.Buffer, error) {
	t := works[0].Inputs[i]
	dims := append([]int64{total}, t.Shape[1:]...)
	shape, err := shapeOf(t.Datatype.DType(), dims)
	if err != nil {
		return nil, badf("%w", err)
	}
	parts := make([][]byte, len(works))
	for j, w := range works {
		parts[j] = w.Inputs[i].Data
	}
	return fill(shape, parts...)
}

// fill returns a new tensor with parts one after another, and then zeros.
func fill(shape ir.Shape, parts ...[]byte) (b backend.Buffer, err error) {
	defer func() {
		if e, ok := recover().(error); ok { // memory is short
			err = inference.Errorf(inference.ResourceExhausted, "%w", e)
		}
	}()
	b = aoti.NewBuffer(shape.DType(), shape.Dims()...)
	data, err := b.Bytes(context.Background())
	if err != nil {
		return b, err
	}
	at := 0
	for _, p := range parts {
		at += copy(data[at:], p)
	}
	clear(data[at:])
	return b, nil
}

// handOut cuts the outputs into those of each work.
func (m *Model) handOut(ctx context.Context, r *Result, works []*Work, rows int64) error {
	r.Outputs = slices.Grow(r.room.works[:0], len(works))[:len(works)]
	n := len(works) * len(r.buffers)
	tensors := slices.Grow(r.room.tensors[:0], n)[:n]
	sizes := r.room.sizes[:0]
	for j := range works {
		r.Outputs[j] = tensors[j*len(r.buffers) : (j+1)*len(r.buffers)]
	}
	for i, b := range r.buffers {
		data, err := b.Bytes(ctx)
		if err != nil {
			return err
		}
		s := b.Shape()
		datatype := inference.DatatypeOf(s.DType())
		if datatype == "" {
			return inference.Errorf(inference.Unimplemented, "output %q is %v, for which the protocol has no datatype", m.Outputs[i].Name, s.DType())
		}
		at := int64(0)
		for j, w := range works {
			from := len(sizes)
			for d := range s.Rank() {
				sizes = append(sizes, int64(s.Dim(d)))
			}
			t := inference.Tensor{Name: m.Outputs[i].Name, Datatype: datatype, Data: data, Shape: sizes[from:len(sizes):len(sizes)]}
			if m.Rows != 0 && w.Rows != rows {
				row := int64(len(data)) / rows
				t.Shape[0] = w.Rows
				t.Data = data[at*row : (at+w.Rows)*row]
				at += w.Rows
			}
			m.cut(&t, i, w)
			r.Outputs[j][i] = t
		}
	}
	return nil
}
