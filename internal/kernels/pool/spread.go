package pool

// Windows is the sums of windows over three dimensions; fewer are padded with leading ones (and zero
// padding). Window w of a dimension has the positions w·Stride − Pad and the next, Kernel in all; those
// outside of the input are nothing.
type Windows struct{ In, Kernel, Out, Stride, Pad [3]int }

// Spread adds the element of each window to all of its positions, which are zero before: the gradient of
// the sums. dst and src are planes one after another, dense. A position adds up its windows in the order
// of its places in them.
func Spread[T float32 | float64](w *Windows, dst, src []T) {
	in, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
	if w.tiles() {
		for ; len(src) >= out && out > 0; dst, src = dst[in:], src[out:] {
			spreadTiles(w, dst[:in], src[:out])
		}
		return
	}
	if spreadParts(w, dst, src) {
		return
	}
	clear(dst)
	for ; len(src) >= out && out > 0; dst, src = dst[in:], src[out:] {
		for k0 := range w.Kernel[0] {
			for k1 := range w.Kernel[1] {
				for k2 := range w.Kernel[2] {
					spreadPlane(w, dst[:in], src[:out], [3]int{k0, k1, k2})
				}
			}
		}
	}
}

// spreadPlane adds elements to one place in their windows.
func spreadPlane[T float32 | float64](w *Windows, dst, src []T, place [3]int) {
	var lo, hi, off [3]int
	for d := range place {
		off[d] = place[d] - w.Pad[d]
		lo[d] = max(0, (w.Stride[d]-1-off[d])/w.Stride[d])
		hi[d] = min(w.Out[d], (w.In[d]-1-off[d]+w.Stride[d])/w.Stride[d])
		if lo[d] >= hi[d] {
			return
		}
	}
	step := w.Stride[2]
	for a := lo[0]; a < hi[0]; a++ {
		for b := lo[1]; b < hi[1]; b++ {
			from := src[(a*w.Out[1]+b)*w.Out[2]:][lo[2]:hi[2]]
			to := dst[((a*w.Stride[0]+off[0])*w.In[1]+b*w.Stride[1]+off[1])*w.In[2]:][:w.In[2]][lo[2]*step+off[2]:]
			at := 0
			for _, v := range from {
				to[at] += v
				at += step
			}
		}
	}
}

// tiles reports whether windows cover the input, or its first elements, once.
func (w *Windows) tiles() bool {
	for d := range w.In {
		if w.Pad[d] != 0 || w.Stride[d] != w.Kernel[d] || w.Out[d]*w.Kernel[d] > w.In[d] {
			return false
		}
	}
	return true
}

// spreadTiles is Spread of one plane where windows are tiles: a row of elements is repeated along the columns,
// the row along the rows, and what these make along the depths.
func spreadTiles[T float32 | float64](w *Windows, dst, src []T) {
	in, width := w.In[1]*w.In[2], w.In[2]
	for d := range w.Out[0] {
		depth := dst[d*w.Kernel[0]*in:]
		for h := range w.Out[1] {
			row := depth[h*w.Kernel[1]*width:]
			repeat(row[:width], src[(d*w.Out[1]+h)*w.Out[2]:][:w.Out[2]], w.Kernel[2])
			for k := 1; k < w.Kernel[1]; k++ {
				copy(row[k*width:][:width], row[:width])
			}
		}
		clear(depth[w.Out[1]*w.Kernel[1]*width : in])
		for k := 1; k < w.Kernel[0]; k++ {
			copy(depth[k*in:][:in], depth[:in])
		}
	}
	clear(dst[w.Out[0]*w.Kernel[0]*in:])
}

// repeat sets dst to each element n times, and to zeros behind them.
func repeat[T any](dst, src []T, n int) {
	if n == 2 {
		for i, v := range src {
			dst[2*i], dst[2*i+1] = v, v
		}
	} else {
		for i, v := range src {
			for k := range n {
				dst[i*n+k] = v
			}
		}
	}
	clear(dst[n*len(src):])
}
