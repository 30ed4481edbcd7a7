package attention

import (
	"math"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Gradient is one run of the gradients of Q, K and V, given that of Out. Of the Call it reads all
// operands, Out and LogSumExp, which must be set; probabilities are computed again from them, for a
// block of queries and a block of keys at a time. A gradient without memory is not computed.
//
// Bits do not depend on how many goroutines there are: blocks depend on sizes alone, and sums over
// queries and over keys are in their order.
type Gradient[T Element, A Float] struct {
	Call[T, A]
	Grad       Tensor[T] // of Out
	DQ, DK, DV Tensor[T]
	DMask      []A // of each score, dense; for calls that are not causal

	blocks, keyBlocks int // of the queries that meet the same keys, and of these
	// A unit is all that belongs to the keys of one head; or, where there are few of these, a block
	// of queries or a block of keys, for which probabilities are computed twice.
	apart bool
}

const (
	// gradientBlock bounds the queries and the keys whose probabilities a unit holds.
	gradientBlock = 128
	// gradientCausal is the same of queries that do not see all keys: less is computed in vain.
	gradientCausal = 64
)

// Units returns the number of independent units of work.
func (g *Gradient[T, A]) Units() int {
	lanes, columns := g.tiles().Lanes(), g.columns()
	most := gradientBlock
	if g.Causal {
		most = gradientCausal
	}
	g.blocks, g.keyBlocks = ceil(columns, most), ceil(g.Keys, gradientBlock)
	g.size = ceil(ceil(columns, max(g.blocks, 1)), lanes) * lanes
	g.blocks = ceil(columns, max(g.size, 1))
	heads, workers := g.Batch*g.KVHeads, g.Workers
	if workers == 0 {
		workers = g.Limiter.Threads()
	}
	// Seven products instead of five, on all of the goroutines.
	g.apart = g.blocks > 0 && g.keyBlocks > 0 && ceil(heads, workers)*workers*5 > heads*7
	if g.apart {
		return heads * (g.blocks + g.keyBlocks)
	}
	return heads
}

// Run computes all units on the goroutines that the Limiter allows.
func (g *Gradient[T, A]) Run() { g.Limiter.For(g.Units(), 1, g.Do) }

// Do computes units lo..hi-1.
func (g *Gradient[T, A]) Do(lo, hi int) {
	w := borrow[A]()
	defer w.release()
	s := slopes[T, A]{unit: g.unit(w), g: g}
	s.gradScorer, s.gradDepth = g.scorer(&g.Grad, &g.V, g.ValueDim)
	s.dim, s.valueDim = s.whole(g.Dim), s.whole(g.ValueDim)
	each := 1
	if g.apart {
		each = g.blocks + g.keyBlocks
	}
	for i := lo; i < hi; i++ {
		head, at := i/each, i%each
		switch {
		case !g.apart:
			s.wants(true, true)
			s.run(head, 0, g.blocks, 0, g.Keys)
		case at < g.blocks:
			s.wants(true, false)
			s.run(head, at, at+1, 0, g.Keys)
		default:
			s.wants(false, true)
			k := (at - g.blocks) * gradientBlock
			s.run(head, 0, g.blocks, k, min(k+gradientBlock, g.Keys))
		}
	}
}

// slopes is a unit of gradients.
type slopes[T Element, A Float] struct {
	unit[T, A]
	g *Gradient[T, A]
	// gradScorer computes the gradients of probabilities, see unit.scorer.
	gradScorer *tile.Set[A]
	gradDepth  int
	// The elements of rows in whole half panels.
	dim, valueDim int
	// What the unit is to compute, and the keys that it meets.
	dq, dk, dv, dmask bool
	lo, hi            int
	met               int // of these, by the blocks of queries before
}

func (s *slopes[T, A]) wants(queries, keys bool) {
	s.dq, s.dmask = queries && s.g.DQ.Data != nil, queries && s.g.DMask != nil
	s.dk, s.dv = keys && s.g.DK.Data != nil, keys && s.g.DV.Data != nil
}

// run computes what blocks of queries of a head and the keys from lo to hi-1 have to do with each other.
func (s *slopes[T, A]) run(head, first, end, lo, hi int) {
	if !s.dq && !s.dk && !s.dv && !s.dmask {
		return
	}
	w := s.w
	if kv, batch := head%s.KVHeads, head/s.KVHeads; kv != s.kv || batch != s.batch || lo != s.lo || hi != s.hi {
		s.kv, s.batch, s.lo, s.hi = kv, batch, lo, hi
		s.heldKeys, s.heldValues = 0, 0
	}
	if s.met = 0; s.dk {
		w.keySums = grow(w.keySums, (hi-lo)*s.dim)
	}
	if s.dv {
		w.valueSums = grow(w.valueSums, (hi-lo)*s.valueDim)
	}
	for b := first; b < end; b++ {
		s.first = b * s.size
		s.n = min(s.size, s.columns()-s.first)
		s.block = s.whole(s.n)
		s.queries()
	}
	s.clearSums(s.met, hi-lo)
	if s.dk {
		s.storeKeys(&s.g.DK, w.keySums, s.Dim, s.scale)
	}
	if s.dv {
		s.storeKeys(&s.g.DV, w.valueSums, s.ValueDim, 1)
	}
}

// meet reports whether no block of queries before has met the block of keys of which n, from k of the unit on, are
// met now. Sums of the others of the block are zero then.
func (s *slopes[T, A]) meet(k, n int) (fresh bool) {
	if k < s.met {
		return false
	}
	s.met = min(k+gradientBlock, s.hi-s.lo)
	s.clearSums(k+n, s.met)
	return true
}

// clearSums sets the sums of some of the unit's keys and values to zero.
func (s *slopes[T, A]) clearSums(from, to int) {
	if s.dk {
		clear(s.w.keySums[from*s.dim : to*s.dim])
	}
	if s.dv {
		clear(s.w.valueSums[from*s.valueDim : to*s.valueDim])
	}
}

// queries computes what a block of queries adds to the gradients, and its own.
func (s *slopes[T, A]) queries() {
	w, size := s.w, int(unsafe.Sizeof(*new(A)))
	seen := min(s.seen(), s.hi)
	if seen > s.lo {
		s.packColumns()
	}
	if w.sums = grow(w.sums, s.block*s.dim); s.dq && seen <= s.lo {
		clear(w.sums)
	}
	for k := s.lo; k < seen; k += gradientBlock {
		n := min(gradientBlock, seen-k)
		keys := s.pair(k, n)
		fresh := s.meet(k-s.lo, n)
		// A row for each key, a column for each query.
		weights, slopes := start(w.scores), start(w.slopes)
		if s.dv {
			s.sum(w.valueSums[(k-s.lo)*s.valueDim:], n, s.valueDim, factors{weights, s.block * size, size}, factors{start(w.gradRows), 0, s.valueDim * size}, s.n, fresh)
		}
		if s.dk {
			s.sum(w.keySums[(k-s.lo)*s.dim:], n, s.dim, factors{slopes, s.block * size, size}, factors{start(w.queryRows), 0, s.dim * size}, s.n, fresh)
		}
		if s.dmask {
			s.storeSlopes(k, n)
		}
		if s.dq {
			s.sum(w.sums, s.n, s.dim, factors{slopes, size, s.block * size}, keys, n, k == s.lo)
		}
	}
	if s.dq {
		for i := range s.n {
			head, q := s.column(i)
			s.put(&s.g.DQ, s.g.DQ.at(s.batch, head, q), w.sums[i*s.dim:][:s.Dim], s.scale)
		}
	}
}

// packColumns prepares what pairs need of a block of queries: queries and gradients as panels and as rows, and
// two numbers for each.
func (s *slopes[T, A]) packColumns() {
	w, g := s.w, s.g
	w.queryRows, w.gradRows = grow(w.queryRows, s.n*s.dim), grow(w.gradRows, s.n*s.valueDim)
	w.base, w.mean = grow(w.base, s.block), grow(w.mean, s.block)
	w.line = grow(w.line, s.ValueDim)
	for i := range s.block {
		w.base[i], w.mean[i] = A(math.Inf(1)), 0
	}
	for i := range s.n {
		head, q := s.column(i)
		s.widenTo(w.queryRows[i*s.dim:][:s.dim], &s.Q, s.Q.at(s.batch, head, q), s.Dim)
		grad := w.gradRows[i*s.valueDim:][:s.valueDim]
		s.widenTo(grad, &g.Grad, g.Grad.at(s.batch, head, q), s.ValueDim)
		s.widen(w.line, &s.Out, s.Out.at(s.batch, head, q))
		w.mean[i] = vec.Dot(w.line, grad)
		at := &s.LogSumExpStrides
		if sum := s.LogSumExp[s.batch*at[0]+head*at[1]+q*at[2]]; !math.IsInf(float64(sum), -1) {
			w.base[i] = sum // else the query sees no key
		}
	}
	s.packRows(&w.queries, w.queryRows, &s.Q, s.Dim, s.dim, s.scorer, s.depth)
	s.packRows(&w.grads, w.gradRows, &g.Grad, s.ValueDim, s.valueDim, s.gradScorer, s.gradDepth)
}

// packRows packs the rows of the block, of which there is a wide copy, as panels.
func (s *slopes[T, A]) packRows(panels *[]A, rows []A, t *Tensor[T], dim, rowWidth int, scorer *tile.Set[A], depth int) {
	if scorer != s.set {
		s.pack(panels, t, dim, scorer, depth)
		return
	}
	width := s.set.Width
	*panels = grow(*panels, ceil(s.block, width)*width*dim)
	if s.n < s.block || s.block%width != 0 {
		clear(*panels)
	}
	for i := 0; i < s.n && dim > 0; i += width {
		gemm.Transpose((*panels)[i*dim:], width, rows[i*rowWidth:], rowWidth, min(width, s.n-i), dim)
	}
}

// pair sets the probabilities of n keys from k on for the block, and the gradients of their scores. It returns
// the rows of keys as factors of sums.
func (s *slopes[T, A]) pair(k, n int) factors {
	w, size := s.w, int(unsafe.Sizeof(*new(A)))
	w.scores, w.slopes = grow(w.scores, n*s.block), grow(w.slopes, n*s.block)
	keys := s.rows(&s.K, &w.keys, &s.heldKeys, k, n, s.Dim, s.dim)
	if s.scorer != s.set {
		s.multiply(w.scores, w.queries, s.scorer, s.depth, s.words(&s.K, k, n*s.Dim), s.K.Strides[2]*int(unsafe.Sizeof(*new(T))), size, n)
	} else {
		s.multiply(w.scores, w.queries, s.set, s.depth, keys.at, keys.deep, size, n)
	}
	if s.gradScorer != s.set {
		s.multiply(w.slopes, w.grads, s.gradScorer, s.gradDepth, s.words(&s.V, k, n*s.ValueDim), s.V.Strides[2]*int(unsafe.Sizeof(*new(T))), size, n)
	} else {
		values := s.rows(&s.V, &w.values, &s.heldValues, k, n, s.ValueDim, s.ValueDim)
		s.multiply(w.slopes, w.grads, s.set, s.gradDepth, values.at, values.deep, size, n)
	}
	scale := s.mask(k, n)
	vec.SoftmaxGradientColumns(w.scores, w.slopes, n, s.block, s.block, scale, w.base, w.mean)
	return keys
}

// rows returns n rows of keys or values from k on in the type computed in, with adjoining elements up to width:
// where they lie, or a copy. Of the keys that the unit meets so many are copied already.
func (s *slopes[T, A]) rows(t *Tensor[T], scratch *[]A, held *int, k, n, dim, width int) factors {
	size := int(unsafe.Sizeof(*new(A)))
	if n*dim == 0 {
		return factors{at: tile.Zeros}
	}
	if wide, ok := any(t.Data).([]A); ok && dim == width && t.Strides[3] == 1 {
		return factors{at: unsafe.Pointer(&wide[t.at(s.batch, s.kv, k)]), deep: t.Strides[2] * size}
	}
	*scratch = grow(*scratch, (s.hi-s.lo)*width)
	for ; *held < k-s.lo+n; *held++ {
		s.widenTo((*scratch)[*held*width:][:width], t, t.at(s.batch, s.kv, s.lo+*held), dim)
	}
	return factors{at: unsafe.Pointer(&(*scratch)[(k-s.lo)*width]), deep: width * size}
}

// widenTo sets dst to a row of dim elements and zeros.
func (s *slopes[T, A]) widenTo(dst []A, t *Tensor[T], at, dim int) {
	s.widen(dst[:dim], t, at)
	clear(dst[dim:])
}

// storeKeys writes the gradients of the unit's keys or values, of rows of dim elements.
func (s *slopes[T, A]) storeKeys(t *Tensor[T], sums []A, dim int, scale A) {
	width := s.whole(dim)
	for i := range s.hi - s.lo {
		s.put(t, t.at(s.batch, s.kv, s.lo+i), sums[i*width:][:dim], scale)
	}
}

// storeSlopes writes the gradients of the scores of n keys from k on.
func (s *slopes[T, A]) storeSlopes(k, n int) {
	for i := 0; i < s.n; {
		head, q := s.column(i)
		each := min(s.n-i, s.Queries-q)
		gemm.Transpose(s.g.DMask[((s.batch*s.Heads+head)*s.Queries+q)*s.Keys+k:], s.Keys, s.w.slopes[i:], s.block, n, each)
		i += each
	}
}
