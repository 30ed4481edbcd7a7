package fft

import (
	"math"
	"math/bits"
)

// Plan is the transform of n rows in one direction. It does not change once it is made.
type Plan[T Float] struct {
	n      int
	k      *kernels[T]
	passes []pass[T]
	sign   []T
	chirp  *chirp[T] // for lengths with large primes, which have no passes
}

// pass is one pass: radix r, m blocks of s rows.
type pass[T Float] struct {
	r, m, s int
	tw      []T // m times r-1 factors
	cs      []T // of odd radices
}

// chirp is a transform as a convolution of size rows.
type chirp[T Float] struct {
	size          int
	forward, back *Plan[T]
	w             []T // n factors, before and after
	kernel        []T // size factors between
}

// newPlan returns the transform of n elements, n at least 1, or its inverse without a factor.
func newPlan[T Float](n int, inverse bool, k *kernels[T]) *Plan[T] {
	p := &Plan[T]{n: n, k: k, sign: signs[T](inverse)}
	factors, ok := factorize(n)
	if !ok {
		p.chirp = newChirp(n, inverse, k)
		return p
	}
	p.passes = newPasses(passOrder(factors, k), n, 1, inverse, k)
	return p
}

// newPasses returns passes by factors of left, whose blocks begin with s numbers.
func newPasses[T Float](factors []int, left, s int, inverse bool, k *kernels[T]) (passes []pass[T]) {
	for _, r := range factors {
		q := pass[T]{r: r, m: left / r, s: s, tw: make([]T, 0, 2*(left-left/r))}
		for i := range q.m {
			for j := 1; j < r; j++ {
				q.tw = appendRoot(q.tw, i*j, left, inverse)
			}
		}
		if r%2 == 1 {
			q.cs = cosines(r, k)
		}
		passes = append(passes, q)
		left, s = left/r, s*r
	}
	return passes
}

// passOrder returns factors in the order in which passes of them are best: odd ones before powers of two, which need
// no factors when they are last, and as few of those as there are kernels for.
func passOrder[T Float](factors []int, k *kernels[T]) (order []int) {
	twos := 0
	for _, r := range factors {
		if r%2 == 1 {
			order = append(order, r)
			continue
		}
		twos += bits.Len(uint(r)) - 1
	}
	if k.pass8 != nil {
		for ; twos > 4 || twos == 3; twos -= 3 {
			order = append(order, 8)
		}
	}
	for ; twos > 1; twos -= 2 {
		order = append(order, 4)
	}
	if twos == 1 {
		order = append(order, 2)
	}
	return order
}

// cosines returns the factors of an odd radix, in the order in which its kernel reads them.
func cosines[T Float](r int, k *kernels[T]) (cs []T) {
	group, h := k.group, r/2
	if r < firstLarge && k.small[r] != nil {
		group = 1
	}
	for first := 1; first <= h; first += group {
		if first+group > h+1 {
			group = 1
		}
		for j := 1; j <= h; j++ {
			for i := range group {
				re, im := root((first+i)*j, r)
				cs = append(cs, T(re), T(-im))
			}
		}
	}
	return cs
}

// factorize returns the factors 4, 2 and odd primes of n; ok is false if one has no pass.
func factorize(n int) (factors []int, ok bool) {
	for ; n%4 == 0; n /= 4 {
		factors = append(factors, 4)
	}
	for r := 2; r <= maxPrime && n > 1; r++ {
		for ; n%r == 0; n /= r {
			factors = append(factors, r)
		}
	}
	return factors, n == 1
}

// root returns e^(-2πi·k/n), to the last place.
func root(k, n int) (re, im float64) {
	k %= n
	quarter := 4 * k / n
	rest, turned := 4*k-quarter*n, false
	if turned = 2*rest > n; turned {
		rest = n - rest
	}
	im, re = math.Sincos(math.Pi / 2 * float64(rest) / float64(n))
	if turned {
		re, im = im, re
	}
	switch quarter {
	case 1:
		re, im = -im, re
	case 2:
		re, im = -re, -im
	case 3:
		re, im = im, -re
	}
	return re, -im
}

func appendRoot[T Float](tw []T, k, n int, inverse bool) []T {
	re, im := root(k, n)
	if inverse {
		im = -im
	}
	return append(tw, T(re), T(im))
}

