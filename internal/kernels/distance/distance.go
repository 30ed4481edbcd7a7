// Package distance computes the norms of the differences of all rows of two matrices, and sums of such
// differences, which gradients are made of.
//
// One operand is packed into panels of some columns: those that adjoin are in the lanes of vectors, so
// that nothing is added across lanes. Sums are in the element's type and in the order of the rows.
package distance

// Float is the element types.
type Float interface{ float32 | float64 }

// Norm says which one.
type Norm int

// The norms: the sum of magnitudes, the root of the sum of squares, the greatest magnitude. A NaN among
// differences makes any of them one.
const (
	Manhattan Norm = iota
	Euclidean
	Greatest
)

// Panel returns the width of a panel.
func Panel[T Float]() int { return best[T]().width }

// PackedLen returns the elements of a packed matrix of n columns and the given depth.
func PackedLen[T Float](n, depth int) int {
	width := Panel[T]()
	return (n + width - 1) / width * width * depth
}

// Pack packs panels lo..hi-1 of a matrix of n columns: element p of column i is src[i·step+p·depthStep].
// What a panel has beyond n is zero.
func Pack[T Float](dst, src []T, n, depth, step, depthStep, lo, hi int) {
	width := Panel[T]()
	for panel := lo; panel < hi; panel++ {
		out := dst[panel*width*depth : (panel+1)*width*depth]
		first := panel * width
		cols := min(width, n-first)
		if cols < width {
			clear(out)
		}
		if step == 1 {
			for p := range depth {
				copy(out[p*width:][:cols], src[first+p*depthStep:][:cols])
			}
			continue
		}
		for i := range cols {
			at := (first + i) * step
			for p := range depth {
				out[p*width+i] = src[at]
				at += depthStep
			}
		}
	}
}

// Room is how many elements of scratch memory Distances and Sums take.
const Room = normRows * maxWidth

// Distances sets rows lo..hi-1 of a panel of dst, [n, m], to the norms of the differences of rows of x,
// [n, depth], and columns of y, which is packed.
func Distances[T Float](norm Norm, dst, x, y, room []T, m, depth, panel, lo, hi int) {
	k := best[T]()
	k.tiles(dst, room, m, panel, lo, hi, normRows, func(to []T, step, row, rows int) {
		k.norm(norm, to, step, x[row*depth:][:rows*depth], y[panel*k.width*depth:][:k.width*depth], rows, depth)
	})
}

// norm computes a tile of norms of normRows rows of x or of one, and a panel y.
func (k *kernels[T]) norm(norm Norm, to []T, step int, x, y []T, rows, depth int) {
	if depth == 0 {
		k.clear(to, step, rows)
		return
	}
	f := k.norms[norm].one
	if rows > 1 {
		f = k.norms[norm].many
	}
	f(&to[0], &x[0], &y[0], step*sizeOf[T](), depth*sizeOf[T](), depth)
}

// Pairs sets what rows lo..hi-1 of x, [n, depth], and a panel of those after each have in dst to the norms of their
// differences: dst has the rows after row 0, those after row 1, …. y is x as it is packed.
func Pairs[T Float](norm Norm, dst, x, y, room []T, n, depth, panel, lo, hi int) {
	k := best[T]()
	first := panel * k.width
	end := min(first+k.width, n)
	y = y[panel*k.width*depth:][:k.width*depth]
	for row := lo; row < min(hi, end-1); {
		rows := 1
		if row+normRows <= hi {
			rows = normRows
		}
		k.norm(norm, room, k.width, x[row*depth:][:rows*depth], y, rows, depth)
		for i := range rows {
			r := row + i
			if from := max(first, r+1); from < end {
				copy(dst[r*(2*n-r-1)/2+from-r-1:], room[i*k.width:][from-first:end-first])
			}
		}
		row += rows
	}
}

// normRows is the rows of a tile of norms.
const normRows = 4

// Sums sets rows lo..hi-1 of a panel of dst, [n, width], to sums over all rows j of y, [m, width]: of
// weights[i, j] times the difference of row i of x, [n, width], and row j, or with signs of
// weights[i, j] with the difference's sign, where that is not 0 or NaN. x and y are packed.
func Sums[T Float](signs bool, dst, weights, x, y, room []T, n, m, width, panel, lo, hi int) {
	k := best[T]()
	t := &k.sums[1]
	if signs {
		t = &k.sums[0]
	}
	k.tiles(dst, room, width, panel, lo, hi, k.sumRows, func(to []T, step, row, rows int) {
		if m == 0 {
			k.clear(to, step, rows)
			return
		}
		f := t.one
		if rows > 1 {
			f = t.many
		}
		w := weights[row*m:][:rows*m]
		f(&to[0], &w[0], &x[(panel*n+row)*k.width:][:rows*k.width][0], &y[panel*m*k.width:][:m*k.width][0], step*sizeOf[T](), m*sizeOf[T](), m)
	})
}

// tiles calls f for the tiles of rows lo..hi-1 of a panel of dst, of many rows each or of one, to write
// them to rows that lie step elements apart. A panel that is not whole is written to room first.
func (k *kernels[T]) tiles(dst, room []T, cols, panel, lo, hi, many int, f func(to []T, step, row, rows int)) {
	first := panel * k.width
	left := min(k.width, cols-first)
	for row := lo; row < hi; {
		rows := 1
		if row+many <= hi {
			rows = many
		}
		to := dst[row*cols+first:][:(rows-1)*cols+left]
		if left == k.width {
			f(to, cols, row, rows)
		} else {
			f(room[:rows*k.width], k.width, row, rows)
			for i := range rows {
				copy(to[i*cols:][:left], room[i*k.width:])
			}
		}
		row += rows
	}
}

// clear sets a tile to zero.
func (k *kernels[T]) clear(to []T, step, rows int) {
	for i := range rows {
		clear(to[i*step:][:k.width])
	}
}
