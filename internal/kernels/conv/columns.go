package conv

// Columns writes for input channels lo..hi-1 of one image the matrix that filters
// as rows, [COut, CIn·kernel], are multiplied with: row (channel, kernel position)
// of dst has the element that each output meets there, or zero outside the image.
// g has one group and is not transposed; x begins with the image.
func Columns[T Element](dst, x []T, g *Geometry, l Layout, lo, hi int) {
	k, n := g.Kernel, g.Out[0]*g.Out[1]*g.Out[2]
	row := dst[lo*k[0]*k[1]*k[2]*n:]
	for c := lo; c < hi; c++ {
		for k0 := range k[0] {
			for k1 := range k[1] {
				for k2 := range k[2] {
					column(row[:n], x, g, &l, c*l.Channel, [3]int{k0, k1, k2})
					row = row[n:]
				}
			}
		}
	}
}

// column writes the row of a kernel position, of the channel that begins at base.
func column[T Element](dst, x []T, g *Geometry, l *Layout, base int, k [3]int) {
	var off [3]int
	for d := range off {
		off[d] = k[d]*g.Dilation[d] - g.Pad[d]
	}
	width, step := g.Out[2], g.Stride[2]
	// Outputs from..to-1 of a row meet the image.
	from := min(ceil(max(-off[2], 0), step), width)
	to := max(min(ceil(max(g.In[2]-off[2], 0), step), width), from)
	for o0 := range g.Out[0] {
		i0 := o0*g.Stride[0] + off[0]
		for o1 := range g.Out[1] {
			i1 := o1*g.Stride[1] + off[1]
			row := dst[(o0*g.Out[1]+o1)*width:][:width]
			if uint(i0) >= uint(g.In[0]) || uint(i1) >= uint(g.In[1]) || from == to {
				clear(row)
				continue
			}
			clear(row[:from])
			clear(row[to:])
			at := base + i0*l.Spatial[0] + i1*l.Spatial[1] + (from*step+off[2])*l.Spatial[2]
			row = row[from:to]
			if by := step * l.Spatial[2]; by == 1 {
				copy(row, x[at:])
			} else {
				for i := range row {
					row[i] = x[at+i*by]
				}
			}
		}
	}
}
