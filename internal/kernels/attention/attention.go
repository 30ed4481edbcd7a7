// Package attention computes scaled dot-product attention,
// softmax(Q·Kᵀ·scale + mask)·V, a block of queries at a time without holding
// the matrix of scores: blocks of keys are taken in turn, and what has been
// summed is rescaled when a greater score comes (the form known as flash
// attention).
//
// Scores are computed transposed, a row for each key. The queries of a block
// are the columns of a packed panel, keys and values are read where they lie,
// and the softmax runs down columns, with no sums across a vector. Heads that
// share keys and values are columns of the same block.
//
// Operands are strided. Sums are float32 (float64 for float64). Nothing is
// allocated once scratch memory has been pooled.
package attention

import (
	"github.com/loris-ml/loris/internal/kernels/tile"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/parallel"
)

// Element is the types of operands.
type Element = vec.Element

// Float is the types computed in: float64 for float64, float32 for the others.
type Float = tile.Float

// Tensor is a strided operand [Batch, heads, rows, columns]; a stride of zero
// repeats.
type Tensor[T any] struct {
	Data    []T
	Strides [4]int
}

// Dense returns the tensor [·, heads, rows, cols] whose elements follow each
// other.
func Dense[T any](data []T, heads, rows, cols int) Tensor[T] {
	return Tensor[T]{data, [4]int{heads * rows * cols, rows * cols, cols, 1}}
}

func (t *Tensor[T]) at(batch, head, row int) int {
	return batch*t.Strides[0] + head*t.Strides[1] + row*t.Strides[2]
}

// Call is one run. Q is [Batch, Heads, Queries, Dim], K [Batch, KVHeads, Keys,
// Dim], V [Batch, KVHeads, Keys, ValueDim], Out [Batch, Heads, Queries,
// ValueDim]; Heads is a multiple of KVHeads, and neighbouring heads share keys.
// Causal lets query i see keys up to i. Masks are [Batch, Heads, Queries, Keys]
// and optional: Mask is added to the scores, and Keep is not 0 where a key takes
// part. A query that sees no key gets zeros, and −Inf for its sum. Without memory for Out only the sums are
// computed.
//
// Units must be called after sizes have been set and before Do. Operands may be
// bound anew between runs.
type Call[T Element, A Float] struct {
	Batch, Heads, KVHeads        int
	Queries, Keys, Dim, ValueDim int
	Scale                        float64 // of the scores; commonly 1/√Dim
	Causal                       bool
	Q, K, V, Out                 Tensor[T]
	Mask                         Tensor[T]
	Keep                         Tensor[uint8]
	// LogSumExp gets, for each query, the logarithm of the sum of exponentials
	// of its scores, at the strides for batch, head and row; optional.
	LogSumExp        []A
	LogSumExpStrides [3]int

	// Limiter bounds the goroutines of Run; nil stands for any. Units are made for as
	// many as it has, or for Workers unless that is 0.
	Limiter *parallel.Limiter
	Workers int

	set  *tile.Set[A] // nil for the best
	size int          // columns of a unit
}

const (
	// blockQueries and blockKeys bound the scores that a unit holds.
	blockQueries = 64
	blockKeys    = 512
	// depthKeys is how many values are summed at a time, so that they stay in
	// the first-level cache.
	depthKeys = 128
	// unitsPerWorker is how many units a processor gets at least, if the work
	// can be cut so.
	unitsPerWorker = 3
)

func (c *Call[T, A]) tiles() *tile.Set[A] {
	if c.set != nil {
		return c.set
	}
	return tile.Best[A]()
}

// columns returns how many queries meet the same keys.
func (c *Call[T, A]) columns() int { return c.Heads / c.KVHeads * c.Queries }

// block returns how many queries a unit has.
func (c *Call[T, A]) block() int {
	half, workers := c.tiles().Lanes(), c.Workers
	if workers == 0 {
		workers = c.Limiter.Threads()
	}
	n := min(blockQueries, ceil(c.columns(), half)*half)
	for n > 2*half && c.Batch*c.KVHeads*ceil(c.columns(), n) < unitsPerWorker*workers {
		n = ceil(n/2, half) * half
	}
	return n
}

func ceil(n, d int) int { return (n + d - 1) / d }

// Units returns the number of independent units of work.
func (c *Call[T, A]) Units() int {
	if c.Batch == 0 || c.KVHeads == 0 || c.columns() == 0 {
		return 0
	}
	c.size = c.block()
	return c.Batch * c.KVHeads * ceil(c.columns(), c.size)
}

// Run computes all units on the goroutines that the Limiter allows.
func (c *Call[T, A]) Run() { c.Limiter.For(c.Units(), 1, c.Do) }

// unit returns one without columns.
func (c *Call[T, A]) unit(w *worker[A]) unit[T, A] {
	u := unit[T, A]{Call: c, w: w, set: c.tiles(), scale: A(c.Scale)}
	u.scorer, u.depth = c.scorer(&c.Q, &c.K, c.Dim)
	return u
}

// Do computes units lo..hi-1.
func (c *Call[T, A]) Do(lo, hi int) {
	w := borrow[A]()
	defer w.release()
	u := c.unit(w)
	blocks, few := ceil(c.columns(), c.size), c.few()
	for i := lo; i < hi; i++ {
		u.first = i % blocks * c.size
		u.n = min(c.size, c.columns()-u.first)
		u.block = ceil(u.n, u.set.Lanes()) * u.set.Lanes()
		kv, batch := i/blocks%c.KVHeads, i/blocks/c.KVHeads
		if kv != u.kv || batch != u.batch {
			u.heldKeys, u.heldValues = 0, 0
		}
		u.kv, u.batch = kv, batch
		if few {
			u.runFew()
			continue
		}
		u.run()
	}
}
