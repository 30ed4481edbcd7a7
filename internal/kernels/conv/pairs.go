package conv

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Where the processor multiplies pairs of bfloat16, two input channels are one word
// of the size of a float32, in images and in filters, so that a convolution is that of
// float32 with half the channels. An odd channel's other half is zero. Filters keep
// their values, and factors of output channels multiply the sums.

// depth returns how many elements of packed operands so many channels are.
func (f Form) depth(channels int) int {
	if f == Pairs {
		return ceil(channels, 2)
	}
	return channels
}

// inPairs reports whether a convolution of the element type can be computed in pairs.
func inPairs[T Element](g *Geometry) bool {
	_, ok := any(*new(T)).(vec.BF16)
	return ok && tile.Pairs() != nil && g.CIn > 1
}

// pixels is how many positions of an image are made words at a time.
const pixels = 32

// loadPairs copies a row of n pixels, whose first element x begins with, as words.
func loadPairs[A Float](w *worker[A], dst []A, x []vec.BF16, p *Plan[A], n int) {
	words, step := p.g.CIn, p.region.Spatial[2]
	out := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst))
	s, whole := &p.x, p.channels/2
	switch {
	case s.Channel == 1:
		for i := range n {
			to := out[i*step:][:words]
			if p.channels%2 != 0 {
				to[whole] = 0
			}
			copy(unsafe.Slice((*vec.BF16)(unsafe.Pointer(unsafe.SliceData(to))), 2*words), x[i*s.Spatial[2]:][:p.channels])
		}
	case s.Spatial[2] == 1:
		w.line = grow(w.line, words*pixels)
		line := any(w.line).([]float32)
		for i := 0; i < n; i += pixels {
			some := min(pixels, n-i)
			gemm.Pairs(line, pixels, x[i:], 1, s.Channel, some, p.channels)
			gemm.Transpose(dst[i*step:], step, w.line, pixels, words, some)
		}
	default:
		for i := range n {
			at := i * s.Spatial[2]
			for k := range whole {
				out[i*step+k] = uint32(x[at]) | uint32(x[at+s.Channel])<<16
				at += 2 * s.Channel
			}
			if whole < words {
				out[i*step+whole] = uint32(x[at])
			}
		}
	}
}

// pairs packs a panel of a phase as words.
func (p *packing[A, T]) pairs(dst []A, ph *phase) {
	width, cin := p.w.set.Width, p.w.g.CIn
	words := Pairs.depth(cin)
	if words == 0 || ph.depth == 0 {
		return
	}
	taps := ph.depth / words
	p.scratch.region = grow(p.scratch.region, taps*cin*width)
	rows := p.scratch.region
	p.phase(rows, ph)
	if cin%2 == 0 {
		p.w.set.Join(dst, rows, taps*words)
		return
	}
	for t := range taps {
		from, to := rows[t*cin*width:][:cin*width], dst[t*words*width:][:words*width]
		p.w.set.Join(to, from, cin/2)
		for i, v := range from[(cin-1)*width:] {
			to[cin/2*width+i] = A(math.Float32frombits(math.Float32bits(float32(v)) >> 16))
		}
	}
}

// scales reports whether sums are multiplied by factors of the output channels.
func (c *Call[T, A]) scales() bool { return c.FilterScale != nil && c.Plan.form == Pairs }

// scaleSums multiplies the unit's sums, n of each position's step columns, by their factors and
// adds the bias.
func (c *Call[T, A]) scaleSums(w *worker[A], u *unit, channel, n, step int) {
	from := u.grp*c.Plan.g.COut + channel
	w.bias = grow(w.bias, step)
	clear(w.bias)
	copy(w.bias, c.FilterScale[from:from+n])
	gemm.ScaleRows(w.sums, w.bias, step)
	if c.Bias == nil {
		return
	}
	clear(w.bias)
	vec.Load(w.bias, c.Bias[from:from+n])
	for i := 0; i < len(w.sums); i += step {
		gemm.AddRow(w.sums[i:][:step], w.bias, false)
	}
}
