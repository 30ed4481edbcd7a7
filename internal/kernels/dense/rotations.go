package dense

// rotations are turns of rows of a matrix that are still to be done, of some sweeps, each of a first row with
// the next, that one with the one after, and so on. Columns are independent of each other: each strip of
// them stays in the cache for all sweeps, in memory where its rows adjoin.
type rotations struct {
	m      *Matrix
	most   int // turns from which on they are done
	sweeps []sweep
	c, s   []float64 // of the sweeps, one after the other
	strip  []float64
}

// sweep is the turns of count rows from a first one on, each with the next.
type sweep struct{ first, count int }

const (
	// sweepsAtOnce is how many sweeps over all rows are done at once: copying a strip takes as long as one.
	sweepsAtOnce = 16
	// cachedElements are as many as stay in the cache as they lie: each sweep is done at once.
	cachedElements = 8 << 10
)

func newRotations(m *Matrix) *rotations {
	turns, most, strip := m.Rows, 1, 0
	if len(m.Data) > cachedElements {
		turns, most, strip = (sweepsAtOnce+1)*m.Rows, sweepsAtOnce*m.Rows, m.Rows*use.cols()
	}
	room := m.room.zeros(2*turns + strip)
	return &rotations{m: m, most: most, c: room[:0:turns], s: room[turns : turns : 2*turns], strip: room[2*turns:]}
}

// sweep returns the angles, which the caller fills in, of a sweep of count turns from a row on: x and y
// become c·x+s·y and c·y-s·x.
func (r *rotations) sweep(first, count int) (c, s []float64) {
	if len(r.c) >= r.most {
		r.finish()
	}
	r.sweeps = append(r.sweeps, sweep{first, count})
	at := len(r.c)
	r.c, r.s = r.c[:at+count], r.s[:at+count]
	return r.c[at:], r.s[at:]
}

// finish does the turns.
func (r *rotations) finish() {
	if len(r.strip) > 0 {
		r.byStrips()
	} else if len(r.sweeps) > 0 {
		r.m.rotate(r.sweeps[0].first, false, r.c, r.s)
	}
	r.sweeps, r.c, r.s = r.sweeps[:0], r.c[:0], r.s[:0]
}

// byStrips is finish of many sweeps.
func (r *rotations) byStrips() {
	lo, hi := r.m.Rows, 0
	for _, w := range r.sweeps {
		lo, hi = min(lo, w.first), max(hi, w.first+w.count+1)
	}
	width := use.cols()
	part := Matrix{Data: r.strip, Rows: hi - lo, Cols: width, Stride: width}
	for j := 0; j < r.m.Cols; j += width {
		for i := lo; i < hi; i++ {
			copy(part.row(i-lo), r.m.at(i, j)[:width])
		}
		at := 0
		for _, w := range r.sweeps {
			part.rotate(w.first-lo, false, r.c[at:at+w.count], r.s[at:])
			at += w.count
		}
		for i := lo; i < hi; i++ {
			copy(r.m.at(i, j)[:width], part.row(i-lo))
		}
	}
}
