package ir

import (
	"math"
	"slices"
)

func init() {
	register("cdist(Tensor x1, Tensor x2, float p=2.0) -> Tensor", Spec{
		Doc:      "The p-norms of the differences of each row of x1 [*, n, k] and each of x2 [*, m, k], [*, n, m]; p is from 0, which counts the elements that differ, to infinity. Floating dtypes; f16 and bf16 compute in f32. As torch.cdist.",
		Category: Neural, Decompose: func(b *Builder, a Args) []Value {
			return b.Call(byName["_cdist_forward"], []any{a.In[0], a.In[1], a.float("p"), nil})
		},
	})
	register("pdist(Tensor self, float p=2.0) -> Tensor", Spec{
		Doc:      "The p-norms of the differences of each pair of rows of self [n, k], (0, 1), (0, 2), … (n-2, n-1). As torch.pdist.",
		Category: Neural, Decompose: func(b *Builder, a Args) []Value {
			return b.Call(byName["_pdist_forward"], []any{a.In[0], a.float("p")})
		},
	})
	register("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode=None) -> Tensor", Spec{
		Doc:      "cdist; compute_mode, how ATen computes it, is ignored. As at::_cdist_forward.",
		Category: Neural, Unlisted: true, Decompose: cdist, VJP: vjpCdist,
	})
	registerBackward("_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
		"The gradient of cdist with respect to x1. As at::_cdist_backward.",
		func(b *Builder, a Args) []Value {
			x, y := a.Tensor("x1"), a.Tensor("x2")
			requireDistances(b, a, x, y)
			return []Value{cdistGradient(b, a, a.Tensor("grad_output"), b.norms(x, y, distanceExponent(a)), x, y)}
		})
	register("_row_distances(Tensor x, Tensor y, float p) -> Tensor", Spec{
		Doc:      "The p-norms of the differences of each row of x [b, n, k] and each of y [b, m, k], [b, n, m]; p is 1, 2 or infinity. f32 or f64.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			p := a.float("p")
			requireRows(a, a.In[0], a.In[1])
			requirePlainNorm(a, p)
			return []Value{b.rowDistances(a.In[0], a.In[1], p)}
		},
	})
	register("_pair_distances(Tensor x, float p) -> Tensor", Spec{
		Doc:      "The p-norms of the differences of each row of x [n, k] and each after it, [n·(n-1)/2]; p is 1, 2 or infinity. f32 or f64.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			p := a.float("p")
			requireFloatMatrix(a, a.In[0])
			requirePlainNorm(a, p)
			return []Value{b.pairNorms(a.In[0], p)}
		},
	})
	register("_row_differences(Tensor weights, Tensor x, Tensor y, bool signs) -> Tensor", Spec{
		Doc:      "The sums over the rows of y [b, m, k] of weights [b, n, m] times the differences of each row of x [b, n, k] and them, or times the differences' signs, [b, n, k]. f32 or f64.",
		Category: Neural, Unlisted: true, Decompose: func(b *Builder, a Args) []Value {
			w, x, y := a.In[0], a.In[1], a.In[2]
			requireRows(a, x, y)
			if w.Shape() != MakeShape(x.DType(), x.Dim(0), x.Dim(1), y.Dim(1)) {
				a.Fail(ErrShape, "weights are %v for %v and %v", w.Shape(), x.Shape(), y.Shape())
			}
			diff := differences(b, x, y)
			if a.Bool("signs") {
				diff = b.sign(diff)
			}
			return []Value{b.Sum(b.Mul(b.Unsqueeze(w, 3), diff), []int{2}, false)}
		},
	})
	register("_pdist_forward(Tensor self, float p=2.0) -> Tensor", Spec{
		Doc:      "pdist. As at::_pdist_forward.",
		Category: Neural, Unlisted: true, Decompose: pdist,
		VJP: func(b *Builder, a Args, _, grad []Value) []Value {
			return []Value{pdistGradient(b, a, grad[0], a.In[0])}
		},
	})
	registerBackward("_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",
		"The gradient of pdist. As at::_pdist_backward.",
		func(b *Builder, a Args) []Value {
			return []Value{pdistGradient(b, a, a.Tensor("grad_output"), a.Tensor("self"))}
		})
}

// distanceExponent reads and checks p.
func distanceExponent(a Args) float64 {
	p := a.float("p")
	if !(p >= 0) {
		a.Fail(ErrArg, "p must not be negative, got %v", p)
	}
	return p
}

