//go:build linux && cgo

package host

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// selectOps are the ops that pick elements by indices and masks. Those with eager kernels
// have results whose size depends on data, or take masks, whose places are found first.
var selectOps = map[string]opEntry{
	"nonzero": {eager: func(v values) ([]*tensor, error) {
		a, err := v.truths("self")
		if err != nil {
			return nil, err
		}
		return one(columns(positions(a)))
	}},
	"masked_select": {eager: func(v values) ([]*tensor, error) {
		x, m, err := v.two("self", "mask")
		if err != nil {
			return nil, err
		}
		if isInt(x) {
			return picked[int64](x, m)
		}
		return picked[complex128](x, m)
	}},
	"index":     {eager: withoutMasks(indexProgram), decompose: indexProgram},
	"index_put": {eager: withoutMasks(indexPutProgram), decompose: indexPutProgram},
	"bincount": {eager: func(v values) ([]*tensor, error) {
		_, a, err := argument[int64](v, "self")
		if err != nil {
			return nil, err
		}
		n := v.int("minlength", 0)
		for _, x := range a.data {
			if x < 0 || x > 1<<40 {
				return nil, fmt.Errorf("%w: bincount of %d", ir.ErrArg, x)
			}
			n = max(n, int(x)+1)
		}
		return eagerRow(lookup("bincount"), v.with("minlength", n))
	}},
	"repeat_interleave_Tensor": {eager: func(v values) ([]*tensor, error) {
		t, a, err := argument[int64](v, "repeats")
		if err != nil {
			return nil, err
		}
		var out []int64
		for i, n := range a.data {
			if n < 0 {
				return nil, fmt.Errorf("%w: %d repeats", ir.ErrArg, n)
			}
			for range n {
				out = append(out, int64(i))
			}
		}
		return one(save(array[int64]{out, []int{len(out)}}, dtypeOf(t)))
	}},
	"scatter": {decompose: func(v values) (*decomposition, error) {
		if !v.has("value") {
			return decomposeRow(lookup("scatter"), v)
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
	}},
}

// with returns the arguments with another value for one.
func (v values) with(name string, x any) values {
	out := values{name: x}
	for n, x := range v {
		if n != name {
			out[n] = x
		}
	}
	return out
}

// truths loads a tensor as 1 for what is not zero.
func (v values) truths(name string) (array[int64], error) {
	_, a, err := argument[complex128](v, name)
	if err != nil {
		return array[int64]{}, err
	}
	out := array[int64]{make([]int64, len(a.data)), a.dims}
	for i, x := range a.data {
		if x != 0 {
			out.data[i] = 1
		}
	}
	return out, nil
}

// positions lists where a is not zero, a row each.
func positions(a array[int64]) array[int64] {
	rank, n := len(a.dims), 0
	var rows []int64
	for i, x := range a.data {
		if x == 0 {
			continue
		}
		n++
		row := make([]int64, rank)
		for d := rank - 1; d >= 0; d-- {
			row[d] = int64(i % a.dims[d])
			i /= a.dims[d]
		}
		rows = append(rows, row...)
	}
	return array[int64]{rows, []int{n, rank}}
}

// columns makes a tensor whose columns lie in a row each, as PyTorch's nonzero.
func columns(a array[int64]) (*tensor, error) {
	rows, err := save(a, ir.I64)
	if err != nil {
		return nil, err
	}
	defer release(rows)
	t, err := newStrided(ir.MakeShape(ir.I64, a.dims...), []int64{1, int64(max(a.dims[0], 1))})
	if err != nil {
		return nil, err
	}
	if err := copyTensor(t, rows); err != nil {
		release(t)
		return nil, err
	}
	return t, nil
}

// common returns the dimensions to which two tensors broadcast.
func common(x, y *tensor) ([]int, error) {
	xs, err := shapeOf(x)
	if err != nil {
		return nil, err
	}
	ys, err := shapeOf(y)
	if err != nil {
		return nil, err
	}
	s, ok := ir.BroadcastDims(xs, ys)
	if !ok {
		return nil, fmt.Errorf("%w: %v and %v", ir.ErrShape, xs, ys)
	}
	return s.Dims(), nil
}

// picked returns the elements of x where the mask holds.
func picked[T number](x, mask *tensor) ([]*tensor, error) {
	dims, err := common(x, mask)
	if err != nil {
		return nil, err
	}
	keep, err := expanded[int64](mask, dims)
	if err != nil {
		return nil, err
	}
	a, err := expanded[T](x, dims)
	if err != nil {
		return nil, err
	}
	var out []T
	for i, k := range keep.data {
		if k != 0 {
			out = append(out, a.data[i])
		}
	}
	return one(save(array[T]{out, []int{len(out)}}, dtypeOf(x)))
}

// isMask reports whether an index chooses by truth instead of by number.
func isMask(t *tensor) bool { return t != nil && (dtypeOf(t) == ir.Bool || dtypeOf(t) == ir.U8) }

// withoutMasks computes an op on indices after it has found the places of masks, each of
// which stands for as many indices as it has dimensions.
func withoutMasks(program decomposeFunc) eagerFunc {
	return func(v values) ([]*tensor, error) {
		r, err := program(v)
		if err == nil {
			return r.onHost()
		}
		list, _ := v["indices"].([]*tensor)
		var indices []*tensor
		for _, t := range list {
			if !isMask(t) {
				indices = append(indices, t)
				continue
			}
			mask, err := load[int64](t)
			if err != nil {
				return nil, err
			}
			rows := positions(mask)
			for d := range mask.dims {
				col := array[int64]{make([]int64, rows.dims[0]), rows.dims[:1]}
				for i := range col.data {
					col.data[i] = rows.data[i*len(mask.dims)+d]
				}
				t, err := save(col, ir.I64)
				if err != nil {
					return nil, err
				}
				defer release(t)
				indices = append(indices, t)
			}
		}
		if r, err = program(v.with("indices", indices)); err != nil {
			return nil, err
		}
		return r.onHost()
	}
}

// indexOrder says in which order the row of ir takes the dimensions of index and index_put:
// those that are indexed first.
type indexOrder struct {
	in      []*tensor // self and the indices
	order   []int     // of the dimensions of self
	indexed int
	common  int // dimensions of what the indices have in common
	at      int // where those belong in the result
}

// indexOrderOf reads self and the indices. Masks are errNoDecomposition.
func indexOrderOf(v values) (*indexOrder, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	f := &indexOrder{in: []*tensor{t}}
	list, _ := v["indices"].([]*tensor)
	for _, x := range list {
		if isMask(x) {
			return nil, errNoDecomposition
		}
	}
	if len(list) > int(t.ndim) {
		return nil, fmt.Errorf("%w: too many indices (%d) for a tensor of dimension %d", ir.ErrShape, len(list), t.ndim)
	}
	var rest []int
	last, adjacent := -1, true
	for d := range int(t.ndim) {
		if d >= len(list) || list[d] == nil {
			rest = append(rest, d)
			continue
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
	return f, nil
}

// outward is the order of the dimensions of a result of index whose indexed ones
// come first.
func (f *indexOrder) outward(rank int) []int {
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

func indexProgram(v values) (*decomposition, error) {
	f, err := indexOrderOf(v)
	if err != nil {
		return nil, err
	}
	return simple(fmt.Sprint("index ", f.order, f.indexed, f.at), f.in, func(b *ir.Builder, in []ir.Value) []ir.Value {
		if f.indexed == 0 {
			return in
		}
		out := do(b, "index", b.Permute(in[0], f.order...), in[1:])
		return []ir.Value{b.Permute(out, f.outward(out.Rank())...)}
	})
}

func indexPutProgram(v values) (*decomposition, error) {
	t, val, err := v.two("self", "values")
	if err != nil {
		return nil, err
	}
	add := v.bool("accumulate", false)
	if list, _ := v["indices"].([]*tensor); len(list) == 1 && list[0] != nil && dtypeOf(list[0]) == ir.Bool && val.numel == 1 {
		in := []*tensor{t, list[0], val}
		return &decomposition{what: fmt.Append(nil, "index_put mask ", add), in: in, strides: likeStrides(t), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			x := b.Cast(b.Reshape(in[2]), in[0].DType())
			return b.Call(lookup("index_put"), []any{in[0], []ir.Value{in[1]}, x, add})
		}}, nil
	}
	f, err := indexOrderOf(v)
	if err != nil {
		return nil, err
	}
	in := append(f.in, val)
	return &decomposition{what: fmt.Append(nil, "index_put ", f.order, f.indexed, f.at, add), in: in, strides: likeStrides(t), build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		n := len(in) - 1
		x, val := in[0], b.Cast(in[n], in[0].DType())
		switch {
		case f.indexed == 0 && add:
			return []ir.Value{b.Add(x, val)}
		case f.indexed == 0:
			return []ir.Value{b.ExpandAs(val, x)}
		}
		x = b.Permute(x, f.order...)
		rank := f.common + x.Rank() - f.indexed
		for val.Rank() < rank {
			val = b.Unsqueeze(val, 0)
		}
		val = b.Permute(val, inverse(f.outward(rank))...)
		out := do(b, "index_put", x, in[1:n], val, add)
		return []ir.Value{b.Permute(out, inverse(f.order)...)}
	}}, nil
}
