package onnx

import "github.com/loris-ml/loris"

// reduceRows are the reductions, the searches for extremes and the sums along an axis.
var reduceRows = map[string]*row{
	"ReduceSum":    reduction(sum).folding(foldReduce(0, func(a, b int64) int64 { return a + b })),
	"ReduceMean":   reduction(mean),
	"ReduceProd":   reduction(prod).folding(foldReduce(1, func(a, b int64) int64 { return a * b })),
	"ReduceMax":    reduction(amax).folding(foldReduce(-1<<63, func(a, b int64) int64 { return max(a, b) })),
	"ReduceMin":    reduction(amin).folding(foldReduce(1<<63-1, func(a, b int64) int64 { return min(a, b) })),
	"ReduceL1":     reduction(func(x *loris.Tensor, dims []int, keep bool) *loris.Tensor { return sum(x.Abs(), dims, keep) }),
	"ReduceL2":     reduction(l2),
	"ReduceLogSum": reduction(func(x *loris.Tensor, dims []int, keep bool) *loris.Tensor { return like(x, sum(x, dims, keep).Log()) }),
	"ReduceLogSumExp": reduction(func(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
		switch {
		case len(dims) == 0:
			return x
		case x.Numel() == 0:
			return sum(x, dims, keep).Log()
		}
		return like(x, floats(x).LogSumExp(dims, loris.Keepdim(keep)))
	}),
	"ReduceSumSquare": reduction(func(x *loris.Tensor, dims []int, keep bool) *loris.Tensor { return sum(x.Mul(x), dims, keep) }),
	"ArgMax":          one(1, 1, func(c *call, in []*value) *value { return argExtreme(c, in[0], true) }),
	"ArgMin":          one(1, 1, func(c *call, in []*value) *value { return argExtreme(c, in[0], false) }),
	"CumSum":          one(2, 2, cumulateSum),
	"CumProd":         one(2, 2, cumulateProd),
}

// floats returns integers as f32, which functions of real numbers compute in.
func floats(x *loris.Tensor) *loris.Tensor {
	if x.DType().IsFloat() {
		return x
	}
	return x.Cast(loris.F32)
}

// like returns a result in the dtype of x.
func like(x, y *loris.Tensor) *loris.Tensor { return y.Cast(x.DType()) }

func sum(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	if len(dims) == 0 {
		return x
	}
	return x.Sum(loris.Dim(dims...), loris.Keepdim(keep), loris.As(x.DType()))
}

func mean(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	if len(dims) == 0 {
		return x
	}
	return like(x, floats(x).Mean(loris.Dim(dims...), loris.Keepdim(keep)))
}

func prod(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	for i := len(dims) - 1; i >= 0; i-- { // sorted: later dimensions first, so that earlier ones keep their number
		x = x.Prod(loris.Dim(dims[i]), loris.Keepdim(keep), loris.As(x.DType()))
	}
	return x
}

func l2(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	f := floats(x)
	return like(x, sum(f.Mul(f), dims, keep).Sqrt())
}

func amax(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	return extreme(x, dims, keep, lowest(x.DType()), func(x *loris.Tensor) *loris.Tensor {
		return x.Amax(loris.Dim(dims...), loris.Keepdim(keep))
	})
}

func amin(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	return extreme(x, dims, keep, highest(x.DType()), func(x *loris.Tensor) *loris.Tensor {
		return x.Amin(loris.Dim(dims...), loris.Keepdim(keep))
	})
}

// extreme is a reduction whose value for no elements is none.
func extreme(x *loris.Tensor, dims []int, keep bool, none any, f func(x *loris.Tensor) *loris.Tensor) *loris.Tensor {
	switch {
	case len(dims) == 0:
		return x
	case x.Numel() == 0:
		return emptyReduction(x, dims, keep, none)
	case x.DType() == loris.Bool:
		return f(x.Cast(loris.U8)).Cast(loris.Bool)
	}
	return f(x)
}

// emptyReduction is the reduction of no elements.
func emptyReduction(x *loris.Tensor, dims []int, keep bool, v any) *loris.Tensor {
	return reducedZeros(x, dims, keep).FullLike(v)
}

