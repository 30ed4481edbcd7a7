//go:build linux && cgo

package host

import (
	"cmp"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// orderOps choose among equal elements as PyTorch does, whose algorithms are not stable: on
// the host by the same steps. Accelerators compute the rows of ir, which take the first.
var orderOps = map[string]opEntry{
	"topk":      {eager: exactly(topK[int64], topK[float64]), decompose: row("topk")},
	"kthvalue":  {eager: exactly(alongRows(kth[int64]), alongRows(kth[float64])), decompose: row("kthvalue")},
	"mode":      {eager: exactly(alongRows(mode[int64]), alongRows(mode[float64])), decompose: row("mode")},
	"median":    {eager: exactly(median[int64], median[float64]), decompose: row("median")},
	"nanmedian": {eager: exactly(nanMedian[int64], nanMedian[float64]), decompose: row("nanmedian")},
}

// ordered are the types in which elements that have an order are compared.
type ordered interface{ int64 | float64 }

// exactly computes an op on integers as such and on others in float64.
func exactly(ints, floats eagerFunc) eagerFunc {
	return func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		if isInt(t) {
			return ints(v)
		}
		return floats(v)
	}
}

// ranked is an element and its position.
type ranked[T ordered] struct {
	x  T
	at int
}

func below[T ordered](a, b ranked[T]) bool { return orderNaN(a.x, b.x) < 0 }
func above[T ordered](a, b ranked[T]) bool { return orderNaN(a.x, b.x) > 0 }

func rank[T ordered](row []T) []ranked[T] {
	out := make([]ranked[T], len(row))
	for i, x := range row {
		out[i] = ranked[T]{x, i}
	}
	return out
}

func kth[T ordered](v values, row []T) (T, int64, error) {
	k := v.int("k", 1)
	if k < 1 || k > len(row) {
		return 0, 0, fmt.Errorf("%w: kthvalue %d of %d", ir.ErrArg, k, len(row))
	}
	at := quickSelect(row, k-1)
	return row[at], int64(at), nil
}

// mode is the most frequent element, the least of them, where it comes last in
// the order that sorting gives.
func mode[T ordered](_ values, row []T) (T, int64, error) {
	if len(row) == 0 {
		return 0, 0, fmt.Errorf("%w: mode of nothing", ir.ErrShape)
	}
	order := rank(row)
	cxxSort(order, func(a, b ranked[T]) bool { return a.x < b.x })
	best, most, n := order[0], 0, 0
	for i, e := range order {
		n++
		if i+1 == len(order) || order[i+1].x != e.x {
			if n > most {
				best, most = e, n
			}
			n = 0
		}
	}
	return best.x, int64(best.at), nil
}

func median[T ordered](v values) ([]*tensor, error)    { return middles[T](v, false) }
func nanMedian[T ordered](v values) ([]*tensor, error) { return middles[T](v, true) }

func middles[T ordered](v values, skip bool) ([]*tensor, error) {
	if v.has("dim") {
		return alongRows(func(_ values, row []T) (T, int64, error) {
			if len(row) == 0 {
				return 0, 0, fmt.Errorf("%w: median of nothing", ir.ErrShape)
			}
			at := middle(row, skip)
			return row[at], int64(at), nil
		})(v)
	}
	t, a, err := argument[T](v, "self")
	if err != nil {
		return nil, err
	}
	if len(a.data) == 0 {
		if isInt(t) {
			return one(save(array[int64]{data: []int64{math.MinInt64}}, dtypeOf(t)))
		}
		return one(save(array[float64]{data: []float64{math.NaN()}}, dtypeOf(t)))
	}
	return one(save(array[T]{data: []T{a.data[middle(a.data, skip)]}}, dtypeOf(t)))
}

// middle returns the position of the lower median; the first NaN's if there is
// one, unless NaN do not count.
func middle[T ordered](row []T, skip bool) int {
	order, n := rank(row), 0
	for i, x := range row {
		if !isNaN(x) {
			n++
		} else if !skip {
			return i
		}
	}
	if n == 0 {
		return 0
	}
	cxxNthElement(order, (n-1)/2, below)
	return order[(n-1)/2].at
}

