package fft

import "github.com/loris-ml/loris/internal/kernels/gemm"

// longestLine is the most numbers of a line that is transformed by itself.
const longestLine = 1 << 16

// shortestLine returns the fewest, below which calls of the passes of each line take too long.
func shortestLine[T Float]() int {
	if rowFloats[T]() == rowBytes/8 {
		return 96
	}
	return 128
}

// alongLines returns the size of each buffer of a line, if lines are transformed one at a time, or 0.
func (l *Lines[T]) alongLines() int {
	if l.frames.Count > 0 || l.long || l.core() > longestLine {
		return 0
	}
	size, ok := lineLength(l.core(), l.outputs(), l.k)
	if !ok {
		return 0
	}
	// Lines that follow each other are not a power of two apart, whose elements would be in the same places of the cache.
	return (2*max(size, l.n/2+1, l.out.Len)+3*lineGap-1)/lineGap*lineGap + lineGap
}

// lineGap is the multiple of floats that buffers of lines are apart.
const lineGap = 16

// lineBlock is the size of the lines that lie across others in memory and are read and written together: so many that
// stretches of them are long, and so few that they stay in the second cache.
const lineBlock = 1 << 18

// lineChunk is how many elements of such lines are written together.
const lineChunk = 16

// together returns how many lines are read and written together, 0 if they lie one behind the other.
func (l *Lines[T]) together(room int) int {
	if l.in.Inner == 1 && l.out.Inner == 1 {
		return 0
	}
	blocks := lineBlock / (room * rowBytes / rowFloats[T]()) / Lanes[T]()
	return Lanes[T]() * max(1, min(4, blocks))
}

// outputs returns how many of the complex numbers that are transformed are wanted.
func (l *Lines[T]) outputs() int {
	if !l.halved() && (l.kind == RealToHalf || l.kind == RealToAll) {
		return l.n/2 + 1
	}
	return l.core()
}

// lineScratch returns the size of the scratch memory for lines with so large buffers.
func (l *Lines[T]) lineScratch(room int) int {
	return (3+l.together(room))*room + 2*maxPrime*rowFloats[T]()
}

// runLines transforms lines lo..hi-1.
func (l *Lines[T]) runLines(dst, src, scratch []T, lo, hi int) {
	from, to := l.widths()
	room, count := l.room, l.together(l.room)
	if count == 0 {
		for u := lo; u < hi; u++ {
			l.runLine(dst[u*l.out.Len*to:][:l.out.Len*to], src[u*l.in.Len*from:][:l.in.Len*from], scratch)
		}
		return
	}
	have, results := min(l.in.Len, l.wanted()), l.out.Len
	for ; lo < hi; lo += count {
		g := group{lo, min(count, hi-lo)}
		lines, rest := scratch[:count*room], scratch[count*room:]
		if l.in.Inner > 1 {
			g.segments(l.in, func(lo, hi, at int) {
				l.across(lines[lo*room:], room, src[from*at:], from*l.in.Inner, have, hi-lo, from)
			})
		}
		next := group{lo + g.n, min(count, hi-lo-g.n)}
		for i := range g.n {
			if next.n > 0 && l.in.Inner > 1 {
				l.ahead(src, l.in, next, from, i*have/g.n, (i+1)*have/g.n)
			}
			if l.out.Inner > 1 {
				l.ahead(dst, l.out, g, to, i*results/g.n, (i+1)*results/g.n)
			}
			y, u := lines[i*room:][:results*to], lo+i
			x := lines[i*room:][:have*from]
			if l.in.Inner == 1 {
				x = src[u*l.in.Len*from:][:have*from]
			}
			if l.out.Inner == 1 {
				y = dst[u*results*to:][:results*to]
			}
			l.runLine(y, x, rest)
		}
		if l.out.Inner > 1 {
			g.segments(l.out, func(lo, hi, at int) {
				for j := 0; j < results; j += lineChunk {
					l.across(dst[to*(at+j*l.out.Inner):], to*l.out.Inner, lines[lo*room+to*j:], room, hi-lo, min(lineChunk, results-j), to)
				}
			})
		}
	}
}

