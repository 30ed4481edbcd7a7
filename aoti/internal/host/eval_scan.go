//go:build linux && cgo

package host

import "math"

// scanEvals are the ops that go along a dimension and keep what they have seen.
var scanEvals = map[string]evalFunc{
	"cummin": exactly(cumMin[int64], cumMin[float64]),
	"logcumsumexp": func(v values) ([]*tensor, error) {
		t, a, dim, err := rowsOf[float64](v, 0)
		if err != nil {
			return nil, err
		}
		lanes(a.dims, dim, func(_, from, step, n int) {
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

// cumMin is the least element so far and where it was last.
func cumMin[T ordered](v values) ([]*tensor, error) {
	t, a, dim, err := rowsOf[T](v, 0)
	if err != nil {
		return nil, err
	}
	vals, at := array[T]{make([]T, len(a.data)), a.dims}, array[int64]{make([]int64, len(a.data)), a.dims}
	lanes(a.dims, dim, func(_, from, step, n int) {
		best := 0
		for k := range n {
			x, least := a.data[from+k*step], a.data[from+best*step]
			if isNaN(x) || !isNaN(least) && x <= least {
				best = k
			}
			vals.data[from+k*step], at.data[from+k*step] = a.data[from+best*step], int64(best)
		}
	})
	return saveBoth(vals, dtypeOf(t), at)
}
