package conv

import (
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/longtest"
)

// TestThreadsSameBits holds convolutions equal to the last bit for however many
// goroutines their units are cut.
func TestThreadsSameBits(t *testing.T) {
	more := append(geometries[:len(geometries):len(geometries)], []struct {
		name string
		g    Geometry
	}{
		{"1x1 of one position", geometry(200, 1, 19, 56, cube(1), cube(1), cube(1), cube(0), cube(1))},
		{"3x3 to a single position", geometry(33, 1, 21, 72, plane(1, 3), plane(1, 3), cube(1), cube(0), cube(1))},
		{"3d across images", geometry(9, 1, 2, 20, plane2(6, 7, 5), plane2(5, 6, 4), cube(1), cube(0), cube(1))},
		{"3d in deep units", geometry(1, 1, 9, 18, plane2(7, 4, 5), cube(3), cube(1), cube(1), cube(1))},
		{"3x3 many rows", geometry(1, 1, 5, 40, plane2(1, 40, 33), plane(1, 3), cube(1), plane(0, 1), cube(1))},
	}...)
	if !longtest.Enabled() {
		more = append(more[:3:3], more[len(geometries):]...)
	}
	for _, c := range more {
		t.Run(c.name, func(t *testing.T) {
			for _, set := range tile.Sets[float32]() {
				sameBits[float32](t, c.g, set, Plain)
			}
			sameBits[float64](t, c.g, tile.Best[float64](), Plain)
			sameBits[vec.BF16](t, c.g, tile.Best[float32](), Plain)
		})
	}
}

func sameBits[T Element, A Float](t *testing.T, g Geometry, set *tile.Set[A], form Form) {
	inexact := func(seed uint64, n int) []T {
		x := random(seed, n)
		for i := range x {
			x[i] /= 3
		}
		return narrow[T](x)
	}
	x, w := inexact(1, g.N*g.Groups*g.CIn*volume(g.In)), inexact(2, g.Groups*g.COut*g.CIn*volume(g.Kernel))
	bias, residual := inexact(3, g.Groups*g.COut), inexact(4, g.N*g.Groups*g.COut*volume(g.Out))
	packed := newWeights(g, form, set)
	packed.Use(aligned[A](packed.Len()))
	SetWeights(packed, w, g.Filters(), 0, packed.Units())
	some, cuts := finishes, []int{1, 2, 3, 5, 16}
	if !longtest.Enabled() {
		some, cuts = finishes[3:], []int{1, 3, 16}
	}
	for _, order := range layouts[:2] {
		xl, _ := order.of(g.N, g.Groups*g.CIn, g.In)
		yl, _ := order.of(g.N, g.Groups*g.COut, g.Out)
		for _, f := range some {
			var want []T
			for _, procs := range cuts {
				c := &Call[T, A]{
					Plan: newPlan[T](g, xl, yl, set, procs, form), X: x, Y: make([]T, len(residual)), Weights: packed, Activation: f.act, Scale: f.scale,
				}
				if f.bias {
					c.Bias = bias
				}
				if f.residual {
					c.Residual, c.ResidualLayout = residual, yl
				}
				c.Do(0, c.Plan.Units())
				if want == nil {
					want = c.Y
				} else if !slices.Equal(c.Y, want) {
					t.Errorf("%s, channels %s, %s: cut for %d goroutines the result has other bits", set.Name, order.name, f.name, procs)
					break
				}
			}
		}
	}
}
