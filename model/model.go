// Package model says what imported models have in common, whatever file they came from: packages
// torchexport and onnx return them. A model is a lazy program with weights: calling it records ops,
// so that it runs on every device, gradients flow through it, and it trains.
package model

import (
	"context"
	"fmt"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
)

// Model is an imported model. Its weights are the parameters and buffers of the nn.Module: package
// optim trains them, nn.Save and nn.Load keep them in files, nn.Freeze holds some of them still.
// SetTraining changes nothing: a program trains or evaluates as it was exported.
type Model interface {
	nn.Module
	// Call records the model's ops on the inputs, in the order of the signature, and returns its
	// outputs as lazy tensors. It blocks, until ctx ends, only where the program needs elements
	// while it is recorded, such as a count that decides a size. Wrong inputs are an
	// *loris.OpError that names the input.
	Call(ctx context.Context, inputs ...*loris.Tensor) ([]*loris.Tensor, error)
	// Signature says what the model takes and returns.
	Signature() *Signature
}

// Signature says what a model takes and returns.
type Signature struct {
	Inputs, Outputs []Arg
}

// Arg is an input or an output of a model.
type Arg struct {
	// Name is the name in the file, with the path of a nested one: "past.0.key".
	Name string
	// DType is the zero DType where the file does not tell.
	DType loris.DType
	// Dims are the dimensions; nil where the file does not tell.
	Dims []Dim
}

// Dim is one dimension of an input or output.
type Dim struct {
	// Size is the size, -1 for one that varies.
	Size int
	// Symbol is the name or expression of a size that varies ("batch", "2*s0"); the same symbol
	// stands for the same size. It is empty for fixed sizes and where the file has none.
	Symbol string
	// Min and Max bound a size that varies; Max is -1 without a bound.
	Min, Max int
}

// String returns the argument as "name: f32[batch in 2..16, 8]".
func (a Arg) String() string {
	dims := make([]string, len(a.Dims))
	for i, d := range a.Dims {
		dims[i] = d.String()
	}
	shape := "[" + strings.Join(dims, ", ") + "]"
	if a.Dims == nil {
		shape = "[?]"
	}
	typ := "?"
	if a.DType.Valid() {
		typ = a.DType.String()
	}
	return a.Name + ": " + typ + shape
}

// String returns the size, or the symbol with its bounds.
func (d Dim) String() string {
	if d.Size >= 0 {
		return fmt.Sprint(d.Size)
	}
	name := d.Symbol
	if name == "" {
		name = "?"
	}
	switch {
	case d.Max >= 0:
		return fmt.Sprintf("%s in %d..%d", name, d.Min, d.Max)
	case d.Min > 0:
		return fmt.Sprintf("%s in %d..", name, d.Min)
	}
	return name
}
