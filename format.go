package loris

import (
	"context"
	"fmt"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/npformat"
	"github.com/loris-ml/loris/internal/tracing"
)

// String describes the tensor without waiting or syncing: its elements as NumPy prints
// them if they are computed, otherwise its shape, its device and what it waits for.
func (t *Tensor) String() string {
	if t == nil || t.ex().Session() == nil {
		return "tensor(nil)"
	}
	if err := t.ex().Session().Readable(t.ex()); err != nil {
		return fmt.Sprintf("tensor(error: %v)", err)
	}
	d := t.ex().Data()
	switch {
	case tracing.Inside():
		return fmt.Sprintf("tensor(%v, %v, in a function that is being compiled)", t.Shape(), t.Device())
	case d == nil:
		what := "number"
		if op := t.ex().Op(); op != 0 {
			what = op.String()
		}
		return fmt.Sprintf("tensor(%v, %v, pending %s)", t.Shape(), t.Device(), what)
	case !d.Ready():
		return fmt.Sprintf("tensor(%v, %v, running)", t.Shape(), t.Device())
	}
	s, err := t.Text(context.Background())
	if err != nil {
		return fmt.Sprintf("tensor(%v, %v, error: %v)", t.Shape(), t.Device(), err)
	}
	return s
}

// Text syncs the tensor if it is pending, waits for its elements, and returns them as
// NumPy's array2string prints them, with the shape and device.
func (t *Tensor) Text(ctx context.Context) (string, error) {
	if err := ir.CheckContext("text", ctx); err != nil {
		return "", err
	}
	s, err := t.session("read").ReadableShape(t.ex())
	if err != nil {
		return "", err
	}
	b, err := t.ex().Fetch(ctx)
	if err != nil {
		return "", err
	}
	const prefix = "tensor("
	suffix := fmt.Sprintf(", %v, %v)", s, t.Device())
	if s.DType() == C64 || s.DType() == C128 {
		return fmt.Sprintf("%s%d bytes%s", prefix, len(b), suffix), nil
	}
	o := npformat.Defaults()
	o.Separator, o.Prefix = ", ", prefix
	var out strings.Builder
	out.WriteString(prefix)
	out.WriteString(npformat.Format(s.Dims(), printed(b, s.DType()), o))
	// The suffix has a line of its own where it would run over the width.
	text := out.String()
	if last := len(text) - 1 - strings.LastIndexByte(text, '\n'); last+len(suffix) > o.LineWidth {
		suffix = ",\n" + strings.Repeat(" ", len(prefix)) + strings.TrimPrefix(suffix, ", ")
	}
	return text + suffix, nil
}

// printed returns the elements for npformat.
func printed(b []byte, d DType) npformat.Elem {
	v := elemsOf(b, d)
	e := npformat.Elem{Int: v.int, Float: v.float}
	switch d {
	case Bool:
		e.Kind = npformat.Bool
	case F64:
		e.Kind = npformat.Float64
	case F16:
		e.Kind = npformat.Float16
	case BF16:
		e.Kind = npformat.BFloat16
	case F32, F8E4M3FN, F8E5M2:
		e.Kind = npformat.Float32
	default:
		e.Kind = npformat.Int
	}
	return e
}
