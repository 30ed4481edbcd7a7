//go:build linux && cgo

package host

import (
	"fmt"
	"slices"

	"github.com/loris-ml/loris/ir"
)

// selectEvals are the ops that pick elements by indices, masks and search.
var selectEvals = map[string]evalFunc{
	"nonzero": func(v values) ([]*tensor, error) {
		a, err := v.truths("self")
		if err != nil {
			return nil, err
		}
		return one(columns(positions(a, -1, 0)))
	},
	"nonzero_static": func(v values) ([]*tensor, error) {
		a, err := v.truths("self")
		if err != nil {
			return nil, err
		}
		return one(save(positions(a, v.int("size", 0), int64(v.int("fill_value", -1))), ir.I64))
	},
	"masked_select": func(v values) ([]*tensor, error) {
		x, m, err := v.two("self", "mask")
		if err != nil {
			return nil, err
		}
		dims, err := common(x, m)
		if err != nil {
			return nil, err
		}
		keep, err := expanded[int64](m, dims)
		if err != nil {
			return nil, err
		}
		if isInt(x) {
			return picked[int64](x, keep)
		}
		return picked[complex128](x, keep)
	},
	"masked_scatter": func(v values) ([]*tensor, error) {
		x, m, err := v.two("self", "mask")
		if err != nil {
			return nil, err
		}
		src, err := v.tensor("source")
		if err != nil {
			return nil, err
		}
		if isInt(x) {
			return maskedScatter[int64](x, m, src)
		}
		return maskedScatter[complex128](x, m, src)
	},
	"index":        func(v values) ([]*tensor, error) { return indexed(v) },
	"index_put":    func(v values) ([]*tensor, error) { return indexPut(v) },
	"searchsorted": searchSorted,
	"bucketize":    func(v values) ([]*tensor, error) { return bucketize(v) },
	"bincount":     binCount,
	"repeat_interleave_Tensor": func(v values) ([]*tensor, error) {
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
	},
	"scatter": func(v values) ([]*tensor, error) {
		if x, ok := v["value"]; ok {
			t, err := v.tensor("self")
			if err != nil {
				return nil, err
			}
			idx, err := v.tensor("index")
			if err != nil {
				return nil, err
			}
			s, err := shapeOf(idx)
			if err != nil {
				return nil, err
			}
			f := values{"value": x}.float("value", 0)
			src, err := newTensor(s.WithDType(dtypeOf(t)))
			if err != nil {
				return nil, err
			}
			defer release(src)
			if err := fill(src, f); err != nil {
				return nil, err
			}
			v = values{"self": t, "dim": v["dim"], "index": idx, "src": src}
		}
		return evalIR(lookup("scatter"), v)
	},
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

// positions lists where a is not zero, a row each; size, if not negative, says how
// many rows there are, with pad in those that are left.
func positions(a array[int64], size int, pad int64) array[int64] {
	rank := len(a.dims)
	var rows []int64
	n := 0
	for i, x := range a.data {
		if x == 0 || n == size {
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
	for size > n {
		n++
		for range rank {
			rows = append(rows, pad)
		}
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

func picked[T number](x *tensor, keep array[int64]) ([]*tensor, error) {
	a, err := expanded[T](x, keep.dims)
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

func maskedScatter[T number](x, m, src *tensor) ([]*tensor, error) {
	dims, err := common(x, m)
	if err != nil {
		return nil, err
	}
	a, err := expanded[T](x, dims)
	if err != nil {
		return nil, err
	}
	keep, err := expanded[int64](m, dims)
	if err != nil {
		return nil, err
	}
	from, err := load[T](src)
	if err != nil {
		return nil, err
	}
	next := 0
	for i, k := range keep.data {
		if k == 0 {
			continue
		}
		if next == len(from.data) {
			return nil, fmt.Errorf("%w: masked_scatter has only %d elements to put", ir.ErrShape, next)
		}
		a.data[i] = from.data[next]
		next++
	}
	return one(save(a, dtypeOf(x)))
}

// indexing is what a list of indices means: the dimensions of the result, and for
// each of its elements where it is in the tensor.
type indexing struct {
	dims []int
	at   []int
}

// resolve reads indices, which may be masks and None, for a tensor of the given
// dimensions.
func resolve(dims []int, list []*tensor) (indexing, error) {
	var idx []array[int64] // by dimension; dims nil for none
	for _, t := range list {
		switch {
		case t == nil:
			idx = append(idx, array[int64]{})
		case dtypeOf(t) == ir.Bool || dtypeOf(t) == ir.U8:
			m, err := load[int64](t)
			if err != nil {
				return indexing{}, err
			}
			rows := positions(m, -1, 0)
			for d := range m.dims {
				col := array[int64]{make([]int64, rows.dims[0]), rows.dims[:1]}
				for i := range col.data {
					col.data[i] = rows.data[i*len(m.dims)+d]
				}
				idx = append(idx, col)
			}
		default:
			a, err := load[int64](t)
			if err != nil {
				return indexing{}, err
			}
			if a.dims == nil {
				a.dims = []int{}
			}
			idx = append(idx, a)
		}
	}
	for len(idx) < len(dims) {
		idx = append(idx, array[int64]{})
	}
	if len(idx) > len(dims) {
		return indexing{}, fmt.Errorf("%w: %d indices for %v", ir.ErrShape, len(idx), dims)
	}
	return layIndices(dims, idx)
}

func layIndices(dims []int, idx []array[int64]) (indexing, error) {
	shape := ir.MakeShape(ir.I64)
	first, last, count := -1, -1, 0
	for d, a := range idx {
		if a.dims == nil {
			continue
		}
		s, ok := ir.BroadcastDims(shape, ir.MakeShape(ir.I64, a.dims...))
		if !ok {
			return indexing{}, fmt.Errorf("%w: indices do not broadcast", ir.ErrShape)
		}
		shape = s
		if first < 0 {
			first = d
		}
		last = d
		count++
	}
	adjacent := last-first+1 == count
	var out indexing
	front := 0
	if adjacent {
		front = max(first, 0)
	}
	rest := func(from, to int) {
		for d := from; d < to; d++ {
			if idx[d].dims == nil {
				out.dims = append(out.dims, dims[d])
			}
		}
	}
	rest(0, front)
	bdims := shape.Dims()
	out.dims = append(out.dims, bdims...)
	if count > 0 || !adjacent {
		rest(front, len(dims))
	} else {
		rest(0, len(dims))
	}
	return out, out.fill(dims, idx, front, bdims)
}

// fill computes where each element of the result is.
func (x *indexing) fill(dims []int, idx []array[int64], front int, bdims []int) error {
	total := 1
	for _, d := range x.dims {
		total *= d
	}
	x.at = make([]int, total)
	pos := make([]int, len(x.dims))
	for i := range x.at {
		k := i
		for d := len(pos) - 1; d >= 0; d-- {
			pos[d] = k % x.dims[d]
			k /= x.dims[d]
		}
		b := pos[front : front+len(bdims)]
		plain := 0 // the next dimension of the result that is no index's
		at := 0
		for d, n := range dims {
			if idx[d].dims == nil {
				if plain == front {
					plain += len(bdims)
				}
				at = at*n + pos[plain]
				plain++
				continue
			}
			j := idx[d].data[offsetIn(idx[d].dims, b)]
			if j < -int64(n) || j >= int64(n) {
				return fmt.Errorf("%w: index %d is out of bounds for dimension %d of size %d", ir.ErrShape, j, d, n)
			}
			at = at*n + int(j+int64(n))%n
		}
		x.at[i] = at
	}
	return nil
}

// offsetIn returns where a position in broadcast dimensions is in an array.
func offsetIn(dims, pos []int) int {
	at := 0
	for i, n := range dims {
		p := pos[len(pos)-len(dims)+i]
		if n == 1 {
			p = 0
		}
		at = at*n + p
	}
	return at
}

// indexing reads the list of indices for a tensor.
func (v values) indexing(t *tensor) (indexing, error) {
	s, err := shapeOf(t)
	if err != nil {
		return indexing{}, err
	}
	list, _ := v["indices"].([]*tensor)
	return resolve(s.Dims(), list)
}

func indexed(v values) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	x, err := v.indexing(t)
	if err != nil {
		return nil, err
	}
	if isInt(t) {
		return gathered[int64](t, x)
	}
	return gathered[complex128](t, x)
}

func gathered[T number](t *tensor, x indexing) ([]*tensor, error) {
	a, err := load[T](t)
	if err != nil {
		return nil, err
	}
	out := array[T]{make([]T, len(x.at)), x.dims}
	for i, at := range x.at {
		out.data[i] = a.data[at]
	}
	return one(save(out, dtypeOf(t)))
}

func indexPut(v values) ([]*tensor, error) {
	t, val, err := v.two("self", "values")
	if err != nil {
		return nil, err
	}
	x, err := v.indexing(t)
	if err != nil {
		return nil, err
	}
	add := v.bool("accumulate", false)
	var outs []*tensor
	if isInt(t) {
		outs, err = put[int64](t, val, x, add)
	} else {
		outs, err = put[complex128](t, val, x, add)
	}
	if err != nil {
		return nil, err
	}
	return likeSelf(outs, t)
}

func put[T number](t, val *tensor, x indexing, add bool) ([]*tensor, error) {
	a, err := load[T](t)
	if err != nil {
		return nil, err
	}
	b, err := expanded[T](val, x.dims)
	if err != nil {
		return nil, err
	}
	for i, at := range x.at {
		if add {
			a.data[at] += b.data[i]
		} else {
			a.data[at] = b.data[i]
		}
	}
	return one(save(a, dtypeOf(t)))
}

// likeSelf gives the first result the strides that a copy of t has.
func likeSelf(outs []*tensor, t *tensor) ([]*tensor, error) {
	strides := denseLike(t)
	if slices.Equal(strides, stridesOf(outs[0])) {
		return outs, nil
	}
	s, err := shapeOf(outs[0])
	if err != nil {
		return all(err, outs...)
	}
	same, err := newStrided(s, strides)
	if err != nil {
		return all(err, outs...)
	}
	err = copyTensor(same, outs[0])
	release(outs[0])
	outs[0] = same
	return all(err, outs...)
}
