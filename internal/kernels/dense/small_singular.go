package dense

import "math"

// RoomOfSingular is the numbers of room that SmallSingular needs for a matrix of so many columns, and at least as
// many rows.
func RoomOfSingular(rows, cols int) int { return 2*cols + (rows+cols)*block }

// SmallSingular is Singular of a matrix x, of at least as many rows as columns, whose rows adjoin. The vectors are
// the rows of u and v, which are in room and are as many as rows and columns; nil if they are not wanted.
func (r *Room) SmallSingular(x []float64, rows, cols int, values, room []float64, vectors bool) (u, v *Matrix, ok bool) {
	e := normalized(x)
	d, off := room[:cols], room[cols:2*cols-1]
	if vectors {
		room = room[2*cols:]
		u = &Matrix{Data: room[:rows*block], Rows: rows, Cols: rows, Stride: block}
		v = &Matrix{Data: room[rows*block:][:cols*block], Rows: cols, Cols: cols, Stride: block}
		for _, m := range []*Matrix{u, v} {
			clear(m.Data)
			for i := range m.Rows {
				m.Data[i*block+i] = 1
			}
		}
	}
	smallBidiagonal(x, rows, cols, d, off, u, v)
	if vectors {
		ok = implicitQR(d, off, u, v)
	} else {
		ok = differentialQD(r, d, off)
	}
	if !ok {
		return nil, nil, false
	}
	// Each value, the rows with it, goes before those that are less.
	f := math.Ldexp(1, e)
	for i, value := range d {
		if value < 0 && vectors {
			for k, w := range v.row(i) {
				v.row(i)[k] = -w
			}
		}
		value = math.Abs(value) * f
		at := i
		for ; at > 0 && value > values[at-1]; at-- {
			values[at] = values[at-1]
			if vectors {
				SwapRows(u.Data, block, at, at-1)
				SwapRows(v.Data, block, at, at-1)
			}
		}
		values[at] = value
	}
	return u, v, true
}

// smallBidiagonal makes d and off the main diagonal of a matrix, which it changes, and the one above it, after
// reflections from the left and from the right, that it multiplies the rows of u and v by unless they are nil.
func smallBidiagonal(x []float64, rows, cols int, d, off []float64, u, v *Matrix) {
	var vector, products [Small]float64
	for j := range cols {
		down := vector[:rows-j]
		for i := range down {
			down[i] = x[(j+i)*cols+j]
		}
		var tau float64
		d[j], tau = reflection(down)
		smallReflect(down, tau, x[j*cols+j+1:], cols, products[:cols-j-1])
		if u != nil {
			smallReflect(down, tau, u.Data[j*block:], block, products[:rows])
		}
		if j+1 == cols {
			break
		}
		across := vector[:cols-j-1]
		copy(across, x[j*cols+j+1:])
		off[j], tau = reflection(across)
		for i := j + 1; i < rows && tau != 0; i++ {
			row := x[i*cols+j+1:][:len(across)]
			var sum float64
			for k, w := range across {
				sum = math.FMA(w, row[k], sum)
			}
			less(row, across, tau*sum)
		}
		if v != nil {
			smallReflect(across, tau, v.Data[(j+1)*block:], block, products[:cols])
		}
	}
}
