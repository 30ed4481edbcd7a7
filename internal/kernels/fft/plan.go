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
	left, s := n, 1
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
		p.passes = append(p.passes, q)
		left, s = left/r, s*r
	}
	return p
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
// turned by -i, or by i for an inverse.
func signs[T Float](inverse bool) []T {
	v := make([]T, rowFloats[T]()/2)
	for i := range v {
		if (i%2 == 1) != inverse {
			v[i] = T(math.Copysign(0, -1))
		}
	}
	return v
}

func newChirp[T Float](n int, inverse bool, k *kernels[T]) *chirp[T] {
	size := chirpSize(n)
	c := &chirp[T]{size: size, forward: newPlan(size, false, k), back: newPlan(size, true, k)}
	rows := rowFloats[float64]()
	line, other := make([]float64, size*rows), make([]float64, size*rows)
	for j := range n {
		re, im := root(j*j%(2*n), 2*n)
		if inverse {
			im = -im
		}
		c.w = append(c.w, T(re), T(im))
		line[j*rows], line[j*rows+1] = re, -im
		if j > 0 {
			line[(size-j)*rows], line[(size-j)*rows+1] = re, -im
		}
	}
	line = newPlan(size, false, available[float64]()[0]).Run(line, other, nil) // small factors take no scratch memory
	for j := range size {
		c.kernel = append(c.kernel, T(line[j*rows]/float64(size)), T(line[j*rows+1]/float64(size)))
	}
	return c
}

// planRows returns how many rows each of Run's buffers has for n elements.
func planRows(n int) int {
	if _, ok := factorize(n); ok {
		return n
	}
	return chirpSize(n)
}

// chirpSize returns the least length of small factors that holds the convolution of n elements.
func chirpSize(n int) int {
	least := 1 << bits.Len(uint(2*n-2))
	for _, odd := range []int{3, 5, 9, 15} {
		size := odd
		for size < 2*n-1 {
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
		block := q.s * row
		switch q.r {
		case 2:
			p.k.pass2(b, a, q.tw, q.m, block)
		case 4:
			p.k.pass4(b, a, q.tw, p.sign, q.m, block)
		case 3, 5, 7:
			if pass := p.k.small[q.r]; pass != nil {
				pass(b, a, q.tw, p.sign, q.cs, q.m, block)
				break
			}
			fallthrough
		default:
			for j := range q.m {
				p.k.odd(b[j*q.r*block:], a[j*block:], q.tw[2*j*(q.r-1):], p.sign, q.cs, scratch, q.r/2, q.m*block, block)
			}
		}
		a, b = b, a
	}
	return a
}
