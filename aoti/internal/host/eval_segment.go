//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// segmentEvals are the ops that reduce stretches and scattered rows, and count
// into bins.
var segmentEvals = map[string]evalFunc{
	"segment_reduce":           segmentReduce,
	"_segment_reduce_backward": segmentBackward,
	"histogram_bin_ct":         histogramBins,
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

// segments are stretches along a dimension of an array: outer rows, each of
// which has as many stretches, over rows of inner elements.
type segments struct {
	outer, count, along, inner int
	ends                       []int64 // where the stretches begin, and the last ends: count+1 for each outer row
}

func segmentsOf(v values, dims []int) (s segments, err error) {
	axis, err := dimension(v.int("axis", 0), len(dims))
	if err != nil {
		return s, err
	}
	s = segments{outer: product(dims[:axis]), along: dims[axis], inner: product(dims[axis+1:])}
	name := "lengths"
	if !v.has(name) {
		name = "offsets"
	}
	_, a, err := argument[int64](v, name)
	if err != nil {
		return s, err
	}
	if len(a.dims) != axis+1 || product(a.dims[:axis]) != s.outer {
		return s, fmt.Errorf("%w: %s %v of segments of %v", ir.ErrShape, name, a.dims, dims)
	}
	if s.count = a.dims[axis]; name == "offsets" {
		s.count--
	}
	for o := range s.outer {
		if name == "offsets" {
			s.ends = append(s.ends, a.data[o*(s.count+1):][:s.count+1]...)
			continue
		}
		end := int64(0)
		s.ends = append(s.ends, 0)
		for _, n := range a.data[o*s.count:][:s.count] {
			end += n
			s.ends = append(s.ends, end)
		}
	}
	return s, s.valid()
}

func (s *segments) valid() error {
	for i, end := range s.ends {
		if i%(s.count+1) > 0 && end < s.ends[i-1] || end < 0 || end > int64(s.along) {
			return fmt.Errorf("%w: segments %v of %d rows", ir.ErrShape, s.ends, s.along)
		}
	}
	return nil
}

// each calls fn for every stretch of elements: the position of what it becomes,
// and those of its elements.
func (s *segments) each(fn func(to int, from []int)) {
	for o := range s.outer {
		for k := range s.count {
			at := o*(s.count+1) + k
			for i := range s.inner {
				var from []int
				for row := s.ends[at]; row < s.ends[at+1]; row++ {
					from = append(from, (o*s.along+int(row))*s.inner+i)
				}
				fn((o*s.count+k)*s.inner+i, from)
			}
		}
	}
}

// reducer folds elements one after another.
type reducer struct {
	start float64
	fold  func(a, b float64) float64
}

var reducers = map[string]reducer{
	"sum": {0, func(a, b float64) float64 { return a + b }}, "mean": {0, func(a, b float64) float64 { return a + b }},
	"prod": {1, func(a, b float64) float64 { return a * b }}, "max": {math.Inf(-1), math.Max}, "min": {math.Inf(1), math.Min},
}

func segmentReduce(v values) ([]*tensor, error) {
	t, a, err := argument[float64](v, "data")
	if err != nil {
		return nil, err
	}
	s, err := segmentsOf(v, a.dims)
	if err != nil {
		return nil, err
	}
	name := v.text("reduce", "")
	r, ok := reducers[name]
	if !ok {
		return nil, fmt.Errorf("%w: a reduction %q", ir.ErrArg, name)
	}
	axis, _ := dimension(v.int("axis", 0), len(a.dims))
	dims := append([]int(nil), a.dims...)
	dims[axis] = s.count
	out := array[float64]{make([]float64, s.outer*s.count*s.inner), dims}
	s.each(func(to int, from []int) {
		x := v.float("initial", r.start)
		for _, i := range from {
			x = r.fold(x, a.data[i])
		}
		if name == "mean" && (len(from) > 0 || !v.has("initial")) {
			x /= float64(len(from)) // of nothing it is NaN
		}
		out.data[to] = x
	})
	return one(save(out, dtypeOf(t)))
}

func segmentBackward(v values) ([]*tensor, error) {
	t, a, err := argument[float64](v, "data")
	if err != nil {
		return nil, err
	}
	_, g, err := argument[float64](v, "grad")
	if err != nil {
		return nil, err
	}
	_, y, err := argument[float64](v, "output")
	if err != nil {
		return nil, err
	}
	s, err := segmentsOf(v, a.dims)
	if err != nil {
		return nil, err
	}
	if n := s.outer * s.count * s.inner; len(g.data) != n || len(y.data) != n {
		return nil, fmt.Errorf("%w: a gradient %v of segments %v", ir.ErrShape, g.dims, y.dims)
	}
	name := v.text("reduce", "")
	if _, ok := reducers[name]; !ok {
		return nil, fmt.Errorf("%w: a reduction %q", ir.ErrArg, name)
	}
	out := array[float64]{make([]float64, len(a.data)), a.dims}
	s.each(func(to int, from []int) {
		grad, same := g.data[to], 0.0
		for k, i := range from {
			switch name {
			case "sum":
				out.data[i] = grad
			case "mean":
				out.data[i] = grad / float64(len(from))
			case "prod":
				out.data[i] = grad * v.float("initial", 1)
				for j, other := range from {
					if j != k {
						out.data[i] *= a.data[other]
					}
				}
			default:
				if x := a.data[i]; isNaN(x) || x == y.data[to] {
					out.data[i] = grad
					same++
				}
			}
		}
		for _, i := range from {
			if same > 1 {
				out.data[i] /= same
			}
		}
	})
	return one(save(out, dtypeOf(t)))
}

func pick[T any](x, y T, second bool) T {
	if second {
		return y
	}
	return x
}
