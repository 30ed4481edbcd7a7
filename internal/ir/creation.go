package ir

import "math"

// Tensors made of nothing but numbers, and triangles of matrices.

const constantGrad = "the result depends on no tensor"

func init() {
	register("full(int[] size, number fill_value, ScalarType dtype) -> Tensor", Spec{
		Aliases:  map[string]string{"value": "fill_value"},
		Category: Creation,
		Doc:      "A tensor of the given size with every element fill_value, converted to dtype. ATen's full.",
		Infer: func(a Args) []Shape {
			requireNumbers(a, a.DType("dtype"))
			requireFits(a, "fill_value", a.DType("dtype"))
			return inferDims(a, a.DType("dtype"), a.Ints("size"))
		},
		Complex: complexFull, NoGrad: constantGrad,
	})
	register("arange(number start, number end, number step, ScalarType dtype) -> Tensor", Spec{
		Category: Creation,
		Doc: "start+i*step up to and without end, of shape [ceil((end-start)/step)]. Computed in i64 for integer dtypes " +
			"(start and step are truncated first), in f64 otherwise, then converted. ATen's arange.start_step.",
		Infer:  inferArange,
		NoGrad: constantGrad,
	})
	register("linspace(number start, number end, int steps, ScalarType dtype) -> Tensor", Spec{
		ULPs:     4,
		Category: Creation,
		Doc: "steps evenly spaced numbers from start to end, both included, of shape [steps]: computed in f64 (start and end " +
			"are truncated first for integer dtypes), element i as start+i*step in the first half and " +
			"end-(steps-1-i)*step in the second, where step is (end-start)/(steps-1). ATen's linspace.",
		Infer: func(a Args) []Shape {
			requireNumberDType(a)
			requireFits(a, "start", a.DType("dtype"))
			requireFits(a, "end", a.DType("dtype"))
			n := a.Int("steps")
			if n < 0 {
				a.Fail(ErrArg, "steps is %d, must not be negative", n)
			}
			return inferDims(a, a.DType("dtype"), []int{n})
		},
		NoGrad: constantGrad,
	})
	register("eye(int n, int? m=None, ScalarType dtype=f32) -> Tensor", Spec{
		Category:  Creation,
		Doc:       "The matrix [n, m] (m is n if absent) with ones on the main diagonal and zeros elsewhere. ATen's eye.m.",
		Decompose: decomposeEye,
		NoGrad:    constantGrad,
	})
	register("zeros_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category:  Creation,
		Doc:       "Zeros of self's shape and dtype, or the given dtype. ATen's zeros_like.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{fullLike(b, a, 0)} },
		NoGrad:    constantGrad,
	})
	register("ones_like(Tensor self, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category:  Creation,
		Doc:       "Ones of self's shape and dtype, or the given dtype. ATen's ones_like.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{fullLike(b, a, 1)} },
		NoGrad:    constantGrad,
	})
	register("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None) -> Tensor", Spec{
		Category: Creation,
		Doc: "A tensor of self's shape and dtype, or the given dtype, with every element fill_value, which is an operand: " +
			"another value makes no new graph. ATen's full_like.",
		Decompose: func(b *Builder, a Args) []Value {
			v := a.Tensor("fill_value")
			if v.Rank() != 0 {
				a.Fail(ErrShape, "fill_value has rank %d, want 0", v.Rank())
			}
			return []Value{b.ExpandAs(b.promoteTo(v, likeDType(a)), a.In[0])}
		},
	})
	register("tril(Tensor self, int diagonal=0) -> Tensor", Spec{
		Category:  Indexing,
		Doc:       "The matrices in the last two dimensions with zeros above the given diagonal (1 is right of the main one). ATen's tril.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.triangle(a, a.In[0], opLe)} },
		VJP:       func(b *Builder, a Args, out, grad []Value) []Value { return []Value{b.triangle(a, grad[0], opLe)} },
	})
	register("triu(Tensor self, int diagonal=0) -> Tensor", Spec{
		Category:  Indexing,
		Doc:       "The matrices in the last two dimensions with zeros below the given diagonal (1 is right of the main one). ATen's triu.",
		Decompose: func(b *Builder, a Args) []Value { return []Value{b.triangle(a, a.In[0], opGe)} },
		VJP:       func(b *Builder, a Args, out, grad []Value) []Value { return []Value{b.triangle(a, grad[0], opGe)} },
	})
}

