package dense

import (
	"math"
	"slices"
)

// leaf is the order of the largest matrices of three diagonals whose vectors are found by implicitQL alone.
const leaf = 2 * block

// halves finds the eigenvalues of a matrix of three diagonals by those of its halves: but for one element it
// is two blocks, and with it a diagonal matrix and the product of a column with itself, whose eigenvalues
// are the roots of one equation. All of the work of order three is products.
type halves struct {
	d, e  []float64
	z     *Matrix // its rows are the vectors
	order []int   // the rows of z in the order of their values
	// Room for one step: vectors of the halves, and those of the whole, by factors of the former.
	parts, factors, whole *Matrix
}

// byHalves returns the eigenvalues of a matrix of three diagonals, which it changes, in order, and in rows
// their vectors. It reports whether it found them.
func byHalves(room *Room, d, e []float64) (values []float64, vectors *Matrix, ok bool) {
	n := len(d)
	h := &halves{d: d, e: e, z: room.identity(n, n), order: make([]int, n)}
	if n > leaf {
		h.parts, h.factors, h.whole = room.New(n, n), room.New(n, n), room.New(n, n)
	}
	if !h.solve(0, n) {
		return nil, nil, false
	}
	values = room.zeros(n)
	for i, row := range h.order {
		values[i] = d[row]
	}
	return values, h.z.permuted(h.order), true
}

// solve finds the values and vectors of rows lo to hi-1; lo is a multiple of block.
func (h *halves) solve(lo, hi int) bool {
	n := hi - lo
	if n <= leaf {
		if v := (&Matrix{Data: h.z.at(lo, lo), Rows: n, Cols: n, Stride: h.z.Stride, room: h.z.room}); !v.implicitQL(h.d[lo:hi], h.e[lo:hi-1]) {
			return false
		}
		for i := range n {
			h.order[lo+i] = lo + i
		}
		slices.SortStableFunc(h.order[lo:hi], h.compare)
		return true
	}
	mid := lo + start(n/2+block-1)
	beside := h.e[mid-1]
	h.d[mid-1] -= math.Abs(beside)
	h.d[mid] -= math.Abs(beside)
	return h.solve(lo, mid) && h.solve(mid, hi) && h.join(lo, mid, hi, beside)
}

func (h *halves) compare(i, j int) int {
	switch x, y := h.d[i], h.d[j]; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// join puts two halves together, which beside was taken from.
func (h *halves) join(lo, mid, hi int, beside float64) bool {
	order := h.order[lo:hi]
	slices.SortStableFunc(order, h.compare)
	z := h.z.room.zeros(hi)
	var greatest, most float64
	for _, row := range order {
		if z[row] = h.z.at(row, mid-1)[0] * (math.Sqrt2 / 2); row >= mid {
			z[row] = h.z.at(row, mid)[0] * math.Copysign(math.Sqrt2/2, beside)
		}
		greatest, most = max(greatest, math.Abs(h.d[row])), max(most, math.Abs(z[row]))
	}
	rho, tolerance := 2*math.Abs(beside), 8*epsilon*max(greatest, most)
	if math.IsNaN(rho + tolerance) {
		return false
	}
	if rho*most <= tolerance {
		return true
	}
	kept, extent := h.deflate(order, mid, z, rho, tolerance)
	s := newSecular(h.z.room, len(kept), rho)
	// Vectors of the first half alone come first, and those of the second alone last, so that products
	// leave out what is zero.
	var ends [3]int
	for kind := range 3 {
		for k, row := range kept {
			if extent[k] == kind {
				s.place[k] = ends[kind]
				s.d[ends[kind]], s.z[ends[kind]], s.squares[ends[kind]] = h.d[row], z[row], z[row]*z[row]
				copy(h.parts.at(ends[kind], lo)[:hi-lo], h.z.at(row, lo))
				ends[kind]++
			}
		}
		if kind < 2 {
			ends[kind+1] = ends[kind]
		}
	}
	for k, row := range kept {
		h.d[row] = s.root(k, h.factors)
	}
	s.vectors(h.factors)
	h.multiply(lo, mid, hi, len(kept), ends)
	for k, row := range kept {
		copy(h.z.at(row, lo)[:hi-lo], h.whole.at(k, lo))
	}
	slices.SortStableFunc(order, h.compare)
	return true
}

// multiply makes the vectors of the whole of so many factors of parts, which are negative.
func (h *halves) multiply(lo, mid, hi, k int, ends [3]int) {
	for i := range k {
		clear(h.whole.at(i, lo)[:hi-lo])
	}
	subtract(h.whole.at(0, lo), h.whole.Stride, k, mid-lo, h.factors.Data, h.factors.Stride, 1, h.parts.at(0, lo), h.parts.Stride, ends[1])
	if rest := k - ends[0]; rest > 0 {
		subtract(h.whole.at(0, mid), h.whole.Stride, k, hi-mid, h.factors.at(0, ends[0]), h.factors.Stride, 1, h.parts.at(ends[0], mid), h.parts.Stride, rest)
	}
}

// deflate returns the rows whose values and vectors those of the whole are made of, and whether each is of
// the first half alone (0), of both (1) or of the second alone (2). The others, whose element of z is
// nothing, or is made nothing by turning two of about one value, are values and vectors of the whole as
// they are.
func (h *halves) deflate(order []int, mid int, z []float64, rho, tolerance float64) (kept, extent []int) {
	last, kind := -1, 0
	for _, row := range order {
		if rho*math.Abs(z[row]) <= tolerance {
			continue
		}
		own := 0
		if row >= mid {
			own = 2
		}
		if last >= 0 {
			length := math.Hypot(z[last], z[row])
			c, s := z[row]/length, -z[last]/length
			if gap := h.d[row] - h.d[last]; math.Abs(gap*c*s) <= tolerance {
				z[row], z[last] = length, 0
				h.z.turnRows(last, row, c, s)
				h.d[last], h.d[row] = h.d[last]*c*c+h.d[row]*s*s, h.d[last]*s*s+h.d[row]*c*c
				if own != kind {
					own = 1
				}
			} else {
				kept, extent = append(kept, last), append(extent, kind)
			}
		}
		last, kind = row, own
	}
	return append(kept, last), append(extent, kind)
}
