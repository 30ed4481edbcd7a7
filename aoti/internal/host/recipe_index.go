//go:build linux && cgo

package host

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/loris-ml/loris/ir"
)

// indexRecipes are the ops that pick and place elements by indices and masks.
var indexRecipes = map[string]recipeFunc{
	"index":          indexRecipe,
	"index_put":      indexPutRecipe,
	"index_reduce":   indexReduceRecipe,
	"scatter":        scatterRecipe,
	"searchsorted":   searchRecipe,
	"bucketize":      bucketRecipe,
	"masked_scatter": maskedScatterRecipe,
	"masked_scatter_backward": func(v values) (*recipe, error) {
		in, err := v.tensors("grad_output", "mask")
		size := intsOf(v.ints("sizes"))
		return &recipe{what: fmt.Append(nil, "masked_scatter_backward ", size), in: in, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			mask := flat(b, b.ExpandAs(in[1], in[0]))
			got := front(b, mask, flat(b, in[0]), product(size), num(b, 0, in[0]))
			return []ir.Value{b.Reshape(got, size...)}
		}}, err
	},
	"nonzero_static": func(v values) (*recipe, error) {
		t, err := v.tensor("self")
		size, fill := v.int("size", 0), v.int("fill_value", -1)
		return &recipe{what: fmt.Append(nil, "nonzero_static ", size, " ", fill), in: []*tensor{t}, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			_, rows := nonzeros(b, in[0], size, fill)
			return []ir.Value{rows}
		}}, err
	},
}

// truth is true for what is not zero.
func truth(b *ir.Builder, x ir.Value) ir.Value {
	if x.DType() == ir.Bool {
		return x
	}
	return b.Ne(x, num(b, 0, x))
}

// flat returns x with one dimension.
func flat(b *ir.Builder, x ir.Value) ir.Value { return b.Reshape(x, x.Shape().Numel()) }

// front returns a vector of n elements: those of x where the mask holds, in order,
// and fill behind them. Both are vectors.
func front(b *ir.Builder, mask, x ir.Value, n int, fill ir.Value) ir.Value {
	at := b.Sub(b.Cumsum(b.Cast(mask, ir.I64), 0), b.Const(1, ir.I64))
	rest := b.Const(n, ir.I64)
	at = b.Minimum(b.Where(mask, at, rest), rest)
	out := b.Scatter(b.Expand(fill, n+1), 0, at, x)
	return b.Slice(out, 0, 0, n, 1)
}

// nonzeros returns how many elements of x are not zero, and where the first n of
// them are, [n, rank], with fill in the rows that are left.
func nonzeros(b *ir.Builder, x ir.Value, n, fill int) (count, rows ir.Value) {
	mask := flat(b, truth(b, x))
	count = b.Sum(b.Cast(mask, ir.I64), []int{0}, false)
	dims := x.Shape().Dims()
	if len(dims) == 0 || x.Shape().Numel() == 0 {
		return count, b.Full([]int{n, len(dims)}, fill, ir.I64)
	}
	at := front(b, mask, b.Iota(mask.Dim(0), ir.I64), n, b.Const(-1, ir.I64))
	none := b.Lt(at, b.Const(0, ir.I64))
	cols := make([]ir.Value, len(dims))
	rest := at
	for d := len(dims) - 1; d >= 0; d-- {
		size := b.Const(dims[d], ir.I64)
		col := b.Remainder(rest, size)
		rest = do(b, "trunc_divide", rest, size)
		cols[d] = b.Unsqueeze(b.Where(none, b.Const(fill, ir.I64), col), 1)
	}
	return count, b.Cat(cols, 1)
}

// indexed are the operands of index and index_put with the dimensions that are
// indexed first.
type fronted struct {
	in      []*tensor // self and the indices
	order   []int     // of the dimensions of self
	indexed int
	common  int // dimensions of what the indices have in common
	at      int // where those belong in the result
}