// requireDistances fails unless x [*, n, k] and y [*, m, k] have distances.
func requireDistances(b *Builder, a Args, x, y Value) {
	d := x.DType()
	if !d.IsFloat() || y.DType() != d {
		a.Fail(ErrDType, "x1 and x2 must have one floating dtype, got %v and %v", d, y.DType())
	}
	if x.Rank() < 2 || y.Rank() < 2 || x.Dim(-1) != y.Dim(-1) {
		a.Fail(ErrShape, "x1 and x2 must have at least 2 dimensions and rows of one size, got %v and %v", x.Shape(), y.Shape())
	}
	if _, ok := BroadcastDims(b.Unsqueeze(x, -2).Shape(), b.Unsqueeze(y, -3).Shape()); !ok {
		a.Fail(ErrShape, "the batches of x1 %v and x2 %v do not broadcast together", x.Shape(), y.Shape())
	}
}

// plainNorm reports whether _row_distances has a norm.
func plainNorm(p float64) bool { return p == 1 || p == 2 || math.IsInf(p, 1) }

func requirePlainNorm(a Args, p float64) {
	if !plainNorm(p) {
		a.Fail(ErrArg, "p must be 1, 2 or infinity, got %v", p)
	}
}

// matricesOf returns x [*, n, k] and y [*, m, k] with one batch dimension, and the batch.
func (b *Builder) matricesOf(x, y Value) (xs, ys Value, batch []int) {
	n, m, k := x.Dim(-2), y.Dim(-2), x.Dim(-1)
	all, _ := BroadcastDims(b.Unsqueeze(x, -2).Shape(), b.Unsqueeze(y, -3).Shape())
	rows := all.Dims()
	batch = rows[:len(rows)-3]
	spread := func(v Value, rows int) Value {
		v = b.Expand(v, append(slices.Clone(batch), rows, k)...)
		return b.Reshape(v, MakeShape(v.DType(), batch...).Numel(), rows, k)
	}
	return spread(x, n), spread(y, m), batch
}

// distances is the p-norms of the differences of each row of x and each of y, [*, n, m].
func (b *Builder) distances(x, y Value, p float64) Value {
	xs, ys, batch := b.matricesOf(x, y)
	var norm Value
	if fewLongRows(xs, ys) {
		norm = b.normsAlong(differences(b, xs, ys), p, 3)
	} else if plainNorm(p) {
		norm = b.callNamed("_row_distances", []any{xs, ys, p})
	} else {
		norm = b.rowDistances(xs, ys, p)
	}
	return b.Reshape(norm, append(slices.Clone(batch), x.Dim(-2), y.Dim(-2))...)
}

// norms is distances in the dtype that is computed in, as a use of cdist: its gradient is 0 where a norm
// is, and not that of a root.
func (b *Builder) norms(x, y Value, p float64) Value {
	return b.callNamed("_cdist_forward", []any{b.widen(x), b.widen(y), p, nil})
}

// rowDistances is distances of [b, n, k] and [b, m, k]. The rows of y lie along the last dimension
// meanwhile, so that one vector has elements of many norms.
func (b *Builder) rowDistances(x, y Value, p float64) Value {
	return b.normsAlong(b.Sub(b.Unsqueeze(x, 3), b.Unsqueeze(b.Transpose(y, 1, 2), 1)), p, 2)
}

// fewLongRows reports whether rows of x [b, n, k] and y [b, m, k] are so few and long that each pair is better
// gone along than rows of y beside each other.
func fewLongRows(x, y Value) bool {
	const few, long = 8, 1024
	return x.Dim(1) <= few && y.Dim(1) <= few && x.Dim(2) >= long
}

// normsAlong is the p-norms of differences along a dimension.
func (b *Builder) normsAlong(diff Value, p float64, dim int) Value {
	along, size, d := []int{dim}, b.abs(diff), diff.DType()
	switch {
	case p == 0:
		return b.Sum(b.Cast(b.ne(diff, b.Const(0, d)), d), along, false)
	case p == 1 || diff.Dim(dim) == 0:
		return b.Sum(size, along, false)
	case p == 2:
		return b.sqrt(b.Sum(b.Mul(diff, diff), along, false))
	case math.IsInf(p, 1):
		return b.Amax(size, along, false)
	}
	return b.pow(b.Sum(b.pow(size, b.Const(p, d)), along, false), b.Const(1/p, d))
}

