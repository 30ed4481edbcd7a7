package ir

import "math"

// Reductions of stretches along a dimension.

func init() {
	register("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, float? initial=None) -> Tensor", Spec{
		Category: Reduction,
		Doc: "The sum, mean, prod, max or min of each stretch of data along axis, together with initial if it is given. The stretches " +
			"are given by their lengths, or by offsets, where they begin and the last ends, for each row of the dimensions before " +
			"axis. Of no elements it is initial, or 0, NaN, 1 and infinities. Stretches that data does not have are an error at run " +
			"time. ATen's segment_reduce.",
		Decompose: decomposeSegmentReduce,
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			grads := make([]Value, len(a.In))
			named := []Named{A("axis", a.Int("axis")), A("initial", a.Get("initial"))}
			for _, name := range []string{"lengths", "offsets"} {
				if v := a.Tensor(name); !v.IsNil() {
					named = append(named, A(name, v))
				}
			}
			grads[0] = first(b.call(byName["_segment_reduce_backward"], []any{grad[0], out[0], a.In[0], a.Str("reduce")}, named))
			return grads
		},
	})
	register("_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, float? initial=None) -> Tensor", Spec{
		Category: Reduction, Unlisted: true,
		Doc:       "The gradient of segment_reduce by data: equal largest or least elements share it. ATen's _segment_reduce_backward.",
		Decompose: decomposeSegmentBackward,
	})
}

// segments are stretches of x [outer, along, inner].
type segments struct {
	x       Value
	count   int   // of stretches in each outer row
	sizes   Value // i64[outer, count, 1]
	of      Value // i64[outer, along, inner]: the stretch of each element, count for those of none
	dims    []int // of data
	axis    int
	reduce  string
	initial float64
	given   bool // initial is
}

func segmentsOf(b *Builder, a Args) *segments {
	data := a.Tensor("data")
	if !data.DType().IsFloat() {
		a.Fail(ErrDType, "not defined for %v operands", data.DType())
	}
	s := &segments{dims: data.Shape().Dims(), axis: a.Dim("axis", data.Rank()), reduce: a.Str("reduce")}
	switch s.reduce {
	case "sum", "mean", "prod", "max", "min":
	default:
		a.Fail(ErrArg, "unsupported reduction given! %q", s.reduce)
	}
	s.initial, s.given = a.OptFloat("initial")
	ends, offsets := a.Tensor("offsets"), true
	if ends.IsNil() {
		ends, offsets = a.Tensor("lengths"), false
	}
	if ends.IsNil() || data.Rank() == 0 {
		a.Fail(ErrArg, "either lengths or offsets must be given, of data with dimensions")
	}
	if ends.Rank() != s.axis+1 || !ends.Shape().SameDims(ends.Shape().WithDims(append(data.Shape().Dims()[:s.axis:s.axis], ends.Dim(-1))...)) {
		a.Fail(ErrShape, "stretches %v along dimension %d of data %v", ends.Shape().Dims(), s.axis, s.dims)
	}
	requireIndex(a, ends)
	outer, along, inner := 1, s.dims[s.axis], 1
	for i, n := range s.dims {
		if i < s.axis {
			outer *= n
		} else if i > s.axis {
			inner *= n
		}
	}
	n, zero := ends.Dim(-1), b.Const(0, I64)
	ends = b.Cast(b.Reshape(ends, outer, n), I64)
	if offsets {
		s.count = n - 1
	} else {
		s.count = n
		ends = b.padDim(b.Cumsum(ends, 1), 1, 1, 0, 0)
	}
	if s.count < 0 {
		a.Fail(ErrShape, "offsets has no elements")
	}
	s.x = b.widen(b.Reshape(data, outer, along, inner))
	sizes := b.Sub(b.Slice(ends, 1, 1, s.count+1, 1), b.Slice(ends, 1, 0, s.count, 1))
	s.sizes = b.Unsqueeze(sizes, 2)
	rows := b.Expand(b.Iota(along, I64), outer, along)
	of := b.Sub(b.search(ends, rows, true, false), b.Const(1, I64))
	of = b.Where(b.lt(of, zero), b.Const(s.count, I64), of)
	// A place that does not exist makes stretches that do not an error.
	bad := b.logicalOr(b.lt(ends, zero), b.gt(ends, b.Const(along, I64)))
	wrong := b.Add(b.Sum(b.Cast(bad, I64), nil, false), b.Sum(b.Cast(b.lt(sizes, zero), I64), nil, false))
	of = b.Where(b.gt(wrong, zero), b.Const(-1, I64), of)
	s.of = b.Expand(b.Unsqueeze(of, 2), outer, along, inner)
	return s
}

