package kernels

// Triangle is the elements of a matrix of Cols columns on and below a diagonal, or with Upper on and
// above it.
type Triangle struct {
	Cols, Offset int
	Upper        bool
}

// span returns which columns of a row are in the triangle.
func (t Triangle) span(row int) (from, to int) {
	if t.Upper {
		return min(max(row+t.Offset, 0), t.Cols), t.Cols
	}
	return 0, min(max(row+t.Offset+1, 0), t.Cols)
}

// before returns how many elements rows in front of one have.
func (t Triangle) before(row int) int {
	if t.Upper {
		return row*t.Cols - Triangle{Cols: t.Cols, Offset: t.Offset - 1}.before(row)
	}
	first := min(max(-t.Offset, 0), row)             // none have any before it
	whole := min(max(t.Cols-t.Offset-1, first), row) // all are whole from it on
	between := (whole - first) * (first + whole + 2*t.Offset + 1) / 2
	return between + (row-whole)*t.Cols
}

// Places writes the rows and the columns of the elements in rows lo..hi-1 of the matrix to rows and
// cols, which are of all elements in row-major order.
func Places[T int32 | int64](rows, cols []T, t Triangle, lo, hi int) {
	at := t.before(lo)
	for r := lo; r < hi; r++ {
		from, to := t.span(r)
		n := to - from
		repeat(rows[at:at+n], T(r))
		ArangeInt(cols[at:at+n], int64(from), 1, 0)
		at += n
	}
}
