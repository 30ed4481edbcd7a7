package dense

// bidiagonal reduces a matrix of at least as many rows as columns, which it changes, to two diagonals by
// reflections from the left and from the right: d is the main one and e the one above it. The reflections
// are returned if they are wanted.
func bidiagonal(a *Matrix, wanted bool) (d, e []float64, left, right []*reflections) {
	if a.Rows*a.Cols > mostFused*mostFused {
		return blockBidiagonal(a)
	}
	m, n := a.Rows, a.Cols
	d, e = a.room.zeros(n), a.room.zeros(n-1)
	f := newFused(a)
	for j := range n {
		d[j] = f.column(j)
		if wanted {
			if j%block == 0 {
				left = append(left, newReflections(a.room, j, m, min(block, n-j)))
			}
			left[j/block].add(f.next[j:m], f.leftTau)
		}
		if j == n-1 {
			break
		}
		e[j] = f.row(j)
		if wanted {
			if j%block == 0 {
				right = append(right, newReflections(a.room, j+1, n, min(block, n-1-j)))
			}
			right[j/block].add(f.u[j+1:n], f.rightTau)
		}
	}
	for _, list := range [][]*reflections{left, right} {
		for _, r := range list {
			r.finish()
		}
	}
	return d, e, left, right
}

// fused is the state of a reduction to two diagonals. Of the matrix is still to be taken what the last step
// changed, v·y and x·u, columns times rows.
type fused struct {
	a                 *Matrix
	v, x, next        []float64 // of columns; next is the v of this step
	y, u, sums, spare []float64 // of rows
	zeros             []float64
	leftTau, rightTau float64
}

func newFused(a *Matrix) *fused {
	rows, cols := start(a.Rows+block-1), a.Stride
	room := a.room.zeros(3*rows + 4*cols)
	f := &fused{a: a}
	for _, p := range []*[]float64{&f.v, &f.x, &f.next} {
		*p, room = room[:rows], room[rows:]
	}
	for _, p := range []*[]float64{&f.y, &f.u, &f.sums, &f.spare} {
		*p, room = room[:cols], room[cols:]
	}
	f.zeros = []float64{0}
	return f
}

// column makes next the vector of the reflection of column j.
func (f *fused) column(j int) (beta float64) {
	a, to := f.a, f.next
	y, u := f.y[j], f.u[j]
	for i := j; i < a.Rows; i++ {
		to[i] = a.Data[i*a.Stride+j] - f.v[i]*y - f.x[i]*u
	}
	c := j &^ (lanes - 1)
	clear(to[c:j])
	beta, f.leftTau = reflectionAt(to[c:], j-c, a.Rows-c)
	return beta
}

// row brings the rows from j on to what the last step made of them, changes them by the reflection of column
// j, and makes u the vector of that of row j.
func (f *fused) row(j int) (beta float64) {
	a, v := f.a, f.next
	c := (j + 1) &^ (lanes - 1)
	rows, cols := a.Rows-j, a.Cols-c
	clear(f.sums[c:])
	update(a.at(j, c), a.Stride, f.v[j:], f.x[j:], v[j:], f.y[c:], f.u[c:], f.sums[c:], rows, cols)
	for i := range f.sums[c:] {
		f.sums[c+i] *= f.leftTau
	}
	f.v, f.next = v, f.v
	f.y, f.sums = f.sums, f.y
	u := f.u
	copy(u[c:], a.at(j, c)[:a.Stride-c])
	update(u[c:], a.Stride, v[j:], f.zeros, f.zeros, f.y[c:], f.y[c:], f.spare[c:], 1, cols)
	clear(u[c : j+1])
	beta, f.rightTau = reflectionAt(u[c:], j+1-c, cols)
	x := f.x[j+1 : a.Rows]
	dots(x, a.at(j+1, c), a.Stride, u[c:], cols)
	dots(f.spare[:1], f.y[c:], a.Stride, u[c:], cols)
	along := f.spare[0]
	for i := range x {
		x[i] = f.rightTau * (x[i] - v[j+1+i]*along)
	}
	return beta
}
