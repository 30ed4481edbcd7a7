package linalg

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/dense"
)

// transform is a Fourier transform of one line without a factor.
func transform(a ir.Args) kernel {
	n := a.In[0].Dim(-1)
	turn := 2 * math.Pi / float64(n)
	if a.Bool("forward") {
		turn = -turn
	}
	roots := make([]complex128, n)
	for i := range roots {
		s, c := math.Sincos(turn * float64(i))
		roots[i] = complex(c, s)
	}
	return func(_ *dense.Room, in, out [][]float64) error {
		if n > 0 {
			fourier(pairs(out[0]), pairs(in[0]), 1, roots)
		}
		return nil
	}
}

// fourier makes dst the transform of every step-th element of src. step of the roots of 1 make one of dst's.
func fourier(dst, src []complex128, step int, roots []complex128) {
	n := len(dst)
	if n == 1 {
		dst[0] = src[0]
		return
	}
	parts := leastFactor(n)
	m := n / parts
	for r := range parts {
		fourier(dst[r*m:][:m], src[r*step:], step*parts, roots)
	}
	column := make([]complex128, parts)
	for k := range m {
		for r := range column {
			column[r] = dst[r*m+k]
		}
		for i := k; i < n; i += m {
			sum := column[0]
			for r := 1; r < parts; r++ {
				sum += column[r] * roots[r*i%n*step]
			}
			dst[i] = sum
		}
	}
}

// leastFactor returns the least prime factor of n, which is at least 2.
func leastFactor(n int) int {
	for p := 2; p*p <= n; p++ {
		if n%p == 0 {
			return p
		}
	}
	return n
}

func pairs(x []float64) []complex128 {
	return unsafe.Slice((*complex128)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}
