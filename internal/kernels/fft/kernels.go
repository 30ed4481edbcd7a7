// Package fft has Fourier transforms of many lines at a time: the lines lie side by side in the lanes
// of vectors, so that each step of a transform is the same for whole rows.
//
// A row has one element of each of Lanes lines, as complex numbers of two floats. A transform of n
// elements is a sequence of passes over n rows (Stockham's, whose results are in order), by factors 4,
// 2, 8 and odd primes; lengths with large primes are convolutions (Bluestein). Lines that have whole vectors
// along them are transformed one at a time instead: after a first pass, whose radix is a vector's numbers,
// passes are the same with rows of one number. Sums and products are in
// the elements' own type; the factors are computed in float64.
package fft

// Float is the element types.
type Float interface{ float32 | float64 }

// rowBytes is the size of a row: two of the widest vectors.
const rowBytes = 128

// Lanes returns how many lines are transformed at a time.
func Lanes[T Float]() int { return rowFloats[T]() / 2 }

func rowFloats[T Float]() int {
	if half := T(1) / 3; float64(half) == 1.0/3 {
		return rowBytes / 8
	}
	return rowBytes / 4
}

// maxPrime is the largest factor that has passes.
const maxPrime = 97

// kernels are the passes and what is done beside them, for one kind of processor. Lengths of rows and
// distances of parts are in floats.
type kernels[T Float] struct {
	// pass2 and pass4 do a pass: for each of m blocks of row floats in each part of src, the transform
	// of the parts, times the block's factors in tw, to blocks of dst that follow each other. sign has
	// the sign bits that turn by -i or i.
	pass2 func(dst, src, tw []T, m, row int)
	pass4 func(dst, src, tw, sign []T, m, row int)
	// pass8 is the same for 8 parts, and last does the only block of the last pass of radix 2, 4 or 8. They may be nil.
	pass8 func(dst, src, tw, sign []T, m, row int)
	last  [radixes]func(dst, src, sign []T, row int)
	// line has what transforms one line at a time. It may be nil.
	line *lineKernels[T]
	// narrow are kernels of shorter vectors, for lines that have no whole ones of these.
	narrow *kernels[T]
	// small are passes of odd radices, by radix; odd does those that are nil.
	small [firstLarge]smallPass[T]
	// odd does one block of a pass of radix 2h+1. cs has cos and sin of 2πjk/(2h+1) for j and k of 1 to
	// h: of group k for each j, as long as so many are left, then of one. scratch has room for 4h vectors.
	odd   func(dst, src, tw, sign, cs, scratch []T, h, part, row int)
	group int
	// tangle sets rows of up and down to h·(a+b̄) ± tw·(a-b̄), the second conjugated, with the first row
	// of up and a, the last of down and b, and so on; conj has the sign bits of imaginary parts. There
	// are as many rows as factors. h and the factor of scale are where they lie in memory, which a caller of a
	// variable would allocate for each call.
	tangle func(up, down, a, b, tw, conj []T, h *T, row int)
	// rows multiplies rows of x by a complex number each, window the parts of a row by two real ones.
	rows, window func(x, tw []T, row int)
	// products sets rows of dst to those of a times those of w, number by number; w's begin step floats apart.
	products func(dst, a, w []T, row, step int)
	// spread makes the second halves of rows the real parts of the whole, and opposite sets rows of dst to the
	// conjugates of those of src, the last first.
	spread   func(x []T)
	opposite func(dst, src, conj []T)
	// scale multiplies x by a real number.
	scale func(x []T, f *T)
	// square transposes blocks of two by two numbers of 16 bytes, see squareAVX. It may be nil.
	square func(dst, src *float64, srcLine, dstLine, srcOuter, srcInner, dstOuter, dstInner, outer, inner int)
}

// radixes is above all radices that are powers of two.
const radixes = 9

