package dense

import "math"

// hessenberg makes all of a square matrix below the diagonal under the main one zeros, by reflections from
// both sides.
func hessenberg(a *Matrix) (all []*reflections) {
	n := a.Rows
	v, y := newPanel(a.room, n, min(block, n)), newPanel(a.room, n, min(block, n))
	column := a.room.zeros(a.Stride)
	for j0 := 0; j0 < n; j0 += block {
		end := min(j0+block, n)
		r := newReflections(a.room, j0+1, n, end-j0)
		v.clear()
		y.clear()
		for j := j0; j < end; j++ {
			hessenbergColumn(a, r, v, y, column, j0, j)
		}
		all = append(all, r)
		rows, below := n-j0-1, y.rows.Data[min(j0+1, len(y.rows.Data)):]
		if end < n {
			subtract(a.at(j0+1, end), a.Stride, rows, n-end, below, 1, y.rows.Stride, v.rows.at(0, end), v.rows.Stride, r.count)
			r.apply(a, end, true)
		}
		// The rows that the reflections leave from the left are multiplied from the right in the end.
		if rows > 0 && r.count > 0 {
			w := a.room.zeros(2 * (j0 + 1) * block)
			first, second := w[:len(w)/2], w[len(w)/2:]
			subtract(first, block, j0+1, block, a.at(0, j0+1), a.Stride, 1, v.columns[(j0+1)*block:], block, rows)
			subtract(second, block, j0+1, block, first, block, 1, r.t, block, r.count)
			subtract(a.at(0, j0), a.Stride, j0+1, n-j0, second, block, 1, v.rows.at(0, j0), v.rows.Stride, r.count)
		}
	}
	return all
}

// hessenbergColumn applies the reflections r of the panel that begins with column j0 to column j, and adds
// the one that makes its zeros. Their vectors are v's, and y's rows are those of V·T, multiplied by a.
func hessenbergColumn(a *Matrix, r *reflections, v, y *panel, column []float64, j0, j int) {
	n, k := a.Rows, r.count
	clear(column[:j0+1])
	for i := j0 + 1; i < n; i++ {
		column[i] = a.at(i, j)[0]
	}
	if k > 0 {
		y.take(column[j0:], j0, n-j0, v.columns[j*block:], 1, k)
		w := v.products(column[j0+1:n], j0+1)
		var factors [block]float64
		for i := range k {
			for l := range i + 1 {
				factors[i] -= r.t[l*block+i] * w[l]
			}
		}
		v.take(column[j0:], j0, n-j0, factors[:], 1, k)
	}
	if j+2 < n {
		x := column[j+1 : n]
		beta, tau := reflection(x)
		extend(a, r, v, y, x, tau, j0, j)
		column[j+1] = beta
		clear(column[j+2 : n])
	}
	for i := j0 + 1; i < n; i++ {
		a.at(i, j)[0] = column[i]
	}
}

// extend adds a reflection by x, from row j+1 on, to a panel.
func extend(a *Matrix, r *reflections, v, y *panel, x []float64, tau float64, j0, j int) {
	n, k := a.Rows, r.count
	copy(v.row(k)[j+1:], x)
	v.put(k, j+1)
	along := v.products(x, j+1)
	r.add(x, tau)
	for i := range k {
		for l := i; l < k; l++ {
			r.t[i*block+k] += tau * r.t[i*block+l] * along[l]
		}
	}
	for i := range along {
		along[i] = -along[i]
	}
	to, c := y.row(k), start(j+1)
	dots(to[j0+1:n], a.at(j0+1, c), a.Stride, v.row(k)[c:], n-c)
	y.take(to[j0:], j0, n-j0, along[:], 1, k)
	for i := j0 + 1; i < n; i++ {
		to[i] *= tau
	}
}

// smallHessenberg is hessenberg of at most Small rows, one reflection after the other, and returns the transposed
// product of the reflections if it is wanted.
func smallHessenberg(a *Matrix, vectors bool) (z *Matrix) {
	n := a.Rows
	if vectors {
		z = a.room.identity(n, n)
	}
	var column, products [Small]float64
	for j := range n - 2 {
		x := column[:n-j-1]
		for i := range x {
			x[i] = a.at(j+1+i, j)[0]
		}
		beta, tau := reflection(x)
		a.at(j+1, j)[0] = beta
		for i := range x[1:] {
			a.at(j+2+i, j)[0] = 0
		}
		smallReflect(x, tau, a.at(j+1, j+1), a.Stride, products[:n-j-1])
		for i := range n {
			row := a.row(i)[j+1:]
			var t float64
			for k, v := range x {
				t = math.FMA(v, row[k], t)
			}
			less(row, x, tau*t)
		}
		if vectors {
			smallReflect(x, tau, z.at(j+1, 0), z.Stride, products[:n])
		}
	}
	return z
}
