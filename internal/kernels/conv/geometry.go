// Package conv computes convolutions of one to three spatial dimensions, plain
// and transposed, with groups, strides, padding and dilation, over images and
// filters of any strides.
//
// New makes a Plan of a Geometry and the layouts of the images; Weights hold
// filters packed for it, which depend on the filters' part of the Geometry
// alone, so that filters can be packed before any image is seen. A Call binds
// the operands of one run; Do computes ranges of its independent units and Run
// all of them, on several processors. Plans and Weights are safe for use by
// several goroutines.
//
// A unit copies the part of the image that its outputs meet into scratch
// memory, with the padding around it, unless it can read the image where it
// lies. Blocks of output positions are then multiplied with panels of filters
// by the register tiles of package tile, which find the elements of the image
// by the offsets of the kernel's taps: no matrix of columns is ever made.
package conv

import (
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Element is the types of images and filters.
type Element = vec.Element

// Float is the types computed in: float64 for float64, float32 for the others.
type Float = tile.Float

// Geometry is the shape of a convolution over three spatial dimensions; fewer
// are padded with leading ones (and zero padding). Images are [N, Groups·CIn,
// In…] to [N, Groups·COut, Out…], filters [Groups·COut, CIn, Kernel…], or
// [Groups·CIn, COut, Kernel…] when transposed.
//
// Output o meets input o·Stride − Pad + k·Dilation at kernel position k; when
// transposed, input i meets output i·Stride − Pad + k·Dilation. Positions
// outside the image are zero. Pad is that before the first position; what is
// needed after the last follows from Out.
type Geometry struct {
	N, Groups, CIn, COut  int // channels of one group
	In, Kernel, Out       [3]int
	Stride, Pad, Dilation [3]int
	Transposed            bool
	// PerImage chooses the form as for one image, so that an image's bits do not depend on N. Where
	// another form pays for many images only, those take longer.
	PerImage bool
}

// Layout is the strides of an image in elements.
type Layout struct {
	Batch, Channel int
	Spatial        [3]int
}

// ChannelsFirst returns the layout of a dense image [N, channels, dims…].
func ChannelsFirst(channels int, dims [3]int) Layout {
	plane := dims[0] * dims[1] * dims[2]
	return Layout{channels * plane, plane, [3]int{dims[1] * dims[2], dims[2], 1}}
}

// Filters returns the strides of dense filters for g.
func (g *Geometry) Filters() [5]int {
	k := g.Kernel[0] * g.Kernel[1] * g.Kernel[2]
	inner := g.CIn
	if g.Transposed {
		inner = g.COut
	}
	return [5]int{inner * k, k, g.Kernel[1] * g.Kernel[2], g.Kernel[2], 1}
}

func (g *Geometry) empty() bool {
	return g.N == 0 || g.Groups == 0 || g.COut == 0 || g.Out[0] == 0 || g.Out[1] == 0 || g.Out[2] == 0
}

// tap is a position of the kernel in one dimension: output j of a phase meets
// input j·inStep + off there.
type tap struct{ k, off int }

// dim is one dimension of a phase. Its outputs are first, first+step, …
type dim struct {
	first, step int
	taps        []tap
}

// dims returns the phases of dimension d. A plain convolution has one. A
// transposed one has as many as its stride: outputs of one phase meet the same
// positions of the kernel, and within a phase it is a plain convolution of
// stride 1 with those.
func (g *Geometry) dims(d int) []dim {
	if !g.Transposed {
		one := dim{step: 1}
		for k := range g.Kernel[d] {
			one.taps = append(one.taps, tap{k, k*g.Dilation[d] - g.Pad[d]})
		}
		return []dim{one}
	}
	var all []dim
	for r := range g.Stride[d] {
		p := dim{first: r, step: g.Stride[d]}
		for k := range g.Kernel[d] {
			if at := r + g.Pad[d] - k*g.Dilation[d]; at%g.Stride[d] == 0 {
				p.taps = append(p.taps, tap{k, at / g.Stride[d]})
			}
		}
		all = append(all, p)
	}
	return all
}

// phase is a set of outputs that meet the same taps.
type phase struct {
	dims  [3]dim
	depth int // products in an output
}

func (g *Geometry) phases() []phase {
	var all []phase
	d0, d1, d2 := g.dims(0), g.dims(1), g.dims(2)
	for _, a := range d0 {
		for _, b := range d1 {
			for _, c := range d2 {
				all = append(all, phase{[3]dim{a, b, c}, g.CIn * len(a.taps) * len(b.taps) * len(c.taps)})
			}
		}
	}
	return all
}

// inStep is how far apart in the image neighbouring outputs of a phase are.
func (g *Geometry) inStep(d int) int {
	if g.Transposed {
		return 1
	}
	return g.Stride[d]
}
