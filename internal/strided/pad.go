package strided

import "unsafe"

// Axis says which elements of a dimension its padding repeats: Before of them, then those that it keeps,
// then After.
type Axis struct {
	size, first, kept   int // of the elements, size of them: the first that is kept, and how many are
	before, after       int
	fromBefore, byFirst int // the element that the padding begins with, and the step to the next one
	fromAfter, byLast   int
}

func newAxis(size, before, after int) Axis {
	first := max(0, -before)
	return Axis{size: size, first: first, kept: size - first - max(0, -after), before: max(0, before), after: max(0, after)}
}

// Reflected is an Axis of size elements that is continued as in a mirror through the centres of those at
// its ends. Negative padding, here and in other Axes, leaves elements out.
func Reflected(size, before, after int) Axis {
	a := newAxis(size, before, after)
	a.fromBefore, a.byFirst = before, -1
	a.fromAfter, a.byLast = size-2, -1
	return a
}

// Replicated is an Axis whose ends are repeated.
func Replicated(size, before, after int) Axis {
	a := newAxis(size, before, after)
	a.fromAfter = size - 1
	return a
}

// Wrapped is an Axis that begins again behind its end.
func Wrapped(size, before, after int) Axis {
	a := newAxis(size, before, after)
	a.fromBefore, a.byFirst = size-before, 1
	a.byLast = 1
	return a
}

func (a *Axis) len() int { return a.before + a.kept + a.after }

// place is the element at position i of the padded dimension.
func (a *Axis) place(i int) int {
	if i < a.before {
		return a.fromBefore + i*a.byFirst
	}
	if i -= a.before; i < a.kept {
		return a.first + i
	}
	return a.fromAfter + (i-a.kept)*a.byLast
}

// Pad sets the rows lo to hi-1 of dst to those of src with the padding of axes, which are those of all
// dimensions. Both are dense.
func Pad[T Bits](dst, src []T, axes []Axis, lo, hi int) {
	last := len(axes) - 1
	row := axes[last]
	var at [MaxRank]int
	for d, r := last-1, lo; d >= 0; d-- {
		n := axes[d].len()
		at[d], r = r%n, r/n
	}
	width := row.len()
	for r := lo; r < hi; {
		from := 0
		for d := range axes[:last] {
			from = from*axes[d].size + axes[d].place(at[d])
		}
		rows := 1
		if last > 0 {
			rows = max(1, min(axes[last-1].following(at[last-1]), hi-r, max(1, blockBytes/(width*int(unsafe.Sizeof(*new(T)))))))
		}
		padTogether(dst[r*width:][:rows*width], src[from*row.size:][:rows*row.size], &row, rows)
		r += rows
		for d, by := last-1, rows; d >= 0; d, by = d-1, 1 {
			if at[d] += by; at[d] < axes[d].len() {
				break
			}
			at[d] = 0
		}
	}
}

// following is how many elements that are kept follow each other from position i on.
func (a *Axis) following(i int) int {
	if i < a.before {
		return 0
	}
	return a.before + a.kept - i
}

const (
	// rowsTogether is how many rows are padded together at least, and edgeTogether how many elements their edges
	// have at most that are gone through column by column.
	rowsTogether, edgeTogether = 4, 16
	// keptTogether is the most bytes of a row that runs of a row of each are quicker to copy than one by one.
	keptTogether = 4 << 10
)

// padTogether pads rows that follow each other in src and in dst.
func padTogether[T Bits](dst, src []T, a *Axis, rows int) {
	width, size := a.len(), a.size
	if rows < rowsTogether || a.kept*int(unsafe.Sizeof(dst[0])) > keptTogether || a.before > edgeTogether || a.after > edgeTogether {
		for i := range rows {
			padRow(dst[i*width:][:width], src[i*size:][:size], a)
		}
		return
	}
	if a.kept > 0 {
		moveRuns(dst, src, a.before, a.first, width, size, a.kept, rows)
	}
	for j := range a.before {
		copyColumn(dst, src, j, a.fromBefore+j*a.byFirst, width, size, rows)
	}
	for j := range a.after {
		copyColumn(dst, src, a.before+a.kept+j, a.fromAfter+j*a.byLast, width, size, rows)
	}
}

func padRow[T Bits](dst, src []T, a *Axis) {
	p := a.fromBefore
	for i := range dst[:a.before] {
		dst[i] = src[p]
		p += a.byFirst
	}
	dst = dst[a.before:]
	copy(dst[:a.kept], src[a.first:])
	p = a.fromAfter
	for i := range dst[a.kept:] {
		dst[a.kept+i] = src[p]
		p += a.byLast
	}
}
