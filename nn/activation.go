package nn

import (
	"github.com/loris-ml/loris"
)

// ReLU is max(x, 0).
func ReLU(x *loris.Tensor) *loris.Tensor { return x.Relu() }

// GELU is x·Φ(x) with Φ the normal distribution.
func GELU(x *loris.Tensor) *loris.Tensor { return x.Gelu() }

// GELUTanh is GELU with the usual approximation of Φ by tanh.
func GELUTanh(x *loris.Tensor) *loris.Tensor { return x.Gelu(loris.Approximate("tanh")) }

// SiLU is x·sigmoid(x).
func SiLU(x *loris.Tensor) *loris.Tensor { return x.Silu() }

// Sigmoid is 1/(1+exp(-x)).
func Sigmoid(x *loris.Tensor) *loris.Tensor { return x.Sigmoid() }

// Tanh is the hyperbolic tangent.
func Tanh(x *loris.Tensor) *loris.Tensor { return x.Tanh() }

// Flatten keeps the batch dimension and makes one of all others.
func Flatten(x *loris.Tensor) *loris.Tensor { return x.Flatten(loris.StartDim(1)) }

// Softmax returns the softmax over the given dimension.
func Softmax(dim int) Func {
	return func(x *loris.Tensor) *loris.Tensor { return x.Softmax(dim) }
}

// MaxPool2d returns max pooling over windows of kernel by kernel elements that do
// not overlap.
func MaxPool2d(kernel int) Func {
	return func(x *loris.Tensor) *loris.Tensor { return x.MaxPool2d([]int{kernel}) }
}

// AvgPool2d returns average pooling over windows of kernel by kernel elements
// that do not overlap.
func AvgPool2d(kernel int) Func {
	return func(x *loris.Tensor) *loris.Tensor { return x.AvgPool2d([]int{kernel}) }
}
