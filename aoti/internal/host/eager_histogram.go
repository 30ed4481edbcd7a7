//go:build linux && cgo

package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/loris-ml/loris/internal/ir"
)

// histogramKernels are the ops that count into bins of several dimensions.
var histogramKernels = map[string]eagerFunc{
	"histogram_bin_ct": histogramBins,
	"_histogramdd_from_bin_cts": func(v values) ([]*tensor, error) {
		outs, err := histogramOf(v, "self", v.ints("bins"), v["range"])
		if err != nil {
			return nil, err
		}
		for _, t := range outs[1:] {
			release(t)
		}
		return outs[:1], nil
	},
}

func histogramBins(v values) ([]*tensor, error) {
	return histogramOf(v, "self", []int64{int64(v.int("bins", 100))}, v["range"])
}

// edges are the ends of the bins along one dimension.
type edges struct {
	at     []float64
	lo, hi float64
}

// bin returns the bin of a number, which must lie in one.
func (e *edges) bin(x float64) int {
	n := len(e.at) - 1
	k := min(int((x-e.lo)*float64(n)/(e.hi-e.lo)), n-1)
	// The edges are rounded: the bin may be a neighbour.
	for k > 0 && x < e.at[k] {
		k--
	}
	for k < n-1 && x >= e.at[k+1] {
		k++
	}
	return k
}

// histogramOf counts points into a grid of bins, and returns it and the edges of
// each dimension. A tensor of many dimensions is one of points for one number of
// bins, otherwise its rows are.
func histogramOf(v values, name string, bins []int64, ranges any) ([]*tensor, error) {
	t, a, err := argument[float64](v, name)
	if err != nil {
		return nil, err
	}
	d := dtypeOf(t)
	if d != ir.F32 && d != ir.F64 {
		return nil, fmt.Errorf("%w: a histogram of %v", ir.ErrDType, d)
	}
	n := len(bins)
	if n == 0 || len(a.data)%n != 0 {
		return nil, fmt.Errorf("%w: a histogram of %v by %d dimensions", ir.ErrShape, a.dims, n)
	}
	limits, _ := ranges.([]float64)
	var grid []edges
	var dims []int
	for k, count := range bins {
		if count < 1 || count > 1<<30 {
			return nil, fmt.Errorf("%w: %d bins", ir.ErrArg, count)
		}
		var lo, hi float64
		if len(limits) == 2*n {
			lo, hi = limits[2*k], limits[2*k+1]
		} else if lo, hi, err = extent(a.data, k, n); err != nil {
			return nil, err
		}
		if lo == hi {
			lo, hi = lo-0.5, hi+0.5
		}
		grid = append(grid, edges{spaced(lo, hi, int(count), d == ir.F32), lo, hi})
		dims = append(dims, int(count))
	}
	weights := slices.Repeat([]float64{1}, len(a.data)/n)
	if v.has("weight") {
		_, w, err := argument[float64](v, "weight")
		if err != nil {
			return nil, err
		}
		if weights = w.data; len(weights) != len(a.data)/n {
			return nil, fmt.Errorf("%w: %d weights of %d points", ir.ErrShape, len(weights), len(a.data)/n)
		}
	}
	hist := array[float64]{make([]float64, product(dims)), dims}
	count(hist, grid, a.data, weights)
	if v.bool("density", false) {
		spread(hist, grid)
	}
	makers := []func() (*tensor, error){func() (*tensor, error) { return save(hist, d) }}
	for _, e := range grid {
		makers = append(makers, func() (*tensor, error) { return save(array[float64]{e.at, []int{len(e.at)}}, d) })
	}
	return several(makers...)
}

// extent returns the least and the largest of every n-th number from k on.
func extent(data []float64, k, n int) (lo, hi float64, err error) {
	if len(data) == 0 {
		return 0, 1, nil
	}
	lo, hi = data[k], data[k]
	for i := k; i < len(data); i += n {
		lo, hi = min(lo, data[i]), max(hi, data[i])
	}
	if math.IsNaN(hi-lo) || math.IsInf(hi-lo, 0) {
		return 0, 0, fmt.Errorf("%w: a histogram from %v to %v", ir.ErrArg, lo, hi)
	}
	return lo, hi, nil
}

// spaced returns the edges of n equal bins, in the arithmetic of linspace: from
// both ends.
func spaced(lo, hi float64, n int, single bool) []float64 {
	out := make([]float64, n+1)
	for i := range out {
		k, from := float64(i), lo
		step := (hi - lo) / float64(n)
		if single {
			step = float64((float32(hi) - float32(lo)) / float32(n))
		}
		if i >= (n+1)/2 {
			k, from = float64(i-n), hi
		}
		out[i] = from + step*k
		if single {
			out[i] = float64(float32(out[i]))
		}
	}
	return out
}

// count adds the weights of the points to their bins; points outside do not
// count.
func count(hist array[float64], grid []edges, points, weights []float64) {
	n := len(grid)
next:
	for i, w := range weights {
		at := 0
		for k, e := range grid {
			x := points[i*n+k]
			if !(x >= e.lo && x <= e.hi) {
				continue next
			}
			at = at*(len(e.at)-1) + e.bin(x)
		}
		hist.data[at] += w
	}
}

// spread divides the counts by their sum and the sizes of the bins.
func spread(hist array[float64], grid []edges) {
	var sum float64
	for _, x := range hist.data {
		sum += x
	}
	for i := range hist.data {
		size, at := sum, i
		for k := len(grid) - 1; k >= 0; k-- {
			e, n := grid[k].at, len(grid[k].at)-1
			size *= e[at%n+1] - e[at%n]
			at /= n
		}
		hist.data[i] /= size
	}
}