// gather records what x [outer, count, inner] has for the stretch of each element, and 0 for
// elements of none.
func (s *segments) gather(b *Builder, x Value) Value {
	return b.Gather(b.padDim(x, 1, 0, 1, 0), 1, s.of)
}

// scatter reduces x by stretches, together with start.
func (s *segments) scatter(b *Builder, x Value, start float64, reduce string) Value {
	to := b.Full([]int{x.Dim(0), s.count + 1, x.Dim(2)}, start, x.DType())
	return b.Slice(b.ScatterReduce(to, 1, s.of, x, reduce), 1, 0, s.count, 1)
}

// reduced records the result, [outer, count, inner].
func (s *segments) reduced(b *Builder) Value {
	start, reduce := 0.0, "sum"
	switch s.reduce {
	case "prod":
		start, reduce = 1, "prod"
	case "max":
		start, reduce = math.Inf(-1), "amax"
	case "min":
		start, reduce = math.Inf(1), "amin"
	}
	if s.given {
		start = s.initial
	}
	y := s.scatter(b, s.x, start, reduce)
	if s.reduce != "mean" {
		return y
	}
	sizes := s.sizes
	if s.given { // without it the mean of nothing is NaN
		sizes = b.maximum(sizes, b.Const(1, I64))
	}
	return b.Div(y, b.Cast(sizes, y.DType()))
}

func decomposeSegmentReduce(b *Builder, a Args) []Value {
	s := segmentsOf(b, a)
	dims := append([]int(nil), s.dims...)
	dims[s.axis] = s.count
	return []Value{b.Cast(b.Call1(opReshape, []any{s.reduced(b), dims}), a.Tensor("data").DType())}
}

func decomposeSegmentBackward(b *Builder, a Args) []Value {
	s := segmentsOf(b, a)
	data := a.Tensor("data")
	part := []int{s.x.Dim(0), s.count, s.x.Dim(2)}
	if n := part[0] * part[1] * part[2]; a.In[0].Shape().Numel() != n || a.In[1].Shape().Numel() != n {
		a.Fail(ErrShape, "a gradient %v and results %v of %d stretches", a.In[0].Shape().Dims(), a.In[1].Shape().Dims(), s.count)
	}
	g := b.widen(b.Reshape(a.In[0], part...))
	switch s.reduce {
	case "mean":
		g = b.Div(g, b.Cast(s.sizes, g.DType()))
	case "prod":
		g = b.pullBack([]Value{s.reduced(b)}, []Value{g}, []Value{s.x})[0]
	case "max", "min":
		chosen := b.eq(s.x, s.gather(b, b.widen(b.Reshape(a.In[1], part...))))
		chosen = b.Cast(b.logicalOr(chosen, b.isNaN(s.x)), s.x.DType())
		share := b.maximum(s.scatter(b, chosen, 0, "sum"), b.Const(1, g.DType()))
		g = b.Mul(chosen, s.gather(b, b.Div(g, share)))
	}
	if s.reduce == "sum" || s.reduce == "mean" {
		g = s.gather(b, g)
	}
	return []Value{b.Cast(b.Call1(opReshape, []any{g, s.dims}), data.DType())}
}
