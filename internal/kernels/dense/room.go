package dense

import "github.com/loris-ml/loris/internal/parallel"

// mostKept is how many numbers a Room keeps: clearing and collecting new memory takes as long as factoring some
// hundred rows, but little of the time of larger matrices.
const mostKept = 1 << 21

// shortRow is how long a row is at least whose room is worth a place of the cache.
const shortRow = 128

// Room is memory for matrices, and for what is computed on the way, until Reset. A nil one makes memory anew. It
// isn't safe for concurrent use.
type Room struct {
	// Limiter bounds the goroutines that large products are shared among; with nil there is one.
	Limiter *parallel.Limiter

	kept  []float64
	taken int // of kept
	asked int // as many numbers, but for those that mostKept excludes, were asked for since Reset
}

// Reset takes all memory back. Nothing may use it any more.
func (r *Room) Reset() {
	if r.asked > len(r.kept) {
		r.kept = make([]float64, r.asked)
	}
	r.taken, r.asked = 0, 0
}

// strideOf returns the elements of whole blocks. Those of long rows are an odd number of blocks, so that one column's
// lines of rows that follow one another fall in different places of the cache.
func strideOf(cols int) int {
	n := start(cols + block - 1)
	if n >= shortRow && n/block%2 == 0 {
		n += block
	}
	return n
}

// New returns a matrix of zeros.
func (r *Room) New(rows, cols int) *Matrix {
	stride := strideOf(cols)
	return &Matrix{Data: r.zeros(rows * stride), Rows: rows, Cols: cols, Stride: stride, room: r}
}

// From returns a matrix with the elements of x, one row after the other.
func (r *Room) From(x []float64, rows, cols int) *Matrix {
	m := r.unset(rows, cols)
	for i := range rows {
		copy(m.row(i), x[i*cols:(i+1)*cols])
	}
	return m
}

// FromSingles is From of float32.
func (r *Room) FromSingles(x []float32, rows, cols int) *Matrix {
	m := r.unset(rows, cols)
	for i := range rows {
		Widen(m.row(i), x[i*cols:(i+1)*cols])
	}
	return m
}

// unset returns a matrix whose room alone is zeros.
func (r *Room) unset(rows, cols int) *Matrix {
	stride := strideOf(cols)
	m := &Matrix{Data: r.take(rows * stride), Rows: rows, Cols: cols, Stride: stride, room: r}
	for i := range rows {
		clear(m.Data[i*stride+cols : (i+1)*stride])
	}
	return m
}

// zeros returns so many zeros.
func (r *Room) zeros(n int) []float64 {
	x := r.take(n)
	clear(x)
	return x
}

// take returns so many numbers.
func (r *Room) take(n int) []float64 {
	if r == nil || r.asked+n > mostKept {
		return make([]float64, n)
	}
	r.asked += n
	if r.taken+n > len(r.kept) {
		return make([]float64, n)
	}
	x := r.kept[r.taken:][:n:n]
	r.taken += n
	return x
}

// identity returns a matrix of ones on the diagonal and zeros beside it.
func (r *Room) identity(rows, cols int) *Matrix {
	m := r.New(rows, cols)
	for i := range min(rows, cols) {
		m.at(i, i)[0] = 1
	}
	return m
}

// limiter returns the Limiter, nil without one.
func (r *Room) limiter() *parallel.Limiter {
	if r == nil {
		return nil
	}
	return r.Limiter
}