// lineKernels are kernels whose vectors lie along a line.
type lineKernels[T Float] struct {
	// lanes is how many numbers a vector has, and the radix of first: for each of count vectors in each
	// part of src, it transforms the parts, multiplies by factors of tw, which lie like the parts from the
	// second on, and writes as many numbers for each place of the vector one after the other. Behind the factors is
	// room for another float. part is in floats.
	lanes int
	first func(dst, src, tw, sign []T, part, count int)
	// tangle is the one of kernels for count vectors along a line, whose factors have room behind them too.
	tangle func(up, down, a, b, tw, conj []T, h *T, count int)
	// mirror sets count vectors of dst to the conjugates of the numbers of src, the last first.
	mirror func(dst, src, conj []T, count int)
	// reals sets count vectors of complex numbers of dst to those of w times real ones of x.
	reals func(dst, x, w []T, count int)
	// prefetch brings rows of so many floats, which are stride apart, to the second cache.
	prefetch func(x []T, stride, floats, rows int)
}

// firstLarge is above all radices that have passes of their own.
const firstLarge = 8

type smallPass[T Float] func(dst, src, tw, sign, cs []T, m, row int)

// portable are the kernels in Go.
func portable[T Float]() *kernels[T] {
	return &kernels[T]{pass2: pass2[T], pass4: pass4[T], odd: oddPass[T], group: 1, tangle: tangle[T], rows: mulRows[T], products: products[T], window: window[T], spread: spread[T], opposite: opposite[T], scale: scale[T]}
}

func pass2[T Float](dst, src, tw []T, m, row int) {
	for p := range m {
		wr, wi := tw[2*p], tw[2*p+1]
		a, b := src[p*row:(p+1)*row], src[(m+p)*row:(m+p+1)*row]
		y0, y1 := dst[2*p*row:(2*p+1)*row], dst[(2*p+1)*row:(2*p+2)*row]
		for i := 0; i+1 < row; i += 2 {
			re, im := a[i]-b[i], a[i+1]-b[i+1]
			y0[i], y0[i+1] = a[i]+b[i], a[i+1]+b[i+1]
			y1[i], y1[i+1] = re*wr-im*wi, im*wr+re*wi
		}
	}
}

func pass4[T Float](dst, src, tw, sign []T, m, row int) {
	turn := direction(sign)
	for p := range m {
		w := tw[6*p : 6*p+6]
		a, b := src[p*row:(p+1)*row], src[(m+p)*row:(m+p+1)*row]
		c, d := src[(2*m+p)*row:(2*m+p+1)*row], src[(3*m+p)*row:(3*m+p+1)*row]
		y := dst[4*p*row : (4*p+4)*row]
		for i := 0; i+1 < row; i += 2 {
			acr, aci, sr, si := a[i]+c[i], a[i+1]+c[i+1], a[i]-c[i], a[i+1]-c[i+1]
			bdr, bdi, tr, ti := b[i]+d[i], b[i+1]+d[i+1], turn*(b[i+1]-d[i+1]), -turn*(b[i]-d[i])
			y[i], y[i+1] = acr+bdr, aci+bdi
			re, im := sr+tr, si+ti
			y[row+i], y[row+i+1] = re*w[0]-im*w[1], im*w[0]+re*w[1]
			re, im = acr-bdr, aci-bdi
			y[2*row+i], y[2*row+i+1] = re*w[2]-im*w[3], im*w[2]+re*w[3]
			re, im = sr-tr, si-ti
			y[3*row+i], y[3*row+i+1] = re*w[4]-im*w[5], im*w[4]+re*w[5]
		}
	}
}

// direction is 1 for signs that turn by -i, and -1 for those that turn by i.
func direction[T Float](sign []T) T {
	if 1/sign[0] < 0 {
		return -1
	}
	return 1
}