func reducedZeros(x *loris.Tensor, dims []int, keep bool) *loris.Tensor {
	if x.DType() == loris.Bool {
		return x.Cast(loris.I32).Sum(loris.Dim(dims...), loris.Keepdim(keep), loris.As(loris.I32)).Cast(loris.Bool)
	}
	return sum(x, dims, keep)
}

// reduction is the row of a reduction over the axes of an attribute or an input, by default over all.
func reduction(f func(x *loris.Tensor, dims []int, keep bool) *loris.Tensor) *row {
	return one(1, 2, func(c *call, in []*value) *value {
		x := c.tensor(in[0])
		dims, none := c.reducedAxes(in)
		if none {
			dims = nil
		}
		return out(in[0].elem, c.wrap(in[0].elem, f(x, dims, c.bool("keepdims", true))))
	})
}

// reducedAxes returns the axes of a reduction; none says that there are none.
func (c *call) reducedAxes(in []*value) (dims []int, none bool) {
	dims = c.axes(c.listInput(in, 1, "axes"), in[0].rank())
	if len(dims) > 0 {
		return dims, false
	}
	if c.bool("noop_with_empty_axes", false) {
		return nil, true
	}
	for i := range in[0].rank() {
		dims = append(dims, i)
	}
	return dims, false
}

// foldReduce computes reductions of all elements of known integers.
func foldReduce(start int64, f func(a, b int64) int64) func(c *call, in []*value) *value {
	return func(c *call, in []*value) *value {
		v := in[0]
		axes := c.listInput(in, 1, "axes")
		all := len(axes) == v.rank() || len(axes) == 0 && !c.bool("noop_with_empty_axes", false)
		if !v.elem.integer() || v.elem == tUint64 || !all || v.numel() == 0 {
			return nil
		}
		acc := start
		for _, n := range c.ints(v) {
			acc = f(acc, n)
		}
		dims := []int{}
		if c.bool("keepdims", true) {
			for range v.dims {
				dims = append(dims, 1)
			}
		}
		return foldedInts(v.elem, dims, []int64{acc})
	}
}

// argExtreme returns the index of the first extreme along an axis, or of the last.
func argExtreme(c *call, v *value, largest bool) *value {
	x := ordered(v.elem, c.tensor(v))
	axis := c.axis(c.int("axis", 0), max(v.rank(), 1))
	last := c.bool("select_last_index", false)
	if last {
		x = x.Flip(axis)
	}
	var t *loris.Tensor
	keep := c.bool("keepdims", true)
	if largest {
		t = x.Argmax(loris.Dim(axis), loris.Keepdim(keep))
	} else {
		t = x.Argmin(loris.Dim(axis), loris.Keepdim(keep))
	}
	if last {
		t = t.Neg().Add(v.dims[axis] - 1)
	}
	return out(tInt64, t)
}

func cumulateSum(c *call, in []*value) *value {
	return c.running(in, 0, func(x *loris.Tensor, axis int) *loris.Tensor { return x.Cumsum(axis, loris.As(x.DType())) })
}

func cumulateProd(c *call, in []*value) *value {
	return c.running(in, 1, func(x *loris.Tensor, axis int) *loris.Tensor { return x.Cumprod(axis, loris.As(x.DType())) })
}

// running is a running sum or product along an axis, in either direction, with or without the element
// itself.
func (c *call) running(in []*value, start any, f func(x *loris.Tensor, axis int) *loris.Tensor) *value {
	x := c.tensor(in[0])
	axis := c.axis(c.oneInt(in[1]), in[0].rank())
	reverse := c.bool("reverse", false)
	if reverse {
		x = x.Flip(axis)
	}
	if c.bool("exclusive", false) && x.Dim(axis) > 0 {
		pad := make([]int, 2*(x.Rank()-axis))
		pad[len(pad)-2], pad[len(pad)-1] = 1, -1
		x = x.ConstantPadNd(pad, start)
	}
	y := f(x, axis)
	if reverse {
		y = y.Flip(axis)
	}
	return out(in[0].elem, c.wrap(in[0].elem, y))
}
