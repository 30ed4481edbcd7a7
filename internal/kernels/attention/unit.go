package attention

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// unit is a block of n columns, from first on, of the queries that meet the
// keys of one head.
type unit[T Element, A Float] struct {
	*Call[T, A]
	w     *worker[A]
	set   *tile.Set[A]
	scale A

	block     int // columns, a multiple of half a panel
	batch, kv int
	first, n  int
}

// column returns the head and the query of a column of the block.
func (u *unit[T, A]) column(i int) (head, query int) {
	i += u.first
	return u.kv*(u.Heads/u.KVHeads) + i/u.Queries, i % u.Queries
}

func (u *unit[T, A]) run() {
	w := u.w
	u.packQueries()
	w.sums = grow(w.sums, u.block*u.width())
	w.most, w.total, w.shrink = grow(w.most, u.block), grow(w.total, u.block), grow(w.shrink, u.block)
	for i := range u.block {
		w.most[i], w.total[i] = A(math.Inf(-1)), 0
	}
	keys := u.seen()
	if keys == 0 {
		clear(w.sums)
	}
	for k := 0; k < keys; k += blockKeys {
		n := min(blockKeys, keys-k)
		w.scores = grow(w.scores, n*u.block)
		u.score(k, n)
		scale := u.mask(k, n)
		vec.SoftmaxColumns(w.scores, n, u.block, u.block, scale, w.most, w.total, w.shrink)
		if k > 0 {
			u.rescale()
		}
		u.accumulate(k, n)
	}
	u.store()
}

// width returns the elements of a row of sums: ValueDim, in whole half panels.
func (u *unit[T, A]) width() int {
	half := u.set.Width / 2
	return ceil(u.ValueDim, half) * half
}

// seen returns how many keys some query of the block may see.
func (u *unit[T, A]) seen() int {
	if !u.Causal {
		return u.Keys
	}
	last := 0
	for i := range u.n {
		_, q := u.column(i)
		last = max(last, q)
	}
	return min(u.Keys, last+1)
}

// packQueries writes the block's queries in panels, a row for each dimension.
// Columns past the last query are zero.
func (u *unit[T, A]) packQueries() {
	w, width := u.w, u.set.Width
	w.queries = grow(w.queries, ceil(u.block, width)*width*u.Dim)
	if u.n < u.block || u.block%width != 0 {
		clear(w.queries)
	}
	if u.Dim == 0 {
		return
	}
	wide, same := any(u.Q.Data).([]A)
	if same = same && u.Q.Strides[3] == 1; same {
		u.transposeQueries(wide)
		return
	}
	w.line = grow(w.line, u.Dim)
	for i := range u.n {
		head, q := u.column(i)
		at := u.Q.at(u.batch, head, q)
		if u.Q.Strides[3] == 1 {
			vec.Load(w.line, u.Q.Data[at:at+u.Dim])
		} else {
			for d := range w.line {
				w.line[d] = vec.Wide[A](u.Q.Data[at+d*u.Q.Strides[3]])
			}
		}
		dst := w.queries[i/width*width*u.Dim+i%width:]
		for d, v := range w.line {
			dst[d*width] = v
		}
	}
}

// transposeQueries does the same for queries whose elements adjoin, a run of
// one head in one panel at a time.
func (u *unit[T, A]) transposeQueries(data []A) {
	width := u.set.Width
	for i := 0; i < u.n; {
		head, q := u.column(i)
		n := min(u.n-i, width-i%width, u.Queries-q)
		dst := u.w.queries[i/width*width*u.Dim+i%width:]
		gemm.Transpose(dst, width, data[u.Q.at(u.batch, head, q):], u.Q.Strides[2], n, u.Dim)
		i += n
	}
}

// panels returns how wide the tile at column i of n is, given that columns come
// in half panels and that tiles of two panels are wanted or not.
func panels[A Float](set *tile.Set[A], rest int, two bool) tile.Panel {
	switch {
	case two && rest >= 2*set.Width:
		return tile.Two
	case rest >= set.Width:
		return tile.One
	}
	return tile.Half
}

func (u *unit[T, A]) begin() *tile.Args[A] {
	a := &u.w.args
	a.Segs, a.NSegs = unsafe.Pointer(&u.w.segment), 1
	a.Init, a.InitStep = tile.Zeros, 0
	a.Add, a.AddStep = tile.Zeros, 0
	a.Lo, a.Hi = A(math.Inf(-1)), A(math.Inf(1))
	return a
}

