package quant

import (
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/parallel"
)

// Nibbles is how weights of 4 bits share bytes. Columns come in blocks, each of
// which holds its columns' weights one element of the depth after the other.
// Whole blocks have their columns in halves if Halves says so: the low parts of
// the bytes are the first half. Columns of other blocks are in pairs.
type Nibbles struct {
	Block  int
	Halves bool
}

// place returns where column j of a matrix lies: the first byte, the distance
// from one element of the depth to the next, by how much the byte is shifted, and
// how many columns from j on have bytes that follow each other.
func (l Nibbles) place(j, cols, depth int) (at, step, shift, run int) {
	first := j / l.Block * l.Block
	width := min(l.Block, cols-first)
	at, step = first*depth/2, width/2
	j -= first
	if l.Halves && width == l.Block {
		half := width / 2
		return at + j%half, step, j / half * 4, half - j%half
	}
	return at + j/2, step, j % 2 * 4, 1
}

// Pack packs a matrix of cols × depth, whose elements are 0 to 15, into
// cols·depth/2 bytes. cols is even.
func (l Nibbles) Pack(dst []byte, src []uint8, cols, depth int) {
	clear(dst[:cols*depth/2])
	for j := range cols {
		at, step, shift, _ := l.place(j, cols, depth)
		for k, q := range src[j*depth:][:depth] {
			dst[at+k*step] |= q & 15 << shift
		}
	}
}

// Int4 is a right operand of depth × Cols whose elements are numbers q of 4 bits
// that stand for (q − 8)·scale + zero.
type Int4 struct {
	Cols, Depth int
	Data        []byte
	Layout      Nibbles
	Group       int       // elements of the depth that share scale and zero
	Scale, Zero []float32 // of group g and column j at g·Cols + j
}

// The columns and the elements of the depth that are made numbers of at a time,
// which stay in the cache.
const (
	int4Cols  = 64
	int4Depth = 256
)

// Mul sets y to the product of x, which has the given rows, with w, all dense.
func (w *Int4) Mul(y, x []float32, rows int) {
	if w.Depth == 0 {
		clear(y)
		return
	}
	parallel.For(ceil(w.Cols, int4Cols), max(1, packGrain/(int4Cols*w.Depth)), func(lo, hi int) {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		for u := lo; u < hi; u++ {
			j0, j1 := u*int4Cols, min((u+1)*int4Cols, w.Cols)
			to := gemm.Matrix[float32]{Data: y[j0:], Rows: rows, Cols: j1 - j0, RowStride: w.Cols, ColStride: 1}
			o := gemm.Options[float32]{Threads: 1}
			for k0 := 0; k0 < w.Depth; k0 += int4Depth {
				k1 := min(k0+int4Depth, w.Depth)
				s.sums = grown(s.sums, int4Depth*int4Cols)
				w.numbers(s.sums, k0, k1, j0, j1)
				left := gemm.Matrix[float32]{Data: x[k0:], Rows: rows, Cols: k1 - k0, RowStride: w.Depth, ColStride: 1}
				gemm.Mul(to, left, gemm.Dense(s.sums[:(k1-k0)*(j1-j0)], k1-k0, j1-j0), &o)
				o.Beta = 1
			}
		}
	})
}

// numbers writes what elements k0..k1-1 of columns j0..j1-1 stand for.
func (w *Int4) numbers(dst []float32, k0, k1, j0, j1 int) {
	width := j1 - j0
	for j := j0; j < j1; {
		at, step, shift, run := w.Layout.place(j, w.Cols, w.Depth)
		n := min(run, j1-j)
		for k := k0; k < k1; k++ {
			from := w.Data[at+k*step:][:n]
			scales := k/w.Group*w.Cols + j
			scale, zero := w.Scale[scales:][:n], w.Zero[scales:][:n]
			to := dst[(k-k0)*width+j-j0:][:n]
			for c, b := range from {
				to[c] = float32(float32(int32(b>>shift&15)-8)*scale[c]) + zero[c]
			}
		}
		j += n
	}
}
