package torchexport

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// factoryOps make tensors. Their dtype is the program's where the arguments do not tell.
var factoryOps = map[string]func(c *call) []any{
	"aten.arange":        arange,
	"aten.full":          func(c *call) []any { return one(c.filled(c.ints("size"), c.number("fill_value"), ir.Invalid)) },
	"aten.zeros":         func(c *call) []any { return one(c.filled(c.ints("size"), 0, ir.F32)) },
	"aten.ones":          func(c *call) []any { return one(c.filled(c.ints("size"), 1, ir.F32)) },
	"aten.empty":         func(c *call) []any { return one(c.filled(c.ints("size"), 0, ir.F32)) },
	"aten.empty_strided": func(c *call) []any { return one(c.filled(c.ints("size"), 0, ir.F32)) },
	"aten.empty_permuted": func(c *call) []any {
		return one(c.filled(c.ints("size"), 0, ir.F32))
	},
	"aten.scalar_tensor": func(c *call) []any { return one(c.filled([]int{}, c.number("s"), ir.F32)) },
	"aten.new_zeros":     func(c *call) []any { return one(c.newLike("size", 0)) },
	"aten.new_ones":      func(c *call) []any { return one(c.newLike("size", 1)) },
	"aten.new_empty":     func(c *call) []any { return one(c.newLike("size", 0)) },
	"aten.new_full":      func(c *call) []any { return one(c.newLike("size", c.number("fill_value"))) },
	"aten.new_empty_strided": func(c *call) []any {
		return one(c.newLike("size", 0))
	},
	"aten.zeros_like": func(c *call) []any { return one(c.like(0)) },
	"aten.ones_like":  func(c *call) []any { return one(c.like(1)) },
	"aten.empty_like": func(c *call) []any { return one(c.like(0)) },
	"aten.fill":       func(c *call) []any { return one(c.like(c.operand("value"))) },
	"aten.full_like":  func(c *call) []any { return one(c.like(c.operand("fill_value"))) },
	"aten.eye": func(c *call) []any {
		n := c.int("n")
		return one(c.do("eye", n, c.intOr("m", n), c.dtypeOr(ir.F32)))
	},
	"aten.linspace": func(c *call) []any { return one(c.linspace(c.dtypeOr(ir.F32))) },
	"aten.logspace": func(c *call) []any {
		return one(c.do("pow", c.floatOr("base", 10), c.linspace(ir.F64)))
	},
	"aten.tril_indices": func(c *call) []any { return one(c.triangle(true)) },
	"aten.triu_indices": func(c *call) []any { return one(c.triangle(false)) },
	"aten.rand":         random(func(c *call, m loris.Maker) *loris.Tensor { return m.Rand(c.ints("size")...) }),
	"aten.randn":        random(func(c *call, m loris.Maker) *loris.Tensor { return m.Randn(c.ints("size")...) }),
	"aten.rand_like":    random(func(c *call, m loris.Maker) *loris.Tensor { return m.Rand(c.value("self").Dims()...) }),
	"aten.randn_like":   random(func(c *call, m loris.Maker) *loris.Tensor { return m.Randn(c.value("self").Dims()...) }),
	"aten.randint": random(func(c *call, m loris.Maker) *loris.Tensor {
		return m.With(loris.As(ir.I64)).RandInt(c.intOr("low", 0), c.int("high"), c.ints("size")...)
	}),
	"aten.randperm":  random(func(c *call, m loris.Maker) *loris.Tensor { return m.With(loris.As(ir.I64)).RandPerm(c.int("n")) }),
	"aten.bernoulli": func(c *call) []any { return one(c.value("self").Bernoulli()) },
}

// number returns a Python number.
func (c *call) number(name string) any {
	v, _ := c.arg(name)
	switch v.(type) {
	case int64, float64, bool:
		return plainValue(v)
	}
	panic(c.wrong(name, "a number", v))
}

// filled returns a tensor of one number. Without a dtype the number tells it.
func (c *call) filled(size []int, v any, def ir.DType) *loris.Tensor {
	d := c.dtypeOr(def)
	if d == ir.Invalid {
		d = map[bool]ir.DType{true: ir.F32, false: ir.I64}[isFloat(v)]
		if _, isBool := v.(bool); isBool {
			d = ir.Bool
		}
	}
	return c.do("full", size, numberFor(v, d), d)
}

// numberFor returns a number as the attribute of full: an int or a float64.
func numberFor(v any, d ir.DType) any {
	if b, ok := v.(bool); ok {
		return int(bit(b))
	}
	if f, ok := v.(float64); ok && d == ir.Bool {
		return int(bit(f != 0))
	}
	if n, ok := v.(int); ok && d == ir.Bool {
		return int(bit(n != 0))
	}
	return v
}

func isFloat(v any) bool {
	_, ok := v.(float64)
	return ok
}

func (c *call) newLike(size string, v any) *loris.Tensor {
	return c.filled(c.ints(size), v, c.value("self").DType())
}

// like returns a tensor of self's dimensions of one number or a tensor of rank 0.
func (c *call) like(v any) *loris.Tensor {
	x := c.value("self")
	if t, ok := v.(*loris.Tensor); ok {
		return castTo(t, c.dtypeOr(x.DType())).Expand(x.Dims()...)
	}
	return c.filled(x.Dims(), v, x.DType())
}

// linspace returns steps numbers from start to end, either of which may be a tensor of rank 0.
func (c *call) linspace(d ir.DType) *loris.Tensor {
	start, end, steps := c.operand("start"), c.operand("end"), c.int("steps")
	_, t1 := start.(*loris.Tensor)
	_, t2 := end.(*loris.Tensor)
	if !t1 && !t2 {
		return c.do("linspace", start, end, steps, d)
	}
	from, to := c.wide(start, ir.F64), c.wide(end, ir.F64)
	return castTo(from.Add(to.Sub(from).Mul(c.do("linspace", 0.0, 1.0, steps, ir.F64))), d)
}

func arange(c *call) []any {
	var start, step any = 0, 1
	if _, ok := c.arg("start"); ok {
		start = c.number("start")
	}
	if _, ok := c.arg("step"); ok {
		step = c.number("step")
	}
	end := c.number("end")
	d := ir.I64
	if isFloat(start) || isFloat(end) || isFloat(step) {
		d = ir.F32
	}
	return one(c.do("arange", start, end, step, c.dtypeOr(d)))
}

// triangle returns the places of the lower or upper triangle of a matrix, [2, count].
func (c *call) triangle(lower bool) *loris.Tensor {
	rows, cols, offset := c.int("row"), c.int("col"), c.intOr("offset", 0)
	row := c.do("arange", 0, rows, 1, ir.I64).Reshape(rows, 1)
	col := c.do("arange", 0, cols, 1, ir.I64).Reshape(1, cols)
	mask := col.Sub(row).Ge(offset)
	if lower {
		mask = col.Sub(row).Le(offset)
	}
	count := 0
	for i := range rows {
		if lower {
			count += min(max(i+offset+1, 0), cols)
		} else {
			count += cols - min(max(i+offset, 0), cols)
		}
	}
	return mask.NonzeroStatic(count).Transpose(0, 1)
}

// random makes random numbers of the argument dtype; without one those of the program's are cast to.
func random(make func(c *call, m loris.Maker) *loris.Tensor) func(c *call) []any {
	return func(c *call) []any {
		d := c.dtypeOr(ir.F32)
		if !d.IsFloat() {
			d = ir.F32
		}
		return one(make(c, c.maker().With(loris.As(d))))
	}
}
