package pool

import "github.com/loris-ml/loris/internal/kernels"

// sumsBlock is how many sums are computed together, about: so many that loops pay, and few enough for the
// first-level cache.
const sumsBlock = 4096

// Sums sets dst to the sums of windows that begin at all positions (Stride is 1) of planes one after another,
// dense. Each adds up its elements in the order of their places. Rows of windows follow each other, so that
// those of a place are one line, with a few between the rows that are no windows; a line goes on across small
// planes. Planes with padding are padded in scratch memory.
func Sums[T float32 | float64](w *Windows, dst, src []T) {
	in, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
	if out == 0 {
		return
	}
	var wide [3]int // positions that windows have
	for d := range wide {
		wide[d] = w.Out[d] + w.Kernel[d] - 1
	}
	size := wide[0] * wide[1] * wide[2]
	together := min(max(sumsBlock/size, 1), len(dst)/out)
	rows := min(max(sumsBlock/wide[2], 1), w.Out[1])
	line := make([]T, max(rows*wide[2], together*size))
	var padded []T
	if wide != w.In || w.Pad != [3]int{} {
		padded = make([]T, together*size)
	}
	for ; len(dst) >= out; dst, src = dst[together*out:], src[together*in:] {
		together = min(together, len(dst)/out)
		planes := src[:together*in]
		if padded != nil {
			planes = padded[:together*size]
			for i := range together {
				padPlane(w, planes[i*size:][:size], src[i*in:][:in], wide)
			}
		}
		if together > 1 {
			sums := line[:len(planes)-size+lineOf(w, wide)]
			addPlaces(w, sums, planes, wide)
			for i := range together {
				for d := range w.Out[0] {
					copyRows(dst[(i*w.Out[0]+d)*w.Out[1]*w.Out[2]:], sums[i*size+d*wide[1]*wide[2]:], w.Out[1], w.Out[2], wide[2])
				}
			}
			continue
		}
		for d := range w.Out[0] {
			for from := 0; from < w.Out[1]; from += rows {
				n := min(rows, w.Out[1]-from)
				sums := line[:(n-1)*wide[2]+w.Out[2]]
				addPlaces(w, sums, planes[(d*wide[1]+from)*wide[2]:], wide)
				copyRows(dst[((d*w.Out[1])+from)*w.Out[2]:], sums, n, w.Out[2], wide[2])
			}
		}
	}
}

// lineOf returns how long a line of all windows of a plane is.
func lineOf(w *Windows, wide [3]int) int {
	return ((w.Out[0]-1)*wide[1]+w.Out[1]-1)*wide[2] + w.Out[2]
}

// copyRows copies n rows that are stride apart, one after another.
func copyRows[T float32 | float64](dst, src []T, n, width, stride int) {
	for i := range n {
		copy(dst[i*width:][:width], src[i*stride:])
	}
}

// addPlaces sets a line to the sums of the windows that begin where src does and behind it.
func addPlaces[T float32 | float64](w *Windows, sums, src []T, wide [3]int) {
	clear(sums)
	for k0 := range w.Kernel[0] {
		for k1 := range w.Kernel[1] {
			for k2 := range w.Kernel[2] {
				kernels.AddRow(sums, src[(k0*wide[1]+k1)*wide[2]+k2:][:len(sums)])
			}
		}
	}
}

// padPlane copies the positions of a plane that windows have, with zeros outside.
func padPlane[T float32 | float64](w *Windows, dst, src []T, wide [3]int) {
	clear(dst)
	left, n := w.Pad[2], min(w.In[2], wide[2]-w.Pad[2])
	for d := range min(w.In[0], wide[0]-w.Pad[0]) {
		for h := range min(w.In[1], wide[1]-w.Pad[1]) {
			copy(dst[((d+w.Pad[0])*wide[1]+h+w.Pad[1])*wide[2]+left:][:max(n, 0)], src[(d*w.In[1]+h)*w.In[2]:])
		}
	}
}
