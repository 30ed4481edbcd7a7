package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Work is a request that fits the model: its inputs in the model's order.
type Work struct {
	Inputs []inference.Tensor
	// Rows is how many rows it has; 0 for a model without a batch dimension.
	Rows int64
	// Length and Padded are what the inputs had along the dimension that is padded, and what they
	// have now; 0 for a model without padding.
	Length, Padded int64

	room [4]inference.Tensor // for Inputs where these are few
}

func badf(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// Bind checks a request's inputs against the model and puts them in order.
func (m *Model) Bind(r *inference.Request) (*Work, error) {
	w := &Work{}
	if n := len(m.Inputs); n <= len(w.room) {
		w.Inputs = w.room[:n:n]
	} else {
		w.Inputs = make([]inference.Tensor, n)
	}
	if r.Raw {
		if err := m.bindRaw(r, w); err != nil {
			return nil, err
		}
		return w, m.finish(w)
	}
	for i := range r.Inputs {
		t := &r.Inputs[i]
		at, ok := m.inputs[t.Name]
		if !ok {
			return nil, badf("there is no input %q; the model takes %s", t.Name, m.listed())
		}
		if w.Inputs[at].Datatype != "" {
			return nil, badf("input %q is given twice", t.Name)
		}
		w.Inputs[at] = *t
	}
	m.addMask(w)
	var missing []string
	for i := range w.Inputs {
		if w.Inputs[i].Datatype == "" {
			missing = append(missing, fmt.Sprintf("%q", m.Inputs[i].Name))
		}
	}
	if missing != nil {
		return nil, badf("expected %d inputs, got %d: %s missing", len(m.Inputs), len(r.Inputs), strings.Join(missing, ", "))
	}
	return w, m.finish(w)
}

// finish checks a work and fills it up.
func (m *Model) finish(w *Work) error {
	if err := m.check(w); err != nil {
		return err
	}
	return m.pad(w)
}

func (m *Model) listed() string {
	if len(m.Inputs) == 0 {
		return "none"
	}
	var all []string
	for i := range m.Inputs {
		all = append(all, fmt.Sprintf("%q", m.Inputs[i].Name))
	}
	return strings.Join(all, ", ")
}

// bindRaw gives bytes alone the shape of the only input, of which one size may vary.
func (m *Model) bindRaw(r *inference.Request, w *Work) error {
	if len(m.Inputs) != 1 || !m.Inputs[0].Known {
		return badf("a raw request needs a model with one input of known shape; this one takes %s", m.listed())
	}
	in := &m.Inputs[0]
	t := inference.Tensor{Name: in.Name, Datatype: in.Datatype, Data: r.Inputs[0].Data}
	known, varied := int64(in.Datatype.Size()), -1
	for i, d := range in.Dims {
		size := d.Min
		if !d.Fixed() {
			if varied >= 0 {
				return badf("a raw request needs a model with one size that varies at most; input %q has more", in.Name)
			}
			varied, size = i, 1
		}
		t.Shape = append(t.Shape, size)
		known *= size
	}
	n := int64(len(t.Data))
	if varied >= 0 && known > 0 {
		t.Shape[varied] = n / known
		known *= t.Shape[varied]
	}
	if n != known {
		return badf("input %q: the %d bytes of the body are no tensor of shape %s", in.Name, n, in.text())
	}
	w.Inputs[0] = t
	return nil
}

// text returns the shape of an input for error messages.
func (in *Input) text() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range in.Dims {
		if i > 0 {
			b.WriteString(", ")
		}
		switch {
		case d.Fixed():
			fmt.Fprint(&b, d.Min)
		case d.Max < 0:
			fmt.Fprintf(&b, "%s from %d", d.Symbol, d.Min)
		default:
			fmt.Fprintf(&b, "%s in %d..%d", d.Symbol, d.Min, d.Max)
		}
	}
	b.WriteByte(']')
	return b.String()
}

