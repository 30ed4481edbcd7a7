package cpu

import "github.com/loris-ml/loris/internal/kernels/gemm"

// plain reports whether a product is all that its step computes.
func (r *productRun[R, T]) plain() bool {
	return !r.hasBias && !r.hasResidual && len(r.factors) == 0 && r.options.Act == 0
}

// small computes a batch of products so small that planning each takes most of the time, each by one
// loop. It reports false for others.
func (r *productRun[R, T]) small() bool {
	if r.batch < 2 || r.swapped || r.bCol != 1 || !r.plain() {
		return false
	}
	switch s := any(r).(type) {
	case *productRun[float32, float32]:
		return smallProducts(s)
	case *productRun[float64, float64]:
		return smallProducts(s)
	}
	return false
}

// smallGrain is how many multiplications of small products are worth a goroutine.
const smallGrain = 1 << 16

func smallProducts[T float32 | float64](r *productRun[T, T]) bool {
	one, size := r.m*r.n*r.k, r.m*r.n
	multiply := func(i int) bool {
		return gemm.Small(r.dst[i*size:(i+1)*size], r.m, r.n, r.k, r.left[r.aBatch[i]:], r.aRow, r.aK, r.right[r.bBatch[i]:], r.bK)
	}
	if !multiply(0) {
		return false
	}
	r.options.Limiter.For(r.batch, 1+smallGrain/one, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			multiply(i)
		}
	})
	return true
}

// foldColumns makes one product of those that follow one another and have the same left operand, where
// the right ones are single columns that lie evenly apart: the columns of one matrix. The columns of the
// result are dense then. It reports false, and has changed nothing, if there are none.
func (p *product) foldColumns() bool {
	if p.n != 1 || p.batch < 2 {
		return false
	}
	run := 1
	for run < p.batch && p.aBatch[run] == p.aBatch[0] {
		run++
	}
	step := p.bBatch[1] - p.bBatch[0]
	if run == 1 || p.batch%run != 0 || step <= 0 {
		return false
	}
	for i := 1; i < p.batch; i++ {
		if i%run != 0 && (p.aBatch[i] != p.aBatch[i-1] || p.bBatch[i]-p.bBatch[i-1] != step) {
			return false
		}
	}
	p.n, p.bCol, p.batch = run, step, p.batch/run
	for i := range p.batch {
		p.aBatch[i], p.bBatch[i] = p.aBatch[i*run], p.bBatch[i*run]
	}
	p.aBatch, p.bBatch = p.aBatch[:p.batch], p.bBatch[:p.batch]
	p.aOnce, p.bOnce = allEqual(p.aBatch), allEqual(p.bBatch)
	return true
}