// frontedOf reads self and the indices. Masks are errNoRecipe.
func frontedOf(v values) (*fronted, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	f := &fronted{in: []*tensor{t}}
	list, _ := v["indices"].([]*tensor)
	if len(list) > int(t.ndim) {
		return nil, fmt.Errorf("%w: %d indices for %v", ir.ErrShape, len(list), sizesOf(t))
	}
	var rest []int
	last, adjacent := -1, true
	for d := range int(t.ndim) {
		if d >= len(list) || list[d] == nil {
			rest = append(rest, d)
			continue
		}
		if x := dtypeOf(list[d]); x == ir.Bool || x == ir.U8 {
			return nil, errNoRecipe
		}
		adjacent = adjacent && (last < 0 || last == d-1)
		if last < 0 {
			f.at = d
		}
		last = d
		f.order = append(f.order, d)
		f.in = append(f.in, list[d])
		f.common = max(f.common, int(list[d].ndim))
	}
	if !adjacent {
		f.at = 0
	}
	f.indexed = len(f.order)
	f.order = append(f.order, rest...)
	if f.indexed == 0 {
		return nil, errNoRecipe
	}
	return f, nil
}

// outward is the order of the dimensions of a result of index whose indexed ones
// come first.
func (f *fronted) outward(rank int) []int {
	var order []int
	for d := range f.at {
		order = append(order, f.common+d)
	}
	for d := range f.common {
		order = append(order, d)
	}
	for d := f.common + f.at; d < rank; d++ {
		order = append(order, d)
	}
	return order
}

// inverse returns the order that undoes an order.
func inverse(order []int) []int {
	back := make([]int, len(order))
	for i, d := range order {
		back[d] = i
	}
	return back
}

func indexRecipe(v values) (*recipe, error) {
	f, err := frontedOf(v)
	if err != nil {
		return nil, err
	}
	return simple(fmt.Sprint("index ", f.order, f.indexed, f.at), f.in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		out := do(b, "index", b.Permute(in[0], f.order...), in[1:])
		return []ir.Value{b.Permute(out, f.outward(out.Rank())...)}
	})
}

func indexPutRecipe(v values) (*recipe, error) {
	t, val, err := v.two("self", "values")
	if err != nil {
		return nil, err
	}
	add := v.bool("accumulate", false)
	if list, _ := v["indices"].([]*tensor); len(list) == 1 && list[0] != nil && dtypeOf(list[0]) == ir.Bool && val.numel == 1 {
		in := []*tensor{t, list[0], val}
		return &recipe{what: fmt.Append(nil, "index_put mask ", add), in: in, strides: likeStrides(t), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			x := b.Cast(b.Reshape(in[2]), in[0].DType())
			return b.Call(lookup("index_put"), []any{in[0], []ir.Value{in[1]}, x, add})
		}}, nil
	}
	f, err := frontedOf(v)
	if err != nil {
		return nil, err
	}
	in := append(f.in, val)
	return &recipe{what: fmt.Append(nil, "index_put ", f.order, f.indexed, f.at, add), in: in, strides: likeStrides(t), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		n := len(in) - 1
		x := b.Permute(in[0], f.order...)
		rank := f.common + x.Rank() - f.indexed
		val := b.Cast(in[n], x.DType())
		for val.Rank() < rank {
			val = b.Unsqueeze(val, 0)
		}
		val = b.Permute(val, inverse(f.outward(rank))...)
		out := do(b, "index_put", x, in[1:n], val, add)
		return []ir.Value{b.Permute(out, inverse(f.order)...)}
	}}, nil
}

// indexReduceRecipe scatters whole slices.
func indexReduceRecipe(v values) (*recipe, error) {
	in, err := v.tensors("self", "index", "source")
	if err != nil {
		return nil, err
	}
	dim, err := dimension(v.int("dim", 0), int(in[0].ndim))
	if err != nil {
		return nil, err
	}
	name, keep := v.text("reduce", ""), v.bool("include_self", true)
	if !slices.Contains([]string{"prod", "mean", "amax", "amin"}, name) {
		return nil, fmt.Errorf("%w: a reduction %q", ir.ErrArg, name)
	}
	return &recipe{what: fmt.Append(nil, "index_reduce ", dim, name, keep), in: in, strides: likeStrides(in[0]), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		self, index, src := in[0], flat(b, in[1]), in[2]
		if src.Rank() > 0 {
			dims := make([]int, src.Rank())
			for d := range dims {
				dims[d] = 1
			}
			dims[dim] = index.Dim(0)
			index = b.ExpandAs(b.Reshape(index, dims...), src)
		} else {
			index = b.Reshape(index)
		}
		return b.Call(lookup("scatter_reduce"), []any{self, dim, index, src, name}, ir.A("include_self", keep))
	}}, nil
}

