//go:build linux && cgo

package host

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/ir"
)

// How a grid reads between pixels.
const (
	gridLinear = iota
	gridNearest
	gridCubic
)

// What a grid reads outside of the image.
const (
	padZeros = iota
	padBorder
	padReflection
)

// grid samples images of n dimensions at places that it holds, from -1 to 1.
type grid struct {
	n, mode, padding int
	align            bool
	images           array[float64]
	places           array[float64]
	in, out          box
	batch, channels  int
}

func gridOf(v values, n int) (*tensor, *tensor, *grid, error) {
	g := &grid{n: n, mode: v.int("interpolation_mode", 0), padding: v.int("padding_mode", 0), align: v.bool("align_corners", false)}
	t, x, err := argument[float64](v, "input")
	if err != nil {
		return nil, nil, nil, err
	}
	p, places, err := argument[float64](v, "grid")
	if err != nil {
		return nil, nil, nil, err
	}
	g.images, g.places = x, places
	bad := len(x.dims) != n+2 || len(places.dims) != n+2 || places.dims[n+1] != n || places.dims[0] != x.dims[0]
	if bad || g.mode > gridCubic || g.mode == gridCubic && n != 2 || g.padding > padReflection {
		return nil, nil, nil, fmt.Errorf("%w: sampling of %v by %v in mode %d and padding %d", ir.ErrShape, x.dims, places.dims, g.mode, g.padding)
	}
	g.batch, g.channels = x.dims[0], x.dims[1]
	_, g.in, _ = images(x.dims, n)
	_, g.out, err = images(places.dims[:n+1], n)
	return t, p, g, err
}

// fold brings a coordinate into the image, and returns by how much it moves with
// what it was.
func (g *grid) fold(x float64, size int) (float64, float64) {
	slope := 1.0
	if g.padding == padReflection {
		low, high := -1, 2*size-1
		if g.align {
			low, high = 0, 2*(size-1)
		}
		if low == high {
			x, slope = 0, 0
		} else {
			from, span := float64(low)/2, float64(high-low)/2
			if x -= from; x < 0 {
				x, slope = -x, -1
			}
			extra := math.Mod(x, span)
			if int(math.Floor(x/span))%2 == 0 {
				x = extra + from
			} else {
				x, slope = span-extra+from, -slope
			}
		}
	}
	if g.padding != padZeros {
		if x <= 0 {
			x, slope = 0, 0
		} else if last := float64(size - 1); x >= last {
			x, slope = last, 0
		}
	}
	if math.IsNaN(x) || math.IsInf(x, 0) || math.Abs(x) > 1<<30 {
		return -100, slope
	}
	return x, slope
}

// taps returns the pixels along one axis that a place from -1 to 1 reads, with
// the slopes of their weights by that place.
func (g *grid) taps(place float64, size int) []tap {
	x, unit := ((place+1)*float64(size)-1)/2, float64(size)/2
	if g.align {
		x, unit = (place+1)/2*float64(size-1), float64(size-1)/2
	}
	inside := func(i float64) int {
		if i < 0 || i >= float64(size) {
			return -1
		}
		return int(i)
	}
	if g.mode == gridCubic {
		if math.IsNaN(x) || math.Abs(x) > 1<<30 {
			x = -100
		}
		k := math.Floor(x)
		w, slope := cubic(x - k)
		out := make([]tap, 4)
		for j := range out {
			at, _ := g.fold(k-1+float64(j), size)
			out[j] = tap{inside(math.Trunc(at)), w[j], slope[j] * unit}
		}
		return out
	}
	x, slope := g.fold(x, size)
	if g.mode == gridNearest {
		return []tap{{at: inside(math.RoundToEven(x)), by: 1}}
	}
	k := math.Floor(x)
	t, unit := x-k, unit*slope
	return []tap{{inside(k), 1 - t, -unit}, {inside(k + 1), t, unit}}
}

// each calls fn for every pixel that is read: for which place, its number among
// all, where it is in an image, and the taps of the three axes.
func (g *grid) each(fn func(batch, cell, pixel int, taps [3]tap)) {
	for b := range g.batch {
		each(box{}, g.out, func(o box) {
			cell := b*g.out.volume() + g.out.at(o)
			var axes [3][]tap
			for d := range axes {
				axes[d] = []tap{{by: 1}}
				if i := 2 - d; i < g.n { // the width comes first
					axes[d] = g.taps(g.places.data[cell*g.n+i], g.in[d])
				}
			}
			for _, x := range axes[0] {
				for _, y := range axes[1] {
					for _, z := range axes[2] {
						if x.at >= 0 && y.at >= 0 && z.at >= 0 {
							fn(b, cell, g.in.at(box{x.at, y.at, z.at}), [3]tap{x, y, z})
						}
					}
				}
			}
		})
	}
}

func gridSample(v values, n int) ([]*tensor, error) {
	t, _, g, err := gridOf(v, n)
	if err != nil {
		return nil, err
	}
	dims := append([]int(nil), g.images.dims...)
	copy(dims[2:], g.out[3-n:])
	out := array[float64]{make([]float64, product(dims)), dims}
	cells, pixels := g.out.volume(), g.in.volume()
	g.each(func(b, cell, pixel int, taps [3]tap) {
		w := taps[0].by * taps[1].by * taps[2].by
		for c := range g.channels {
			k := b*g.channels + c
			out.data[k*cells+cell%cells] += w * g.images.data[k*pixels+pixel]
		}
	})
	outs, err := one(save(out, dtypeOf(t)))
	if err != nil {
		return nil, err
	}
	return imagesLike(values{"self": t}, outs)
}

// gridBackward returns the gradients by the images and by the places.
func gridBackward(v values, n int) ([]*tensor, error) {
	t, p, g, err := gridOf(v, n)
	if err != nil {
		return nil, err
	}
	_, grad, err := argument[float64](v, "grad_output")
	if err != nil {
		return nil, err
	}
	cells, pixels := g.out.volume(), g.in.volume()
	if len(grad.data) != g.batch*g.channels*cells {
		return nil, fmt.Errorf("%w: a gradient %v of sampling %v", ir.ErrShape, grad.dims, g.images.dims)
	}
	gx := array[float64]{make([]float64, len(g.images.data)), g.images.dims}
	gp := array[float64]{make([]float64, len(g.places.data)), g.places.dims}
	g.each(func(b, cell, pixel int, taps [3]tap) {
		x, y, z := taps[0], taps[1], taps[2]
		slopes := [3]float64{x.by * y.by * z.slope, x.by * y.slope * z.by, x.slope * y.by * z.by}
		for c := range g.channels {
			k := b*g.channels + c
			d := grad.data[k*cells+cell%cells]
			gx.data[k*pixels+pixel] += d * x.by * y.by * z.by
			for i := range n {
				gp.data[cell*n+i] += d * slopes[i] * g.images.data[k*pixels+pixel]
			}
		}
	})
	byImage := newUndefined
	if mask := v.ints("output_mask"); len(mask) == 0 || mask[0] != 0 {
		byImage = func() (*tensor, error) { return save(gx, dtypeOf(t)) }
	}
	return several(byImage, func() (*tensor, error) { return save(gp, dtypeOf(p)) })
}
