package gemm

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/parallel"
)

// Packed is a right operand laid out for the inner loops of this processor, for a
// matrix that is multiplied by many times. It may be used by many products at
// once.
type Packed[T Element] struct {
	rows, cols int
	data       any // []float32, []float64 or, of 16-bit elements that stay so, []uint16
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
	} else if words := packNarrow(operandOf(b)); words != nil {
		p.data = words
	} else {
		p.data = packRight[float32](operandOf(b))
	}
	return p
}

func packRight[A Float](b anyOperand) []A {
	kn := kernelsFor[A]()[0]
	s := &state[A]{kernel: kn, n: b.cols, k: b.rows, deep: b.rows, b: b}
	if kn.pairs != nil && b.format == bf16 {
		kn = kn.pairs
		s.kernel, s.k = kn, ceil(s.k, 2)
	}
	buf := grown[A](nil, roundUp(b.cols, kn.nr)*s.k)
	group := panelGroup * kn.nr
	parallel.For(ceil(b.cols, group), max(1, packGrain/(group*s.k+1)), func(lo, hi int) {
		j0, j1 := lo*group, min(hi*group, b.cols)
		s.packPanels(&scratch[A]{}, buf[j0*s.k:], j0, j1, 0, s.k)
	})
	return buf
}

func (p *Packed[T]) operand() anyOperand {
	o := anyOperand{rows: p.rows, cols: p.cols}
	switch d := p.data.(type) {
	case []float32:
		o.packed = unsafe.Pointer(unsafe.SliceData(d))
	case []float64:
		o.packed = unsafe.Pointer(unsafe.SliceData(d))
	case []uint16:
		o.packed, o.format = unsafe.Pointer(unsafe.SliceData(d)), formatOf[T]()
	}
	return o
}

// Packs reports whether MulPacked takes less time than Mul, which packs the right operand itself or
// reads it where it is, and gives the same bits. Operands of 16 bits are packed in other ways.
func Packs[R, T Element](c Matrix[R], a, b Matrix[T], o *Options[R]) bool {
	if formatOf[T]() != wide {
		return false
	}
	if c.RowStride == 1 && (c.ColStride != 1 || c.Cols == 1) || c.Rows == 0 || c.Cols == 0 || a.Cols == 0 {
		return false // the product may be turned around
	}
	switch any(c.Data).(type) {
	case []float64:
		return packs[R, T, float64](c, a, b, o)
	case []float32:
		return packs[R, T, float32](c, a, b, o)
	}
	return false
}

func packs[R, T Element, A Float](c Matrix[R], a, b Matrix[T], o *Options[R]) bool {
	p := poolsOf[A]()
	s := p.states.Get().(*state[A])
	s.kernel = kernelsFor[A]()[0]
	set(s, c, operandOf(a), operandOf(b), o)
	s.makePlan(s.limiter.Threads())
	size := int(unsafe.Sizeof(*new(A)))
	// Panels that are not full are more memory than what they are packed of.
	full := roundUp(s.n, s.kernel.nr) <= s.n+s.n/4
	reads := full && !s.plan.dot && !s.streams(size) && s.k*s.n*size > packedBytes
	yes := s.plan.packB || s.plan.packCols || reads
	s.release()
	p.states.Put(s)
	return yes
}

// PackedBytes returns the size of what Pack makes of a matrix of numbers that are not narrow.
func PackedBytes[T Element](b Matrix[T]) int {
	size := int(unsafe.Sizeof(*new(T)))
	return roundUp(b.Cols, kernels32[0].nr)*b.Rows*size + alignment
}

// MulPacked is Mul with a right operand packed by Pack.
func MulPacked[R, T Element](c Matrix[R], a Matrix[T], b *Packed[T], o *Options[R]) {
	checkTypes[R, T]()
	a.check("left operand")
	product(c, operandOf(a), b.operand(), o)
}
