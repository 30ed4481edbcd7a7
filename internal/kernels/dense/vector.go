package dense

import "math"

// SolveVector makes x the solution y of t·y = x, or of tᵀ·y = x if transposed, for a triangle of n rows that adjoin, with
// ones on the diagonal if unit. The triangle is read where it is, once, and the rest of t isn't. Of the columns that a block
// of rows has outside of its own triangle whole lanes are summed by vectors.
func SolveVector(t []float64, n int, x []float64, upper, unit, transposed bool) {
	blocks := (n + block - 1) / block
	for b := range blocks {
		if upper != transposed {
			b = blocks - 1 - b
		}
		first := b * block
		last := min(first+block, n)
		if transposed {
			solveColumns(t, n, x, first, last, upper, unit)
			continue
		}
		from, to := 0, first
		if upper {
			from, to = last, n
		}
		takeRows(t, n, x, first, last, from, to)
		SmallSolve(t[first*(n+1):], last-first, n, 1, x[first:], 1, upper, unit)
	}
}

// takeRows takes from x the products with rows first to last-1 in the columns from one on up to another.
func takeRows(t []float64, n int, x []float64, first, last, from, to int) {
	whole := from + (to-from)&^(lanes-1)
	var sums [block]float64
	dots(sums[:last-first], t[first*n+from:], n, x[from:whole], whole-from)
	for i := first; i < last; i++ {
		sum, row := x[i]-sums[i-first], t[i*n:][:n]
		for k := whole; k < to; k++ {
			sum = math.FMA(-row[k], x[k], sum)
		}
		x[i] = sum
	}
}

// solveColumns solves for elements first to last-1 with columns of a triangle as rows, and takes the products with the
// solution from the elements that come after them.
func solveColumns(t []float64, n int, x []float64, first, last int, upper, unit bool) {
	for c := range last - first {
		k, from, to := first+c, first+c+1, last
		if !upper {
			k = last - 1 - c
			from, to = first, k
		}
		if !unit {
			x[k] /= t[k*n+k]
		}
		less(x[from:to], t[k*n+from:][:to-from], x[k])
	}
	from, to := last, n
	if !upper {
		from, to = 0, first
	}
	whole := (to - from) / use.cols() * use.cols()
	subtract(x[from:], n, 1, whole, x[first:last], 0, 1, t[first*n+from:], n, last-first)
	for k := first; k < last; k++ {
		less(x[from+whole:to], t[k*n+from+whole:][:to-from-whole], x[k])
	}
}
