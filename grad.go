package loris

import (
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Grad records the gradients of out, summed over its elements, with respect to each of
// wrt, which are *Variable or *Tensor, and returns them in order. The gradient is zero
// where out does not depend on one. Gradients are ordinary tensors and can be
// differentiated again. Mistakes panic with an *OpError.
//
// The gradient with respect to a variable is taken at its present value, so Grad comes
// before Assign.
func Grad(out *Tensor, wrt ...any) []*Tensor { return GradOf([]*Tensor{out}, nil, wrt...) }

// GradOf is Grad of several outputs, weighted by cotangents; nil, or a nil entry, means
// ones.
func GradOf(outs, cotangents []*Tensor, wrt ...any) []*Tensor {
	if len(outs) == 0 {
		panic(ir.NewOpError("grad", ErrArg, nil, "no outputs are given"))
	}
	if len(cotangents) > len(outs) {
		panic(ir.NewOpError("grad", ErrArg, nil, "%d cotangents are given for %d outputs", len(cotangents), len(outs)))
	}
	for _, o := range outs {
		o.session("grad")
	}
	ts := make([]*executor.Tensor, len(wrt))
	for i, w := range wrt {
		switch w := w.(type) {
		case *Tensor:
			w.session("grad")
			ts[i] = w.ex()
		case *Variable:
			ts[i] = w.ValueIn(outs[0].Session()).ex()
		default:
			panic(ir.NewOpError("grad", ErrArg, nil, "argument %d (%T) is neither a *Tensor nor a *Variable", i, w))
		}
	}
	return wrapAll(outs[0].session("grad").Grad(newTensor, handles(outs), handles(cotangents), ts))
}

// ValueAndGrad calls fn and returns its result and the gradients of the result with
// respect to the variables.
func ValueAndGrad(fn func() *Tensor, vars ...*Variable) (*Tensor, []*Tensor) {
	out := fn()
	wrt := make([]any, len(vars))
	for i, v := range vars {
		wrt[i] = v
	}
	return out, Grad(out, wrt...)
}
