//go:build linux && cgo

package host

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"

	"github.com/loris-ml/loris/ir"
)

// fourierEvals are the discrete Fourier transforms.
var fourierEvals = map[string]evalFunc{
	"_fft_c2c": func(v values) ([]*tensor, error) {
		t, a, dims, err := v.transformed()
		if err != nil {
			return nil, err
		}
		n := transform(a, dims, v.bool("forward", true))
		scale(a.data, v.int("normalization", 0), n)
		return one(save(a, dtypeOf(t)))
	},
	"_fft_r2c": func(v values) ([]*tensor, error) {
		t, a, dims, err := v.transformed()
		if err != nil {
			return nil, err
		}
		n := transform(a, dims, true)
		if v.bool("onesided", true) {
			last := dims[len(dims)-1]
			a = firstHalf(a, last, a.dims[last]/2+1)
		}
		scale(a.data, v.int("normalization", 0), n)
		d := ir.C64
		if dtypeOf(t) == ir.F64 {
			d = ir.C128
		}
		return one(save(a, d))
	},
	"_fft_c2r": func(v values) ([]*tensor, error) {
		t, a, dims, err := v.transformed()
		if err != nil {
			return nil, err
		}
		last := dims[len(dims)-1]
		transform(a, dims[:len(dims)-1], false)
		a = mirrored(a, last, v.int("last_dim_size", 2*(a.dims[last]-1)))
		transform(a, dims[len(dims)-1:], false)
		n := 1
		for _, d := range dims {
			n *= a.dims[d]
		}
		scale(a.data, v.int("normalization", 0), n)
		out := array[float64]{make([]float64, len(a.data)), a.dims}
		for i, x := range a.data {
			out.data[i] = real(x)
		}
		d := ir.F32
		if dtypeOf(t) == ir.C128 {
			d = ir.F64
		}
		return one(save(out, d))
	},
}

// transformed reads self, and returns the dimensions to transform.
func (v values) transformed() (t *tensor, a array[complex128], dims []int, err error) {
	if t, a, err = argument[complex128](v, "self"); err != nil {
		return nil, a, nil, err
	}
	for _, d := range v.ints("dim") {
		k, err := dimension(int(d), len(a.dims))
		if err != nil {
			return nil, a, nil, err
		}
		dims = append(dims, k)
	}
	if len(dims) == 0 || len(a.dims) == 0 {
		return nil, a, nil, fmt.Errorf("%w: a Fourier transform over no dimension", ir.ErrShape)
	}
	return t, a, dims, nil
}

// scale divides by what PyTorch's normalization says of n elements: nothing, √n
// or n.
func scale(x []complex128, normalization, n int) {
	by := 1.0
	switch normalization {
	case 1:
		by = 1 / math.Sqrt(float64(n))
	case 2:
		by = 1 / float64(n)
	default:
		return
	}
	for i := range x {
		x[i] *= complex(by, 0)
	}
}

// transform transforms along each of the dimensions, in place, and returns how
// many elements a transform has.
func transform(a array[complex128], dims []int, forward bool) int {
	total := 1
	for _, d := range dims {
		n := a.dims[d]
		total *= n
		p := newDFT(n, forward)
		row := make([]complex128, n)
		lanes(a.dims, d, func(_, from, step, n int) {
			for k := range row {
				row[k] = a.data[from+k*step]
			}
			p.run(row)
			for k, x := range row {
				a.data[from+k*step] = x
			}
		})
	}
	return total
}

// dft is a transform of n elements. Sizes that are no power of two are turned
// into a convolution of one (Bluestein's algorithm).
type dft struct {
	n       int
	twiddle []complex128 // of the power of two
	chirp   []complex128 // nil for a power of two
	filter  []complex128 // the transform of the chirp's conjugate
	work    []complex128
	inverse *dft
}

func newDFT(n int, forward bool) *dft {
	sign := 2 * math.Pi
	if forward {
		sign = -sign
	}
	if n&(n-1) == 0 {
		p := &dft{n: n, twiddle: make([]complex128, n/2)}
		for k := range p.twiddle {
			p.twiddle[k] = cmplx.Rect(1, sign*float64(k)/float64(n))
		}
		return p
	}
	m := 1 << bits.Len(uint(2*n-1))
	p := &dft{n: n, chirp: make([]complex128, n), filter: make([]complex128, m), work: make([]complex128, m)}
	for k := range p.chirp {
		// k² modulo 2n keeps the angle small, and precise.
		p.chirp[k] = cmplx.Rect(1, sign/2*float64(k*k%(2*n))/float64(n))
		c := cmplx.Conj(p.chirp[k])
		p.filter[k] = c
		if k > 0 {
			p.filter[m-k] = c
		}
	}
	inner := newDFT(m, true)
	inner.run(p.filter)
	p.twiddle = inner.twiddle
	p.inverse = newDFT(m, false)
	return p
}

func (p *dft) run(x []complex128) {
	if p.chirp == nil {
		radix2(x, p.twiddle)
		return
	}
	clear(p.work)
	for k, c := range p.chirp {
		p.work[k] = x[k] * c
	}
	radix2(p.work, p.twiddle)
	for k, f := range p.filter {
		p.work[k] *= f
	}
	radix2(p.work, p.inverse.twiddle)
	by := complex(1/float64(len(p.work)), 0)
	for k, c := range p.chirp {
		x[k] = p.work[k] * c * by
	}
}

// radix2 transforms a power of two of elements in place.
func radix2(x, twiddle []complex128) {
	n := len(x)
	if n < 2 {
		return
	}
	shift := 64 - bits.Len(uint(n-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); j > i {
			x[i], x[j] = x[j], x[i]
		}
	}
	for size := 2; size <= n; size *= 2 {
		half, step := size/2, n/size
		for at := 0; at < n; at += size {
			for k := range half {
				a, b := x[at+k], x[at+k+half]*twiddle[k*step]
				x[at+k], x[at+k+half] = a+b, a-b
			}
		}
	}
}

// firstHalf keeps the first n elements of a dimension.
func firstHalf(a array[complex128], dim, n int) array[complex128] {
	dims := append([]int(nil), a.dims...)
	dims[dim] = n
	return reshaped(a, dims, dim, n, func(k, _ int) (int, bool) { return k, false })
}

// mirrored completes a dimension to n elements by the conjugates of those from
// the other end.
func mirrored(a array[complex128], dim, n int) array[complex128] {
	dims := append([]int(nil), a.dims...)
	dims[dim] = n
	return reshaped(a, dims, dim, n, func(k, have int) (int, bool) {
		if k < have && k <= n/2 {
			return k, false
		}
		return n - k, true
	})
}

// reshaped makes n elements of each row along a dimension; from says which
// element of the row each is, and whether conjugated. One that the row does not
// have is zero.
func reshaped(a array[complex128], dims []int, dim, n int, from func(k, have int) (int, bool)) array[complex128] {
	total := 1
	for _, d := range dims {
		total *= d
	}
	out := array[complex128]{make([]complex128, total), dims}
	type row struct{ at, step, n int }
	var rows []row
	lanes(a.dims, dim, func(_, at, step, have int) { rows = append(rows, row{at, step, have}) })
	lanes(dims, dim, func(i, at, step, _ int) {
		for k := range n {
			j, conj := from(k, rows[i].n)
			if j < 0 || j >= rows[i].n {
				continue
			}
			x := a.data[rows[i].at+j*rows[i].step]
			if conj {
				x = cmplx.Conj(x)
			}
			out.data[at+k*step] = x
		}
	})
	return out
}
