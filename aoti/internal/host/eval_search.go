//go:build linux && cgo

package host

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/ir"
)

func searchSorted(v values) ([]*tensor, error) {
	seq, err := v.tensor("sorted_sequence")
	if err != nil {
		return nil, err
	}
	x, ok := v["self"].(*tensor)
	if isInt(seq) && ok && isInt(x) {
		return searchIn[int64](v, seq)
	}
	return searchIn[float64](v, seq)
}

// searchIn searches in the arithmetic of T.
func searchIn[T ordered](v values, seq *tensor) ([]*tensor, error) {
	right := v.bool("right", false) || v.text("side", "left") == "right"
	a, err := load[T](seq)
	if err != nil {
		return nil, err
	}
	if t, ok := v["sorter"].(*tensor); ok {
		order, err := load[int64](t)
		if err != nil {
			return nil, err
		}
		n := a.dims[len(a.dims)-1]
		sorted := make([]T, len(a.data))
		for i := range sorted {
			k := order.data[i]
			if k < 0 || k >= int64(n) {
				return nil, fmt.Errorf("%w: sorter has index %d", ir.ErrShape, k)
			}
			sorted[i] = a.data[i/n*n+int(k)]
		}
		a.data = sorted
	}
	x := array[T]{data: []T{T(v.float("self", 0))}}
	if t, ok := v["self"].(*tensor); ok {
		if x, err = load[T](t); err != nil {
			return nil, err
		}
	}
	return search(a, x, right, v.bool("out_int32", false))
}

func bucketize(v values) ([]*tensor, error) {
	x, b, err := v.two("self", "boundaries")
	if err != nil {
		return nil, err
	}
	return searchSorted(values{"sorted_sequence": b, "self": x, "right": v.int("right", 0), "out_int32": v.int("out_int32", 0)})
}

// search finds for each number where it belongs in the row of a that is its own,
// or in the only row.
func search[T ordered](a, x array[T], right, narrow bool) ([]*tensor, error) {
	n := a.dims[len(a.dims)-1]
	per := len(x.data)
	if len(a.dims) > 1 && len(x.dims) > 0 {
		per = x.dims[len(x.dims)-1]
		if n > 0 && len(a.data)/n*per != len(x.data) {
			return nil, fmt.Errorf("%w: searchsorted of %v in %v", ir.ErrShape, x.dims, a.dims)
		}
	}
	out := array[int64]{make([]int64, len(x.data)), x.dims}
	for i, want := range x.data {
		row := a.data[:n]
		if len(a.dims) > 1 {
			row = a.data[i/per*n:][:n]
		}
		k, found := slices.BinarySearchFunc(row, want, orderNaN[T])
		for right && found && k < n && orderNaN(row[k], want) == 0 {
			k++
		}
		out.data[i] = int64(k)
	}
	d := ir.I64
	if narrow {
		d = ir.I32
	}
	return one(save(out, d))
}

// isNaN is false for all integers.
func isNaN[T ordered](x T) bool { return math.IsNaN(float64(x)) }

// orderNaN compares with NaN above everything.
func orderNaN[T ordered](a, b T) int {
	switch an, bn := isNaN(a), isNaN(b); {
	case an && bn:
		return 0
	case an:
		return 1
	case bn:
		return -1
	}
	return cmp.Compare(a, b)
}

func binCount(v values) ([]*tensor, error) {
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
	w, ok := v["weights"].(*tensor)
	if !ok {
		out := array[int64]{make([]int64, n), []int{n}}
		for _, x := range a.data {
			out.data[x]++
		}
		return one(save(out, ir.I64))
	}
	b, err := load[float64](w)
	if err != nil {
		return nil, err
	}
	if len(b.data) != len(a.data) {
		return nil, fmt.Errorf("%w: %d weights for %d", ir.ErrShape, len(b.data), len(a.data))
	}
	out := array[float64]{make([]float64, n), []int{n}}
	for i, x := range a.data {
		out.data[x] += b.data[i]
	}
	d := ir.F64
	if dtypeOf(w) == ir.F32 {
		d = ir.F32
	}
	return one(save(out, d))
}
