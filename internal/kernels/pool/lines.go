package pool

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/strided"
)

// lineOutputs is from how many outputs on a row is treated as a line; blockOutputs where the planes of a block
// can be transposed instead, which shares among them what each window costs.
const lineOutputs, blockOutputs = 16, 48

// inLines says that windows lie within rows that are dense and long: then the k-th elements of the
// windows of a row adjoin, once the row is split by the remainders of its columns by the stride.
func (m *Max[T]) inLines() bool {
	least := lineOutputs
	if m.N*m.C >= blockPlanes && m.transposes(m.block(0)) {
		least = blockOutputs
	}
	if m.Kernel[0] != 1 || m.Kernel[1] != 1 || m.Windows[2] != nil || m.Out[2] < least {
		return false
	}
	return m.denseRows()
}

// denseRows reports whether the columns of rows adjoin.
func (m *Max[T]) denseRows() bool {
	return m.XLayout.Spatial[2] == 1 && m.ValuesLayout.Spatial[2] == 1 && (m.Indices == nil || m.IndicesLayout.Spatial[2] == 1)
}

// inRows says that windows of several rows are taken row by row, as those of inLines: with indices, where planes that
// are no boxes and do not adjoin are too few to be transposed.
func (m *Max[T]) inRows() bool {
	return m.Indices != nil && m.Windows[2] == nil && m.Out[2] >= lineOutputs && m.denseRows() && (m.XLayout.Channel != 1 || m.C == 1) && !m.transposes(m.block(0))
}

// lines computes rows of outputs lo..hi-1, those of one plane after the other.
func (m *Max[T]) lines(r *maxRow[T], lo, hi int) {
	for i := lo; i < hi; i++ {
		plane, o := i/(m.Out[0]*m.Out[1]), [3]int{i / m.Out[1] % m.Out[0], i % m.Out[1], 0}
		n, c := plane/m.C, plane%m.C
		w0, w1 := m.window(0, o[0]), m.window(1, o[1])
		x := m.X[offset(&m.XLayout, n, [3]int{})+c*m.XLayout.Channel:]
		best := m.Values[offset(&m.ValuesLayout, n, o)+c*m.ValuesLayout.Channel:][:m.Out[2]]
		if m.Indices == nil {
			m.line(r, best, nil, x[w0.from*m.XLayout.Spatial[0]+w1.from*m.XLayout.Spatial[1]:][:m.In[2]], 0)
			continue
		}
		m.fill(best)
		r.at = grow(r.at, m.Out[2])
		for j := range r.at {
			r.at[j] = -1
		}
		for i0 := w0.from; i0 < w0.to; i0 += w0.step {
			for i1 := w1.from; i1 < w1.to; i1 += w1.step {
				m.line(r, best, r.at, x[i0*m.XLayout.Spatial[0]+i1*m.XLayout.Spatial[1]:][:m.In[2]], int32((i0*m.In[1]+i1)*m.In[2]))
			}
		}
		widen(m.Indices[offset(&m.IndicesLayout, n, o)+c*m.IndicesLayout.Channel:][:m.Out[2]], r.at)
	}
}

// line takes what is greatest in the windows of a row over into best, and where it is into at; the row begins at place
// first. With at nil it sets best, whatever that holds.
func (m *Max[T]) line(r *maxRow[T], best []T, at []int32, x []T, first int32) {
	stride := m.Stride[2]
	each := (len(x) + stride - 1) / stride
	parts := x
	if stride > 1 {
		r.parts = grow(r.parts, each*stride)
		parts = r.parts
		split(parts, x, stride, each)
	}
	set := at != nil
	for k := range m.Kernel[2] {
		from, to, column := m.inside(k, len(best))
		if from >= to {
			continue
		}
		row := parts[column%stride*each+column/stride:][:to-from]
		switch {
		case at != nil:
			greaterAlong(best[from:to], at[from:to], row, first+int32(column), int32(stride))
		case set:
			most(best[from:to], row)
		default: // nothing is less than what is in no window
			copy(best[from:to], row)
			m.fill(best[:from])
			m.fill(best[to:])
			set = true
		}
	}
	if !set {
		m.fill(best)
	}
}

// inside returns which of the windows of a row have their element k inside, and the column of that of the first.
func (m *Max[T]) inside(k, windows int) (from, to, column int) {
	stride := m.Stride[2]
	shift := k*m.Dilation[2] - m.Pad[2] // of the input's column behind the output's times stride
	from = max(0, (stride-1-shift)/stride)
	if last := m.In[2] - 1 - shift; last >= 0 {
		to = min(windows, last/stride+1)
	}
	return from, to, from*stride + shift
}

// split sets row i of dst to the columns of x whose remainder by n is i, and leaves what is behind the
// last one as it was.
func split[T any](dst, x []T, n, each int) {
	switch size := unsafe.Sizeof(*new(T)); {
	case n == 2 && size == 4:
		d := moved[float32](dst)
		vec.Halves(d[:each], d[each:][:len(x)/2], moved[float32](x))
		return
	case n == 2 && size == 8:
		d, from := words(dst), words(x)
		strided.Every(d[:each], from)
		strided.Every(d[each:][:len(x)/2], from[1:])
		return
	}
	for i := range n {
		row := dst[i*each:][:each]
		for j, at := 0, i; at < len(x); j, at = j+1, at+n {
			row[j] = x[at]
		}
	}
}

// words returns elements of 8 bytes as such.
func words[T any](s []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// most takes over what is greater than the best so far, or is NaN.
func most[T kernels.Number](best, x []T) {
	if b, ok := any(best).([]float32); ok {
		vec.Most(b, any(x).([]float32))
		return
	}
	vec.MostOf(best, x)
}

// greaterAlong is greater of elements whose indices are step apart.
func greaterAlong[T kernels.Number](best []T, at []int32, x []T, index, step int32) {
	if b, ok := any(best).([]float32); ok {
		vec.GreaterAlong(b, at, any(x).([]float32), index, step)
		return
	}
	vec.GreaterOf(best, at, x, index, step)
}