// distanceSlopes is the derivatives of distances by the elements of the rows of x, times g [b, n, m],
// summed over the rows of y. They are 0 where the norm is: ATen chooses that, and for p = ∞ the largest
// elements alike.
func (b *Builder) distanceSlopes(g, norm, x, y Value, p float64) Value {
	zero, one := b.Const(0, x.DType()), b.Const(1, x.DType())
	// A norm of 0 is replaced where something is divided by it, so that no derivative is NaN either.
	none := b.eq(norm, zero)
	norm = b.Where(none, one, norm)
	each := func(v Value) Value { return b.Unsqueeze(v, 3) }
	switch {
	case p == 0:
		return b.fullLike(x, 0)
	case fewLongRows(x, y) && p == 1:
		return b.slopesByRow(g, x, y, b.sign)
	case fewLongRows(x, y) && p == 2:
		return b.slopesByRow(b.Where(none, zero, b.Div(g, norm)), x, y, nil)
	case p == 1:
		return b.callNamed("_row_differences", []any{g, x, y, true})
	case p == 2:
		return b.callNamed("_row_differences", []any{b.Where(none, zero, b.Div(g, norm)), x, y, false})
	}
	diff := differences(b, x, y)
	if math.IsInf(p, 1) {
		largest := b.eq(b.abs(diff), each(norm))
		return b.Sum(b.Where(largest, b.Mul(each(g), b.sign(diff)), zero), []int{2}, false)
	}
	diff = b.Where(each(none), one, diff)
	slope := b.Mul(b.sign(diff), b.pow(b.Div(b.abs(diff), each(norm)), b.Const(p-1, diff.DType())))
	if p < 1 {
		slope = b.Where(b.eq(diff, zero), zero, slope)
	}
	return b.Sum(b.Mul(each(g), b.Where(each(none), zero, slope)), []int{2}, false)
}

// slopesByRow is the sums of weights [b, n, m] times the differences of the rows of x and each of y, or what
// f makes of these, one row of y after the other: all of it is one pass over x and y.
func (b *Builder) slopesByRow(weights, x, y Value, f func(Value) Value) Value {
	var sum Value
	for j := range y.Dim(1) {
		diff := b.Sub(x, b.Slice(y, 1, j, j+1, 1))
		if f != nil {
			diff = f(diff)
		}
		part := b.Mul(b.Slice(weights, 2, j, j+1, 1), diff)
		if j == 0 {
			sum = part
		} else {
			sum = b.Add(sum, part)
		}
	}
	if sum.IsNil() {
		return b.fullLike(x, 0)
	}
	return sum
}

// differences returns those of each row of x [b, n, k] and each of y, [b, n, m, k].
func differences(b *Builder, x, y Value) Value { return b.Sub(b.Unsqueeze(x, 2), b.Unsqueeze(y, 1)) }

// requireRows fails unless x and y are [b, n, k] and [b, m, k] of one floating dtype, f32 or f64.
func requireRows(a Args, x, y Value) {
	if d := x.DType(); d != F32 && d != F64 || y.DType() != d {
		a.Fail(ErrDType, "x and y must both be f32 or f64, got %v and %v", d, y.DType())
	}
	if x.Rank() != 3 || y.Rank() != 3 || x.Dim(0) != y.Dim(0) || x.Dim(2) != y.Dim(2) {
		a.Fail(ErrShape, "x and y must be [b, n, k] and [b, m, k], got %v and %v", x.Shape(), y.Shape())
	}
}

func cdist(b *Builder, a Args) []Value {
	x, y := a.Tensor("x1"), a.Tensor("x2")
	requireDistances(b, a, x, y)
	return []Value{b.Cast(b.distances(b.widen(x), b.widen(y), distanceExponent(a)), x.DType())}
}

func vjpCdist(b *Builder, a Args, _, grad []Value) []Value {
	x, y := a.Tensor("x1"), a.Tensor("x2")
	norm := b.norms(x, y, distanceExponent(a))
	return []Value{
		cdistGradient(b, a, grad[0], norm, x, y),
		cdistGradient(b, a, b.Transpose(grad[0], -2, -1), b.Transpose(norm, -2, -1), y, x),
	}
}

