package nn

import (
	"strconv"

	"github.com/loris-ml/loris"
)

// Sequential applies layers one after another. Their names are their numbers:
// "0.weight", as torch.nn.Sequential.
type Sequential struct {
	Base
	layers []Layer
}

// NewSequential returns the sequence of the layers; Func turns a function into one.
// Without layers it is the identity.
func NewSequential(layers ...Layer) *Sequential {
	s := &Sequential{layers: layers}
	for i, l := range layers {
		s.Add(strconv.Itoa(i), l)
	}
	return s
}

// Forward applies the layers to x in order.
func (s *Sequential) Forward(x *loris.Tensor) *loris.Tensor {
	for _, l := range s.layers {
		x = l.Forward(x)
	}
	return x
}

// Len returns the number of layers.
func (s *Sequential) Len() int { return len(s.layers) }

// Layer returns layer i.
func (s *Sequential) Layer(i int) Layer { return s.layers[i] }
