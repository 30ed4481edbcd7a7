package fft

import "sync"

// Kind is what a transform is from and to.
type Kind uint8

// The kinds: complex lines; the half of the transform of reals, or all of it; and back from a half.
const (
	Complex Kind = iota
	RealToHalf
	RealToAll
	HalfToReal
)

// Lines is a transform of many lines of one length. Its factors are computed by the first Run, so that
// one that is too large for the memory is found out before.
type Lines[T Float] struct {
	kind    Kind
	n       int
	inverse bool
	in, out Layout
	frames  Frames // instead of in
	scale   float64
	k       *kernels[T]
	long    bool // results are multiplied by turns, see Long

	once  sync.Once
	plan  *Plan[T]
	line  *linePlan[T] // instead, of lines one at a time
	room  int          // of a buffer of a line
	tw    []T          // of tangle, for reals of an even number
	conj  []T
	h, f  T // the factors of tangle and of all results
	turns []T
}

// New returns the transform of lines of n elements; the elements beyond those of in are zeros. Results
// are multiplied by scale. The inverse of Complex, and HalfToReal, have no other factor.
func New[T Float](kind Kind, n int, inverse bool, in, out Layout, scale float64) *Lines[T] {
	return newLines(kind, n, inverse, in, out, scale, available[T]()[0])
}

func newLines[T Float](kind Kind, n int, inverse bool, in, out Layout, scale float64, k *kernels[T]) *Lines[T] {
	return &Lines[T]{kind: kind, n: n, inverse: inverse || kind == HalfToReal, in: in, out: out, scale: scale, k: k}
}

// prepare computes the factors.
func (l *Lines[T]) prepare() {
	l.conj = signs[T](false)
	l.h, l.f = T(l.tangled()), T(l.scale)
	if l.halved() {
		l.tw = tangles[T](l.n, l.inverse, l.tangled())
	}
	if l.room = l.alongLines(); l.room > 0 {
		scale := l.scale
		if l.halved() {
			scale = 1
		}
		l.line = newLinePlan(l.core(), l.outputs(), l.inverse, scale, l.k)
		return
	}
	l.plan = newPlan(l.core(), l.inverse, l.k)
	if l.long {
		for k := range l.n {
			for j := range l.in.Inner + Lanes[T]() {
				l.turns = appendRoot(l.turns, k*(j%l.in.Inner), l.n*l.in.Inner, l.inverse)
			}
		}
	}
}

// tangles returns -i·w·h forwards and i·w̄·h back for the first half of the pairs of n reals.
func tangles[T Float](n int, inverse bool, h float64) (tw []T) {
	for j := 0; j <= n/4; j++ {
		re, im := root(j, n)
		if inverse {
			re, im = im, re
		} else {
			re, im = im, -re
		}
		tw = append(tw, T(re*h), T(im*h))
	}
	return append(tw, 0) // see lineKernels
}

// tangled returns the factor that tangle multiplies by.
func (l *Lines[T]) tangled() float64 {
	if l.kind == HalfToReal {
		return l.scale
	}
	return l.scale / 2
}

// halved reports whether reals are transformed as half as many complex numbers.
func (l *Lines[T]) halved() bool { return l.kind != Complex && l.n%2 == 0 }

// core returns how many complex numbers are transformed.
func (l *Lines[T]) core() int {
	if l.halved() {
		return l.n / 2
	}
	return l.n
}

// Fits reports whether the tables of the transform have a reasonable size: those of a length with large
// primes have many times the size of a line.
func (l *Lines[T]) Fits() bool {
	_, ok := factorize(l.core())
	return ok || planRows(l.core()) <= 1<<20
}

// Scratch returns how many floats of scratch memory Run needs.
func (l *Lines[T]) Scratch() int {
	if room := l.alongLines(); room > 0 {
		return l.lineScratch(room)
	}
	return (2*l.rows() + maxPrime) * rowFloats[T]()
}

func (l *Lines[T]) rows() int {
	return max(planRows(l.core()), l.n/2+1, l.out.Len, min(l.in.Len, l.n))
}

// InPlace reports whether results may be written over the lines.
func (l *Lines[T]) InPlace() bool { return l.kind == Complex && l.in == l.out && l.frames.Count == 0 }

// Blocks returns how many blocks of lines, the units of Run, so many lines have.
func Blocks[T Float](lines int) int { return (lines + Lanes[T]() - 1) / Lanes[T]() }

// Run transforms blocks lo..hi-1 of the lines of src to dst. Complex numbers are two floats.
func (l *Lines[T]) Run(dst, src, scratch []T, lines, lo, hi int) {
	l.once.Do(l.prepare)
	if l.line != nil {
		l.runLines(dst, src, scratch, lo*Lanes[T](), min(hi*Lanes[T](), lines))
		return
	}
	l.each(scratch, lines, lo, hi, dst, func(a, b []T, g group) {
		if l.kind == HalfToReal {
			l.loadHalf(a, b, src, g)
		} else {
			l.load(a, src, g)
		}
	})
}

