package loris

import (
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// The ops whose optional arguments choose between rows of the table.

// Add records t + other, elementwise with broadcasting and promotion; other is
// a *Tensor or a number. Alpha multiplies other first. ATen's add.
func (t *Tensor) Add(other any, opts ...AddOption) *Tensor {
	return t.binary(aten.Add, scaled(aten.Add, other, opts))
}

// Sub records t - other, elementwise with broadcasting and promotion; other is
// a *Tensor or a number. Alpha multiplies other first. Not defined for two
// bools. ATen's sub.
func (t *Tensor) Sub(other any, opts ...SubOption) *Tensor {
	return t.binary(aten.Sub, scaled(aten.Sub, other, opts))
}

// Div records t / other, elementwise with broadcasting and promotion; other is
// a *Tensor or a number. It is the true division, which gives floats, unless
// RoundingMode is "floor" or "trunc". ATen's div.
func (t *Tensor) Div(other any, opts ...DivOption) *Tensor {
	return t.binary(division(opts), other)
}

// Add is [Tensor.Add] as a function, whose first operand may be a number, too.
func Add(x, y any, opts ...AddOption) *Tensor {
	return binaryOp(aten.Add, x, scaled(aten.Add, y, opts))
}

// Sub is [Tensor.Sub] as a function, whose first operand may be a number, too.
func Sub(x, y any, opts ...SubOption) *Tensor {
	return binaryOp(aten.Sub, x, scaled(aten.Sub, y, opts))
}

// Div is [Tensor.Div] as a function, whose first operand may be a number, too.
func Div(x, y any, opts ...DivOption) *Tensor { return binaryOp(division(opts), x, y) }

// scaled returns an operand times the options alpha of add or sub. It is inlined where
// there are none, which is the rule.
func scaled[O any](op ir.Op, y any, opts []O) any {
	if len(opts) == 0 {
		return y
	}
	return timesAlpha(op, y, opts)
}

func timesAlpha[O any](op ir.Op, y any, opts []O) any {
	var named [maxNamed]ir.Named
	for _, n := range appendOptions(named[:0], op, opts) {
		alpha := n.Value
		if t, ok := alpha.(*executor.Tensor); ok {
			alpha = (*Tensor)(t)
		}
		if _, ok := y.(*Tensor); ok || alpha != n.Value {
			y = binaryOp(aten.Mul, y, alpha)
			continue
		}
		y = product(op, y, alpha)
	}
	return y
}

// product multiplies two plain numbers; a float makes it a float.
func product(op ir.Op, x, y any) any {
	a, okA := ir.ScalarValue(x)
	b, okB := ir.ScalarValue(y)
	if !okA || !okB {
		panic(ir.NewOpError(op.String(), ErrArg, nil, "operand %v (%T) or alpha %v (%T) is not a number", x, x, y, y))
	}
	p, q := a.Node.Leaf().(*ir.ScalarLeaf), b.Node.Leaf().(*ir.ScalarLeaf)
	if !p.IsFloat && !q.IsFloat {
		return p.Int * q.Int
	}
	return p.AsFloat() * q.AsFloat()
}

// division returns the op for the option rounding_mode.
func division(opts []DivOption) ir.Op {
	if len(opts) == 0 {
		return aten.Div
	}
	op := aten.Div
	var named [maxNamed]ir.Named
	for _, n := range appendOptions(named[:0], op, opts) {
		switch n.Value {
		case "floor":
			op = aten.FloorDivide
		case "trunc":
			op = aten.TruncDivide
		default:
			panic(ir.NewOpError("div", ErrArg, nil, "rounding_mode %q is neither \"floor\" nor \"trunc\"", n.Value))
		}
	}
	return op
}
