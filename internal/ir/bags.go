package ir

import (
	"math"
	"slices"
)

// The ways in which the rows of a bag become one, by ATen's numbers.
var bagModes = []string{"sum", "mean", "max"}

const (
	bagSum = iota
	bagMean
	bagMax
)

func init() {
	register("embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, str mode='mean', Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor", Spec{
		Doc:      "Sums, means or maxima (mode sum, mean or max) of the rows of weight [rows, width] that each bag names. Bags are the rows of input, or parts of a vector that begin at offsets, with the end of the last one behind them if include_last_offset says so. per_sample_weights scales the rows of a sum; rows padding_idx count for nothing. An empty bag is 0. As torch.nn.functional.embedding_bag.",
		Category: Neural, Decompose: embeddingBag,
	})
	register("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor output, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices)", Spec{
		Doc:      "embedding_bag with mode 0 (sum), 1 (mean) or 2 (max), the bag of each index, the sizes of the bags and, for mode 2, the row that each maximum is from. As at::_embedding_bag.",
		Category: Neural, Unlisted: true, Decompose: embeddingBags,
	})
	registerBackward("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
		"The gradient of _embedding_bag with respect to weight. As at::_embedding_bag_dense_backward.", embeddingBagBackward)
	registerBackward("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
		"The gradient of _embedding_bag with respect to per_sample_weights. As at::_embedding_bag_per_sample_weights_backward.", embeddingBagWeightsBackward)
}

func embeddingBag(b *Builder, a Args) []Value {
	input, weight, offsets := a.Tensor("input"), a.Tensor("weight"), a.Tensor("offsets")
	mode, scales := slices.Index(bagModes, a.Str("mode")), a.Tensor("per_sample_weights")
	if mode < 0 {
		a.Fail(ErrArg, "mode is %q, must be of %v", a.Str("mode"), bagModes)
	}
	if input.Rank() == 2 && offsets.IsNil() {
		count := input.Dim(0) * input.Dim(1)
		offsets = b.Mul(b.Iota(input.Dim(0), I64), b.Const(input.Dim(1), I64))
		input = b.Reshape(input, count)
		if !scales.IsNil() && scales.Rank() == 2 {
			scales = b.Reshape(scales, scales.Dim(0)*scales.Dim(1))
		}
	}
	if input.Rank() != 1 || offsets.IsNil() {
		a.Fail(ErrShape, "input must be a matrix without offsets or a vector with them, got %v", input.Shape())
	}
	padding, ok := a.OptInt("padding_idx")
	switch {
	case !ok:
		padding = -1
	case padding < 0:
		padding += weight.Dim(0)
	}
	return b.Call(byName["_embedding_bag"], []any{weight, input, offsets, false, mode, false, scales, a.Bool("include_last_offset"), padding})[:1]
}

// countIn sums the elements of x at their places at in n zeros.
func (b *Builder) countIn(n int, at, x Value) Value {
	dims := x.Shape().Dims()
	dims[0] = n
	return b.IndexAdd(b.Full(dims, 0, x.DType()), 0, at, x)
}

// bagsOf is the bag of each of count indices, from where the bags begin.
func (b *Builder) bagsOf(starts Value, count int) Value {
	marks := b.countIn(count+1, b.Cast(starts, I64), b.Full([]int{starts.Dim(0)}, 1, I64))
	return b.Sub(b.Cumsum(b.Slice(marks, 0, 0, count, 1), 0), b.Const(1, I64))
}

func embeddingBags(b *Builder, a Args) []Value {
	weight, indices, offsets, scales := a.Tensor("weight"), a.Tensor("indices"), a.Tensor("offsets"), a.Tensor("per_sample_weights")
	mode, padding := a.Int("mode"), a.Int("padding_idx")
	if weight.Rank() != 2 || !weight.DType().IsFloat() || indices.Rank() != 1 || offsets.Rank() != 1 {
		a.Fail(ErrShape, "weight must be a floating matrix, indices and offsets vectors, got %v, %v and %v", weight.Shape(), indices.Shape(), offsets.Shape())
	}
	if mode < bagSum || mode > bagMax {
		a.Fail(ErrArg, "mode is %d, must be 0 (sum), 1 (mean) or 2 (max)", mode)
	}
	if !scales.IsNil() && (mode != bagSum || !scales.Shape().SameDims(indices.Shape())) {
		a.Fail(ErrArg, "per_sample_weights must be %v and mode sum, got %v and mode %s", indices.Shape(), scales.Shape(), bagModes[mode])
	}
	n, count := offsets.Dim(0), indices.Dim(0)
	starts := b.Cast(offsets, I64)
	if a.Bool("include_last_offset") {
		if n--; n < 0 {
			a.Fail(ErrShape, "offsets must have the end of the last bag")
		}
		starts = b.Slice(starts, 0, 0, n, 1)
	}
	at, bag := b.Cast(indices, I64), b.bagsOf(starts, count)
	counts := b.Full([]int{count}, true, Bool)
	if padding >= 0 {
		counts = b.ne(at, b.Const(padding, I64))
	}
	if offsets.Dim(0) > n { // what is behind the last bag belongs to none
		end := b.Slice(b.Cast(offsets, I64), 0, n, n+1, 1)
		counts = b.logicalAnd(counts, b.lt(b.Iota(count, I64), end))
	}
	rows := b.widen(b.IndexSelect(weight, 0, at))
	sizes := b.countIn(n, bag, b.Cast(counts, I64))
	d := indices.DType()
	from := b.Full([]int{n}, 0, d)
	var out Value
	if mode == bagMax {
		out, from = b.bagMaxima(rows, at, bag, counts, sizes)
		from = b.Cast(from, d)
	} else {
		if !scales.IsNil() {
			rows = b.Mul(rows, b.Cast(b.Unsqueeze(scales, 1), rows.DType()))
		}
		out = b.countIn(n, bag, b.Where(b.Unsqueeze(counts, 1), rows, b.Const(0, rows.DType())))
		if mode == bagMean {
			out = b.Div(out, b.Cast(b.Unsqueeze(b.maximum(sizes, b.Const(1, I64)), 1), out.DType()))
		}
	}
	return []Value{b.Cast(out, weight.DType()), b.Cast(bag, d), b.Cast(sizes, d), from}
}

