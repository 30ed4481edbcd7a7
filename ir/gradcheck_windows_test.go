package ir_test

import (
	"math/rand/v2"
	"testing"
)

func TestGradientsOfWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	at := is([]int{1, 2, 1, 2}, 0, 3, 2, 5)
	samples := fs([]int{1, 2, 2}, 0.1, 0.7, 0.4, 0.9)
	checkGradients(t, rng, 2, []opCall{
		call("adaptive_max_pool1d", r(2, 5), 3),
		call("adaptive_max_pool2d", r(1, 2, 4, 3), []int{3, 2}),
		call("adaptive_max_pool3d", r(1, 2, 3, 2), []int{1, 2, 2}),
		call("fractional_max_pool2d", r(1, 2, 4, 5), []int{2, 2}, []int{2, 3}, samples),
		call("fractional_max_pool3d", r(1, 3, 3, 4), []int{2, 1, 2}, []int{2, 3, 1}, fs([]int{1, 1, 3}, 0.2, 0.5, 0.8)),
		call("max_unpool2d", r(1, 2, 1, 2), at, []int{2, 3}),
		call("max_unpool3d", r(1, 1, 1, 2), is([]int{1, 1, 1, 2}, 7, 0), []int{2, 2, 2}, []int{2, 2, 2}, []int{0, 0, 0}),
		call("avg_pool2d_backward", r(1, 2, 3), r(1, 4, 5), []int{2, 3}, []int{2, 2}, []int{0, 1}, false, true, nil),
		call("avg_pool3d_backward", r(1, 1, 1, 2), r(1, 2, 2, 4), []int{2}, []int{}, []int{0}, false, true, 3),
		call("_adaptive_avg_pool2d_backward", r(1, 2, 2), r(1, 3, 4)),
		call("_adaptive_avg_pool3d_backward", r(1, 1, 2, 1), r(1, 2, 3, 2)),
		call("adaptive_max_pool2d_backward", r(1, 2, 1, 2), r(1, 2, 2, 3), at),
		call("max_pool2d_with_indices_backward", r(1, 2, 1, 2), r(1, 2, 2, 3), []int{2}, []int{}, []int{0}, []int{1}, false, at),
	})
}
