//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// sumEvals are the ops that count, measure and sum products.
var sumEvals = map[string]evalFunc{
	"_cdist_forward": func(v values) ([]*tensor, error) {
		x, y, err := v.two("x1", "x2")
		if err != nil {
			return nil, err
		}
		return distances(x, y, v.float("p", 2))
	},
	"_pdist_forward": func(v values) ([]*tensor, error) {
		t, a, err := argument[float64](v, "self")
		if err != nil {
			return nil, err
		}
		if len(a.dims) != 2 {
			return nil, fmt.Errorf("%w: pdist of %v", ir.ErrShape, a.dims)
		}
		n, m := a.dims[0], a.dims[1]
		var out []float64
		for i := range n {
			for j := i + 1; j < n; j++ {
				out = append(out, distance(a.data[i*m:][:m], a.data[j*m:][:m], v.float("p", 2)))
			}
		}
		return one(save(array[float64]{out, []int{len(out)}}, dtypeOf(t)))
	},
}

// distance is the p-norm of a difference.
func distance(a, b []float64, p float64) float64 {
	var sum, most float64
	for i := range a {
		d := math.Abs(a[i] - b[i])
		switch p {
		case 0:
			if d != 0 {
				sum++
			}
		case 1:
			sum += d
		case 2:
			sum += d * d
		default:
			most = max(most, d)
			if !math.IsInf(p, 1) {
				sum += math.Pow(d, p)
			}
		}
	}
	switch {
	case p == 0 || p == 1:
		return sum
	case p == 2:
		return math.Sqrt(sum)
	case math.IsInf(p, 1):
		return most
	}
	return math.Pow(sum, 1/p)
}

// distances is the distance of each row of x to each row of y, batch by batch.
func distances(x, y *tensor, p float64) ([]*tensor, error) {
	a, err := load[float64](x)
	if err != nil {
		return nil, err
	}
	b, err := load[float64](y)
	if err != nil {
		return nil, err
	}
	rank := len(a.dims)
	if rank < 2 || len(b.dims) != rank || a.dims[rank-1] != b.dims[rank-1] {
		return nil, fmt.Errorf("%w: cdist of %v and %v", ir.ErrShape, a.dims, b.dims)
	}
	batch := 1
	for i, d := range a.dims[:rank-2] {
		if b.dims[i] != d {
			return nil, fmt.Errorf("%w: cdist of %v and %v", ir.ErrShape, a.dims, b.dims)
		}
		batch *= d
	}
	n, m, k := a.dims[rank-2], b.dims[rank-2], a.dims[rank-1]
	out := array[float64]{make([]float64, batch*n*m), append(append([]int(nil), a.dims[:rank-2]...), n, m)}
	for i := range out.data {
		g, r, c := i/(n*m), i/m%n, i%m
		out.data[i] = distance(a.data[(g*n+r)*k:][:k], b.data[(g*m+c)*k:][:k], p)
	}
	return one(save(out, dtypeOf(x)))
}
