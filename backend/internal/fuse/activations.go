package fuse

import (
	"math"

	"github.com/loris-ml/loris/ir"
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
	erf := of(ir.OpErf, of(ir.OpMul, x, num(1/math.Sqrt2)))
	erfOfRatio := of(ir.OpErf, of(ir.OpDiv, x, num(math.Sqrt2)))
	cube := of(ir.OpMul, of(ir.OpMul, x, x), x)
	tanh := of(ir.OpTanh, of(ir.OpMul, of(ir.OpAdd, x, of(ir.OpMul, cube, num(0.044715))), num(math.Sqrt2/math.SqrtPi)))
	sigmoid := of(ir.OpSigmoid, x)
	return []activationForm{
		{ReLU, of(ir.OpRelu, x)},
		{GELU, of(ir.OpMul, of(ir.OpMul, x, half), of(ir.OpAdd, erf, one))},
		{GELU, of(ir.OpMul, of(ir.OpMul, x, half), of(ir.OpAdd, erfOfRatio, one))},
		{GELU, of(ir.OpMul, x, of(ir.OpMul, of(ir.OpAdd, erf, one), half))},
		{GELUTanh, of(ir.OpMul, of(ir.OpMul, x, half), of(ir.OpAdd, tanh, one))},
		{GELUTanh, of(ir.OpMul, x, of(ir.OpMul, of(ir.OpAdd, tanh, one), half))},
		{SiLU, of(ir.OpMul, x, sigmoid)},
		{Sigmoid, sigmoid},
		{Tanh, of(ir.OpTanh, x)},
	}
}
