package nn

import (
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
)

// Activations by their formulas.
func TestActivations(t *testing.T) {
	s := newSession(t)
	in := []float64{-3, -0.5, 0, 0.25, 2, 5}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for name, c := range map[string]struct {
		f    Func
		want func(x float64) float64
	}{
		"relu":    {ReLU, func(x float64) float64 { return max(x, 0) }},
		"gelu":    {GELU, func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }},
		"silu":    {SiLU, func(x float64) float64 { return x * sigmoid(x) }},
		"sigmoid": {Sigmoid, sigmoid},
		"tanh":    {Tanh, math.Tanh},
		"gelu by tanh": {GELUTanh, func(x float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := floats(t, c.f(s.With().FromSlice(in)))
			for i, x := range in {
				if want := c.want(x); math.Abs(got[i]-want) > 1e-14*max(1, math.Abs(want)) {
					t.Errorf("of %v: got %v, want %v", x, got[i], want)
				}
			}
		})
	}
}

// Functions that change shapes, or look at more than one element.
func TestFunctionsOfImages(t *testing.T) {
	s := newSession(t)
	x := s.With().FromSlice([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 1, 1, 4, 4)
	for name, c := range map[string]struct {
		f    Func
		dims []int
		want []float64
	}{
		"maximum": {MaxPool2d(2), []int{1, 1, 2, 2}, []float64{6, 8, 14, 16}},
		"mean":    {AvgPool2d(2), []int{1, 1, 2, 2}, []float64{3.5, 5.5, 11.5, 13.5}},
		"flat":    {Flatten, []int{1, 16}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		"softmax": {func(x *loris.Tensor) *loris.Tensor {
			return Softmax(1)(x.Reshape(8, 2).Mul(math.Ln2)) // neighbours differ by ln 2
		}, []int{8, 2}, slices.Repeat([]float64{1.0 / 3, 2.0 / 3}, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			y := c.f(x)
			if !slices.Equal(y.Dims(), c.dims) {
				t.Fatalf("got %v, want %v", y.Dims(), c.dims)
			}
			for i, v := range floats(t, y) {
				if math.Abs(v-c.want[i]) > 1e-14*c.want[i] {
					t.Errorf("element %d is %v, want %v", i, v, c.want[i])
				}
			}
		})
	}
}
