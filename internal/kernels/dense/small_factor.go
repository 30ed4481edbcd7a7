package dense

import "math"

// SmallCholesky is Cholesky of a square matrix whose rows adjoin. The rest is left as it is.
func SmallCholesky(a []float64, n int) (order int) {
	for j := range n {
		pivot := a[j*n:][:j+1]
		d := pivot[j]
		for _, v := range pivot[:j] {
			d = math.FMA(-v, v, d)
		}
		if !(d > 0) {
			return j + 1
		}
		d = math.Sqrt(d)
		pivot[j] = d
		for i := j + 1; i < n; i++ {
			row := a[i*n:][:j+1]
			sum := row[j]
			for k, v := range pivot[:j] {
				sum = math.FMA(-row[k], v, sum)
			}
			row[j] = sum / d
		}
	}
	return 0
}

// SmallQR is QR of a matrix whose rows adjoin.
func SmallQR(a []float64, rows, cols int, tau []float64) {
	var column, products [Small]float64
	for j := range tau {
		v := column[:rows-j]
		for i := range v {
			v[i] = a[(j+i)*cols+j]
		}
		var beta float64
		beta, tau[j] = reflection(v)
		smallReflect(v, tau[j], a[j*cols+j+1:], cols, products[:cols-j-1])
		a[j*cols+j] = beta
		for i := 1; i < len(v); i++ {
			a[(j+i)*cols+j] = v[i]
		}
	}
}

// smallReflect applies a reflection to rows that begin stride apart and are as long as products, whose
// elements may be any.
func smallReflect(v []float64, tau float64, x []float64, stride int, products []float64) {
	if len(products) == 0 || tau == 0 {
		return
	}
	clear(products)
	for i, f := range v {
		more(products, x[i*stride:][:len(products)], f)
	}
	for i := range products {
		products[i] *= tau
	}
	for i, f := range v {
		less(x[i*stride:][:len(products)], products, f)
	}
}

// SmallMultiplyQ makes x, of rows of cols elements, the product of Q, transposed or not, with it. The
// reflections are those that QR leaves in a matrix f with rows of width elements. Of x only the columns from
// that of a reflection's number on are treated if it is a part of the identity.
func SmallMultiplyQ(f []float64, width int, tau []float64, x []float64, rows, cols int, transposed, identity bool) {
	var column [Small]float64
	var products [2 * Small]float64
	for i := range tau {
		j := i
		if !transposed {
			j = len(tau) - 1 - i
		}
		v := column[:rows-j]
		v[0] = 1
		for i := 1; i < len(v); i++ {
			v[i] = f[(j+i)*width+j]
		}
		from := 0
		if identity {
			from = min(j, cols)
		}
		smallReflect(v, tau[j], x[j*cols+from:], cols, products[:cols-from])
	}
}
