package torchexport

import (
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// The methods here read the arguments of an op by ATen's names. One that is missing or of another
// type is a mistake in the program.

// arg returns an argument; false if it is not given or None.
func (c *call) arg(name string) (any, bool) {
	for _, a := range c.args {
		if a.name == name {
			return a.value, a.value != nil
		}
	}
	return nil, false
}

func (c *call) wrong(name, want string, v any) *ir.OpError {
	return misuse(c.n.target, "argument %q should be %s, not %v", name, want, describeValue(v))
}

// tensor returns a tensor that must be given.
func (c *call) tensor(name string) *tensor {
	v, _ := c.arg(name)
	x, ok := v.(*tensor)
	if !ok {
		panic(c.wrong(name, "a tensor", v))
	}
	return x
}

// value is the value of tensor.
func (c *call) value(name string) *loris.Tensor { return c.tensor(name).value() }

// optional returns a tensor that may be None.
func (c *call) optional(name string) *loris.Tensor {
	if _, ok := c.arg(name); !ok {
		return nil
	}
	return c.value(name)
}

// operand returns a tensor or a number.
func (c *call) operand(name string) any {
	v, ok := c.arg(name)
	if !ok {
		panic(c.wrong(name, "a tensor or a number", v))
	}
	return plainValue(v)
}

// operandOr is operand with a value for one that is not given.
func (c *call) operandOr(name string, def any) any {
	if _, ok := c.arg(name); !ok {
		return def
	}
	return c.operand(name)
}

// tensors returns a list of tensors.
func (c *call) tensors(name string) []*loris.Tensor {
	v, _ := c.arg(name)
	items, ok := v.([]any)
	if !ok {
		panic(c.wrong(name, "a list of tensors", v))
	}
	out := make([]*loris.Tensor, len(items))
	for i, item := range items {
		x, ok := item.(*tensor)
		if !ok {
			panic(c.wrong(name, "a list of tensors", v))
		}
		out[i] = x.value()
	}
	return out
}

func (c *call) int(name string) int {
	v, _ := c.arg(name)
	n, ok := toInt(v)
	if !ok {
		panic(c.wrong(name, "an integer", v))
	}
	return n
}

func (c *call) intOr(name string, def int) int {
	if _, ok := c.arg(name); !ok {
		return def
	}
	return c.int(name)
}

// ints returns a list of integers; one integer is a list of one.
func (c *call) ints(name string) []int {
	v, _ := c.arg(name)
	out, ok := toInts(v)
	if !ok {
		panic(c.wrong(name, "a list of integers", v))
	}
	return out
}

func (c *call) intsOr(name string, def []int) []int {
	if _, ok := c.arg(name); !ok {
		return def
	}
	return c.ints(name)
}

func (c *call) floatOr(name string, def float64) float64 {
	v, ok := c.arg(name)
	if !ok {
		return def
	}
	f, ok := toFloat(v)
	if !ok {
		panic(c.wrong(name, "a number", v))
	}
	return f
}

func (c *call) boolOr(name string, def bool) bool {
	v, ok := c.arg(name)
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		panic(c.wrong(name, "a truth value", v))
	}
	return b
}

func (c *call) stringOr(name, def string) string {
	v, ok := c.arg(name)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		panic(c.wrong(name, "a string", v))
	}
	return s
}

// dtypeOr returns the argument dtype.
func (c *call) dtypeOr(def ir.DType) ir.DType {
	v, ok := c.arg("dtype")
	if !ok {
		return def
	}
	d, ok := v.(ir.DType)
	if !ok {
		panic(c.wrong("dtype", "a dtype", v))
	}
	return d
}

func toInt(v any) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int(v), true
	case bool:
		return int(bit(v)), true
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return 0, false
}

func toInts(v any) ([]int, bool) {
	if n, ok := toInt(v); ok {
		return []int{n}, true
	}
	items, ok := v.([]any)
	out := make([]int, len(items))
	for i, item := range items {
		n, isInt := toInt(item)
		ok = ok && isInt
		out[i] = n
	}
	return out, ok
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case bool:
		return float64(bit(v)), true
	}
	return 0, false
}

// describeValue says what a value of a program is.
func describeValue(v any) any {
	switch v := v.(type) {
	case nil:
		return "None"
	case *tensor:
		return "a tensor " + v.t.Shape().String()
	case *block:
		return "a graph"
	case []any:
		return "a list"
	}
	return v
}
