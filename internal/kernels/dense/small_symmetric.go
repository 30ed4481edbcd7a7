package dense

import "math"

// RoomOfSymmetric is the numbers of room that SmallSymmetric needs for a matrix of n rows.
func RoomOfSymmetric(n int) int { return n*n + 4*n }

// SmallSymmetric is Symmetric of a matrix x whose rows adjoin. The vectors are the columns of v, whose rows
// adjoin, too; they are not wanted if it is nil.
func SmallSymmetric(x []float64, n int, values, v, room []float64) bool {
	e := normalized(x)
	z, d, off := room[:n*n], room[n*n:][:n], room[n*n+n:][:n]
	if v == nil {
		z = nil
	} else {
		clear(z)
		for i := range n {
			z[i*n+i] = 1
		}
	}
	var ok bool
	switch {
	case n == 2 && v != nil:
		ok = turnedTwo(x, d, z)
	case v != nil:
		smallTridiagonal(x, n, d, off, z)
		cosines, sines := room[n*n+2*n:][:n], room[n*n+3*n:][:n]
		ok = implicitQL(d, off[:max(n-1, 0)], cosines, sines, func(m, count int) { turnRows(z, n, m, cosines[:count], sines) })
	default:
		smallTridiagonal(x, n, d, off, nil)
		ok = rootFreeQL(d, off[:max(n-1, 0)])
	}
	if !ok {
		return false
	}
	// Each value, the rows of z with it, goes before those that are greater.
	f := math.Ldexp(1, e)
	for i, value := range d {
		at := i
		for ; at > 0 && value*f < values[at-1]; at-- {
			values[at] = values[at-1]
			for k := 0; k < len(v); k += n {
				v[k+at] = v[k+at-1]
			}
		}
		values[at] = value * f
		if v != nil {
			for k, w := range z[i*n:][:n] {
				v[k*n+at] = w
			}
		}
	}
	return true
}

// turnedTwo makes d the eigenvalues of a matrix of two rows, and the rows of z their vectors.
func turnedTwo(x, d, z []float64) bool {
	a, b, c := x[0], x[1], x[3]
	cosine, sine := 1.0, 0.0
	if b != 0 {
		half := (c - a) / (2 * b)
		t := 1 / (half + math.Copysign(math.Sqrt(half*half+1), half))
		cosine = 1 / math.Sqrt(t*t+1)
		sine = t * cosine
		a, c = a-t*b, c+t*b
	}
	d[0], d[1] = a, c
	z[0], z[1], z[2], z[3] = cosine, -sine, sine, cosine
	return !math.IsNaN(a + c)
}

// smallTridiagonal makes d and off the diagonals of a symmetric matrix, which it changes, after reflections
// that it multiplies the rows of z by.
func smallTridiagonal(x []float64, n int, d, off, z []float64) {
	var vector, product [Small]float64
	for j := range n {
		d[j] = x[j*n+j]
		if j >= n-2 {
			if j == n-2 {
				off[j] = x[j*n+j+1]
			}
			continue
		}
		v, w := vector[:n-j-1], product[:n-j-1]
		copy(v, x[j*n+j+1:])
		var tau float64
		if off[j], tau = reflection(v); tau == 0 {
			continue
		}
		// w is tau times the product with v, less its half along v.
		var along float64
		for i := range w {
			var sum float64
			for k, u := range x[(j+1+i)*n+j+1:][:len(v)] {
				sum = math.FMA(u, v[k], sum)
			}
			w[i] = tau * sum
			along = math.FMA(v[i], w[i], along)
		}
		less(w, v, tau/2*along)
		for i := range w {
			row := x[(j+1+i)*n+j+1:][:len(v)]
			less(row, v, w[i])
			less(row, w, v[i])
		}
		if z != nil {
			smallReflect(v, tau, z[(j+1)*n:], n, product[:n])
		}
	}
}

// turnRows turns rows m and m-1 of n elements, then m-1 and m-2, and so on, by angles.
func turnRows(z []float64, n, m int, cosines, sines []float64) {
	for i, c := range cosines {
		s, x, y := sines[i], z[(m-i)*n:][:n], z[(m-i-1)*n:][:n]
		for k, v := range x {
			x[k], y[k] = math.FMA(c, v, s*y[k]), math.FMA(c, y[k], -s*v)
		}
	}
}
