package fft

import "sync"

// Chirp is the steps around the transforms of few or long lines whose length has a large prime. Such a
// transform is a convolution: elements times factors are transformed, multiplied by other factors,
// transformed back, and multiplied by the first factors again. Long does both transforms.
type Chirp[T Float] struct {
	kind    Kind
	n       int
	size    int // of the convolution
	inverse bool
	in, out Layout
	scale   T

	k *kernels[T]

	once   sync.Once
	w      []T // n factors, before and after
	kernel []T // size factors between
}

// chirpChunk is how many elements a unit of a step has.
const chirpChunk = 4096

// shortestChirp is from how many elements on lines are better transformed in steps of their own.
const shortestChirp = 2048

// NewChirp returns the steps for so many lines, or nil where others are better.
func NewChirp[T Float](kind Kind, n, lines int, inverse bool, in, out Layout, scale float64) *Chirp[T] {
	core := n
	if kind != Complex && n%2 == 0 {
		core = n / 2
	}
	if _, ok := factorize(core); ok || n < shortestChirp || planRows(core) > 1<<20 {
		return nil
	}
	if _, _, _, _, ok := Long[T](chirpSize(n), lines, false, 1); !ok {
		return nil
	}
	return newSteps[T](kind, n, inverse, in, out, scale)
}

func newSteps[T Float](kind Kind, n int, inverse bool, in, out Layout, scale float64) *Chirp[T] {
	return &Chirp[T]{kind: kind, n: n, size: chirpSize(n), inverse: inverse || kind == HalfToReal, in: in, out: out, scale: T(scale), k: available[T]()[0]}
}

// Size returns the length of the lines between the steps.
func (c *Chirp[T]) Size() int { return c.size }

// chunks returns how many units a line of a step has.
func (c *Chirp[T]) chunks() int { return (c.size + chirpChunk - 1) / chirpChunk }

// Units returns how many units of each step so many lines have.
func (c *Chirp[T]) Units(lines int) int { return lines * c.chunks() }

// each calls f for the parts of lines that units lo..hi-1 are.
func (c *Chirp[T]) each(lo, hi int, f func(line, from, to int)) {
	c.once.Do(c.prepare)
	for chunks := c.chunks(); lo < hi; lo++ {
		from := lo % chunks * chirpChunk
		f(lo/chunks, from, min(from+chirpChunk, c.size))
	}
}

func (c *Chirp[T]) prepare() {
	line, mid := make([]float64, 2*c.size), make([]float64, 2*c.size)
	for j := range c.n {
		re, im := root(j*j%(2*c.n), 2*c.n)
		if c.inverse {
			im = -im
		}
		c.w = append(c.w, T(re), T(im))
		line[2*j], line[2*j+1] = re, -im
		if j > 0 {
			line[2*(c.size-j)], line[2*(c.size-j)+1] = re, -im
		}
	}
	first, second, n1, n2, _ := apart[float64](c.size, 1, false, 1/float64(c.size))
	first.Run(mid, line, make([]float64, first.Scratch()), n2, 0, Blocks[float64](n2))
	second.Run(line, mid, make([]float64, second.Scratch()), n1, 0, Blocks[float64](n1))
	for _, v := range line {
		c.kernel = append(c.kernel, T(v))
	}
}

// Begin sets lines of dst, Size complex numbers each, to those of src times factors, and zeros behind them.
func (c *Chirp[T]) Begin(dst, src []T, lo, hi int) {
	c.each(lo, hi, func(line, from, to int) {
		y, at := dst[2*line*c.size:][:2*c.size], c.in.at(line)
		end := max(from, min(to, c.n))
		j := from
		if have := min(end, c.in.Len); c.in.Inner == 1 && from < have && c.kind != HalfToReal {
			if c.kind == Complex {
				c.k.times(y[2*from:2*have], src[2*(at+from):], c.w[2*from:])
			} else {
				c.k.timesReals(y[2*from:], src[at+from:at+have], c.w[2*from:])
			}
			j = have
		}
		clear(y[2*j : 2*to])
		for ; j < end; j++ {
			if re, im, ok := c.element(src, at, j); ok {
				w := c.w[2*j:][:2]
				y[2*j], y[2*j+1] = re*w[0]-im*w[1], im*w[0]+re*w[1]
			}
		}
	})
}

// element returns element j of a line that begins at at, if it is not beyond the line.
func (c *Chirp[T]) element(src []T, at, j int) (re, im T, ok bool) {
	switch sign := T(1); c.kind {
	case RealToHalf, RealToAll:
		if j < c.in.Len {
			return src[at+j*c.in.Inner], 0, true
		}
	case HalfToReal:
		if 2*j > c.n {
			j, sign = c.n-j, -1
		}
		if j == 0 || 2*j == c.n {
			sign = 0 // which has no imaginary part
		}
		if j < c.in.Len {
			v := src[2*(at+j*c.in.Inner):][:2]
			if sign == 0 {
				return v[0], 0, true
			}
			return v[0], sign * v[1], true
		}
	default:
		if j < c.in.Len {
			v := src[2*(at+j*c.in.Inner):][:2]
			return v[0], v[1], true
		}
	}
	return 0, 0, false
}

// scaled multiplies numbers by a real one.
func (c *Chirp[T]) scaled(x []T, f *T) {
	whole := len(x) / rowFloats[T]() * rowFloats[T]()
	if whole > 0 {
		c.k.scale(x[:whole], f)
	}
	scale(x[whole:], f)
}

// Convolve sets lines of dst to those of src, which are transformed, times factors.
func (c *Chirp[T]) Convolve(dst, src []T, lo, hi int) {
	c.each(lo, hi, func(line, from, to int) {
		at := line * c.size
		c.k.times(dst[2*(at+from):2*(at+to)], src[2*(at+from):], c.kernel[2*from:])
	})
}

// End sets lines of dst to the results, from what Convolve's lines are transformed back to.
func (c *Chirp[T]) End(dst, src []T, lo, hi int) {
	c.each(lo, hi, func(line, from, to int) {
		x, at := src[2*line*c.size:][:2*c.size], c.out.at(line)
		to = max(from, min(to, c.out.Len))
		if c.kind != HalfToReal && c.out.Inner == 1 && from < to {
			y := dst[2*(at+from) : 2*(at+to)]
			if c.k.times(y, x[2*from:], c.w[2*from:]); c.scale != 1 {
				c.scaled(y, &c.scale)
			}
			return
		}
		for j := from; j < to; j++ {
			re, im, w := x[2*j], x[2*j+1], c.w[2*j:][:2]
			re, im = (re*w[0]-im*w[1])*c.scale, (im*w[0]+re*w[1])*c.scale
			if c.kind == HalfToReal {
				dst[at+j*c.out.Inner] = re
				continue
			}
			y := dst[2*(at+j*c.out.Inner):][:2]
			y[0], y[1] = re, im
		}
	})
}
