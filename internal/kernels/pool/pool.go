// Package pool computes the greatest element of windows of images of any strides.
//
// Where channels adjoin in memory, all channels of a position are treated
// together. Images whose planes are dense are transposed a few rows at a time
// to be treated so, but for windows within long rows, which are treated one
// element of each window at a time.
package pool

import "github.com/loris-ml/loris/internal/kernels/conv"

// Layout is the strides of an image in elements.
type Layout = conv.Layout

// Geometry is the shape of pooling over three spatial dimensions; fewer are
// padded with leading ones (and zero padding). Images are [N, C, In…] to
// [N, C, Out…]. Window o begins at o·Stride − Pad, and its elements are Dilation
// apart; padding takes no part.
type Geometry struct {
	N, C                  int
	In, Kernel, Out       [3]int
	Stride, Pad, Dilation [3]int
	// Windows has for the dimensions where it is not nil the first element of each window and the one
	// behind the last; Kernel is of the longest.
	Windows [3][][2]int
}

// Adaptive returns windows that split n elements into the given number of parts as evenly as can be,
// and the length of the longest.
func Adaptive(n, parts int) (windows [][2]int, longest int) {
	for i := range parts {
		from, to := i*n/parts, ((i+1)*n+parts-1)/parts
		windows = append(windows, [2]int{from, to})
		longest = max(longest, to-from)
	}
	return windows, longest
}

// span is the positions of a window in one dimension: from, from+step, … below
// to.
type span struct{ from, to, step int }

// window returns the part of window o that is inside.
func (g *Geometry) window(d, o int) span {
	if w := g.Windows[d]; w != nil {
		return span{w[o][0], w[o][1], 1}
	}
	s := span{from: o*g.Stride[d] - g.Pad[d], step: g.Dilation[d]}
	s.to = min(s.from+(g.Kernel[d]-1)*s.step+1, g.In[d])
	if s.from < 0 {
		s.from += (-s.from + s.step - 1) / s.step * s.step
	}
	return s
}

// offset returns where position at of an image is.
func offset(l *Layout, n int, at [3]int) int {
	return n*l.Batch + at[0]*l.Spatial[0] + at[1]*l.Spatial[1] + at[2]*l.Spatial[2]
}
