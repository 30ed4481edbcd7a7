package gemm

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
)

// Packed is an operand laid out for the inner loops of this processor, for a
// matrix that is multiplied by many times. It may be used by many products at
// once.
type Packed[T Element] struct {
	rows, cols int
	left       bool
	mr         int
	data       any // []float32 or []float64
}

// Rows returns the rows of the packed matrix.
func (p *Packed[T]) Rows() int { return p.rows }

// Cols returns the columns of the packed matrix.
func (p *Packed[T]) Cols() int { return p.cols }

// Pack packs a right operand, of k×n.
func Pack[T Element](b Matrix[T]) *Packed[T] {
	b.check("right operand")
	p := &Packed[T]{rows: b.Rows, cols: b.Cols}
	if _, ok := any(b.Data).([]float64); ok {
		p.data = packRight[float64](operandOf(b))
	} else {
		p.data = packRight[float32](operandOf(b))
	}
	return p
}

// PackLeft packs a left operand, of m×k.
func PackLeft[T Element](a Matrix[T]) *Packed[T] {
	a.check("left operand")
	p := &Packed[T]{rows: a.Rows, cols: a.Cols, left: true}
	if _, ok := any(a.Data).([]float64); ok {
		p.data, p.mr = packLeft[float64](operandOf(a))
	} else {
		p.data, p.mr = packLeft[float32](operandOf(a))
	}
	return p
}

func packRight[A Float](b anyOperand) []A {
	kn := kernelsFor[A]()[0]
	s := &state[A]{kernel: kn, n: b.cols, k: b.rows, b: b}
	buf := grown[A](nil, roundUp(b.cols, kn.nr)*b.rows)
	group := panelGroup * kn.nr
	kernels.For(ceil(b.cols, group), max(1, packGrain/(group*b.rows+1)), func(lo, hi int) {
		j0, j1 := lo*group, min(hi*group, b.cols)
		s.packPanels(&scratch[A]{}, buf[j0*b.rows:], j0, j1, 0, b.rows)
	})
	return buf
}

func packLeft[A Float](a anyOperand) (buf []A, mr int) {
	kn := kernelsFor[A]()[0]
	mr = balanced(a.rows, kn.mr)
	buf = grown[A](nil, a.rows*a.cols)
	w := &scratch[A]{}
	for r := 0; r < a.rows; r += mr {
		r1 := min(r+mr, a.rows)
		pack(kn, w, buf[r*a.cols:], r1-r, &a, a.rs, a.cs, r, r1, 0, a.cols)
	}
	return buf, mr
}

func (p *Packed[T]) operand(left bool) anyOperand {
	if p.left != left {
		panic("gemm: an operand packed for the other side")
	}
	o := anyOperand{rows: p.rows, cols: p.cols, mr: p.mr}
	switch d := p.data.(type) {
	case []float32:
		o.packed = unsafe.Pointer(unsafe.SliceData(d))
	case []float64:
		o.packed = unsafe.Pointer(unsafe.SliceData(d))
	}
	return o
}

// MulPacked is Mul with a right operand packed by Pack.
func MulPacked[T Element](c, a Matrix[T], b *Packed[T], o *Options[T]) {
	a.check("left operand")
	product(c, operandOf(a), b.operand(false), o)
}

// MulLeftPacked is Mul with a left operand packed by PackLeft.
func MulLeftPacked[T Element](c Matrix[T], a *Packed[T], b Matrix[T], o *Options[T]) {
	b.check("right operand")
	product(c, a.operand(true), operandOf(b), o)
}

// PanelFunc writes part of a right operand that exists nowhere else: elements
// (k, j) for k0 ≤ k < k1 and j0 ≤ j < j1 to dst[(k-k0)·PanelWidth + j-j0]. j0 is
// a multiple of PanelWidth and j1 at most that much more. Calls come from
// several goroutines at once, and may come twice for the same part.
type PanelFunc[A Float] func(dst []A, k0, k1, j0, j1 int)

// PanelWidth returns the row length of the panels that a PanelFunc writes.
func PanelWidth[A Float]() int { return kernelsFor[A]()[0].nr }

// MulPanels is MulLeftPacked with a right operand of k×n that fill supplies by
// panels, as a convolution does.
func MulPanels[A Float](c Matrix[A], a *Packed[A], fill PanelFunc[A], o *Options[A]) {
	product(c, a.operand(true), anyOperand{rows: a.cols, cols: c.Cols, fill: fill}, o)
}