// topK finds the k largest or least elements along a dimension.
func topK[T ordered](v values) ([]*tensor, error) {
	t, a, dim, err := rowsOf[T](v, -1)
	if err != nil {
		return nil, err
	}
	dims, shape := append([]int(nil), a.dims...), atLeast1(a.dims)
	k, less := v.int("k", 1), below[T]
	if k < 0 || k > shape[dim] {
		return nil, fmt.Errorf("%w: topk %d of %d", ir.ErrArg, k, shape[dim])
	}
	if v.bool("largest", true) {
		less = above[T]
	}
	if len(dims) > 0 {
		dims[dim] = k
	}
	n := product(dims)
	vals, at := array[T]{make([]T, n), dims}, array[int64]{make([]int64, n), dims}
	sorted, row := v.bool("sorted", true), make([]ranked[T], shape[dim])
	eachLine(shape, dim, func(i, from, step, _ int) {
		for j := range row {
			row[j] = ranked[T]{a.data[from+j*step], j}
		}
		leading(row, k, sorted, less)
		to := i/step*step*k + i%step
		for j, e := range row[:k] {
			vals.data[to+j*step], at.data[to+j*step] = e.x, int64(e.at)
		}
	})
	return saveBoth(vals, dtypeOf(t), at)
}

// leading brings the first k elements to the front by the algorithm that PyTorch
// takes for their number.
func leading[T ordered](row []ranked[T], k int, sorted bool, less func(a, b ranked[T]) bool) {
	switch {
	case k == 0:
	case k*64 <= len(row):
		cxxPartialSort(row, k, less)
	default:
		cxxNthElement(row, k-1, less)
		if sorted {
			cxxSort(row[:k-1], less)
		}
	}
}

// alongRows computes a value and its position of each row along dim.
func alongRows[T ordered](fn func(v values, row []T) (T, int64, error)) eagerFunc {
	return func(v values) ([]*tensor, error) {
		t, a, dim, err := rowsOf[T](v, -1)
		if err != nil {
			return nil, err
		}
		dims := without(a.dims, dim, v.bool("keepdim", false))
		n := product(dims)
		vals, at := array[T]{make([]T, n), dims}, array[int64]{make([]int64, n), dims}
		var failed error
		eachLine(a.dims, dim, func(i, from, step, count int) {
			row := make([]T, count)
			for k := range row {
				row[k] = a.data[from+k*step]
			}
			x, k, err := fn(v, row)
			if err != nil {
				failed = err
			}
			vals.data[i], at.data[i] = x, k
		})
		if failed != nil {
			return nil, failed
		}
		return saveBoth(vals, dtypeOf(t), at)
	}
}

// quickSelect returns the position of the element of rank k. Among equal elements
// it picks the one that PyTorch does, by partitioning in the same way: around the
// median of three, from both ends.
func quickSelect[T ordered](row []T, k int) int {
	order := make([]int, len(row))
	for i := range order {
		order[i] = i
	}
	above := func(i, j int) bool { return orderNaN(row[order[i]], row[order[j]]) > 0 }
	swap := func(i, j int) { order[i], order[j] = order[j], order[i] }
	lo, hi := 0, len(row)-1
	for hi > lo+1 {
		swap(lo+(hi-lo)/2, lo+1)
		if above(lo+1, hi) {
			swap(lo+1, hi)
		}
		if above(lo, hi) {
			swap(lo, hi)
		}
		if above(lo+1, lo) {
			swap(lo+1, lo)
		}
		i, j := lo+1, hi
		for {
			for i++; above(lo, i); i++ {
			}
			for j--; above(j, lo); j-- {
			}
			if j < i {
				break
			}
			swap(i, j)
		}
		swap(lo, j)
		if j <= k {
			lo = i
		}
		if j >= k {
			hi = j - 1
		}
	}
	if hi == lo+1 && above(lo, hi) {
		swap(lo, hi)
	}
	return order[k]
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
