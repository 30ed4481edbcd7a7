package ir

import "math/bits"

// Places in sorted sequences.

func init() {
	register("searchsorted(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str side='left', Tensor? sorter=None) -> Tensor", Spec{
		Category: Indexing,
		Doc: "Where each element of self belongs in its row of sorted_sequence, or in the only row if that is a vector: before " +
			"equal elements, or behind them if right or side is 'right'. NaN is above everything. sorter, i64 of sorted_sequence's " +
			"shape, tells the order of rows that are not sorted. i64, or i32 with out_int32, of self's shape. ATen's searchsorted.",
		Decompose: decomposeSearchSorted,
		NoGrad:    "the result is an index",
	})
	register("bucketize(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor", Spec{
		Category: Indexing,
		Doc:      "searchsorted of self in the vector boundaries: the number of the bucket of each element. ATen's bucketize.",
		Decompose: func(b *Builder, a Args) []Value {
			row := a.Tensor("boundaries")
			if row.Rank() != 1 {
				a.Fail(ErrShape, "boundaries must have 1 dimension, not %d", row.Rank())
			}
			return []Value{b.search(row, a.In[0], a.Bool("right"), a.Bool("out_int32"))}
		},
		NoGrad: "the result is an index",
	})
}

func decomposeSearchSorted(b *Builder, a Args) []Value {
	rows, x, sorter := a.In[0], a.In[1], a.Tensor("sorter")
	right := a.Bool("right")
	switch side := a.Str("side"); {
	case side != "left" && side != "right":
		a.Fail(ErrArg, "side can only be 'left' or 'right' but got %q", side)
	case side == "right":
		right = true
	}
	if rows.Rank() == 0 {
		a.Fail(ErrShape, "sorted_sequence must have at least 1 dimension")
	}
	last := rows.Rank() - 1
	if last > 0 && x.Rank() > 0 && !x.Shape().SameDims(x.Shape().WithDims(dimsWith(rows, last, x.Dim(-1))...)) ||
		last > 0 && x.Rank() == 0 {
		a.Fail(ErrShape, "sorted_sequence %v should be a vector, or have the first dimensions of self %v", rows.Shape().Dims(), x.Shape().Dims())
	}
	if !sorter.IsNil() {
		if sorter.DType() != I64 || !sorter.Shape().SameDims(rows.Shape()) {
			a.Fail(ErrShape, "sorter is %v, must be i64 of the shape of sorted_sequence", sorter.Shape())
		}
		rows = b.Gather(rows, last, sorter)
	}
	return []Value{b.search(rows, x, right, a.Bool("out_int32"))}
}

// search halves the rows, which lie along the last dimension, until each element of x has
// its place. A vector is the row of all.
func (b *Builder) search(rows, x Value, right, narrow bool) Value {
	dims, n := x.Shape().Dims(), rows.Dim(-1)
	if rows.Rank() == 1 {
		x = b.flatten(x)
	}
	if d := rows.DType(); d != x.DType() || d == Bool {
		wide := I64
		if d.IsFloat() || x.DType().IsFloat() {
			wide = F64
		}
		rows, x = b.Cast(rows, wide), b.Cast(x, wide)
	}
	before := func(x, y Value) Value {
		less := b.lt(x, y)
		if x.DType().IsFloat() {
			less = b.logicalOr(less, b.logicalAnd(b.isNaN(y), b.logicalNot(b.isNaN(x))))
		}
		return less
	}
	one := b.Const(1, I64)
	lo, hi := b.Full(x.Shape().Dims(), 0, I64), b.Full(x.Shape().Dims(), n, I64)
	for range bits.Len(uint(n)) {
		mid := b.bitwiseRightShift(b.Add(lo, hi), one)
		y := b.Gather(rows, rows.Rank()-1, b.minimum(mid, b.Const(n-1, I64)))
		goes := before(y, x)
		if right {
			goes = b.logicalNot(before(x, y))
		}
		goes = b.logicalAnd(goes, b.lt(lo, hi))
		lo, hi = b.Where(goes, b.Add(mid, one), lo), b.Where(goes, hi, b.minimum(mid, hi))
	}
	if narrow {
		lo = b.Cast(lo, I32)
	}
	return b.Call1(opReshape, []any{lo, dims})
}