func requireNumberDType(a Args) {
	d := a.DType("dtype")
	requireArithmetic(a, d)
	if d == Bool {
		a.Fail(ErrDType, "not defined for bool")
	}
}

func inferArange(a Args) []Shape {
	requireNumberDType(a)
	n := 0
	i, isI := a.Get("start").(int64)
	j, isJ := a.Get("end").(int64)
	k, isK := a.Get("step").(int64)
	if isI && isJ && isK {
		switch {
		case k == 0:
			a.Fail(ErrArg, "step is 0")
		case (j > i && k < 0) || (j < i && k > 0):
			a.Fail(ErrArg, "step %d does not lead from %d to %d", k, i, j)
		case j > i:
			n = int((j-i-1)/k + 1)
		case j < i:
			n = int((i-j-1)/-k + 1)
		}
		return inferDims(a, a.DType("dtype"), []int{n})
	}
	start, end, step := numberFloat(a.Get("start")), numberFloat(a.Get("end")), numberFloat(a.Get("step"))
	count := math.Ceil((end - start) / step)
	switch {
	case step == 0:
		a.Fail(ErrArg, "step is 0")
	case math.IsNaN(count) || math.IsInf(start, 0) || math.IsInf(end, 0):
		a.Fail(ErrArg, "the range from %v to %v is not finite", start, end)
	case count < 0:
		a.Fail(ErrArg, "step %v does not lead from %v to %v", step, start, end)
	case count >= 1<<62:
		a.Fail(ErrShape, "the range from %v to %v by %v is too long", start, end, step)
	}
	return inferDims(a, a.DType("dtype"), []int{int(count)})
}

// numberFloat widens the value of a number attribute.
func numberFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64)
}

// likeDType is the dtype argument or else self's dtype.
func likeDType(a Args) DType {
	d := a.DType("dtype")
	if d == Invalid {
		d = a.In[0].DType()
	}
	requireArithmetic(a, d)
	return d
}

func fullLike(b *Builder, a Args, v int) Value {
	return b.Full(a.In[0].Shape().Dims(), v, likeDType(a))
}

func decomposeEye(b *Builder, a Args) []Value {
	n := a.Int("n")
	m, ok := a.OptInt("m")
	if !ok {
		m = n
	}
	if n < 0 || m < 0 {
		a.Fail(ErrArg, "a matrix of %d rows and %d columns", n, m)
	}
	requireArithmetic(a, a.DType("dtype"))
	k := min(n, m)
	rows, cols := b.rowsAndColumns(k, k)
	x := b.Cast(b.eq(rows, cols), a.DType("dtype"))
	if n == m {
		return []Value{x}
	}
	if n > m {
		return []Value{b.Cat([]Value{x, b.Full([]int{n - k, m}, 0, x.DType())}, 0)}
	}
	return []Value{b.Cat([]Value{x, b.Full([]int{n, m - k}, 0, x.DType())}, 1)}
}

// rowsAndColumns records the i64 row [n, 1] and column [1, m] numbers.
func (b *Builder) rowsAndColumns(n, m int) (rows, cols Value) {
	return b.Reshape(b.Iota(n, I64), n, 1), b.Reshape(b.Iota(m, I64), 1, m)
}

// triangle keeps the elements whose column compares with row + diagonal.
func (b *Builder) triangle(a Args, x Value, compare Op) Value {
	if x.Rank() < 2 {
		a.Fail(ErrShape, "self has rank %d, must be at least 2", x.Rank())
	}
	if n := x.Dim(-2) + a.Int("diagonal"); n > 0 && n < x.Dim(-1)/2 {
		// What is right of the triangle is as it was or 0, without a look at places.
		left := b.triangleOf(b.Slice(x, -1, 0, n, 1), a.Int("diagonal"), compare)
		right := b.Slice(x, -1, n, x.Dim(-1), 1)
		if compare == opLe {
			right = b.Full(right.Shape().Dims(), 0, x.DType())
		}
		return b.Cat([]Value{left, right}, -1)
	}
	return b.triangleOf(x, a.Int("diagonal"), compare)
}

func (b *Builder) triangleOf(x Value, diagonal int, compare Op) Value {
	rows, cols := b.rowsAndColumns(x.Dim(-2), x.Dim(-1))
	keep := b.Binary(compare, cols, b.Add(rows, b.Const(diagonal, I64)))
	return b.Where(keep, x, b.Const(0, x.DType()))
}