func scatterRecipe(v values) (*recipe, error) {
	if !v.has("value") {
		return recipeIR(lookup("scatter"), v)
	}
	in, err := v.tensors("self", "index")
	if err != nil {
		return nil, err
	}
	dim, x := v.int("dim", 0), v.float("value", 0)
	return simple(fmt.Sprint("scatter value ", dim, x), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		src := b.Expand(b.Cast(b.Const(x, ir.F64), in[0].DType()), in[1].Shape().Dims()...)
		return []ir.Value{b.Scatter(in[0], dim, in[1], src)}
	})
}

func maskedScatterRecipe(v values) (*recipe, error) {
	in, err := v.tensors("self", "mask", "source")
	if err != nil {
		return nil, err
	}
	if in[2].numel == 0 {
		return nil, errNoRecipe
	}
	return simple("masked_scatter", in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		dims := b.Call1(ir.OpLogicalAnd, []any{in[0], in[1]}).Shape().Dims()
		mask := flat(b, b.Expand(in[1], dims...))
		at := b.Sub(b.Cumsum(b.Cast(mask, ir.I64), 0), b.Const(1, ir.I64))
		at = b.Where(mask, at, b.Const(0, ir.I64))
		src := b.IndexSelect(flat(b, b.Cast(in[2], in[0].DType())), 0, at)
		out := b.Where(mask, src, flat(b, b.Expand(in[0], dims...)))
		return []ir.Value{b.Reshape(out, dims...)}
	})
}

// searchRecipe finds by halving where each number belongs in a sorted row.
func searchRecipe(v values) (*recipe, error) {
	seq, err := v.tensor("sorted_sequence")
	if err != nil {
		return nil, err
	}
	in := []*tensor{seq}
	x, isTensor := v["self"].(*tensor)
	if isTensor {
		in = append(in, x)
	}
	sorter, sorted := v["sorter"].(*tensor)
	if sorted {
		in = append(in, sorter)
	}
	number := v.float("self", 0)
	right, narrow := v.bool("right", false) || v.text("side", "left") == "right", v.bool("out_int32", false)
	return simple(fmt.Sprint("searchsorted ", right, narrow, isTensor, sorted, number), in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		row, want := in[0], ir.Value{}
		if isTensor {
			want = in[1]
		} else {
			want = b.Const(number, ir.F64)
		}
		if sorted {
			row = b.Gather(row, row.Rank()-1, in[len(in)-1])
		}
		if d := ir.F64; row.DType().IsFloat() || want.DType().IsFloat() {
			row, want = b.Cast(row, d), b.Cast(want, d)
		} else {
			row, want = b.Cast(row, ir.I64), b.Cast(want, ir.I64)
		}
		out := search2(b, row, want, right)
		if narrow {
			out = b.Cast(out, ir.I32)
		}
		return []ir.Value{out}
	})
}

// search2 searches rows along the last dimension, or the only row. NaN is above
// everything.
func search2(b *ir.Builder, row, want ir.Value, right bool) ir.Value {
	dims, n := want.Shape().Dims(), row.Dim(-1)
	if row.Rank() == 1 {
		want = flat(b, want)
	}
	before := func(x, y ir.Value) ir.Value {
		less := b.Lt(x, y)
		if x.DType().IsFloat() {
			less = b.Call1(ir.OpLogicalOr, []any{less, b.Call1(ir.OpLogicalAnd, []any{do(b, "isnan", y), do(b, "logical_not", do(b, "isnan", x))})})
		}
		return less
	}
	one := b.Const(1, ir.I64)
	lo := b.Full(want.Shape().Dims(), 0, ir.I64)
	hi := b.Full(want.Shape().Dims(), n, ir.I64)
	for range bits.Len(uint(n)) {
		mid := b.Call1(lookup("bitwise_right_shift"), []any{b.Add(lo, hi), one})
		x := b.Gather(row, row.Rank()-1, b.Minimum(mid, b.Const(max(n-1, 0), ir.I64)))
		goes := before(x, want)
		if right {
			goes = do(b, "logical_not", before(want, x))
		}
		goes = b.Call1(ir.OpLogicalAnd, []any{goes, b.Lt(lo, hi)})
		lo, hi = b.Where(goes, b.Add(mid, one), lo), b.Where(goes, hi, b.Minimum(mid, hi))
	}
	return b.Reshape(lo, dims...)
}

func bucketRecipe(v values) (*recipe, error) {
	x, row, err := v.two("self", "boundaries")
	if err != nil {
		return nil, err
	}
	return searchRecipe(values{"sorted_sequence": row, "self": x, "right": v.int("right", 0), "out_int32": v.int("out_int32", 0)})
}
