//go:build amd64 && !noasm

package fft

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/isa"
)

//go:generate env GOWORK=off go run -C _asm . -out ../fft_amd64.s -stubs ../stubs_amd64.go -pkg fft

// available returns the kernels that the processor can run, the fastest first.
func available[T Float]() (list []*kernels[T]) {
	if isa.AVX512() {
		list = append(list, native[T](
			&raw[float32]{4, 8, 4, pass2AVX512F32, pass4AVX512F32, pass3AVX512F32, pass5AVX512F32, pass7AVX512F32, oddAVX512F32, tangleAVX512F32, rowsAVX512F32, productsAVX512F32, windowAVX512F32, scaleAVX512F32,
				pass8AVX512F32, last2AVX512F32, last4AVX512F32, last8AVX512F32, firstAVX512F32, tangleLineAVX512F32, mirrorAVX512F32, realsAVX512F32, spreadAVX512F32, oppositeAVX512F32},
			&raw[float64]{8, 4, 4, pass2AVX512F64, pass4AVX512F64, pass3AVX512F64, pass5AVX512F64, pass7AVX512F64, oddAVX512F64, tangleAVX512F64, rowsAVX512F64, productsAVX512F64, windowAVX512F64, scaleAVX512F64,
				pass8AVX512F64, last2AVX512F64, last4AVX512F64, last8AVX512F64, firstAVX512F64, tangleLineAVX512F64, mirrorAVX512F64, realsAVX512F64, spreadAVX512F64, oppositeAVX512F64}))
	}
	if isa.AVX2() {
		list = append(list, native[T](
			&raw[float32]{4, 4, 2, pass2AVX2F32, pass4AVX2F32, pass3AVX2F32, pass5AVX2F32, pass7AVX2F32, oddAVX2F32, tangleAVX2F32, rowsAVX2F32, productsAVX2F32, windowAVX2F32, scaleAVX2F32,
				pass8AVX2F32, last2AVX2F32, last4AVX2F32, last8AVX2F32, firstAVX2F32, tangleLineAVX2F32, mirrorAVX2F32, realsAVX2F32, spreadAVX2F32, oppositeAVX2F32},
			&raw[float64]{8, 2, 2, pass2AVX2F64, pass4AVX2F64, pass3AVX2F64, pass5AVX2F64, pass7AVX2F64, oddAVX2F64, tangleAVX2F64, rowsAVX2F64, productsAVX2F64, windowAVX2F64, scaleAVX2F64,
				pass8AVX2F64, last2AVX2F64, last4AVX2F64, last8AVX2F64, firstAVX2F64, tangleLineAVX2F64, mirrorAVX2F64, realsAVX2F64, spreadAVX2F64, oppositeAVX2F64}))
	}
	if len(list) == 2 {
		list[0].narrow = list[1]
	}
	return append(list, portable[T]())
}

// raw are kernels in assembly, which count in bytes.
type raw[T Float] struct {
	size, lanes, group  int
	pass2               func(dst, src, tw *T, m, row int)
	pass4               func(dst, src, tw, sign *T, m, row int)
	pass3, pass5, pass7 func(dst, src, tw, sign, cs *T, m, row int)
	odd                 func(dst, src, tw, sign, cs, scratch *T, h, part, row int)
	tangle              func(up, down, a, b, tw, conj, h *T, row, count int)
	rows                func(x, tw *T, m, row int)
	products            func(dst, a, w *T, m, row, step int)
	window              func(x, tw *T, m, row int)
	scale               func(x, f *T, n int)
	pass8               func(dst, src, tw, sign *T, m, row int)
	last2, last4, last8 func(dst, src, sign *T, row int)
	first               func(dst, src, tw, sign *T, part, count int)
	tangleLine          func(up, down, a, b, tw, conj, h *T, count int)
	mirror              func(dst, src, conj *T, count int)
	reals               func(dst, x, w *T, count int)
	spread              func(x *T, m int)
	opposite            func(dst, src, conj *T, m int)
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
	last := func(radix int, f func(dst, src, sign *T, row int)) func(dst, src, sign []T, row int) {
		return func(dst, src, sign []T, row int) {
			_, _ = dst[radix*row-1], src[radix*row-1]
			f(&dst[0], &src[0], &sign[0], row*r.size)
		}
	}
	return &kernels[T]{
		group: r.group,
		line:  r.line(),
		last:  [radixes]func(dst, src, sign []T, row int){2: last(2, r.last2), 4: last(4, r.last4), 8: last(8, r.last8)},
		pass8: func(dst, src, tw, sign []T, m, row int) {
			_, _, _ = dst[8*m*row-1], src[8*m*row-1], tw[14*m-1]
			r.pass8(&dst[0], &src[0], &tw[0], &sign[0], m, row*r.size)
		},
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
		spread: func(x []T) { r.spread(&x[0], len(x)*r.size/rowBytes) },
		opposite: func(dst, src, conj []T) {
			row, n := rowBytes/r.size, len(dst)
			r.opposite(&dst[0], &src[:n][n-row], &conj[0], n/row)
		},
		square: squareAVX,
	}
}

// line checks those that work along a line.
func (r *raw[T]) line() *lineKernels[T] {
	v := 2 * r.lanes
	return &lineKernels[T]{
		lanes: r.lanes,
		first: func(dst, src, tw, sign []T, part, count int) {
			_, _ = dst[r.lanes*v*count-1], src[(r.lanes-1)*part+v*count-1]
			_ = tw[(r.lanes-2)*part+v*count]
			r.first(&dst[0], &src[0], &tw[0], &sign[0], part*r.size, count)
		},
		tangle: func(up, down, a, b, tw, conj []T, h *T, count int) {
			n := v * count
			_, _, _ = up[n-1], a[n-1], tw[n]
			r.tangleLine(&up[0], &down[:n][n-v], &a[0], &b[:n][n-v], &tw[0], &conj[0], h, count)
		},
		mirror: func(dst, src, conj []T, count int) {
			_ = dst[v*count-1]
			r.mirror(&dst[0], &src[:v*count][v*(count-1)], &conj[0], count)
		},
		reals: func(dst, x, w []T, count int) {
			_, _, _ = dst[v*count-1], x[r.lanes*count-1], w[v*count-1]
			r.reals(&dst[0], &x[0], &w[0], count)
		},
		prefetch: func(x []T, stride, floats, rows int) {
			_ = x[(rows-1)*stride+floats-1]
			prefetchRows((*byte)(unsafe.Pointer(&x[0])), stride*r.size, floats*r.size, rows)
		},
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
