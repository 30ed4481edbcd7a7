//go:build linux && cgo

package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/ir"
)

// orderEvals are the ops about the order of elements.
var orderEvals = map[string]evalFunc{
	"sort": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		outs, err := evalIR(lookup("sort"), v)
		if err != nil {
			return nil, err
		}
		if outs, err = likeSelf(outs, t); err != nil {
			return nil, err
		}
		second, err := likeSelf(outs[1:], t)
		if err != nil {
			release(outs[0])
			return nil, err
		}
		return append(outs[:1], second...), nil
	},
	"kthvalue": func(v values) ([]*tensor, error) {
		return alongRows(v, func(row []float64) (float64, int64, error) {
			k := v.int("k", 1)
			if k < 1 || k > len(row) {
				return 0, 0, fmt.Errorf("%w: kthvalue %d of %d", ir.ErrArg, k, len(row))
			}
			at := quickSelect(row, k-1)
			return row[at], int64(at), nil
		})
	},
	"mode": func(v values) ([]*tensor, error) {
		return alongRows(v, func(row []float64) (float64, int64, error) {
			order := sortedOrder(row)
			if len(order) == 0 {
				return 0, 0, fmt.Errorf("%w: mode of nothing", ir.ErrShape)
			}
			best, most := order[0], 0
			for i := 0; i < len(order); {
				j := i + 1
				for j < len(order) && row[order[j]] == row[order[i]] {
					j++
				}
				if j-i > most {
					best, most = order[j-1], j-i
				}
				i = j
			}
			return row[best], int64(best), nil
		})
	},
	"median": func(v values) ([]*tensor, error) {
		if v.has("dim") {
			return alongRows(v, func(row []float64) (float64, int64, error) {
				at := middle(row, false)
				return row[at], int64(at), nil
			})
		}
		return middleOf(v, false)
	},
	"nanmedian": func(v values) ([]*tensor, error) { return middleOf(v, true) },
}

// sortedOrder returns the positions of the elements in ascending order, NaN last,
// equal ones as they are.
func sortedOrder(row []float64) []int {
	order := make([]int, len(row))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return orderNaN(row[a], row[b]) })
	return order
}

// middle returns the position of the lower median; the first NaN's if there is
// one, unless NaN do not count.
func middle(row []float64, skip bool) int {
	order := sortedOrder(row)
	n := len(order)
	for n > 0 && math.IsNaN(row[order[n-1]]) {
		n--
	}
	if n < len(order) && !skip {
		return slices.IndexFunc(row, math.IsNaN)
	}
	if n == 0 {
		return 0
	}
	return order[(n-1)/2]
}

func middleOf(v values, skip bool) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	a, err := load[float64](t)
	if err != nil {
		return nil, err
	}
	x := math.NaN()
	if len(a.data) > 0 {
		x = a.data[middle(a.data, skip)]
	}
	return one(save(array[float64]{data: []float64{x}}, dtypeOf(t)))
}

// alongRows computes a value and its position of each row along dim. Integers up
// to 2⁵³ are exact.
func alongRows(v values, fn func(row []float64) (float64, int64, error)) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	a, err := load[float64](t)
	if err != nil {
		return nil, err
	}
	dim, err := dimension(v.int("dim", -1), len(a.dims))
	if err != nil {
		return nil, err
	}
	dims := without(a.dims, dim, v.bool("keepdim", false))
	n := 1
	for _, d := range dims {
		n *= d
	}
	vals, at := array[float64]{make([]float64, n), dims}, array[int64]{make([]int64, n), dims}
	shape := a.dims
	if len(shape) == 0 {
		shape = []int{1}
	}
	var failed error
	lanes(shape, dim, func(i, from, step, count int) {
		row := make([]float64, count)
		for k := range row {
			row[k] = a.data[from+k*step]
		}
		x, k, err := fn(row)
		if err != nil {
			failed = err
		}
		vals.data[i], at.data[i] = x, k
	})
	if failed != nil {
		return nil, failed
	}
	x, err := save(vals, dtypeOf(t))
	if err != nil {
		return nil, err
	}
	k, err := save(at, ir.I64)
	if err != nil {
		release(x)
		return nil, err
	}
	return []*tensor{x, k}, nil
}

// quickSelect returns the position of the element of rank k. Among equal elements
// it picks the one that PyTorch does, by partitioning in the same way: around the
// median of three, from both ends.
func quickSelect(row []float64, k int) int {
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

// scanEvals are the ops that go along a dimension and keep what they have seen.
var scanEvals = map[string]evalFunc{
	"cummin": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		a, err := load[float64](t)
		if err != nil {
			return nil, err
		}
		dim, err := dimension(v.int("dim", 0), len(a.dims))
		if err != nil {
			return nil, err
		}
		at := array[int64]{make([]int64, len(a.data)), a.dims}
		shape := a.dims
		if len(shape) == 0 {
			shape = []int{1}
		}
		lanes(shape, dim, func(_, from, step, n int) {
			best := 0
			for k := range n {
				x, least := a.data[from+k*step], a.data[from+best*step]
				if math.IsNaN(x) || !math.IsNaN(least) && x <= least {
					best = k
				}
				at.data[from+k*step] = int64(best)
			}
		})
		vals := array[float64]{make([]float64, len(a.data)), a.dims}
		lanes(shape, dim, func(_, from, step, n int) {
			for k := range n {
				vals.data[from+k*step] = a.data[from+int(at.data[from+k*step])*step]
			}
		})
		x, err := save(vals, dtypeOf(t))
		if err != nil {
			return nil, err
		}
		k, err := save(at, ir.I64)
		if err != nil {
			release(x)
			return nil, err
		}
		return []*tensor{x, k}, nil
	},
	"logcumsumexp": func(v values) ([]*tensor, error) {
		t, err := v.tensor("self")
		if err != nil {
			return nil, err
		}
		a, err := load[float64](t)
		if err != nil {
			return nil, err
		}
		dim, err := dimension(v.int("dim", 0), len(a.dims))
		if err != nil {
			return nil, err
		}
		shape := a.dims
		if len(shape) == 0 {
			shape = []int{1}
		}
		lanes(shape, dim, func(_, from, step, n int) {
			sum := math.Inf(-1)
			for k := range n {
				x := a.data[from+k*step]
				if most := max(sum, x); math.IsInf(most, 0) || math.IsNaN(most) {
					sum = most
				} else {
					sum = most + math.Log1p(math.Exp(min(sum, x)-most))
				}
				a.data[from+k*step] = sum
			}
		})
		return one(save(a, dtypeOf(t)))
	},
}
