package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// pixelPlaces has n places of which some are none and the others are below pixels; neighbours adjoin mostly.
func pixelPlaces(taps, n, pixels int) []float64 {
	at := make([]float64, 0, taps*n)
	for t := range taps {
		for i := range n {
			p := (i*37 + i*i*11 + t%2 + t/2*19) % pixels
			if (i*7+t)%11 == 3 {
				p = -1
			}
			at = append(at, float64(p))
		}
	}
	return at
}

// TestSampling holds the kernels of sampling against their decompositions on ref: planes as rows and as they are, with
// whole vectors and parts of them, and taps that do not adjoin.
func TestSampling(t *testing.T) {
	const images = 2
	for _, c := range []struct{ channels, pixels, places, taps int }{
		{1, 1, 5, 4}, {2, 90, 83, 4}, {3, 35, 300, 8}, {5, 35, 21, 3}, {8, 40, 70, 4}, {19, 33, 131, 16}, {67, 21, 40, 5}, {4, 9, 0, 4}, {0, 9, 3, 4},
	} {
		for _, dtype := range []string{"f32", "f64"} {
			text := fmt.Sprintf(`program @p {
				%%x = parameter "x" : %[1]s[2,%[2]d,%[3]d]
				%%g = parameter "g" : %[1]s[2,%[2]d,%[4]d]
				%%a = parameter "a" : i32[%[5]d,2,%[4]d]
				%%w = parameter "w" : %[1]s[%[5]d,2,%[4]d]
				return _sample_pixels(%%x, %%a, %%w), _spread_pixels(%%g, %%a, %%w, %[3]d), _pixel_products(%%g, %%x, %%a)
			}`, dtype, c.channels, c.pixels, c.places, c.taps)
			t.Run(fmt.Sprintf("%s %v", dtype, c), func(t *testing.T) {
				for name, b := range map[string]*Backend{"native": New(), "portable": NewPortable()} {
					t.Run(name, func(t *testing.T) {
						sameAsRef(t, b, text, 1e-5, hashed(images*c.channels*c.pixels + 1)[:images*c.channels*c.pixels], hashed(images*c.channels*c.places + 1)[:images*c.channels*c.places],
							pixelPlaces(c.taps, images*c.places, c.pixels), hashed(c.taps*images*c.places + 1)[:c.taps*images*c.places])
					})
				}
			})
		}
	}
}

// TestSamplingNothing checks that a pixel that no place reads does not get into its result: what is beside it in memory,
// at the edges of images, may be infinite.
func TestSamplingNothing(t *testing.T) {
	x := hashed(2 * 12 * 6)
	for i := range x {
		if i%6 == 0 {
			x[i] = math.Inf(1)
		}
	}
	at := []float64{-1, 5, 2, 1, -1, 4, 5, 3, 5, 3, -1, 5, -1, -1, 5, 4} // [4,2,2]
	for _, channels := range []int{1, 12} {
		text := fmt.Sprintf(`program @p {
			%%x = parameter "x" : f32[2,%d,6]
			%%a = parameter "a" : i32[4,2,2]
			%%w = parameter "w" : f32[4,2,2]
			%%g = parameter "g" : f32[2,%d,2]
			return _sample_pixels(%%x, %%a, %%w), _pixel_products(%%g, %%x, %%a)
		}`, channels, channels)
		for _, b := range []*Backend{New(), NewPortable()} {
			sameAsRef(t, b, text, 1e-6, x[:2*channels*6], at, hashed(16), hashed(4*channels))
		}
	}
}

// TestSamplingOutside checks that pixels beyond the last are an error, not memory of others.
func TestSamplingOutside(t *testing.T) {
	for _, channels := range []int{2, 9} {
		for _, op := range []string{"_sample_pixels(%x, %a, %w)", "_spread_pixels(%g, %a, %w, 6)", "_pixel_products(%g, %x, %a)"} {
			p := program(t, fmt.Sprintf(`program @p {
				%%x = parameter "x" : f32[1,%[1]d,6]
				%%a = parameter "a" : i32[4,1,3]
				%%w = parameter "w" : f32[4,1,3]
				%%g = parameter "g" : f32[1,%[1]d,3]
				return %[2]s
			}`, channels, op))
			data := [][]byte{encode(ir.F32, hashed(6*channels)), encode(ir.I32, []float64{0, 1, 2, 3, 4, 5, 0, 6, 1, 2, 3, 4}), encode(ir.F32, hashed(12)), encode(ir.F32, hashed(3*channels))}
			b := New()
			q, _ := graph.Optimize(p, graph.Options{Supports: b.Supports})
			in := uploaded(t, b, q, data)
			if _, err := mustPlan(t, b, q, backend.CompileOptions{}).Run(context.Background(), in, nil); !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), "index 6 is out of range for size 6") {
				t.Errorf("%s of %d channels: %v", op, channels, err)
			}
			release(in)
		}
	}
}

// TestGridSample holds all ways to sample images against ref, with their gradients: few channels and many, and places
// in the image, at its edges and far from it.
func TestGridSample(t *testing.T) {
	places := func(n int) []float64 {
		x := hashed(n)
		for i := range x {
			x[i] = 1.3*x[i] + 0.001
		}
		return x
	}
	for _, channels := range []int{1, 3, 12} {
		for _, mode := range []string{"bilinear", "nearest", "bicubic"} {
			for _, padding := range []string{"zeros", "border", "reflection"} {
				for _, align := range []bool{false, true} {
					text := fmt.Sprintf(`program @p {
						%%x = parameter "x" : f32[2,%[1]d,5,9]
						%%g = parameter "g" : f32[2,7,11,2]
						%%s = parameter "s" : f32[2,%[1]d,7,11]
						%%m, %%n = grid_sampler_2d_backward(%%s, %%x, %%g, %[2]d, %[3]d, %[4]v, [1,1])
						return grid_sample(%%x, %%g, "%[5]s", "%[6]s", %[4]v), %%m, %%n
					}`, channels, slices.Index([]string{"bilinear", "nearest", "bicubic"}, mode), slices.Index([]string{"zeros", "border", "reflection"}, padding), align, mode, padding)
					sameAsRef(t, New(), text, 1e-5, hashed(90*channels), places(308), hashed(154*channels))
					if mode == "bicubic" {
						continue
					}
					text = fmt.Sprintf(`program @p {
						%%x = parameter "x" : f32[2,%d,3,4,5]
						%%g = parameter "g" : f32[2,2,7,3,3]
						return grid_sample(%%x, %%g, "%s", "%s", %v), grid_sample(cast(%%x, bf16), cast(%%g, bf16), "%s", "%s", %v)
					}`, channels, mode, padding, align, mode, padding, align)
					sameAsRef(t, New(), text, 1e-2, hashed(120*channels), places(252))
				}
			}
		}
	}
}
