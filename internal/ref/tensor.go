package ref

import (
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// tensor is a dense row-major array of little-endian elements.
type tensor struct {
	shape ir.Shape
	data  []byte
}

func newTensor(s ir.Shape) tensor { return tensor{s, make([]byte, s.Bytes())} }

func (t tensor) dtype() ir.DType { return t.shape.DType() }
func (t tensor) numel() int      { return t.shape.Numel() }

// element returns the bytes of element i.
func (t tensor) element(i int) []byte {
	n := t.dtype().Size()
	return t.data[i*n : (i+1)*n]
}

// copyFrom copies element j of src, of the same dtype, bit by bit.
func (t tensor) copyFrom(i int, src tensor, j int) { copy(t.element(i), src.element(j)) }

// int returns element i of an integer or bool tensor; a bool is 0 or 1.
func (t tensor) int(i int) int64 {
	v := elements.Int(t.dtype(), t.data, i)
	if t.dtype() == ir.Bool {
		v = min(v, 1)
	}
	return v
}

// float returns element i, of any dtype but the complex ones, widened.
func (t tensor) float(i int) float64 {
	if t.dtype().IsIntegral() {
		return float64(t.int(i))
	}
	return elements.Float(t.dtype(), t.data, i)
}

// setInt writes element i, converted as ir.WrapInt or ir.IntToFloat says.
func (t tensor) setInt(i int, v int64) {
	if d := t.dtype(); d.IsIntegral() {
		elements.AppendInt(t.element(i)[:0], d, v)
	} else {
		t.setFloat(i, ir.IntToFloat(d, v))
	}
}

// setFloat writes element i, rounded, or converted as ir.FloatToInt says.
func (t tensor) setFloat(i int, v float64) {
	if d := t.dtype(); d.IsIntegral() {
		t.setInt(i, ir.FloatToInt(d, v))
	} else {
		elements.AppendFloat(t.element(i)[:0], d, v)
	}
}

// convertFrom sets element i to element j of src, converted.
func (t tensor) convertFrom(i int, src tensor, j int) {
	switch {
	case t.dtype() == src.dtype():
		t.copyFrom(i, src, j)
	case src.dtype().IsIntegral():
		t.setInt(i, src.int(j))
	default:
		t.setFloat(i, src.float(j))
	}
}

// as returns t converted to another dtype.
func (t tensor) as(d ir.DType) tensor {
	if t.dtype() == d {
		return t
	}
	out := newTensor(t.shape.WithDType(d))
	for i := range out.numel() {
		out.convertFrom(i, t, i)
	}
	return out
}

// each calls f with the coordinates and the position of every element of a
// shape in row-major order. f must not keep idx.
func each(s ir.Shape, f func(idx []int, flat int)) {
	idx := make([]int, s.Rank())
	for flat := range s.Numel() {
		f(idx, flat)
		for d := s.Rank() - 1; d >= 0; d-- {
			if idx[d]++; idx[d] < s.Dim(d) {
				break
			}
			idx[d] = 0
		}
	}
}

// at returns the position of the element of s at coordinates idx, which may
// have more dimensions than s in front, and where s has size 1 may be any:
// broadcasting.
func at(s ir.Shape, idx []int) int {
	idx = idx[len(idx)-s.Rank():]
	pos := 0
	for d := range s.Rank() {
		i := idx[d]
		if s.Dim(d) == 1 {
			i = 0
		}
		pos = pos*s.Dim(d) + i
	}
	return pos
}

// line is how the elements along one dimension of a shape lie: element k of
// line (o, i) is at (o*n+k)*inner+i. A scalar is one line of one element.
type line struct{ outer, n, inner int }

func lineOf(s ir.Shape, dim int) line {
	s = ir.AtLeast1D(s)
	l := line{1, s.Dim(dim), 1}
	for d := range s.Rank() {
		switch {
		case d < dim:
			l.outer *= s.Dim(d)
		case d > dim:
			l.inner *= s.Dim(d)
		}
	}
	return l
}

// each calls f with the position of every element of every line.
func (l line) each(f func(pos func(k int) int)) {
	for o := range l.outer {
		for i := range l.inner {
			f(func(k int) int { return (o*l.n+k)*l.inner + i })
		}
	}
}
