package fft

// linePlan is the transform of one line at a time, in vectors along it: what is between its passes stays in the first
// cache, and it is read and written where it lies, in order. The first pass takes as many parts as a vector has numbers,
// and leaves whole vectors to the others, which are those of Plan with rows of one number.
type linePlan[T Float] struct {
	n      int
	k      *kernels[T]
	tw     []T // of the first pass
	passes []pass[T]
	sign   []T
	chirp  *lineChirp[T] // instead of passes
}

// lineChirp is the transform of a line as a convolution of size numbers, see newChirp.
type lineChirp[T Float] struct {
	size          int
	forward, back *linePlan[T]
	w, kernel     []T
}

// lineOrder returns the kernels for a line of n numbers and the radices of its passes behind the first; none
// where lines are better transformed side by side.
func lineOrder[T Float](n int, k *kernels[T]) (_ *kernels[T], order []int) {
	for ; k != nil && k.line != nil; k = k.narrow {
		lanes := k.line.lanes
		if n%lanes != 0 || n < shortestLine[T]() {
			continue
		}
		factors, ok := factorize(n / lanes)
		if !ok {
			continue
		}
		order = passOrder(factors, k)
		large := 0
		for large < len(order) && order[large]%2 == 1 {
			large++
		}
		if large == 0 || order[large-1] < firstLarge {
			return k, order
		}
		// A pass of a large radix takes two vectors at a time, so one of a power of two is before.
		if even := order[large:]; len(even) > 0 {
			return k, append([]int{even[0]}, append(order[:large:large], even[1:]...)...)
		}
	}
	return nil, nil
}

// lineLength returns the length of the transforms that one of n numbers, of which outputs are wanted, is made of.
func lineLength[T Float](n, outputs int, k *kernels[T]) (size int, ok bool) {
	if _, order := lineOrder(n, k); order != nil {
		return n, true
	}
	if _, ok := factorize(n); ok || k.line == nil {
		return 0, false
	}
	size = convolutionSize(n + outputs - 1)
	_, order := lineOrder(size, k)
	return size, order != nil && size <= longestLine
}

// newLinePlan returns the transform of n numbers to the first outputs of them, times scale if it is a convolution; nil
// where lines are better side by side.
func newLinePlan[T Float](n, outputs int, inverse bool, scale float64, k *kernels[T]) *linePlan[T] {
	size, ok := lineLength(n, outputs, k)
	if !ok {
		return nil
	}
	if size != n {
		return &linePlan[T]{n: n, k: k, chirp: newLineChirp(n, outputs, size, inverse, scale, k)}
	}
	k, order := lineOrder(n, k)
	p := &linePlan[T]{n: n, k: k, sign: signs[T](inverse)}
	lanes := k.line.lanes
	for j := 1; j < lanes; j++ {
		for i := range n / lanes {
			p.tw = appendRoot(p.tw, i*j, n, inverse)
		}
	}
	p.tw = append(p.tw, 0)
	p.passes = newPasses(order, n/lanes, lanes, inverse, k)
	return p
}

func newLineChirp[T Float](n, outputs, size int, inverse bool, scale float64, k *kernels[T]) *lineChirp[T] {
	c := &lineChirp[T]{size: size}
	c.forward, c.back = newLinePlan(size, size, false, 1, k), newLinePlan(size, size, true, 1, k)
	c.w, c.kernel = chirpFactors[T](n, outputs, size, inverse, scale)
	return c
}

// run transforms src to dst; a and b have room for the numbers between, and b may be src. Without
// dst the results are in the buffer that it returns, a or b.
func (p *linePlan[T]) run(dst, src, a, b, scratch []T) []T {
	lanes, part := p.k.line.lanes, 2*p.n/p.k.line.lanes
	vector := 2 * lanes
	count := part / vector
	p.k.line.first(a, src, p.tw, p.sign, part, count)
	if part%vector != 0 { // the last vector has numbers of the one before
		at := part - vector
		p.k.line.first(a[at*lanes:], src[at:], p.tw[at:], p.sign, part, 1)
	}
	for i := range p.passes {
		if i == len(p.passes)-1 && dst != nil {
			b = dst
		}
		p.k.step(&p.passes[i], b, a, p.sign, scratch, 2*p.passes[i].s)
		a, b = b, a
	}
	return a
}

