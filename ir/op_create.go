package ir

import "math"

const constantGrad = "the result depends on no tensor"

func init() {
	OpFull = register("full(int[] size, number fill_value, ScalarType dtype) -> Tensor", Spec{
		Category: Creation,
		Doc:      "A tensor of the given size with every element fill_value, converted to dtype. ATen's full.",
		Infer: func(a Args) []Shape {
			requireNumbers(a, a.DType("dtype"))
			return inferDims(a, a.DType("dtype"), a.Ints("size"))
		},
		NoGrad: constantGrad,
	})
	OpArange = register("arange(number start, number end, number step, ScalarType dtype) -> Tensor", Spec{
		Category: Creation,
		Doc: "start+i*step up to and without end, of shape [ceil((end-start)/step)]. Computed in i64 for integer dtypes " +
			"(start and step are truncated first), in f64 otherwise, then converted. ATen's arange.start_step.",
		Infer:  inferArange,
		NoGrad: constantGrad,
	})
	OpLinspace = register("linspace(number start, number end, int steps, ScalarType dtype) -> Tensor", Spec{
		Category: Creation,
		Doc: "steps evenly spaced numbers from start to end, both included, of shape [steps]: computed in f64 (start and end " +
			"are truncated first for integer dtypes), element i as start+i*step in the first half and " +
			"end-(steps-1-i)*step in the second, where step is (end-start)/(steps-1). ATen's linspace.",
		Infer: func(a Args) []Shape {
			requireNumberDType(a)
			n := a.Int("steps")
			if n < 0 {
				a.Fail(ErrArg, "steps is %d, must not be negative", n)
			}
			return inferDims(a, a.DType("dtype"), []int{n})
		},
		NoGrad: constantGrad,
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
