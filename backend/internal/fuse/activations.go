package fuse

import (
	"math"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// Activation is a function of one element that kernels apply to their results.
type Activation uint8

// The activations that epilogues may end with.
const (
	Identity Activation = iota
	ReLU                // max(x, 0)
	GELU                // x·Φ(x)
	GELUTanh            // x·Φ(x) by the approximation with tanh
	SiLU                // x·sigmoid(x)
	Sigmoid             // 1/(1+e^-x)
	Tanh                //
)

// expr is an expression of one value in primitives. The zero expr is the value
// itself.
type expr struct {
	op     ir.Op
	in     []*expr
	number bool
	value  float64
}

func of(op ir.Op, in ...*expr) *expr { return &expr{op: op, in: in} }

func num(v float64) *expr { return &expr{number: true, value: v} }

// activations are what primitives make of each activation: the first form is the
// decomposition of the op of its name, others are how it is commonly written out.
// Factors of products and summands of sums match in either order.
var activations = activationTable()

type activationForm struct {
	act  Activation
	expr *expr
}

func activationTable() []activationForm {
	x := &expr{}
	half, one := num(0.5), num(1)
	erf := of(aten.Erf, of(aten.Mul, x, num(1/math.Sqrt2)))
	erfOfRatio := of(aten.Erf, of(aten.Div, x, num(math.Sqrt2)))
	cube := of(aten.Mul, of(aten.Mul, x, x), x)
	tanh := of(aten.Tanh, of(aten.Mul, of(aten.Add, x, of(aten.Mul, cube, num(0.044715))), num(math.Sqrt2/math.SqrtPi)))
	sigmoid := of(aten.Sigmoid, x)
	return []activationForm{
		{ReLU, of(aten.Relu, x)},
		{GELU, of(aten.Mul, of(aten.Mul, x, half), of(aten.Add, erf, one))},
		{GELU, of(aten.Mul, of(aten.Mul, x, half), of(aten.Add, erfOfRatio, one))},
		{GELU, of(aten.Mul, x, of(aten.Mul, of(aten.Add, erf, one), half))},
		{GELUTanh, of(aten.Mul, of(aten.Mul, x, half), of(aten.Add, tanh, one))},
		{GELUTanh, of(aten.Mul, x, of(aten.Mul, of(aten.Add, tanh, one), half))},
		{SiLU, of(aten.Mul, x, sigmoid)},
		{Sigmoid, sigmoid},
		{Tanh, of(aten.Tanh, x)},
	}
}