func oddPass[T Float](dst, src, tw, sign, cs, _ []T, h, part, row int) {
	turn := direction(sign)
	var pairs [2 * maxPrime]T
	for i := 0; i+1 < row; i += 2 {
		x, y := src[i], src[i+1]
		sumX, sumY := x, y
		for j := 1; j <= h; j++ {
			a, b := src[j*part+i:], src[(2*h+1-j)*part+i:]
			p := pairs[4*(j-1) : 4*j]
			p[0], p[1], p[2], p[3] = a[0]+b[0], a[1]+b[1], turn*(a[1]-b[1]), -turn*(a[0]-b[0])
			sumX += p[0]
			sumY += p[1]
		}
		dst[i], dst[i+1] = sumX, sumY
		for k := 1; k <= h; k++ {
			er, ei, or, oi := x, y, T(0), T(0)
			c := cs[2*h*(k-1) : 2*h*k]
			for j := range h {
				p := pairs[4*j : 4*j+4]
				er += p[0] * c[2*j]
				ei += p[1] * c[2*j]
				or += p[2] * c[2*j+1]
				oi += p[3] * c[2*j+1]
			}
			set := func(k int, re, im T) {
				wr, wi := tw[2*k-2], tw[2*k-1]
				dst[k*row+i], dst[k*row+i+1] = re*wr-im*wi, im*wr+re*wi
			}
			set(k, er+or, ei+oi)
			set(2*h+1-k, er-or, ei-oi)
		}
	}
}

func tangle[T Float](up, down, a, b, tw, _ []T, factor *T, row int) {
	h := *factor
	for last := len(tw)/2*row - row; last >= 0; last -= row {
		wr, wi := tw[0], tw[1]
		d, c := down[last:last+row], b[last:last+row]
		for i := 0; i+1 < row; i += 2 {
			re, im := a[i]-c[i], a[i+1]+c[i+1]
			dr, di := re*wr-im*wi, im*wr+re*wi
			sr, si := h*(a[i]+c[i]), h*(a[i+1]-c[i+1])
			up[i], up[i+1] = sr+dr, si+di
			d[i], d[i+1] = sr-dr, di-si
		}
		up, a, tw = up[row:], a[row:], tw[2:]
	}
}

func mulRows[T Float](x, tw []T, row int) {
	for ; len(x) >= row; x, tw = x[row:], tw[2:] {
		wr, wi := tw[0], tw[1]
		for i := 0; i+1 < row; i += 2 {
			re, im := x[i], x[i+1]
			x[i], x[i+1] = re*wr-im*wi, im*wr+re*wi
		}
	}
}

func products[T Float](dst, a, w []T, row, step int) {
	for ; len(dst) >= row; dst, a = dst[row:], a[row:] {
		for i := 0; i+1 < row; i += 2 {
			re, im, f, g := a[i], a[i+1], w[i], w[i+1]
			dst[i], dst[i+1] = re*f-im*g, im*f+re*g
		}
		if len(dst) >= 2*row {
			w = w[step:]
		}
	}
}

func window[T Float](x, w []T, row int) {
	for ; len(x) >= row; x, w = x[row:], w[2:] {
		for i := 0; i+1 < row; i += 2 {
			x[i], x[i+1] = x[i]*w[0], x[i+1]*w[1]
		}
	}
}

func spread[T Float](x []T) {
	for row := rowFloats[T](); len(x) > 0; x = x[row:] {
		half := x[row/2 : row]
		for i, v := range half {
			x[2*i], x[2*i+1] = v, 0
		}
	}
}

func opposite[T Float](dst, src, _ []T) {
	for row := rowFloats[T](); len(dst) > 0; dst = dst[row:] {
		from := src[len(dst)-row : len(dst)]
		for i := 0; i+1 < row; i += 2 {
			dst[i], dst[i+1] = from[i], -from[i+1]
		}
	}
}

func scale[T Float](x []T, factor *T) {
	f := *factor
	for i := range x {
		x[i] *= f
	}
}
