//go:build amd64 && !noasm

package fft

import "github.com/loris-ml/loris/internal/isa"

//go:generate env GOWORK=off go run -C _asm . -out ../fft_amd64.s -stubs ../stubs_amd64.go -pkg fft

// available returns the kernels that the processor can run, the fastest first.
func available[T Float]() (list []*kernels[T]) {
	if isa.AVX512() {
		list = append(list, native[T](
			&raw[float32]{4, 4, pass2AVX512F32, pass4AVX512F32, pass3AVX512F32, pass5AVX512F32, pass7AVX512F32, oddAVX512F32, tangleAVX512F32, rowsAVX512F32, productsAVX512F32, windowAVX512F32, scaleAVX512F32},
			&raw[float64]{8, 4, pass2AVX512F64, pass4AVX512F64, pass3AVX512F64, pass5AVX512F64, pass7AVX512F64, oddAVX512F64, tangleAVX512F64, rowsAVX512F64, productsAVX512F64, windowAVX512F64, scaleAVX512F64}))
	}
	if isa.AVX2() {
		list = append(list, native[T](
			&raw[float32]{4, 2, pass2AVX2F32, pass4AVX2F32, pass3AVX2F32, pass5AVX2F32, pass7AVX2F32, oddAVX2F32, tangleAVX2F32, rowsAVX2F32, productsAVX2F32, windowAVX2F32, scaleAVX2F32},
			&raw[float64]{8, 2, pass2AVX2F64, pass4AVX2F64, pass3AVX2F64, pass5AVX2F64, pass7AVX2F64, oddAVX2F64, tangleAVX2F64, rowsAVX2F64, productsAVX2F64, windowAVX2F64, scaleAVX2F64}))
	}
	return append(list, portable[T]())
}

// raw are kernels in assembly, which count in bytes.
type raw[T Float] struct {
	size, group         int
	pass2               func(dst, src, tw *T, m, row int)
	pass4               func(dst, src, tw, sign *T, m, row int)
	pass3, pass5, pass7 func(dst, src, tw, sign, cs *T, m, row int)
	odd                 func(dst, src, tw, sign, cs, scratch *T, h, part, row int)
	tangle              func(up, down, a, b, tw, conj, h *T, row, count int)
	rows                func(x, tw *T, m, row int)
	products            func(dst, a, w *T, m, row, step int)
	window              func(x, tw *T, m, row int)
	scale               func(x, f *T, n int)
}

func native[T Float](f32 *raw[float32], f64 *raw[float64]) *kernels[T] {
	if r, ok := any(f32).(*raw[T]); ok {
		return r.kernels()
	}
	return any(f64).(*raw[T]).kernels()
}

// kernels checks that slices are long enough for what assembly reads and writes.
func (r *raw[T]) kernels() *kernels[T] {
	small := func(radix int, pass func(dst, src, tw, sign, cs *T, m, row int)) smallPass[T] {
		return func(dst, src, tw, sign, cs []T, m, row int) {
			h := radix / 2
			_, _, _, _ = dst[radix*m*row-1], src[radix*m*row-1], tw[4*m*h-1], cs[2*h*h-1]
			pass(&dst[0], &src[0], &tw[0], &sign[0], &cs[0], m, row*r.size)
		}
	}
	return &kernels[T]{
		group: r.group,
		small: [firstLarge]smallPass[T]{3: small(3, r.pass3), 5: small(5, r.pass5), 7: small(7, r.pass7)},
		pass2: func(dst, src, tw []T, m, row int) {
			_, _, _ = dst[2*m*row-1], src[2*m*row-1], tw[2*m-1]
			r.pass2(&dst[0], &src[0], &tw[0], m, row*r.size)
		},
		pass4: func(dst, src, tw, sign []T, m, row int) {
			_, _, _ = dst[4*m*row-1], src[4*m*row-1], tw[6*m-1]
			r.pass4(&dst[0], &src[0], &tw[0], &sign[0], m, row*r.size)
		},
		odd: func(dst, src, tw, sign, cs, scratch []T, h, part, row int) {
			_, _, _ = dst[(2*h+1)*row-1], src[2*h*part+row-1], tw[4*h-1]
			_, _ = cs[2*h*h-1], scratch[4*h*64/r.size-1]
			r.odd(&dst[0], &src[0], &tw[0], &sign[0], &cs[0], &scratch[0], h, part*r.size, row*r.size)
		},
		tangle: func(up, down, a, b, tw, conj []T, h *T, row int) {
			count := len(tw) / 2
			last := (count - 1) * row
			_, _ = up[count*row-1], a[count*row-1]
			_, _ = down[count*row-1], b[count*row-1]
			r.tangle(&up[0], &down[last], &a[0], &b[last], &tw[0], &conj[0], h, row*r.size, count)
		},
		rows:   byRows(r.rows, r.size),
		window: byRows(r.window, r.size),
		products: func(dst, a, w []T, row, step int) {
			m := len(dst) / row
			_, _ = a[m*row-1], w[(m-1)*step+row-1]
			r.products(&dst[0], &a[0], &w[0], m, row*r.size, step*r.size)
		},
		scale:  func(x []T, f *T) { r.scale(&x[0], f, len(x)*r.size) },
		square: squareAVX,
	}
}

// byRows checks the length of the two factors of each row.
func byRows[T Float](f func(x, tw *T, m, row int), size int) func(x, tw []T, row int) {
	return func(x, tw []T, row int) {
		m := len(x) / row
		_ = tw[2*m-1]
		f(&x[0], &tw[0], m, row*size)
	}
}
