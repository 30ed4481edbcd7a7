package quant

import (
	"sync"

	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/parallel"
)

// Filters are the weights of a convolution, packed. They may be used by many
// convolutions at once.
type Filters struct {
	groups []*Packed
	taps   []int16 // of a depthwise convolution instead: a row of channels for each tap
}

// PackFilters packs filters for convolutions of g's groups, channels and kernel.
// strides are those of output channel, input channel and the kernel's dimensions.
func PackFilters(src []int8, strides [5]int, g conv.Geometry) *Filters {
	taps := g.Kernel[0] * g.Kernel[1] * g.Kernel[2]
	at := func(out, in, tap int) int8 {
		k2 := tap % g.Kernel[2]
		k1 := tap / g.Kernel[2] % g.Kernel[1]
		k0 := tap / g.Kernel[2] / g.Kernel[1]
		return src[out*strides[0]+in*strides[1]+k0*strides[2]+k1*strides[3]+k2*strides[4]]
	}
	if depthwise(g) {
		f := &Filters{taps: make([]int16, taps*g.Groups)}
		for tap := range taps {
			for c := range g.Groups {
				f.taps[tap*g.Groups+c] = int16(at(c, 0, tap))
			}
		}
		return f
	}
	f := &Filters{}
	depth := taps * g.CIn
	dense := make([]int8, g.COut*depth)
	for group := range g.Groups {
		for o := range g.COut {
			row := dense[o*depth:][:depth]
			for tap := range taps {
				for c := range g.CIn {
					row[tap*g.CIn+c] = at(group*g.COut+o, c, tap)
				}
			}
		}
		f.groups = append(f.groups, Pack(dense, g.COut, depth))
	}
	return f
}

func depthwise(g conv.Geometry) bool { return g.CIn == 1 && g.COut == 1 && g.Groups > 1 }

// Convolve computes a convolution, which is not transposed, of an image of 8-bit
// integers whose zero is the given one. The rows of f are the output's positions
// in order, its columns the output's channels.
func Convolve[T uint8 | int8](g conv.Geometry, x []T, l conv.Layout, zero int32, w *Filters, f *Finish) {
	rows := g.N * g.Out[0] * g.Out[1] * g.Out[2]
	if rows == 0 {
		return
	}
	if pointwise(g, l) && len(w.groups) == 1 {
		Mul(rows, Shift(x, g.CIn, zero), w.groups[0], f)
		return
	}
	p := images.Get().(*image)
	defer images.Put(p)
	fill(p, g, x, l, zero)
	if w.taps != nil {
		p.depthwise(rows, w.taps, f)
		return
	}
	for i, packed := range w.groups {
		part := *f
		part.Offset += i * g.COut
		if f.Bias != nil {
			part.Bias = f.Bias[i*g.COut:]
		}
		if len(f.Scale) > 1 {
			part.Scale = f.Scale[i*g.COut:]
		}
		Mul(rows, p.rows(i*g.CIn), packed, &part)
	}
}

// pointwise reports whether outputs are products of the image's positions as they
// lie in memory.
func pointwise(g conv.Geometry, l conv.Layout) bool {
	ones := [3]int{1, 1, 1}
	if g.Kernel != ones || g.Stride != ones || g.Pad != [3]int{} || l.Channel != 1 {
		return false
	}
	step := g.CIn * g.Groups
	for d := 2; d >= 0; d-- {
		if g.In[d] > 1 && l.Spatial[d] != step {
			return false
		}
		step *= g.In[d]
	}
	return g.N == 1 || l.Batch == step
}

// image is an image with its channels side by side and zeros around it.
type image struct {
	g        conv.Geometry
	channels int
	size     [3]int // with the zeros
	data     []int16
}

var images = sync.Pool{New: func() any { return new(image) }}