// cdistGradient is the gradient with respect to x, of which the distances norm are of the rows.
func cdistGradient(b *Builder, a Args, g, norm, x, y Value) Value {
	if !g.Shape().SameDims(norm.Shape()) {
		a.Fail(ErrShape, "the gradient %v is not that of distances of %v and %v", g.Shape(), x.Shape(), y.Shape())
	}
	xs, ys, batch := b.matricesOf(b.widen(x), b.widen(y))
	each := func(v Value) Value { return b.Reshape(v, xs.Dim(0), xs.Dim(1), ys.Dim(1)) }
	sum := b.distanceSlopes(each(b.Cast(g, norm.DType())), each(norm), xs, ys, distanceExponent(a))
	sum = b.Reshape(sum, append(batch, xs.Dim(1), xs.Dim(2))...)
	return b.Cast(b.sumTo(sum, x.Shape().WithDType(sum.DType())), x.DType())
}

// requireFloatMatrix fails unless self is one.
func requireFloatMatrix(a Args, x Value) {
	if !x.DType().IsFloat() || x.Rank() != 2 {
		a.Fail(ErrShape, "self must be a floating matrix, got %v", x.Shape())
	}
}

// pairPlaces returns the places of each pair of n rows, first and second, in [n, n].
func (b *Builder) pairPlaces(n int) Value {
	at := b.callNamed("triu_indices", []any{n, n, 1})
	row, col := b.flatten(b.Slice(at, 0, 0, 1, 1)), b.flatten(b.Slice(at, 0, 1, 2, 1))
	return b.Add(b.Mul(row, b.Const(n, I64)), col)
}

// pairNorms is the norms of each pair of rows of x as those of all rows with all.
func (b *Builder) pairNorms(x Value, p float64) Value {
	return b.IndexSelect(b.flatten(b.norms(x, x, p)), 0, b.pairPlaces(x.Dim(0)))
}

func pdist(b *Builder, a Args) []Value {
	x := a.Tensor("self")
	requireFloatMatrix(a, x)
	wide, n, p := b.widen(x), x.Dim(0), distanceExponent(a)
	var pairs Value
	switch rows := b.Unsqueeze(wide, 0); {
	case n > 1 && fewLongRows(rows, rows):
		var parts []Value
		for i := range n - 1 {
			parts = append(parts, b.normsAlong(b.Sub(b.Slice(wide, 0, i, i+1, 1), b.Slice(wide, 0, i+1, n, 1)), p, 1))
		}
		pairs = b.Cat(parts, 0)
	case plainNorm(p):
		pairs = b.callNamed("_pair_distances", []any{wide, p})
	default:
		pairs = b.pairNorms(wide, p)
	}
	return []Value{b.Cast(pairs, x.DType())}
}

// pdistGradient gives both rows of a pair its cotangent, and a row with itself none.
func pdistGradient(b *Builder, a Args, g, x Value) Value {
	requireFloatMatrix(a, x)
	wide, places := b.widen(x), b.pairPlaces(x.Dim(0))
	if g.Rank() != 1 || g.Dim(0) != places.Dim(0) {
		a.Fail(ErrShape, "the gradient %v is not that of the distances of %v", g.Shape(), x.Shape())
	}
	n, d := x.Dim(0), wide.DType()
	zero, all, p := b.Const(0, d), b.Unsqueeze(wide, 0), distanceExponent(a)
	both := func(v Value) Value {
		each := b.Reshape(b.Scatter(b.Full([]int{n * n}, 0, d), 0, places, v), n, n)
		return b.Unsqueeze(b.Add(each, b.Transpose(each, 0, 1)), 0)
	}
	var sum Value
	if g = b.Cast(g, d); p == 2 && !fewLongRows(all, all) { // without a matrix of norms, in which each is twice
		norm := b.callNamed("_pair_distances", []any{wide, p})
		sum = b.callNamed("_row_differences", []any{both(b.Where(b.eq(norm, zero), zero, b.Div(g, norm))), all, all, false})
	} else {
		rows, cols := b.rowsAndColumns(n, n)
		norm := b.Where(b.eq(rows, cols), zero, b.norms(wide, wide, p)) // the difference of infinities is NaN
		sum = b.distanceSlopes(both(g), b.Unsqueeze(norm, 0), all, all, p)
	}
	return b.Cast(b.Reshape(sum, x.Shape().Dims()...), x.DType())
}