// convolve transforms the n numbers at the beginning of b, which have been multiplied by w, and returns the results
// before they are multiplied by w.
func (c *lineChirp[T]) convolve(n int, a, b, scratch []T) []T {
	clear(b[2*n : 2*c.size])
	y := c.forward.run(nil, b, a, b, scratch)
	if &y[0] == &a[0] {
		a, b = b, a
	}
	c.forward.k.times(y[:2*c.size], y, c.kernel)
	return c.back.run(nil, y, a, b, scratch)
}

// times sets complex numbers dst to those of a times those of w.
func (k *kernels[T]) times(dst, a, w []T) {
	row := rowFloats[T]()
	if whole := len(dst) / row * row; whole > 0 {
		k.products(dst[:whole], a, w, row, row)
		dst, a, w = dst[whole:], a[whole:], w[whole:]
	}
	if len(dst) > 0 {
		products(dst, a, w, len(dst), 0)
	}
}

// timesReals sets complex numbers dst to those of w times real ones.
func (k *kernels[T]) timesReals(dst, a, w []T) {
	dst, w = dst[:2*len(a)], w[:2*len(a)]
	if k.line != nil && len(a) >= k.line.lanes {
		count := len(a) / k.line.lanes
		k.line.reals(dst, a, w, count)
		done := count * k.line.lanes
		dst, a, w = dst[2*done:], a[done:], w[2*done:]
	}
	for i, v := range a {
		dst[2*i], dst[2*i+1] = v*w[2*i], v*w[2*i+1]
	}
}

// tangleEnds is tangle for the numbers of a line at 0 and m, which are reals in the transform of reals.
func tangleEnds[T Float](y, x []T, m int, h T, toReal bool) {
	if toReal {
		y[0], y[1] = h*(x[0]+x[2*m]), h*(x[0]-x[2*m])
		return
	}
	re, im := x[0], x[1]
	y[0], y[1] = 2*h*(re+im), 0
	y[2*m], y[2*m+1] = 2*h*(re-im), 0
}

// tangleAlong is tangle for the numbers of a line from lo to below hi, and those as far before m; factors are those of the
// whole line, with lanes more behind the middle.
func (k *kernels[T]) tangleAlong(y, x, tw, conj []T, h *T, m, lo, hi int) {
	if k.line == nil || hi-lo < k.line.lanes {
		if lo < hi {
			last := 2 * (m + 1 - hi)
			tangle(y[2*lo:], y[last:], x[2*lo:], x[last:], tw[2*lo:2*hi], nil, h, 2)
		}
		return
	}
	lanes := k.line.lanes
	count := (hi - lo) / lanes
	end := lo + count*lanes
	last := 2 * (m + 1 - end)
	k.line.tangle(y[2*lo:], y[last:], x[2*lo:], x[last:], tw[2*lo:], conj, h, count)
	if end < hi {
		at, last := 2*(hi-lanes), 2*(m+1-hi)
		k.line.tangle(y[at:], y[last:], x[at:], x[last:], tw[at:], conj, h, 1)
	}
}

// mirrorAlong sets the numbers of a line behind the first half of n to the conjugates of those before.
func (k *kernels[T]) mirrorAlong(y, conj []T, n int) {
	h := (n - 1) / 2
	if k.line == nil || h < k.line.lanes {
		for j := 1; j <= h; j++ {
			y[2*(n-j)], y[2*(n-j)+1] = y[2*j], -y[2*j+1]
		}
		return
	}
	lanes := k.line.lanes
	count := h / lanes
	k.line.mirror(y[2*(n-count*lanes):], y[2:], conj, count)
	if count*lanes < h {
		k.line.mirror(y[2*(n-h):], y[2*(h-lanes+1):], conj, 1)
	}
}
