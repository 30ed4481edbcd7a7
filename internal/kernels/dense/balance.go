package dense

import "math"

// balanced is how a matrix was changed so that its eigenvalues are found more exactly: rows and columns
// were exchanged, and rows divided and columns multiplied by powers of two.
type balanced struct {
	swaps  [][2]int
	factor []float64
	lo, hi int // of the rows and columns between those that have eigenvalues of their own
}

// maxPasses is far more than matrices need.
const maxPasses = 100

// balance exchanges rows, and the columns of the same numbers, so that those with zeros on one side of the
// diagonal come first and last, and makes rows of the others about as large as their columns.
func balance(a *Matrix) *balanced {
	n := a.Rows
	b := &balanced{hi: n, factor: a.room.zeros(n)}
	for i := range b.factor {
		b.factor[i] = 1
	}
	for b.isolate(a) {
	}
	for pass := 0; pass < maxPasses && b.scale(a); pass++ {
	}
	return b
}

// isolate brings one row or column of zeros beside the diagonal to the end or to the front.
func (b *balanced) isolate(a *Matrix) bool {
	for i := b.hi - 1; i >= b.lo; i-- {
		if alone(a.row(i)[b.lo:b.hi], 1, i-b.lo) {
			b.hi--
			b.swap(a, i, b.hi)
			return true
		}
	}
	for j := b.lo; j < b.hi; j++ {
		if alone(a.Data[b.lo*a.Stride+j:(b.hi-1)*a.Stride+j+1], a.Stride, j-b.lo) {
			b.swap(a, j, b.lo)
			b.lo++
			return true
		}
	}
	return false
}

// alone says whether all elements that lie step apart but one are 0.
func alone(x []float64, step, but int) bool {
	for i, at := 0, 0; at < len(x); i, at = i+1, at+step {
		if x[at] != 0 && i != but {
			return false
		}
	}
	return true
}

func (b *balanced) swap(a *Matrix, i, j int) {
	b.swaps = append(b.swaps, [2]int{i, j})
	if i == j {
		return
	}
	x, y := a.row(i), a.row(j)
	for k, v := range x {
		x[k], y[k] = y[k], v
	}
	for k := range a.Rows {
		row := a.row(k)
		row[i], row[j] = row[j], row[i]
	}
}

// scale makes rows and columns alike that are not, and reports whether some were not.
func (b *balanced) scale(a *Matrix) (changed bool) {
	down := a.room.zeros(a.Rows)
	for i := b.lo; i < b.hi; i++ {
		for j := b.lo; j < b.hi; j++ {
			if i != j {
				down[j] += math.Abs(a.at(i, j)[0])
			}
		}
	}
	for i := b.lo; i < b.hi; i++ {
		var across float64
		for j := b.lo; j < b.hi; j++ {
			if i != j {
				across += math.Abs(a.at(i, j)[0])
			}
		}
		if across == 0 || down[i] == 0 {
			continue
		}
		// The sum of both is least where the factor is the root of their quotient.
		_, e := math.Frexp(math.Sqrt(across / down[i]))
		f := math.Ldexp(1, e-1)
		if r := f * b.factor[i]; across/f+down[i]*f >= 0.95*(across+down[i]) || r < 0x1p-400 || r > 0x1p400 {
			continue
		}
		changed = true
		b.factor[i] *= f
		for j := b.lo; j < b.hi; j++ {
			if i != j {
				x, y := a.at(i, j), a.at(j, i)
				down[j] += math.Abs(x[0])/f - math.Abs(x[0])
				x[0] /= f
				y[0] *= f
			}
		}
	}
	return changed
}

// undo makes a row that is an eigenvector of the balanced matrix one of the other.
func (b *balanced) undo(v []float64) {
	for i, f := range b.factor {
		v[i] *= f
	}
	for i := len(b.swaps) - 1; i >= 0; i-- {
		s := b.swaps[i]
		v[s[0]], v[s[1]] = v[s[1]], v[s[0]]
	}
}
