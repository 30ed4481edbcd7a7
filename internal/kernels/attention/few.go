package attention

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Up to fewColumns queries that meet the same keys, as when a model makes one
// token after another, have their scores in rows of their own: a panel would be
// empty for the most part, and keys and values of 16 bits would be copied as wide ones. From
// manyKeys on that pays.
const (
	fewColumns = 8
	manyKeys   = 64
)

// few reports whether the units of a call are such.
func (c *Call[T, A]) few() bool {
	return c.columns() <= fewColumns && (c.Queries == 1 || c.Heads == c.KVHeads) && c.Keys >= manyKeys && c.Dim > 0 && c.ValueDim > 0
}

// rows returns the rows of a tensor that are the columns of the unit.
func (u *unit[T, A]) rows(t *Tensor[T], cols int) gemm.Matrix[T] {
	head, q := u.column(0)
	stride := t.Strides[2]
	if u.Queries == 1 {
		stride = t.Strides[1]
	}
	return gemm.Matrix[T]{Data: t.Data[t.at(u.batch, head, q):], Rows: u.n, Cols: cols, RowStride: stride, ColStride: t.Strides[3]}
}

// shared returns the keys or values of the unit.
func (u *unit[T, A]) shared(t *Tensor[T], cols int) gemm.Matrix[T] {
	return gemm.Matrix[T]{Data: t.Data[t.at(u.batch, u.kv, 0):], Rows: u.Keys, Cols: cols, RowStride: t.Strides[2], ColStride: t.Strides[3]}
}

// runFew computes a unit of few queries: two products and the softmax of rows.
func (u *unit[T, A]) runFew() {
	w, lanes := u.w, u.set.Lanes()
	w.most, w.total, w.shrink = grow(w.most, lanes), grow(w.total, lanes), grow(w.shrink, 4*lanes)
	width := ceil(u.Keys, lanes) * lanes
	w.scores = grow(w.scores, u.n*width)
	scores := gemm.Matrix[A]{Data: w.scores, Rows: u.n, Cols: u.Keys, RowStride: width, ColStride: 1}
	one := gemm.Options[A]{Threads: 1}
	scaled := gemm.Options[A]{Threads: 1, Scaled: true, Alpha: u.Scale}
	gemm.Mul(scores, u.rows(&u.Q, u.Dim), u.shared(&u.K, u.Dim).T(), &scaled)
	for i := range u.n {
		u.softmaxRow(i, w.scores[i*width:][:width])
	}
	if u.Out.Data == nil {
		return
	}
	values := u.shared(&u.V, u.ValueDim)
	if out, ok := any(u.rows(&u.Out, u.ValueDim)).(gemm.Matrix[A]); ok {
		gemm.MulWide(out, scores, values, &one)
		return
	}
	w.sums = grow(w.sums, u.n*u.ValueDim)
	gemm.MulWide(gemm.Dense(w.sums, u.n, u.ValueDim), scores, values, &one)
	for i := range u.n {
		head, q := u.column(i)
		u.put(&u.Out, u.Out.at(u.batch, head, q), w.sums[i*u.ValueDim:][:u.ValueDim], 1)
	}
}

// softmaxRow masks the scores of column i, which are scaled, and turns them into
// weights. There is room for whole vectors.
func (u *unit[T, A]) softmaxRow(i int, row []A) {
	w, lanes := u.w, u.set.Lanes()
	head, q := u.column(i)
	hidden := A(math.Inf(-1))
	s := row[:u.Keys]
	if m := &u.Mask; m.Data != nil {
		at := m.at(u.batch, head, q)
		for j := range s {
			s[j] += vec.Wide[A](m.Data[at+j*m.Strides[3]])
		}
	}
	if m := &u.Keep; m.Data != nil {
		at := m.at(u.batch, head, q)
		for j := range s {
			if m.Data[at+j*m.Strides[3]] == 0 {
				s[j] = hidden
			}
		}
	}
	for j := len(row) - 1; j >= u.Keys || u.Causal && j > q; j-- {
		row[j] = hidden
	}
	most, total := greatest(row, w.shrink), A(0)
	if most == hidden {
		clear(s)
	} else {
		// Each lane begins with the greatest score of all as its own.
		for l := range lanes {
			w.most[l], w.total[l] = most, 0
		}
		vec.SoftmaxColumns(row, len(row)/lanes, lanes, lanes, 1, w.most, w.total, w.shrink)
		for _, v := range w.total[:lanes] {
			total += v
		}
		vec.Scale(s, s, 1/total)
	}
	w.most[0], w.total[0] = most, total
	u.keep(0, head, q)
}

// greatest returns the greatest element of a row, or NaN if there is one, given room for some vectors.
func greatest[A Float](row, room []A) A {
	room = room[:min(len(room), len(row))]
	copy(room, row)
	for row = row[len(room):]; len(row) > 0; {
		n := min(len(room), len(row))
		replace(room[:n], row[:n])
		row = row[n:]
	}
	for len(room) > 8 && len(room)%2 == 0 {
		half := len(room) / 2
		replace(room[:half], room[half:])
		room = room[:half]
	}
	most := room[0]
	for _, v := range room[1:] {
		most = max(most, v)
	}
	return most
}

// replace replaces elements of best by those of x that are greater or NaN.
func replace[A Float](best, x []A) {
	if b, ok := any(best).([]float32); ok {
		vec.Most(b, any(x).([]float32))
		return
	}
	vec.MostOf(best, x)
}