// signs returns a vector of the sign bits that, of numbers whose parts have changed places, make those
// turned by -i, or by i for an inverse. Behind it are a vector of factors that do the same, those times
// √½, and √½.
func signs[T Float](inverse bool) []T {
	n := rowFloats[T]() / 2
	v := make([]T, 4*n)
	for i := range n {
		sign := 1.0
		if (i%2 == 1) != inverse {
			sign = -1
		}
		v[i], v[n+i] = T(math.Copysign(0, sign)), T(sign)
		v[2*n+i], v[3*n+i] = T(sign*math.Sqrt2/2), T(math.Sqrt2/2)
	}
	return v
}

func newChirp[T Float](n int, inverse bool, k *kernels[T]) *chirp[T] {
	size := chirpSize(n)
	c := &chirp[T]{size: size, forward: newPlan(size, false, k), back: newPlan(size, true, k)}
	c.w, c.kernel = chirpFactors[T](n, n, size, inverse, 1)
	return c
}

// chirpFactors returns the factors of n elements before a convolution of size, and of outputs behind it, and those
// between, which scale the results.
func chirpFactors[T Float](n, outputs, size int, inverse bool, scale float64) (w, kernel []T) {
	rows := rowFloats[float64]()
	line, other := make([]float64, size*rows), make([]float64, size*rows)
	for j := range n {
		re, im := root(j*j%(2*n), 2*n)
		if inverse {
			im = -im
		}
		w = append(w, T(re), T(im))
		if j < outputs {
			line[j*rows], line[j*rows+1] = re, -im
		}
		if j > 0 {
			line[(size-j)*rows], line[(size-j)*rows+1] = re, -im
		}
	}
	line = newPlan(size, false, available[float64]()[0]).Run(line, other, nil) // small factors take no scratch memory
	scale /= float64(size)
	for j := range size {
		kernel = append(kernel, T(line[j*rows]*scale), T(line[j*rows+1]*scale))
	}
	return w, kernel
}

// planRows returns how many rows each of Run's buffers has for n elements.
func planRows(n int) int {
	if _, ok := factorize(n); ok {
		return n
	}
	return chirpSize(n)
}

// chirpSize returns the length of the convolution of n elements.
func chirpSize(n int) int { return convolutionSize(2*n - 1) }

// convolutionSize returns the least length of small factors that is at least n.
func convolutionSize(n int) int {
	least := 1 << bits.Len(uint(n-1))
	for _, odd := range []int{3, 5, 9, 15} {
		size := odd
		for size < n {
			size *= 2
		}
		least = min(least, size)
	}
	return least
}

// Run transforms the first n rows of a, and returns the buffer that has the results: a or b, both of
// which it overwrites.
func (p *Plan[T]) Run(a, b, scratch []T) []T {
	row := rowFloats[T]()
	if c := p.chirp; c != nil {
		p.k.rows(a[:p.n*row], c.w, row)
		clear(a[p.n*row : c.size*row])
		y := c.forward.Run(a, b, scratch)
		p.k.rows(y[:c.size*row], c.kernel, row)
		other := b
		if &y[0] == &b[0] {
			other = a
		}
		y = c.back.Run(y, other, scratch)
		p.k.rows(y[:p.n*row], c.w, row)
		return y
	}
	for i := range p.passes {
		q := &p.passes[i]
		p.k.step(q, b, a, p.sign, scratch, q.s*row)
		a, b = b, a
	}
	return a
}

// step does a pass over blocks of so many floats.
func (k *kernels[T]) step(q *pass[T], dst, src, sign, scratch []T, block int) {
	var last func(dst, src, sign []T, row int)
	if q.m == 1 && q.r < len(k.last) {
		last = k.last[q.r]
	}
	switch {
	case last != nil:
		last(dst, src, sign, block)
	case q.r == 2:
		k.pass2(dst, src, q.tw, q.m, block)
	case q.r == 4:
		k.pass4(dst, src, q.tw, sign, q.m, block)
	case q.r == 8:
		k.pass8(dst, src, q.tw, sign, q.m, block)
	case q.r < firstLarge && k.small[q.r] != nil:
		k.small[q.r](dst, src, q.tw, sign, q.cs, q.m, block)
	default:
		for j := range q.m {
			k.odd(dst[j*q.r*block:], src[j*block:], q.tw[2*j*(q.r-1):], sign, q.cs, scratch, q.r/2, q.m*block, block)
		}
	}
}
