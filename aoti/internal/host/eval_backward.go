//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// backwardEvals are the gradients of ops that measure and select.
var backwardEvals = map[string]evalFunc{
	"_cdist_backward":                            cdistBackward,
	"_pdist_backward":                            pdistBackward,
	"_embedding_bag_dense_backward":              bagBackward,
	"_embedding_bag_per_sample_weights_backward": bagWeightsBackward,
}

// distanceSlope is the derivative of the p-norm of a difference by one of its
// elements d. norm is the norm, and for p = ∞ the largest element.
func distanceSlope(d, norm, p float64) float64 {
	sign := 0.0
	if d != 0 {
		sign = math.Copysign(1, d)
	}
	switch {
	case p == 0 || norm == 0:
		return 0
	case p == 1:
		return sign
	case p == 2:
		return d / norm
	case math.IsInf(p, 1):
		if math.Abs(d) == norm {
			return sign
		}
		return 0
	case p < 1 && d == 0:
		return 0
	}
	return sign * math.Pow(math.Abs(d)/norm, p-1)
}

// addSlopes adds the gradient of the distance of x to y to that of x.
func addSlopes(to, x, y []float64, grad, p float64) {
	norm := distance(x, y, p)
	for i := range x {
		to[i] += grad * distanceSlope(x[i]-y[i], norm, p)
	}
}

func cdistBackward(v values) ([]*tensor, error) {
	t, x, err := argument[float64](v, "x1")
	if err != nil {
		return nil, err
	}
	_, y, err := argument[float64](v, "x2")
	if err != nil {
		return nil, err
	}
	_, g, err := argument[float64](v, "grad_output")
	if err != nil {
		return nil, err
	}
	rank := len(x.dims)
	if rank < 2 || len(y.dims) != rank || x.dims[rank-1] != y.dims[rank-1] {
		return nil, fmt.Errorf("%w: cdist of %v and %v", ir.ErrShape, x.dims, y.dims)
	}
	n, m, k := x.dims[rank-2], y.dims[rank-2], x.dims[rank-1]
	groups := product(x.dims[:rank-2])
	if len(g.data) != groups*n*m || product(y.dims[:rank-2]) != groups {
		return nil, fmt.Errorf("%w: a gradient %v of cdist of %v and %v", ir.ErrShape, g.dims, x.dims, y.dims)
	}
	out := array[float64]{make([]float64, len(x.data)), x.dims}
	for i, grad := range g.data {
		group, row, col := i/(n*m), i/m%n, i%m
		at := (group*n + row) * k
		addSlopes(out.data[at:][:k], x.data[at:][:k], y.data[(group*m+col)*k:][:k], grad, v.float("p", 2))
	}
	return one(save(out, dtypeOf(t)))
}

func pdistBackward(v values) ([]*tensor, error) {
	t, x, err := argument[float64](v, "self")
	if err != nil {
		return nil, err
	}
	_, g, err := argument[float64](v, "grad_output")
	if err != nil {
		return nil, err
	}
	if len(x.dims) != 2 || len(g.data) != x.dims[0]*(x.dims[0]-1)/2 {
		return nil, fmt.Errorf("%w: a gradient %v of pdist of %v", ir.ErrShape, g.dims, x.dims)
	}
	n, k, at, p := x.dims[0], x.dims[1], 0, v.float("p", 2)
	out := array[float64]{make([]float64, len(x.data)), x.dims}
	row := func(data []float64, i int) []float64 { return data[i*k:][:k] }
	for i := range n {
		for j := i + 1; j < n; j++ {
			addSlopes(row(out.data, i), row(x.data, i), row(x.data, j), g.data[at], p)
			addSlopes(row(out.data, j), row(x.data, j), row(x.data, i), g.data[at], p)
			at++
		}
	}
	return one(save(out, dtypeOf(t)))
}