// check compares datatypes and shapes with the model's, and counts the rows.
func (m *Model) check(w *Work) error {
	for i := range w.Inputs {
		in, t := &m.Inputs[i], &w.Inputs[i]
		if t.Datatype.DType() == ir.Invalid {
			return badf("input %q: models take no %s", in.Name, t.Datatype)
		}
		if in.Known {
			if err := m.checkInput(i, t); err != nil {
				return err
			}
		}
	}
	if err := m.checkSymbols(w); err != nil {
		return err
	}
	if m.Rows == 0 {
		return nil
	}
	for i := range w.Inputs {
		n := w.Inputs[i].Shape[0]
		if i > 0 && n != w.Rows {
			return badf("input %q has %d rows, input %q %d", m.Inputs[i].Name, n, m.Inputs[0].Name, w.Rows)
		}
		w.Rows = n
	}
	return nil
}

func (m *Model) checkInput(at int, t *inference.Tensor) error {
	in := &m.Inputs[at]
	if t.Datatype != in.Datatype {
		return badf("input %q: expected %s, got %s", in.Name, in.Datatype, t.Datatype)
	}
	fits := len(t.Shape) == len(in.Dims)
	for j := 0; fits && j < len(in.Dims); j++ {
		d := in.Dims[j]
		if (j == 0 && m.FixedRows) || m.padded(at, j) { // what is less is filled up
			d.Min = 0
		}
		fits = t.Shape[j] >= d.Min && (d.Max < 0 || t.Shape[j] <= d.Max)
	}
	if !fits {
		return badf("input %q: expected shape %s, got %v", in.Name, in.text(), t.Shape)
	}
	if n, ok := inference.NumElements(t.Shape); !ok || int64(len(t.Data)) != n*int64(t.Datatype.Size()) {
		return badf("input %q: expected the elements of %s%v, got %d bytes", in.Name, t.Datatype, t.Shape, len(t.Data))
	}
	return nil
}

// checkSymbols compares the sizes that share a name. What is an expression of other
// sizes is left to the model.
func (m *Model) checkSymbols(w *Work) error {
	for i := range m.Inputs {
		for j, d := range m.Inputs[i].Dims {
			if d.Symbol == "" || d.Symbol == "?" {
				continue
			}
			if of, at := m.first(d.Symbol); of != i || at != j {
				if a, b := w.Inputs[of].Shape[at], w.Inputs[i].Shape[j]; a != b {
					return badf("input %q: dimension %d is %d, but must be the %d of input %q, dimension %d", m.Inputs[i].Name, j, b, a, m.Inputs[of].Name, at)
				}
			}
		}
	}
	return nil
}

// first returns the first dimension of that symbol.
func (m *Model) first(symbol string) (input, dim int) {
	for i := range m.Inputs {
		for j, d := range m.Inputs[i].Dims {
			if d.Symbol == symbol {
				return i, j
			}
		}
	}
	return -1, -1
}

// Compatible reports whether two works can be rows of one run: all sizes but the first
// are the same.
func Compatible(a, b *Work) bool {
	for i := range a.Inputs {
		x, y := a.Inputs[i].Shape, b.Inputs[i].Shape
		if len(x) != len(y) {
			return false
		}
		for j := 1; j < len(x); j++ {
			if x[j] != y[j] {
				return false
			}
		}
	}
	return true
}

// FindOutput returns the position of an output by any of its names.
func (m *Model) FindOutput(name string) (int, error) {
	if i, ok := m.outputs[name]; ok {
		return i, nil
	}
	var all []string
	for i := range m.Outputs {
		all = append(all, fmt.Sprintf("%q", m.Outputs[i].Name))
	}
	return 0, badf("there is no output %q; the model returns %s", name, strings.Join(all, ", "))
}

// runError is a failure of a run as clients are told of it.
func runError(err error) error {
	var input *aoti.InputError
	if errors.As(err, &input) || errors.Is(err, ir.ErrShape) {
		return badf("%w", err)
	}
	return err
}
