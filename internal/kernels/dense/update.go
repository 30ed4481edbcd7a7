package dense

import (
	"math"
	"unsafe"
)

func updateRows(a *float64, lda int, v, w, x, p, q, y *float64, rows, blocks int) {
	n := lanes * blocks
	m, first, second, sums := unsafe.Slice(a, (rows-1)*lda+n), unsafe.Slice(p, n), unsafe.Slice(q, n), unsafe.Slice(y, n)
	byFirst, bySecond, by := unsafe.Slice(v, rows), unsafe.Slice(w, rows), unsafe.Slice(x, rows)
	for i := range rows {
		row := m[i*lda:][:n]
		for j, z := range row {
			z = math.FMA(-bySecond[i], second[j], math.FMA(-byFirst[i], first[j], z))
			row[j], sums[j] = z, math.FMA(by[i], z, sums[j])
		}
	}
}

// update takes v·p and w·q, columns times rows, from rows of a, which lie lda apart, and adds the product of
// x with these rows to y. So many columns are treated, rounded up to lanes.
func update(a []float64, lda int, v, w, x, p, q, y []float64, rows, cols int) {
	blocks := (cols + lanes - 1) / lanes
	if rows == 0 || blocks == 0 {
		return
	}
	n := blocks * lanes
	_, _, _, _ = a[(rows-1)*lda+n-1], p[n-1], q[n-1], y[n-1]
	_, _, _ = v[rows-1], w[rows-1], x[rows-1]
	use.update(&a[0], lda, &v[0], &w[0], &x[0], &p[0], &q[0], &y[0], rows, blocks)
}
