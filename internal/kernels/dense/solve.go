package dense

import (
	"math"
	"unsafe"
)

// divisors says what the rows of a block are divided by.
type divisors int

const (
	units    divisors = iota // nothing
	inverses                 // numbers whose inverses are of full precision
	numbers                  // any
)

// half is the rows of half a block, which registers hold.
const half = block / 2

// triangle is the elements of the triangle of a block in the order in which they are used: by columns those of the
// half of the rows that is solved for first, then those of the others in these columns, then the triangle of the
// others. In front of a column of the triangles is its divisor and the inverse, unless there are units.
type triangle struct {
	elements [block*(block-1)/2 + 2*block]float64
	by       divisors
}

// divisible reports whether the inverse of a number, and what a product with it leaves, are of full precision.
func divisible(d float64) bool { d = math.Abs(d); return d > 0x1p-500 && d < 0x1p500 }

// set takes the elements of n rows, of which element i, k is t[from+i·row+k·col]. The others are those of the
// identity.
func (p *triangle) set(t []float64, from, row, col, n int, unit bool) {
	if p.by = units; !unit {
		p.by = inverses
	}
	at := 0
	for first := 0; first <= half; first += half {
		for k := first; k < first+half; k++ {
			if !unit {
				d := 1.0
				if k < n {
					d = t[from+k*(row+col)]
				}
				if !divisible(d) {
					p.by = numbers
				}
				p.elements[at], p.elements[at+1] = d, 1/d
				at += 2
			}
			at = p.column(at, t, from+k*col, row, k+1, min(first+half, n), first+half)
		}
		for k := 0; first == 0 && k < half; k++ {
			at = p.column(at, t, from+k*col, row, half, n, block)
		}
	}
}

// column puts elements first to last-1 of a column, which begins at t[from], and leaves room for those before end.
func (p *triangle) column(at int, t []float64, from, row, first, last, end int) (next int) {
	to := p.elements[at : at+end-first]
	from += first * row
	for i := range max(last-first, 0) {
		to[i] = t[from]
		from += row
	}
	return at + len(to)
}

// solve makes n rows that begin with an element of x and lie step apart the solution for a triangle of so many.
func (p *triangle) solve(x []float64, from, step, n, cols int) {
	if cols <= 0 {
		return
	}
	whole := (cols + use.cols() - 1) / use.cols() * use.cols()
	_, _ = x[from+whole-1], x[from+(n-1)*step+whole-1]
	if n == block {
		use.solve(p.by, &p.elements[0], &x[from], step, whole/use.cols())
		return
	}
	var room [block * strip]float64 // has the rows of the identity, too
	for j := 0; j < whole; j += strip {
		width := min(strip, whole-j)
		for i := range n {
			copy(room[i*strip:][:width], x[from+i*step+j:])
		}
		use.solve(p.by, &p.elements[0], &room[0], strip, width/use.cols())
		for i := range n {
			copy(x[from+i*step+j:][:width], room[i*strip:])
		}
	}
}

// solveRowsOf solves for the rows of a block, which lie step apart.
func solveRowsOf(by divisors, t, x *float64, step, tiles int) {
	var rows [block][]float64
	for i := range rows {
		rows[i] = unsafe.Slice((*float64)(unsafe.Add(unsafe.Pointer(x), 8*i*step)), 8*tiles)
	}
	elements := unsafe.Slice(t, len(triangle{}.elements))
	for first := 0; first <= half; first += half {
		for k := first; k < first+half; k++ {
			if by != units {
				for j := range rows[k] {
					rows[k][j] /= elements[0]
				}
				elements = elements[2:]
			}
			for i := k + 1; i < first+half; i++ {
				less(rows[i], rows[k], elements[0])
				elements = elements[1:]
			}
		}
		for k := 0; first == 0 && k < half; k++ {
			for i := half; i < block; i++ {
				less(rows[i], rows[k], elements[0])
				elements = elements[1:]
			}
		}
	}
}

// Solve makes b the solution x of a·x = b for a triangle of a square a, with ones on the diagonal if
// unit. The rest of a is not read.
func Solve(a, b *Matrix, upper, unit bool) { solveRows(a, b, 0, a.Rows, upper, unit) }

// solveRows solves for rows first to last-1, from which the products with the others are taken already.
func solveRows(a, b *Matrix, first, last int, upper, unit bool) {
	if last-first > block {
		middle := first + roundedUp((last-first)/2)
		if upper {
			solveRows(a, b, middle, last, upper, unit)
			b.minus(first, 0, middle-first, b.Cols, a.at(first, middle), a.Stride, 1, b.at(middle, 0), b.Stride, last-middle)
			solveRows(a, b, first, middle, upper, unit)
			return
		}
		solveRows(a, b, first, middle, upper, unit)
		b.minus(middle, 0, last-middle, b.Cols, a.at(middle, first), a.Stride, 1, b.at(first, 0), b.Stride, middle-first)
		solveRows(a, b, middle, last, upper, unit)
		return
	}
	var t triangle
	if n := last - first; n == 0 {
		return
	} else if upper {
		t.set(a.Data, (last-1)*(a.Stride+1), -a.Stride, -1, n, unit)
		t.solve(b.Data, (last-1)*b.Stride, -b.Stride, n, b.Cols)
	} else {
		t.set(a.Data, first*(a.Stride+1), a.Stride, 1, n, unit)
		t.solve(b.Data, first*b.Stride, b.Stride, n, b.Cols)
	}
}
