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
	// scorer computes the scores from so many elements of a query and a key: words of two
	// if it is for pairs.
	scorer *tile.Set[A]
	depth  int
	// Of the keys and values of one head so many are copied already.
	heldKeys, heldValues int

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
	u.pack(&w.queries, &u.Q, u.Dim, u.scorer, u.depth)
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
		if k > 0 && u.Out.Data != nil {
			u.rescale()
		}
		if u.Out.Data != nil {
			u.accumulate(k, n)
		}
	}
	u.store()
}

// width returns the elements of a row of sums: ValueDim, in whole half panels.
func (u *unit[T, A]) width() int { return u.whole(u.ValueDim) }

// whole returns n in whole half panels.
func (u *unit[T, A]) whole(n int) int { return ceil(n, u.set.Lanes()) * u.set.Lanes() }

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

// pack writes the rows of a tensor that are the columns of the block in panels, a row for each of the
// rows' elements, for the tiles of a scorer. Columns past the last query are zero.
func (u *unit[T, A]) pack(panels *[]A, t *Tensor[T], dim int, scorer *tile.Set[A], depth int) {
	w, width := u.w, u.set.Width
	*panels = grow(*panels, ceil(u.block, width)*width*depth)
	if u.n < u.block || u.block%width != 0 {
		clear(*panels)
	}
	if dim == 0 {
		return
	}
	wide, same := any(t.Data).([]A)
	if same = same && t.Strides[3] == 1; same {
		u.runs(*panels, t, depth, func(dst []A, at, n int) { gemm.Transpose(dst, width, wide[at:], t.Strides[2], n, dim) })
		return
	}
	if scorer != u.set {
		words := any(*panels).([]float32)
		u.runs(*panels, t, depth, func(dst []A, at, n int) {
			gemm.Pairs(words[len(words)-len(dst):], width, any(t.Data).([]vec.BF16)[at:], t.Strides[2], 1, n, dim)
		})
		return
	}
	w.line = grow(w.line, width*dim)
	u.runs(*panels, t, depth, func(dst []A, at, n int) {
		for i := range n {
			u.widen(w.line[i*dim:][:dim], t, at+i*t.Strides[2])
		}
		gemm.Transpose(dst, width, w.line, dim, n, dim)
	})
}

// runs calls f with the rows of each run of one head in one panel: where they go, where they
// begin and how many they are.
func (u *unit[T, A]) runs(panels []A, t *Tensor[T], depth int, f func(dst []A, at, n int)) {
	width := u.set.Width
	for i := 0; i < u.n; {
		head, q := u.column(i)
		n := min(u.n-i, width-i%width, u.Queries-q)
		f(panels[i/width*width*depth+i%width:], t.at(u.batch, head, q), n)
		i += n
	}
}

