package strided

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
	for r := lo; r < hi; r++ {
		from := 0
		for d := range axes[:last] {
			from = from*axes[d].size + axes[d].place(at[d])
		}
		padRow(dst[r*width:][:width], src[from*row.size:][:row.size], &row)
		for d := last - 1; d >= 0; d-- {
			if at[d]++; at[d] < axes[d].len() {
				break
			}
			at[d] = 0
		}
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