// each transforms blocks that load brings into a; b is as long.
func (l *Lines[T]) each(scratch []T, lines, lo, hi int, dst []T, load func(a, b []T, g group)) {
	l.once.Do(l.prepare)
	row, rows := rowFloats[T](), l.rows()
	a, b, rest := scratch[:rows*row], scratch[rows*row:2*rows*row], scratch[2*rows*row:]
	for ; lo < hi; lo++ {
		first := lo * Lanes[T]()
		g := group{first, min(Lanes[T](), lines-first)}
		load(a, b, g)
		y := l.plan.Run(a, b, rest)
		other := b
		if &y[0] == &b[0] {
			other = a
		}
		l.finish(y, other, dst, g)
	}
}

// load fills the rows of a with the lines of a group.
func (l *Lines[T]) load(a, src []T, g group) {
	row := rowFloats[T]()
	if g.n < Lanes[T]() {
		clear(a)
	}
	n := min(l.in.Len, l.n)
	switch {
	case l.kind == Complex:
		l.read(a, src, l.in, g, n)
	case l.halved() && l.in.Inner == 1 && n%2 == 0 && l.in.Len%2 == 0:
		n /= 2
		l.read(a, src, Layout{1, l.in.Len / 2}, g, n)
	case l.halved():
		g.segments(l.in, func(lo, hi, at int) {
			for j := range n {
				to, from := a[j/2*row+j%2:], src[at+j*l.in.Inner:]
				for c := range hi - lo {
					to[2*(lo+c)] = from[c]
				}
			}
			if n%2 == 1 {
				for c := lo; c < hi; c++ {
					a[n/2*row+2*c+1] = 0
				}
			}
		})
		n = (n + 1) / 2
	default:
		l.readReals(a, src, g, n)
		if n > 0 {
			l.k.spread(a[:n*row])
		}
	}
	if want := l.plan.n; n < want {
		clear(a[n*row : want*row])
	}
}

// loadHalf fills a with what the inverse transform takes: of b, which gets the halves.
func (l *Lines[T]) loadHalf(a, b, src []T, g group) {
	row := rowFloats[T]()
	if g.n < Lanes[T]() {
		clear(b)
	}
	half := l.n/2 + 1
	n := min(l.in.Len, half)
	l.read(b, src, l.in, g, n)
	clear(b[n*row : half*row])
	real := func(j int) { // has no imaginary part
		for i := j*row + 1; i < (j+1)*row; i += 2 {
			b[i] = 0
		}
	}
	real(0)
	if l.halved() {
		real(half - 1)
		l.tangle(a, b, 0)
		return
	}
	copy(a, b[:half*row])
	l.conjugate(a)
}

// tangle sets rows j and n/2-j of dst by those of src, from j = first on.
func (l *Lines[T]) tangle(dst, src []T, first int) {
	row, m := rowFloats[T](), l.n/2
	if tw := l.tw[2*first : len(l.tw)-1]; len(tw) > 0 {
		up, down := first*row, (m-first+1-len(tw)/2)*row
		l.plan.k.tangle(dst[up:], dst[down:], src[up:], src[down:], tw, l.conj, &l.h, row)
	}
}

// conjugate sets the rows behind the first half of n to the conjugates of those before.
func (l *Lines[T]) conjugate(a []T) {
	if row, half := rowFloats[T](), (l.n-1)/2; half > 0 {
		l.k.opposite(a[(l.n-half)*row:l.n*row], a[row:(1+half)*row], l.conj)
	}
}

// finish writes the lines of a group, whose transform is in y; other is as long.
func (l *Lines[T]) finish(y, other, dst []T, g group) {
	row, m := rowFloats[T](), l.n/2
	switch {
	case l.halved() && l.kind != HalfToReal:
		l.plan.k.tangle(other, other[m*row:], y, y, l.tw[:2], l.conj, &l.h, row)
		l.tangle(other, y, 1)
		y = other
	case l.scale != 1 && !l.halved():
		l.plan.k.scale(y[:l.n*row], &l.f)
	}
	if l.kind == RealToAll {
		l.conjugate(y)
	}
	if l.long {
		l.turn(y, g)
	}
	switch {
	case l.kind != HalfToReal:
		l.write(dst, y, l.out, g, l.out.Len)
	case !l.halved():
		for j := range l.n {
			gather(y[j*row : (j+1)*row])
		}
		l.writeReals(dst, y, g)
	case l.out.Inner == 1:
		l.write(dst, y, Layout{1, m}, g, m)
	default:
		g.segments(l.out, func(lo, hi, at int) {
			for j := range l.n {
				from, to := y[j/2*row+j%2:], dst[at+j*l.out.Inner:]
				for c := range hi - lo {
					to[c] = from[2*(lo+c)]
				}
			}
		})
	}
}