// widen sets dst to the row of a tensor that begins at the given element.
func (u *unit[T, A]) widen(dst []A, t *Tensor[T], at int) {
	if t.Strides[3] == 1 {
		vec.Load(dst, t.Data[at:at+len(dst)])
		return
	}
	for c := range dst {
		dst[c] = vec.Wide[A](t.Data[at+c*t.Strides[3]])
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
	w, size := u.w, int(unsafe.Sizeof(*new(A)))
	if u.scorer != u.set {
		u.multiply(w.scores, w.queries, u.scorer, u.depth, u.words(&u.K, k, n*u.Dim), u.K.Strides[2]*int(unsafe.Sizeof(*new(T))), size, n)
		return
	}
	keys, row, col := u.operand(&u.K, &w.keys, &u.heldKeys, k, n, u.Dim, false)
	u.multiply(w.scores, w.queries, u.set, u.depth, keys, row*size, col*size, n)
}

// words returns row k of keys or values, whose elements adjoin, as pairs; there are so many elements.
func (u *unit[T, A]) words(t *Tensor[T], k, elements int) unsafe.Pointer {
	if elements == 0 {
		return tile.Zeros
	}
	return unsafe.Pointer(&t.Data[t.at(u.batch, u.kv, k)])
}

// multiply sets n rows of dst to the products of rows, xStep bytes apart, whose elements are kStep bytes
// apart, with the columns of packed panels.
func (u *unit[T, A]) multiply(dst, packed []A, scorer *tile.Set[A], depth int, rows unsafe.Pointer, xStep, kStep, n int) {
	size, width := int(unsafe.Sizeof(*new(A))), u.set.Width
	a := u.begin()
	a.Run = depth
	a.XStep, a.KStep = xStep, kStep
	a.WStep, a.CStep = width*size, u.block*size
	for c := 0; c < u.block; {
		p := panels(u.set, u.block-c, n <= scorer.Rows(tile.Two))
		a.W = unsafe.Add(start(packed), c*depth*size)
		a.W2 = unsafe.Add(a.W, 0)
		if p == tile.Two {
			a.W2 = unsafe.Add(start(packed), (c+width)*depth*size)
		}
		tiles := ceil(n, scorer.Rows(p))
		for t, at := 0, 0; t < tiles; t++ {
			end := (t + 1) * n / tiles
			a.X = unsafe.Add(rows, at*a.XStep)
			a.C = unsafe.Add(start(dst), (at*u.block+c)*size)
			scorer.Run(a, end-at, p)
			at = end
		}
		c += int(p) * width / 2
	}
}

// accumulate adds the values of n keys from k on, weighted by the scores.
func (u *unit[T, A]) accumulate(k, n int) {
	w, size, width := u.w, int(unsafe.Sizeof(*new(A))), u.width()
	values, row, _ := u.operand(&u.V, &w.values, &u.heldValues, k, n, u.ValueDim, true)
	u.sum(w.sums, u.n, width, factors{start(w.scores), size, u.block * size}, factors{values, 0, row * size}, n, k == 0)
}

// factors is an operand of sums, whose rows or columns and whose depths are so many bytes apart.
type factors struct {
	at         unsafe.Pointer
	each, deep int
}

// sum adds the products of m rows x with columns y, which adjoin, to rows of width sums, a multiple of half
// a panel; the first sets them.
func (u *unit[T, A]) sum(sums []A, m, width int, x, y factors, depth int, first bool) {
	size := int(unsafe.Sizeof(*new(A)))
	a := u.begin()
	a.XStep, a.KStep, a.WStep, a.CStep = x.each, x.deep, y.deep, width*size
	for from := 0; from < depth; from += depthKeys {
		a.Run = min(depthKeys, depth-from)
		for c := 0; c < width; {
			p := panels(u.set, width-c, true)
			a.W = unsafe.Add(y.at, from*y.deep+c*size)
			a.W2 = a.W
			if p == tile.Two {
				a.W2 = unsafe.Add(a.W, u.set.Width*size)
			}
			tiles := ceil(m, u.set.Rows(p))
			for t, at := 0, 0; t < tiles; t++ {
				end := (t + 1) * m / tiles
				a.X = unsafe.Add(x.at, from*x.deep+at*x.each)
				a.C = unsafe.Add(start(sums), (at*width+c)*size)
				if !first || from > 0 {
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
// Rows that are held from a unit before, where all keys are one block, are not
// copied again.
func (u *unit[T, A]) operand(t *Tensor[T], scratch *[]A, held *int, k, n, cols int, whole bool) (at unsafe.Pointer, row, col int) {
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
	if u.Keys > blockKeys {
		*held = 0
	}
	*scratch = grow(*scratch, min(u.Keys, blockKeys)*pad)
	for i := *held; i < n; i++ {
		dst := (*scratch)[i*pad:][:pad]
		clear(dst[cols:])
		u.widen(dst[:cols], t, from+i*t.Strides[2])
	}
	*held = max(*held, n)
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
		if u.Out.Data != nil {
			u.put(&u.Out, u.Out.at(u.batch, head, q), w.sums[i*width:][:u.ValueDim], f)
		}
		u.keep(i, head, q)
	}
}

// put writes a row, multiplied by f, to where a row of a tensor begins. The row is spent.
func (u *unit[T, A]) put(t *Tensor[T], at int, row []A, f A) {
	wide, same := any(t.Data).([]A)
	switch adjoin := t.Strides[3] == 1; {
	case adjoin && same:
		vec.Scale(wide[at:], row, f)
	case adjoin:
		vec.Scale(row, row, f)
		vec.Store(t.Data[at:at+len(row)], row)
	default:
		for d, v := range row {
			t.Data[at+d*t.Strides[3]] = vec.Narrow[T](v * f)
		}
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
