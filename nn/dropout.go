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

// NewDropout returns a dropout of elements with probability p, in [0, 1]. The
// others are divided by 1-p. Another p never recompiles.
func NewDropout(p float64) *Dropout {
	if !(p >= 0 && p <= 1) {
		panic(misuse("Dropout", "p is %v, must be in [0, 1]", p))
	}
	return &Dropout{p: p}
}

// Forward drops elements of x, of a floating dtype.
func (l *Dropout) Forward(x *loris.Tensor) *loris.Tensor {
	if !l.Training() {
		return x
	}
	return x.Dropout(l.p)
}