// bagBackward is the gradient of the table that bags of embeddings are taken
// from.
func bagBackward(v values) ([]*tensor, error) {
	t, g, err := argument[float64](v, "grad")
	if err != nil {
		return nil, err
	}
	_, idx, err := argument[int64](v, "indices")
	if err != nil {
		return nil, err
	}
	_, bags, err := argument[int64](v, "offset2bag")
	if err != nil {
		return nil, err
	}
	if len(g.dims) != 2 {
		return nil, fmt.Errorf("%w: a gradient %v of bags of embeddings", ir.ErrShape, g.dims)
	}
	rows, k := v.int("num_weights", 0), g.dims[1]
	out := array[float64]{make([]float64, rows*k), []int{rows, k}}
	if v.int("mode", bagSum) == bagMax {
		_, most, err := argument[int64](v, "maximum_indices")
		if err != nil {
			return nil, err
		}
		_, size, err := argument[int64](v, "bag_size")
		if err != nil {
			return nil, err
		}
		for i, row := range most.data {
			if bag := i / k; bag < len(size.data) && size.data[bag] == 0 {
				continue // its indices say nothing
			}
			if row < 0 || row >= int64(rows) || i >= len(g.data) {
				return nil, fmt.Errorf("%w: embedding %d of %d", ir.ErrIndex, row, rows)
			}
			out.data[int(row)*k+i%k] += g.data[i]
		}
		return one(save(out, dtypeOf(t)))
	}
	factor, err := bagFactors(v, idx.data, bags.data)
	if err != nil {
		return nil, err
	}
	for i, row := range idx.data {
		bag := bags.data[i]
		if row < 0 || row >= int64(rows) || bag < 0 || bag >= int64(g.dims[0]) {
			return nil, fmt.Errorf("%w: embedding %d of %d in bag %d of %d", ir.ErrIndex, row, rows, bag, g.dims[0])
		}
		for j, x := range g.data[int(bag)*k:][:k] {
			out.data[int(row)*k+j] += x * factor[i]
		}
	}
	return one(save(out, dtypeOf(t)))
}

// bagFactors returns by how much each embedding counts in its bag; 0 for padding.
func bagFactors(v values, idx, bags []int64) ([]float64, error) {
	factor := make([]float64, len(idx))
	if len(bags) != len(idx) {
		return nil, fmt.Errorf("%w: %d bags of %d embeddings", ir.ErrShape, len(bags), len(idx))
	}
	count := map[int64]float64{}
	for _, row := range idx {
		count[row]++
	}
	var weights []float64
	if v.has("per_sample_weights") {
		_, w, err := argument[float64](v, "per_sample_weights")
		if err != nil {
			return nil, err
		}
		if weights = w.data; len(weights) != len(idx) {
			return nil, fmt.Errorf("%w: %d weights of %d embeddings", ir.ErrShape, len(weights), len(idx))
		}
	}
	_, size, err := argument[int64](v, "bag_size")
	if err != nil {
		return nil, err
	}
	padding := int64(v.int("padding_idx", -1))
	for i, row := range idx {
		if row == padding {
			continue
		}
		factor[i] = 1
		if weights != nil {
			factor[i] = weights[i]
		}
		if v.bool("scale_grad_by_freq", false) {
			factor[i] /= count[row]
		}
		if v.int("mode", bagSum) == bagMean {
			if bags[i] < 0 || bags[i] >= int64(len(size.data)) {
				return nil, fmt.Errorf("%w: bag %d of %d", ir.ErrIndex, bags[i], len(size.data))
			}
			factor[i] /= float64(size.data[bags[i]])
		}
	}
	return factor, nil
}

func bagWeightsBackward(v values) ([]*tensor, error) {
	t, g, err := argument[float64](v, "grad")
	if err != nil {
		return nil, err
	}
	_, w, err := argument[float64](v, "weight")
	if err != nil {
		return nil, err
	}
	_, idx, err := argument[int64](v, "indices")
	if err != nil {
		return nil, err
	}
	bags, err := bagOf(v, len(idx.data))
	if err != nil {
		return nil, err
	}
	if len(g.dims) != 2 || len(w.dims) != 2 || g.dims[1] != w.dims[1] {
		return nil, fmt.Errorf("%w: a gradient %v of embeddings %v", ir.ErrShape, g.dims, w.dims)
	}
	k, padding := g.dims[1], int64(v.int("padding_idx", -1))
	out := array[float64]{make([]float64, len(idx.data)), []int{len(idx.data)}}
	for i, row := range idx.data {
		if row == padding {
			continue
		}
		if row < 0 || row >= int64(w.dims[0]) || bags[i] < 0 || bags[i] >= int64(g.dims[0]) {
			return nil, fmt.Errorf("%w: embedding %d in bag %d", ir.ErrIndex, row, bags[i])
		}
		for j, x := range g.data[int(bags[i])*k:][:k] {
			out.data[i] += x * w.data[int(row)*k+j]
		}
	}
	return one(save(out, dtypeOf(t)))
}

// bagOf returns the bag of each of n embeddings: as it is given, or from where the
// bags begin.
func bagOf(v values, n int) ([]int64, error) {
	_, bags, err := argument[int64](v, "offset2bag")
	if err != nil || len(bags.data) == n {
		return bags.data, err
	}
	_, begin, err := argument[int64](v, "offsets")
	if err != nil {
		return nil, err
	}
	out := make([]int64, n)
	bag := int64(-1)
	for i := range out {
		for bag+1 < int64(len(begin.data)) && begin.data[bag+1] <= int64(i) {
			bag++
		}
		out[i] = bag
	}
	return out, nil
}

// The ways in which a loss is reduced.
const (
	reduceNone = iota
	reduceMean
)