// bagMaxima returns the largest of the rows of each bag and, of each element, the table's row
// that it is from: the first of equal ones. An empty bag has 0 and 0.
func (b *Builder) bagMaxima(rows, at, bag, counts, sizes Value) (largest, from Value) {
	n, count, width := sizes.Dim(0), rows.Dim(0), rows.Dim(1)
	none := b.Full([]int{n, width}, math.Inf(-1), rows.DType())
	into := b.Expand(b.Unsqueeze(bag, 1), count, width)
	seen := b.Where(b.Unsqueeze(counts, 1), rows, b.Const(math.Inf(-1), rows.DType()))
	top := b.ScatterReduce(none, 0, into, seen, "amax")
	won := b.logicalAnd(b.eq(seen, b.IndexSelect(top, 0, bag)), b.Unsqueeze(counts, 1))
	place := b.Where(won, b.Unsqueeze(b.Iota(count, I64), 1), b.Const(count, I64))
	first := b.ScatterReduce(b.Full([]int{n, width}, count, I64), 0, into, place, "amin")
	empty := b.eq(first, b.Const(count, I64))
	known := b.Cat([]Value{at, b.Full([]int{1}, 0, I64)}, 0)
	from = b.Reshape(b.IndexSelect(known, 0, b.Reshape(first, n*width)), n, width)
	return b.Where(empty, b.Const(0, rows.DType()), top), from
}

func embeddingBagBackward(b *Builder, a Args) []Value {
	g, scales := a.Tensor("grad"), a.Tensor("per_sample_weights")
	at, bag, sizes := b.Cast(a.Tensor("indices"), I64), b.Cast(a.Tensor("offset2bag"), I64), a.Tensor("bag_size")
	mode, padding, rows := a.Int("mode"), a.Int("padding_idx"), a.Int("num_weights")
	if g.Rank() != 2 || rows < 0 {
		a.Fail(ErrShape, "the gradient must be a matrix for %d rows, got %v", rows, g.Shape())
	}
	wide := b.widen(g)
	d := wide.DType()
	if mode == bagMax {
		from := b.Cast(a.Tensor("maximum_indices"), I64)
		if !from.Shape().SameDims(g.Shape()) {
			a.Fail(ErrShape, "maximum_indices must be %v, got %v", g.Shape(), from.Shape())
		}
		empty := b.Unsqueeze(b.eq(sizes, b.Const(0, sizes.DType())), 1)
		zero := b.Full([]int{rows, g.Dim(1)}, 0, d)
		sum := b.ScatterReduce(zero, 0, b.Where(empty, b.Const(0, I64), from), b.Where(empty, b.Const(0, d), wide), "sum")
		return []Value{b.Cast(sum, g.DType())}
	}
	if at.Shape() != bag.Shape() || at.Rank() != 1 {
		a.Fail(ErrShape, "indices and offset2bag must be vectors of one size, got %v and %v", at.Shape(), bag.Shape())
	}
	factor := b.Full([]int{at.Dim(0)}, 1, d)
	if !scales.IsNil() {
		factor = b.Cast(scales, d)
	}
	if a.Bool("scale_grad_by_freq") {
		often := b.countIn(rows, at, b.Full([]int{at.Dim(0)}, 1, d))
		factor = b.Div(factor, b.IndexSelect(often, 0, at))
	}
	if mode == bagMean {
		factor = b.Div(factor, b.IndexSelect(b.Cast(sizes, d), 0, bag))
	}
	if padding >= 0 {
		factor = b.Where(b.eq(at, b.Const(padding, I64)), b.Const(0, d), factor)
	}
	parts := b.Mul(b.IndexSelect(wide, 0, bag), b.Unsqueeze(factor, 1))
	return []Value{b.Cast(b.countIn(rows, at, parts), g.DType())}
}

func embeddingBagWeightsBackward(b *Builder, a Args) []Value {
	g, weight, at := a.Tensor("grad"), a.Tensor("weight"), b.Cast(a.Tensor("indices"), I64)
	bag := b.Cast(a.Tensor("offset2bag"), I64)
	if g.Rank() != 2 || weight.Rank() != 2 || at.Rank() != 1 || g.Dim(1) != weight.Dim(1) {
		a.Fail(ErrShape, "a gradient %v of the rows %v of %v", g.Shape(), at.Shape(), weight.Shape())
	}
	if bag.Shape() != at.Shape() { // ATen does not always keep it
		bag = b.bagsOf(a.Tensor("offsets"), at.Dim(0))
	}
	out := b.Sum(b.Mul(b.IndexSelect(b.widen(g), 0, bag), b.IndexSelect(b.widen(weight), 0, at)), []int{1}, false)
	if padding := a.Int("padding_idx"); padding >= 0 {
		out = b.Where(b.eq(at, b.Const(padding, I64)), b.Const(0, out.DType()), out)
	}
	return []Value{b.Cast(out, g.DType())}
}
