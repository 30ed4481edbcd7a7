package nn

import (
	"github.com/loris-ml/loris"
)

// Dropout sets elements to zero at random in training and is the identity in
// evaluation, as torch.nn.Dropout.
type Dropout struct {
	Base
	p float64
}

// NewDropout returns a layer that sets elements to zero with probability p, in [0, 1], and
// divides the others by 1-p. Another p never recompiles.
func NewDropout(p float64) *Dropout {
	if !(p >= 0 && p <= 1) {
		panic(misuse("Dropout", "p is %v, must be in [0, 1]", p))
	}
	return &Dropout{p: p}
}

// Forward applies the layer to x, of a floating dtype.
func (l *Dropout) Forward(x *loris.Tensor) *loris.Tensor {
	if !l.Training() {
		return x
	}
	return x.Dropout(l.p)
}
