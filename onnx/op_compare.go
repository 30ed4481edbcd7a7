package onnx

import (
	"github.com/loris-ml/loris"
)

// compareRows are the elementwise ops that return bool, and those that choose by bool.
var compareRows = map[string]*row{
	"Equal":          compare(loris.Eq).folding(foldCompare(func(x, y float64) bool { return x == y })),
	"Greater":        compare(loris.Gt).folding(foldCompare(func(x, y float64) bool { return x > y })),
	"GreaterOrEqual": compare(loris.Ge).folding(foldCompare(func(x, y float64) bool { return x >= y })),
	"Less":           compare(loris.Lt).folding(foldCompare(func(x, y float64) bool { return x < y })),
	"LessOrEqual":    compare(loris.Le).folding(foldCompare(func(x, y float64) bool { return x <= y })),
	"And":            compare(loris.LogicalAnd).folding(foldCompare(func(x, y float64) bool { return x != 0 && y != 0 })),
	"Or":             compare(loris.LogicalOr).folding(foldCompare(func(x, y float64) bool { return x != 0 || y != 0 })),
	"Xor":            compare(loris.LogicalXor).folding(foldCompare(func(x, y float64) bool { return (x != 0) != (y != 0) })),
	"IsNaN":          one(1, 1, func(c *call, in []*value) *value { return out(tBool, floatOf(c, in[0]).IsNaN()) }),
	"IsInf":          one(1, 1, isInf),
	"Where": one(3, 3, func(c *call, in []*value) *value {
		return out(in[1].elem, loris.Where(c.tensor(in[0]), c.tensor(in[1]), c.tensor(in[2])))
	}).folding(foldWhere),
}

func compare(f func(x, y any) *loris.Tensor) *row {
	return one(2, 2, func(c *call, in []*value) *value {
		if in[0].elem != in[1].elem {
			c.fail("the operands are %v and %v, of one type they must be", in[0], in[1])
		}
		x, y := c.pair(in)
		return out(tBool, f(ordered(in[0].elem, x), ordered(in[1].elem, y)))
	})
}

// floatOf is a tensor in a dtype that computes: 8-bit floats are only held.
func floatOf(c *call, v *value) *loris.Tensor {
	t := c.tensor(v)
	if t.DType().IsF8() {
		return t.Cast(loris.F32)
	}
	return t
}

func isInf(c *call, in []*value) *value {
	t := floatOf(c, in[0])
	neg, pos := c.bool("detect_negative", true), c.bool("detect_positive", true)
	switch {
	case neg && pos:
		return out(tBool, t.IsInf())
	case neg:
		return out(tBool, t.Isneginf())
	case pos:
		return out(tBool, t.Isposinf())
	}
	return out(tBool, t.IsInf().LogicalAnd(t.Ne(t)))
}