// score sets the scores of n keys from k on, without scale and mask.
func (u *unit[T, A]) score(k, n int) {
	w, size, width := u.w, int(unsafe.Sizeof(*new(A))), u.set.Width
	keys, row, col := u.operand(&u.K, &w.keys, k, n, u.Dim, false)
	a := u.begin()
	a.Run = u.Dim
	a.XStep, a.KStep, a.WStep, a.CStep = row*size, col*size, width*size, u.block*size
	for c := 0; c < u.block; {
		p := panels(u.set, u.block-c, n <= u.set.Rows(tile.Two))
		a.W = unsafe.Add(start(w.queries), c*u.Dim*size)
		a.W2 = unsafe.Add(a.W, 0)
		if p == tile.Two {
			a.W2 = unsafe.Add(start(w.queries), (c+width)*u.Dim*size)
		}
		tiles := ceil(n, u.set.Rows(p))
		for t, at := 0, 0; t < tiles; t++ {
			end := (t + 1) * n / tiles
			a.X = unsafe.Add(keys, at*a.XStep)
			a.C = unsafe.Add(start(w.scores), (at*u.block+c)*size)
			u.set.Run(a, end-at, p)
			at = end
		}
		c += int(p) * width / 2
	}
}

// accumulate adds the values of n keys from k on, weighted by the scores.
func (u *unit[T, A]) accumulate(k, n int) {
	w, size, width := u.w, int(unsafe.Sizeof(*new(A))), u.width()
	values, row, _ := u.operand(&u.V, &w.values, k, n, u.ValueDim, true)
	a := u.begin()
	a.XStep, a.KStep, a.WStep, a.CStep = size, u.block*size, row*size, width*size
	for from := 0; from < n; from += depthKeys {
		a.Run = min(depthKeys, n-from)
		first := k == 0 && from == 0
		for c := 0; c < width; {
			p := panels(u.set, width-c, true)
			a.W = unsafe.Add(values, (from*row+c)*size)
			a.W2 = a.W
			if p == tile.Two {
				a.W2 = unsafe.Add(a.W, u.set.Width*size)
			}
			tiles := ceil(u.n, u.set.Rows(p))
			for t, at := 0, 0; t < tiles; t++ {
				end := (t + 1) * u.n / tiles
				a.X = unsafe.Add(start(w.scores), (from*u.block+at)*size)
				a.C = unsafe.Add(start(w.sums), (at*width+c)*size)
				if !first {
					a.Init, a.InitStep = a.C, a.CStep
				}
				u.set.Run(a, end-at, p)
				at = end
			}
			c += int(p) * u.set.Width / 2
		}
	}
}

// operand returns rows k..k+n-1 of keys or values as tiles read them: where
// they lie, or a wide copy. Columns of values must adjoin and fill half panels.
func (u *unit[T, A]) operand(t *Tensor[T], scratch *[]A, k, n, cols int, whole bool) (at unsafe.Pointer, row, col int) {
	from := t.at(u.batch, u.kv, k)
	pad := cols
	if whole {
		pad = u.width()
	}
	if wide, ok := any(t.Data).([]A); ok && pad == cols && (!whole || t.Strides[3] == 1) {
		if n*cols == 0 {
			return tile.Zeros, 0, 0
		}
		return unsafe.Pointer(&wide[from]), t.Strides[2], t.Strides[3]
	}
	*scratch = grow(*scratch, n*pad)
	for i := range n {
		dst := (*scratch)[i*pad:][:pad]
		clear(dst[cols:])
		if t.Strides[3] == 1 {
			vec.Load(dst, t.Data[from:from+cols])
		} else {
			for c := range cols {
				dst[c] = vec.Wide[A](t.Data[from+c*t.Strides[3]])
			}
		}
		from += t.Strides[2]
	}
	return start(*scratch), pad, 1
}

// rescale multiplies what has been summed for the new greatest scores.
func (u *unit[T, A]) rescale() {
	width := u.width()
	for i := range u.n {
		f := u.w.shrink[i]
		if f == 1 {
			continue
		}
		row := u.w.sums[i*width:][:width]
		vec.Scale(row, row, f)
	}
}

// store divides the sums and writes the block's results.
func (u *unit[T, A]) store() {
	w, width := u.w, u.width()
	for i := range u.n {
		head, q := u.column(i)
		f := A(1)
		if w.total[i] != 0 {
			f = 1 / w.total[i]
		}
		row := w.sums[i*width:][:u.ValueDim]
		at := u.Out.at(u.batch, head, q)
		if wide, ok := any(u.Out.Data).([]A); ok && u.Out.Strides[3] == 1 {
			vec.Scale(wide[at:], row, f)
			u.keep(i, head, q)
			continue
		}
		vec.Scale(row, row, f)
		if u.Out.Strides[3] == 1 {
			vec.Store(u.Out.Data[at:at+u.ValueDim], row)
		} else {
			for d, v := range row {
				u.Out.Data[at+d*u.Out.Strides[3]] = vec.Narrow[T](v)
			}
		}
		u.keep(i, head, q)
	}
}

// keep stores the logarithm of the sum of column i of the scratch memory, that of
// a query, if it is wanted.
func (u *unit[T, A]) keep(i, head, q int) {
	if u.LogSumExp != nil {
		s := &u.LogSumExpStrides
		u.LogSumExp[u.batch*s[0]+head*s[1]+q*s[2]] = u.w.most[i] + A(math.Log(float64(u.w.total[i])))
	}
}