// fill copies an image.
func fill[T uint8 | int8](p *image, g conv.Geometry, x []T, l conv.Layout, zero int32) {
	p.g, p.channels = g, g.CIn*g.Groups
	for d := range p.size {
		// What the last outputs reach may lie beyond the padding, or before its end.
		reach := (g.Out[d]-1)*g.Stride[d] + (g.Kernel[d]-1)*g.Dilation[d] + 1
		p.size[d] = max(reach, g.In[d]+g.Pad[d])
	}
	row := p.size[2] * p.channels
	p.data = grown(p.data, g.N*p.size[0]*p.size[1]*row)
	parallel.For(g.N*p.size[0]*p.size[1], max(1, packGrain/(row+1)), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			to := p.data[r*row:][:row]
			h := r%p.size[1] - g.Pad[1]
			d := r/p.size[1]%p.size[0] - g.Pad[0]
			n := r / p.size[1] / p.size[0]
			if h < 0 || h >= g.In[1] || d < 0 || d >= g.In[0] {
				clear(to)
				continue
			}
			before, after := g.Pad[2]*p.channels, (g.Pad[2]+g.In[2])*p.channels
			clear(to[:before])
			clear(to[after:])
			copyRow(to[before:after], x, n*l.Batch+d*l.Spatial[0]+h*l.Spatial[1], l.Spatial[2], l.Channel, p.channels, int16(zero))
		}
	})
}

// copyRow copies positions of channels, less zero.
func copyRow[T uint8 | int8](to []int16, x []T, at, step, channelStep, channels int, zero int16) {
	if channelStep == 1 {
		for ; len(to) > 0; at += step {
			for c, v := range x[at:][:channels] {
				to[c] = int16(v) - zero
			}
			to = to[channels:]
		}
		return
	}
	for c := range channels {
		from := at + c*channelStep
		for i := c; i < len(to); i += channels {
			to[i] = int16(x[from]) - zero
			from += step
		}
	}
}

// origin returns where in the image the first tap of output i lies.
func (p *image) origin(i int) int {
	g := &p.g
	w := i % g.Out[2] * g.Stride[2]
	i /= g.Out[2]
	h := i % g.Out[1] * g.Stride[1]
	i /= g.Out[1]
	d := i % g.Out[0] * g.Stride[0]
	n := i / g.Out[0]
	return (((n*p.size[0]+d)*p.size[1]+h)*p.size[2] + w) * p.channels
}

// steps returns how far the taps of each dimension lie apart.
func (p *image) steps() (d, h, w int) {
	w = p.channels * p.g.Dilation[2]
	h = p.channels * p.size[2] * p.g.Dilation[1]
	d = p.channels * p.size[2] * p.size[1] * p.g.Dilation[0]
	return d, h, w
}

// rows returns the rows of the products of the group whose channels begin at
// first.
func (p *image) rows(first int) Rows {
	g := &p.g
	stepD, stepH, stepW := p.steps()
	run, runs := g.CIn, g.Kernel[2]
	if stepW == g.CIn { // taps that follow each other adjoin
		run, runs = run*runs, 1
	}
	return func(dst []int16, i int) {
		at := p.origin(i) + first
		for d := range g.Kernel[0] {
			for h := range g.Kernel[1] {
				from := at + d*stepD + h*stepH
				for range runs {
					copy(dst[:run], p.data[from:])
					dst = dst[run:]
					from += stepW
				}
			}
		}
	}
}

// depthwise computes the convolution of each channel with its own filter.
func (p *image) depthwise(rows int, taps []int16, f *Finish) {
	g := &p.g
	stepD, stepH, stepW := p.steps()
	n := g.Groups
	parallel.For(rows, max(1, packGrain/(len(taps)+1)), func(lo, hi int) {
		s := scratches.Get().(*scratch)
		s.tile, s.sums, s.others = grown(s.tile, n), grown(s.sums, n), grown(s.others, n)
		for i := lo; i < hi; i++ {
			sums, at, left := s.tile, p.origin(i), taps
			clear(sums)
			for d := range g.Kernel[0] {
				for h := range g.Kernel[1] {
					from := at + d*stepD + h*stepH
					for range g.Kernel[2] {
						addProducts(sums, p.data[from:][:n], left[:n])
						left = left[n:]
						from += stepW
					}
				}
			}
			f.scale(s.sums, sums, 0)
			f.row(s.sums, s.others, i, 0)
		}
		scratches.Put(s)
	})
}

func addProducts(sums []int32, x, w []int16) {
	x, w = x[:len(sums)], w[:len(sums)]
	for c := range sums {
		sums[c] += int32(x[c]) * int32(w[c])
	}
}