// across transposes reals or complex numbers.
func (l *Lines[T]) across(dst []T, dstRow int, src []T, srcRow, rows, cols, width int) {
	if width == 1 {
		gemm.Transpose(dst, dstRow, src, srcRow, rows, cols)
		return
	}
	transpose(l.k, dst, dstRow, src, srcRow, rows, cols)
}

// ahead brings elements j to below end of lines to the second cache.
func (l *Lines[T]) ahead(src []T, in Layout, g group, width, j, end int) {
	if j == end {
		return
	}
	g.segments(in, func(lo, hi, at int) {
		l.k.line.prefetch(src[width*(at+j*in.Inner):], width*in.Inner, width*(hi-lo), end-j)
	})
}

// runLine transforms line x to y.
func (l *Lines[T]) runLine(y, x, scratch []T) {
	size := l.room
	a, b, c, rest := scratch[:size], scratch[size:2*size], scratch[2*size:3*size], scratch[3*size:]
	x = l.whole(x, c)
	if l.line.chirp != nil {
		l.convolveLine(y, x, a, b, rest)
		return
	}
	switch l.kind {
	case Complex:
		l.line.run(y, x, a, b, rest)
		if l.scale != 1 {
			l.line.k.scale(y, &l.f)
		}
	case HalfToReal:
		l.tangleLine(a, x)
		l.line.run(y, a, b, c, rest)
	default:
		l.tangleLine(y, l.line.run(nil, x, a, b, rest))
		if l.kind == RealToAll {
			l.k.mirrorAlong(y, l.conj, l.n)
		}
	}
}

// widths returns how many floats an element of a line and of a result has.
func (l *Lines[T]) widths() (in, out int) {
	switch l.kind {
	case Complex:
		return 2, 2
	case HalfToReal:
		return 2, 1
	}
	return 1, 2
}

// tangleLine is tangle for all numbers of a line.
func (l *Lines[T]) tangleLine(y, x []T) {
	m := l.n / 2
	tangleEnds(y, x, m, l.h, l.kind == HalfToReal)
	l.k.tangleAlong(y, x, l.tw, l.conj, &l.h, m, 1, m/2+1)
}

// wanted returns how many elements a line has that are transformed.
func (l *Lines[T]) wanted() int {
	if l.kind == HalfToReal {
		return l.n/2 + 1
	}
	return l.n
}

// whole returns what is transformed of a line, or the line with zeros behind it in b.
func (l *Lines[T]) whole(x, b []T) []T {
	width, _ := l.widths()
	want := l.wanted() * width
	if len(x) >= want {
		return x[:want]
	}
	clear(b[copy(b, x):want])
	return b[:want]
}

// convolveLine transforms a line whose length has a large prime.
func (l *Lines[T]) convolveLine(y, x, a, b, scratch []T) {
	c, n := l.line.chirp, l.line.n
	k := l.k
	switch {
	case l.kind == HalfToReal && l.halved():
		l.tangleLine(a, x)
		k.times(b[:2*n], a, c.w)
	case l.kind == Complex || l.halved():
		k.times(b[:2*n], x, c.w)
	case l.kind != HalfToReal:
		k.timesReals(b, x, c.w)
	default:
		copy(a, x)
		a[1] = 0
		k.mirrorAlong(a, l.conj, n)
		k.times(b[:2*n], a, c.w)
	}
	z := c.convolve(n, a, b, scratch)
	switch {
	case l.kind == HalfToReal && l.halved(), l.kind == Complex:
		k.times(y[:2*n], z, c.w)
	case l.kind == HalfToReal:
		for j := range y {
			y[j] = z[2*j]*c.w[2*j] - z[2*j+1]*c.w[2*j+1]
		}
	case l.halved():
		k.times(z[:2*n], z, c.w)
		l.tangleLine(y, z)
	default:
		half := 2 * (l.n/2 + 1)
		k.times(y[:half], z, c.w)
	}
	if l.kind == RealToAll {
		k.mirrorAlong(y, l.conj, l.n)
	}
}
