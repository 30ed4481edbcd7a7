package dense

import (
	"math"
	"unsafe"
)

// lanes is how many sums a product of two rows is made of, which are added in the end.
const lanes = 8

func dotRows(rows int, y, a *float64, lda int, x *float64, blocks int) {
	n := lanes * blocks
	v, from := unsafe.Slice(x, n), unsafe.Slice(a, (rows-1)*lda+n)
	to := unsafe.Slice(y, rows)
	for r := range to {
		var sum [lanes]float64
		for i, f := range from[r*lda:][:n] {
			sum[i%lanes] = math.FMA(f, v[i], sum[i%lanes])
		}
		to[r] = folded(sum)
	}
}

// folded returns the sum of the lanes.
func folded(sum [lanes]float64) float64 {
	for half := lanes / 2; half > 0; half /= 2 {
		for i := range half {
			sum[i] += sum[i+half]
		}
	}
	return sum[0]
}

// dots makes y the products of rows of a, which lie lda apart, with x: of so many columns, rounded up
// to lanes.
func dots(y, a []float64, lda int, x []float64, cols int) {
	blocks := (cols + lanes - 1) / lanes
	if len(y) == 0 || blocks == 0 {
		clear(y)
		return
	}
	_, _ = a[(len(y)-1)*lda+blocks*lanes-1], x[blocks*lanes-1]
	i := 0
	for ; i+4 <= len(y); i += 4 {
		use.dots4(&y[i], &a[i*lda], lda, &x[0], blocks)
	}
	for ; i < len(y); i++ {
		use.dots1(&y[i], &a[i*lda], lda, &x[0], blocks)
	}
}

func rotateRows(z *float64, step int, c, s *float64, k, tiles int) {
	n := 8 * tiles
	cosines, sines := unsafe.Slice(c, k), unsafe.Slice(s, k)
	for i, c := range cosines {
		s := sines[i]
		x := unsafe.Slice(z, n)
		z = (*float64)(unsafe.Add(unsafe.Pointer(z), 8*step))
		y := unsafe.Slice(z, n)
		for j, v := range x {
			x[j], y[j] = math.FMA(c, v, s*y[j]), math.FMA(-s, v, c*y[j])
		}
	}
}

// rotate turns row first of m and the next by an angle, that one and the one after, and so on, for each
// of the angles; the next row is the one before if back. x and y become c·x+s·y and c·y-s·x.
func (m *Matrix) rotate(first int, back bool, c, s []float64) {
	if len(c) == 0 || m.Cols == 0 {
		return
	}
	step, last := m.Stride, first+len(c)
	if back {
		step, last = -m.Stride, first-len(c)
	}
	tiles := (m.Cols + use.cols() - 1) / use.cols()
	_, _, _ = m.at(last, tiles*use.cols()-1)[0], m.at(first, tiles*use.cols()-1)[0], s[len(c)-1]
	use.rotate(&m.Data[first*m.Stride], step, &c[0], &s[0], len(c), tiles)
}

func reflectRows(z *float64, step int, f *float64, k, tiles int) {
	n := 8 * tiles
	for _, f := range unsafe.Slice((*[reflectionNumbers]float64)(unsafe.Pointer(f)), k) {
		x := unsafe.Slice(z, n)
		z = (*float64)(unsafe.Add(unsafe.Pointer(z), 8*step))
		y, last := unsafe.Slice(z, n), unsafe.Slice((*float64)(unsafe.Add(unsafe.Pointer(z), 8*step)), n)
		for j, v := range x {
			sum := math.FMA(f[0], y[j], math.FMA(f[1], last[j], v))
			x[j], y[j], last[j] = math.FMA(-f[2], sum, v), math.FMA(-f[3], sum, y[j]), math.FMA(-f[4], sum, last[j])
		}
	}
}

// reflect applies a reflection to three rows of m from one on, another to the three from the next on, and so
// on, in columns from one on up to another, which are rounded up to whole tiles: reflectionNumbers of each
// are f's.
func (m *Matrix) reflect(row, from, to, count int, f []float64) {
	tiles := (to - from + use.cols() - 1) / use.cols()
	if count == 0 || tiles <= 0 {
		return
	}
	_, _ = m.at(row+count+1, from+tiles*use.cols()-1)[0], f[reflectionNumbers*count-1]
	use.reflect(&m.at(row, from)[0], m.Stride, &f[0], count, tiles)
}
