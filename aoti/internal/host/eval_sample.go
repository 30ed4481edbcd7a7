//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// sampleEvals are the ops that read images between their pixels, and their
// gradients.
var sampleEvals = map[string]evalFunc{
	"upsample_linear1d_backward":    func(v values) ([]*tensor, error) { return upsampleBackward(v, 1, linearTaps) },
	"upsample_trilinear3d_backward": func(v values) ([]*tensor, error) { return upsampleBackward(v, 3, linearTaps) },
	"upsample_bicubic2d_backward":   func(v values) ([]*tensor, error) { return upsampleBackward(v, 2, cubicTaps) },
	"grid_sampler_3d":               func(v values) ([]*tensor, error) { return gridSample(v, 3) },
	"grid_sampler_2d":               func(v values) ([]*tensor, error) { return gridSample(v, 2) },
	"grid_sampler_3d_backward":      func(v values) ([]*tensor, error) { return gridBackward(v, 3) },
	"grid_sampler_2d_backward":      func(v values) ([]*tensor, error) { return gridBackward(v, 2) },
}

// tap is how much a pixel counts, and how that changes with the place that is
// read. One outside of the image is at -1.
type tap struct {
	at        int
	by, slope float64
}

// cubic returns the weights of four pixels in a row around a place that is t
// after the second, and their slopes.
func cubic(t float64) (w, slope [4]float64) {
	const a = -0.75
	near := func(x float64) (float64, float64) { // at most 1 away
		return ((a+2)*x-(a+3))*x*x + 1, (3*(a+2)*x - 2*(a+3)) * x
	}
	far := func(x float64) (float64, float64) { // from 1 to 2 away
		return ((a*x-5*a)*x+8*a)*x - 4*a, (3*a*x-10*a)*x + 8*a
	}
	w[0], slope[0] = far(t + 1)
	w[1], slope[1] = near(t)
	w[2], slope[2] = near(1 - t)
	w[3], slope[3] = far(2 - t)
	slope[2], slope[3] = -slope[2], -slope[3]
	return w, slope
}

// scaling is how the places of an output lie in an input.
type scaling struct {
	in, out int
	align   bool
	factor  float64 // 0 if it follows from the sizes
}

func (s scaling) place(i int) float64 {
	if s.align {
		if s.out < 2 {
			return 0
		}
		return float64(i) * float64(s.in-1) / float64(s.out-1)
	}
	step := float64(s.in) / float64(s.out)
	if s.factor > 0 {
		step = 1 / s.factor
	}
	return step*(float64(i)+0.5) - 0.5
}

func linearTaps(s scaling, i int) []tap {
	x := max(s.place(i), 0)
	k := min(int(x), s.in-1)
	t := x - float64(k)
	return []tap{{at: k, by: 1 - t}, {at: min(k+1, s.in-1), by: t}}
}

func cubicTaps(s scaling, i int) []tap {
	x := s.place(i)
	k := math.Floor(x)
	w, _ := cubic(x - k)
	taps := make([]tap, 4)
	for j := range taps {
		taps[j] = tap{at: min(max(int(k)-1+j, 0), s.in-1), by: w[j]}
	}
	return taps
}

// upsampleBackward spreads the gradients over the pixels that were read.
func upsampleBackward(v values, n int, tapsOf func(s scaling, i int) []tap) ([]*tensor, error) {
	t, g, err := argument[float64](v, "grad_output")
	if err != nil {
		return nil, err
	}
	var dims []int
	for _, d := range v.ints("input_size") {
		dims = append(dims, int(d))
	}
	planes, in, err := images(dims, n)
	if err != nil {
		return nil, err
	}
	same, out, err := images(g.dims, n)
	if err != nil {
		return nil, err
	}
	if same != planes {
		return nil, fmt.Errorf("%w: a gradient %v of %v", ir.ErrShape, g.dims, dims)
	}
	factors := [3]float64{v.float("scales_d", 0), v.float("scales_h", 0), v.float("scales_w", v.float("scales", 0))}
	var taps [3][][]tap
	for d := range taps {
		for i := range out[d] {
			if d < 3-n {
				taps[d] = append(taps[d], []tap{{by: 1}})
			} else {
				taps[d] = append(taps[d], tapsOf(scaling{in[d], out[d], v.bool("align_corners", false), factors[d]}, i))
			}
		}
	}
	res := array[float64]{make([]float64, planes*in.volume()), dims}
	for p := range planes {
		img := res.data[p*in.volume():]
		each(box{}, out, func(o box) {
			x := g.data[p*out.volume()+out.at(o)]
			for _, a := range taps[0][o[0]] {
				for _, b := range taps[1][o[1]] {
					for _, c := range taps[2][o[2]] {
						img[in.at(box{a.at, b.at, c.at})] += x * a.by * b.by * c.by
					}
				}
			}
		})
	}
	outs, err := one(save(res, dtypeOf(t)))
	if err != nil {
		return nil, err
	}
	return imagesLike(values{"self": t}, outs)
}
