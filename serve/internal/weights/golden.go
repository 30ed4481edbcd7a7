package weights

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Golden are inputs with which a set of weights must compute before requests see it.
// Every float that comes of them must be finite. Outputs that are given must come
// within the tolerance |got-want| <= Abs + Rel*|want|, those of other dtypes exactly.
type Golden struct {
	Inputs   []backend.Buffer
	Outputs  []backend.Buffer // by output; nil for one that is not compared
	Abs, Rel float64
}

// ReadGolden reads golden inputs from a safetensors file: a tensor for each input by
// its name, and for outputs that are to be compared. Its metadata has the tolerances
// "atol" and "rtol", which are 0 otherwise. No file is no golden inputs.
func ReadGolden(path string, inputs, outputs []string) (*Golden, error) {
	f, err := safetensors.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g := &Golden{Inputs: make([]backend.Buffer, len(inputs)), Outputs: make([]backend.Buffer, len(outputs))}
	for name, into := range map[string]*float64{"atol": &g.Abs, "rtol": &g.Rel} {
		if text, ok := f.Metadata()[name]; ok {
			if *into, err = strconv.ParseFloat(text, 64); err != nil || !(*into >= 0) {
				return nil, fmt.Errorf("%s: the tolerance %s is %q", path, name, text)
			}
		}
	}
	found := 0
	for i, name := range inputs {
		if g.Inputs[i], err = tensorOf(f, name); err != nil {
			return nil, fmt.Errorf("%s: input %q: %w", path, name, err)
		}
		found++
	}
	for i, name := range outputs {
		if g.Outputs[i], err = tensorOf(f, name); err == nil {
			found++
		} else if !errors.Is(err, safetensors.ErrNotFound) {
			return nil, fmt.Errorf("%s: output %q: %w", path, name, err)
		}
	}
	if all := f.Tensors(); found != len(all) {
		return nil, fmt.Errorf("%s: it has %d tensors, and only %d of them are inputs %q or outputs %q", path, len(all), found, inputs, outputs)
	}
	return g, nil
}

func tensorOf(f *safetensors.File, name string) (backend.Buffer, error) {
	shape, data, err := tensorfile.Read(f, name)
	if err != nil {
		return nil, err
	}
	return aoti.FromBytes(data, shape.DType(), shape.Dims()...)
}

// try runs the inputs on a set, and says what is not good about what comes.
func (g *Golden) try(ctx context.Context, c *container.Container, name string) error {
	if g == nil {
		return nil
	}
	outs, err := c.RunVersion(ctx, name, g.Inputs, nil)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return inference.Errorf(inference.InvalidArgument, "weights %q do not compute the golden inputs: %w", name, err)
	}
	defer releaseOuts(outs)
	names := c.OutputNames()
	for i, got := range outs {
		if err := g.compare(ctx, got, g.Outputs[i]); err != nil {
			return inference.Errorf(inference.InvalidArgument, "weights %q do not pass the golden inputs: output %q: %w", name, names[i], err)
		}
	}
	return nil
}

func releaseOuts(outs []backend.Buffer) {
	for _, b := range outs {
		b.Release()
	}
}

func (g *Golden) compare(ctx context.Context, got, want backend.Buffer) error {
	data, err := got.Bytes(ctx)
	if err != nil {
		return err
	}
	d := got.Shape().DType()
	if d.IsFloat() {
		for i := range got.Shape().Numel() {
			if v := elements.Float(d, data, i); math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("element %d is %v", i, v)
			}
		}
	}
	if want == nil {
		return nil
	}
	if got.Shape() != want.Shape() {
		return fmt.Errorf("%w: got %v, the golden output is %v", ir.ErrShape, got.Shape(), want.Shape())
	}
	wanted, err := want.Bytes(ctx)
	if err != nil {
		return err
	}
	if !d.IsFloat() {
		if !bytes.Equal(data, wanted) {
			return errors.New("it differs from the golden output")
		}
		return nil
	}
	for i := range got.Shape().Numel() {
		g0, w := elements.Float(d, data, i), elements.Float(d, wanted, i)
		if !(math.Abs(g0-w) <= g.Abs+g.Rel*math.Abs(w)) {
			return fmt.Errorf("element %d is %v, the golden output has %v (atol %v, rtol %v)", i, g0, w, g.Abs, g.Rel)
		}
	}
	return nil
}
