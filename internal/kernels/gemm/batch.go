package gemm

import (
	"github.com/loris-ml/loris/internal/parallel"
)

// batchGrain is how many multiplications of a batch are worth a goroutine.
const batchGrain = 256 << 10

// MulBatch computes n products, the operands of the i-th of which at returns;
// all have the same sizes and options (nil for none; biases are those of every
// product). Products of a batch run side by side if there are enough of them.
func MulBatch[R, T Element](n int, at func(i int) (c Matrix[R], a, b Matrix[T]), o *Options[R]) {
	if n <= 0 {
		return
	}
	var limiter *parallel.Limiter
	if o != nil {
		limiter = o.Limiter
	}
	threads := limiter.Threads()
	if o != nil && o.Threads > 0 {
		threads = min(threads, o.Threads)
	}
	if n < 2*threads {
		mulEach(0, n, at, o, threads)
		return
	}
	c, a, _ := at(0)
	work := max(1, c.Rows*c.Cols*a.Cols)
	limiter.ForThreads(threads, n, max(1, batchGrain/work), func(lo, hi int) { mulEach(lo, hi, at, o, 1) })
}

// mulEach computes products lo..hi-1 of a batch one after another.
func mulEach[R, T Element](lo, hi int, at func(i int) (c Matrix[R], a, b Matrix[T]), o *Options[R], threads int) {
	var one Options[R]
	if o != nil {
		one = *o
	}
	one.Threads = threads
	for i := lo; i < hi; i++ {
		c, a, b := at(i)
		if one.Residuals != nil {
			one.Residual = one.Residuals(i)
		}
		Mul(c, a, b, &one)
	}
}
