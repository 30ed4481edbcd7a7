package pool

// bandElements is about how many elements of a plane are treated together; with what is made of them they stay in
// the nearest cache.
const bandElements = 4 << 10

// separable says that only what is greatest is wanted, of windows of several rows that are dense and long: that
// is the greatest of what is greatest in the window's part of each row, which windows above each other share.
// The first of equal elements and the last NaN of a window are so in this order, too. Windows that share little
// are only for planes that are too few to adjoin in vectors.
func (m *Max[T]) separable() bool {
	adaptive := m.Windows[0] != nil || m.Windows[1] != nil || m.Windows[2] != nil
	if m.Indices != nil || adaptive || m.Kernel[0] != 1 || m.Out[2] < lineOutputs {
		return false
	}
	if m.N*m.C >= 4 && (m.Stride[1] != 1 || m.Stride[2] != 1) {
		return false
	}
	return m.XLayout.Spatial[2] == 1 && m.ValuesLayout.Spatial[2] == 1
}

// bands returns how many parts the output rows of a plane are treated in, and how many rows each has but the last.
func (m *Max[T]) bands() (count, rows int) {
	rows = bandElements / (m.Stride[1] * (m.In[2] + 2*m.Pad[2]))
	rows = max(1, min(max(rows, 2*m.Kernel[1]), m.Out[1]))
	return (m.Out[1] + rows - 1) / rows, rows
}

// separate computes bands lo..hi-1, those of one plane after the other.
func (m *Max[T]) separate(r *maxRow[T], lo, hi int) {
	count, rows := m.bands()
	for i := lo; i < hi; i++ {
		plane, o0, o1 := i/(m.Out[0]*count), i/count%m.Out[0], i%count*rows
		n, c := plane/m.C, plane%m.C
		x := m.X[offset(&m.XLayout, n, [3]int{o0*m.Stride[0] - m.Pad[0], 0, 0})+c*m.XLayout.Channel:]
		values := m.Values[offset(&m.ValuesLayout, n, [3]int{o0, o1, 0})+c*m.ValuesLayout.Channel:]
		m.band(r, values, x, o1, min(rows, m.Out[1]-o1))
	}
}

// band computes rows first..first+count-1 of a plane, all at once: with padding around it the elements of a
// place in the windows adjoin, once rows and columns are split by their remainders by the stride.
func (m *Max[T]) band(r *maxRow[T], values, x []T, first, count int) {
	stride := [2]int{m.Stride[1], m.Stride[2]}
	wide := m.Out[2] + ((m.Kernel[2]-1)*m.Dilation[2])/stride[1]
	high := count + ((m.Kernel[1]-1)*m.Dilation[1])/stride[0]
	group := high * wide      // rows of one remainder
	all := stride[0] * group  // columns of one remainder
	margin := wide - m.Out[2] // what lines read beyond the last row
	r.rows, r.parts = grow(r.rows, stride[1]*all+margin), grow(r.parts, all)
	m.fill(r.rows)
	for i := range stride[0] * high {
		row := first*stride[0] - m.Pad[1] + i
		if row >= 0 && row < m.In[1] {
			m.spread(r.rows[i%stride[0]*group+i/stride[0]*wide:], x[row*m.XLayout.Spatial[1]:][:m.In[2]], wide, all)
		}
	}
	for k := range m.Kernel[2] {
		at := k * m.Dilation[2]
		part := r.rows[at%stride[1]*all+at/stride[1]:][:all]
		if k == 0 {
			copy(r.parts, part)
			continue
		}
		most(r.parts, part)
	}
	best := r.rows[:count*wide]
	for k := range m.Kernel[1] {
		at := k * m.Dilation[1]
		rows := r.parts[at%stride[0]*group+at/stride[0]*wide:][:len(best)]
		if k == 0 {
			copy(best, rows)
			continue
		}
		most(best, rows)
	}
	for i := range count {
		copy(values[i*m.ValuesLayout.Spatial[1]:][:m.Out[2]], best[i*wide:])
	}
}

// spread puts a row behind its padding into as many rows of wide elements, all apart, as columns have remainders
// by the stride.
func (m *Max[T]) spread(dst, row []T, wide, all int) {
	stride, pad := m.Stride[2], m.Pad[2]
	if stride == 1 {
		copy(dst[min(pad, wide):wide], row)
		return
	}
	for i := range min(stride, len(row)) {
		column := i + pad
		part := dst[column%stride*all : column%stride*all+wide]
		for j, at := column/stride, i; j < wide && at < len(row); j, at = j+1, at+stride {
			part[j] = row[at]
		}
	}
}

// fill sets all elements to the least.
func (m *Max[T]) fill(best []T) {
	if len(best) == 0 {
		return
	}
	best[0] = m.Least
	for n := 1; n < len(best); n *= 2 {
		copy(best[n:], best[:n])
	}
}
