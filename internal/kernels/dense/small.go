package dense

import "math"

// Small is the number of rows and columns up to which matrices are factored by plain loops, in their own
// memory. They do the arithmetic of the loops for larger ones in the same order, so the bits are the same
// but for signs of zeros and where sums are of lanes, as QR's; those spend most of the time of a small matrix on its copy and on calls.
const Small = block

// SmallLU is LU of a matrix whose rows adjoin.
func SmallLU(a []float64, rows, cols int, pivots []int) {
	for j := range pivots {
		p, most := j, math.Abs(a[j*cols+j])
		for i := j + 1; i < rows; i++ {
			if v := math.Abs(a[i*cols+j]); v > most {
				p, most = i, v
			}
		}
		pivots[j] = p
		from := a[j*cols:][:cols]
		if p != j {
			SwapRows(a, cols, j, p)
		}
		d := from[j]
		if d == 0 {
			continue
		}
		for i := j + 1; i < rows; i++ {
			to := a[i*cols:][:cols]
			f := to[j] / d
			to[j] = f
			less(to[j+1:], from[j+1:], f)
		}
	}
}

// SwapRows exchanges two rows of a matrix whose rows adjoin.
func SwapRows(a []float64, cols, i, j int) {
	x, y := a[i*cols:][:cols], a[j*cols:][:cols]
	if whole := cols / lanes; whole > 1 {
		use.exchange(&x[0], &y[0], whole)
		x, y = x[whole*lanes:], y[whole*lanes:]
	}
	for k, v := range x {
		x[k], y[k] = y[k], v
	}
}

// less takes f times from off to.
func less(to, from []float64, f float64) {
	to = to[:len(from)]
	for k, v := range from {
		to[k] = math.FMA(-f, v, to[k])
	}
}

// SmallSolve is Solve of a triangle of n rows and a right side of cols columns whose rows adjoin. Element i, k
// of the triangle is at i*row + k*col. Products are taken in the order in which the solution is known.
func SmallSolve(t []float64, n, row, col int, x []float64, cols int, upper, unit bool) {
	for c := range n {
		i, first, last := c, 0, c
		if upper {
			i = n - 1 - c
			first, last = i+1, n
		}
		if cols == 1 {
			sum := x[i]
			for c := range last - first {
				k := first + c
				if upper {
					k = last - 1 - c
				}
				sum = math.FMA(-t[i*row+k*col], x[k], sum)
			}
			if !unit {
				sum /= t[i*(row+col)]
			}
			x[i] = sum
			continue
		}
		to := x[i*cols:][:cols]
		for c := range last - first {
			k := first + c
			if upper {
				k = last - 1 - c
			}
			less(to, x[k*cols:][:cols], t[i*row+k*col])
		}
		if d := t[i*(row+col)]; !unit {
			for k := range to {
				to[k] /= d
			}
		}
	}
}

// Determinant3 returns the determinant of three rows that adjoin: the product of the pivots that SmallLU of the
// transposed matrix leaves, and of -1 for each exchange.
func Determinant3(x []float64) float64 {
	_ = x[8]
	a, b, c := [3]float64{x[0], x[3], x[6]}, [3]float64{x[1], x[4], x[7]}, [3]float64{x[2], x[5], x[8]}
	sign, most := 1.0, math.Abs(a[0])
	second, third := math.Abs(b[0]), math.Abs(c[0])
	switch {
	case third > most && !(second >= third):
		a, c, sign = c, a, -1
	case second > most:
		a, b, sign = b, a, -1
	}
	det := sign * a[0]
	if a[0] != 0 {
		f, g := b[0]/a[0], c[0]/a[0]
		b[1], b[2] = math.FMA(-f, a[1], b[1]), math.FMA(-f, a[2], b[2])
		c[1], c[2] = math.FMA(-g, a[1], c[1]), math.FMA(-g, a[2], c[2])
	}
	if math.Abs(c[1]) > math.Abs(b[1]) {
		b, c, det = c, b, -det
	}
	if det *= b[1]; b[1] != 0 {
		c[2] = math.FMA(-(c[1] / b[1]), b[2], c[2])
	}
	return det * c[2]
}
