package torchexport

import (
	"math"
)

// sizeOps ask for sizes, or check what needs no check here.
var sizeOps = map[string]func(c *call) []any{
	"aten.sym_size.int": func(c *call) []any {
		t, dim := c.value("self"), c.int("dim")
		return []any{int64(t.Dim(dim))}
	},
	"aten.sym_numel":                    func(c *call) []any { return []any{int64(c.value("self").Numel())} },
	"aten.numel":                        func(c *call) []any { return []any{int64(c.value("self").Numel())} },
	"aten.sym_storage_offset":           func(*call) []any { return []any{int64(0)} },
	"aten.sym_stride.int":               symStride,
	"aten._assert_tensor_metadata":      nothing,
	"aten._assert_scalar":               nothing,
	"aten._assert_async":                nothing,
	"aten.sym_constrain_range":          nothing,
	"aten.sym_constrain_range_for_size": nothing,
	"aten._functional_assert_async":     sameOrNothing,
	"aten._functional_assert_scalar":    sameOrNothing,
	"aten.is_nonzero":                   nothing,
}

// nothing is an op that only checks.
func nothing(c *call) []any { return make([]any, len(c.n.outs)) }

// sameOrNothing returns the token that an assertion passes on.
func sameOrNothing(c *call) []any {
	if v, ok := c.arg("dep_token"); ok {
		return []any{v}
	}
	return nothing(c)
}

// symStride is the stride of a dense tensor.
func symStride(c *call) []any {
	dims := c.value("self").Dims()
	dim := c.int("dim")
	if dim < 0 {
		dim += len(dims)
	}
	n := int64(1)
	for i := max(dim+1, 0); i < len(dims); i++ {
		n *= int64(max(dims[i], 1))
	}
	return []any{n}
}

// symbolOps compute with sizes and other Python numbers.
var symbolOps = symbolTable()

func symbolTable() map[string]func(c *call) []any {
	out := map[string]func(c *call) []any{}
	for name, f := range numberOps {
		run := func(c *call) []any { return []any{f(c)} }
		out["_operator."+name] = run
		out["math."+name] = run
		out["torch.sym_"+name] = run
		out["torch._sym_"+name] = run
	}
	return out
}

// numberOps are ops on Python numbers by name.
var numberOps = map[string]func(c *call) any{
	"add":      arithmetic(func(a, b int64) (int64, bool) { return folds["Add"](a, b) }, func(a, b float64) float64 { return a + b }),
	"sub":      arithmetic(func(a, b int64) (int64, bool) { return folds["Add"](a, -b) }, func(a, b float64) float64 { return a - b }),
	"mul":      arithmetic(func(a, b int64) (int64, bool) { return folds["Mul"](a, b) }, func(a, b float64) float64 { return a * b }),
	"floordiv": arithmetic(func(a, b int64) (int64, bool) { return evalFixedDiv("FloorDiv", a, b) }, func(a, b float64) float64 { return math.Floor(a / b) }),
	"mod":      arithmetic(func(a, b int64) (int64, bool) { return evalFixedDiv("Mod", a, b) }, func(a, b float64) float64 { return a - math.Floor(a/b)*b }),
	"pow":      arithmetic(power, math.Pow),
	"max":      arithmetic(func(a, b int64) (int64, bool) { return max(a, b), true }, math.Max),
	"min":      arithmetic(func(a, b int64) (int64, bool) { return min(a, b), true }, math.Min),
	"truediv": func(c *call) any {
		a, b := c.float(0), c.float(1)
		return a / b
	},
	"neg": func(c *call) any {
		return c.unaryNumber(func(n int64) int64 { return -n }, func(f float64) float64 { return -f })
	},
	"abs":   func(c *call) any { return c.unaryNumber(func(n int64) int64 { return max(n, -n) }, math.Abs) },
	"floor": func(c *call) any { return c.rounded(math.Floor) },
	"ceil":  func(c *call) any { return c.rounded(math.Ceil) },
	"trunc": func(c *call) any { return c.rounded(math.Trunc) },
	"round": func(c *call) any { return c.rounded(math.RoundToEven) },
	"int":   func(c *call) any { return c.rounded(math.Trunc) },
	"sqrt":  func(c *call) any { return math.Sqrt(c.float(0)) },
	"float": func(c *call) any { return c.float(0) },
	"not":   func(c *call) any { return c.float(0) == 0 },
	"not_":  func(c *call) any { return c.float(0) == 0 },
	"and_":  func(c *call) any { return c.float(0) != 0 && c.float(1) != 0 },
	"or_":   func(c *call) any { return c.float(0) != 0 || c.float(1) != 0 },
	"eq":    comparison(func(a, b float64) bool { return a == b }),
	"ne":    comparison(func(a, b float64) bool { return a != b }),
	"lt":    comparison(func(a, b float64) bool { return a < b }),
	"le":    comparison(func(a, b float64) bool { return a <= b }),
	"gt":    comparison(func(a, b float64) bool { return a > b }),
	"ge":    comparison(func(a, b float64) bool { return a >= b }),
	"ite": func(c *call) any {
		if c.float(0) != 0 {
			return c.at(1)
		}
		return c.at(2)
	},
}

func evalFixedDiv(op string, a, b int64) (int64, bool) {
	if b == 0 {
		return 0, false
	}
	return evalFixed(op, []int64{a, b})
}

// at returns an argument by position.
func (c *call) at(i int) any {
	if i >= len(c.args) {
		panic(misuse(c.n.target, "argument %d is missing", i))
	}
	return c.args[i].value
}

// float returns a number by position.
func (c *call) float(i int) float64 {
	f, ok := toFloat(c.at(i))
	if !ok {
		panic(misuse(c.n.target, "argument %d should be a number, not %v", i, describeValue(c.at(i))))
	}
	return f
}

// arithmetic is an op on two integers, or two floats if one is.
func arithmetic(ints func(a, b int64) (int64, bool), floats func(a, b float64) float64) func(c *call) any {
	return func(c *call) any {
		a, ok1 := c.at(0).(int64)
		b, ok2 := c.at(1).(int64)
		if !ok1 || !ok2 {
			return floats(c.float(0), c.float(1))
		}
		n, ok := ints(a, b)
		if !ok {
			panic(misuse(c.n.target, "of %d and %d: no integer of 64 bits", a, b))
		}
		return n
	}
}

func comparison(f func(a, b float64) bool) func(c *call) any {
	return func(c *call) any { return f(c.float(0), c.float(1)) }
}

func (c *call) unaryNumber(ints func(int64) int64, floats func(float64) float64) any {
	if n, ok := c.at(0).(int64); ok {
		return ints(n)
	}
	return floats(c.float(0))
}

// rounded returns an integer.
func (c *call) rounded(f func(float64) float64) any {
	if n, ok := c.at(0).(int64); ok {
		return n
	}
	v := f(c.float(0))
	if !(math.Abs(v) < 1<<53) {
		panic(misuse(c.n.target, "of %v: no integer of 64 bits", v))
	}
	return int64(v)
}
