package quant

import "github.com/loris-ml/loris/internal/kernels/gemm"

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

// Mul sets y to the product of x, which has the given rows, with w, all dense.
func (w *Int4) Mul(y, x []float32, rows int) {
	left := gemm.PackLeft(gemm.Dense(x, rows, w.Depth))
	gemm.MulPanels(gemm.Dense(y, rows, w.Cols), left, w.fill, &gemm.Options[float32]{})
}

// fill is a gemm.PanelFunc.
func (w *Int4) fill(dst []float32, k0, k1, j0, j1 int) {
	width := gemm.PanelWidth[float32]()
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
