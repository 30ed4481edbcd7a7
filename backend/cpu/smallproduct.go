package cpu

import "github.com/loris-ml/loris/internal/kernels/gemm"

// plain reports whether a product is all that its step computes.
func (r *productRun[R, T]) plain() bool {
	return !r.hasBias && !r.hasResidual && len(r.factors) == 0 && r.options.Act == 0
}

// small computes a batch of products so small that planning each takes most of the time, each by one
// loop. It reports false for others.
func (r *productRun[R, T]) small() bool {
	if r.batch < 2 || r.hasBias || len(r.factors) > 0 || r.options.Act != 0 {
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

// smallOperand is one side of small products: where each matrix begins, and the strides of its rows and columns.
type smallOperand[T float32 | float64] struct {
	data     []T
	begin    []int
	row, col int
}

func smallProducts[T float32 | float64](r *productRun[T, T]) bool {
	m, n := r.m, r.n
	left, right := smallOperand[T]{r.left, r.aBatch, r.aRow, r.aK}, smallOperand[T]{r.right, r.bBatch, r.bK, r.bCol}
	if r.swapped { // the transposed result is the product of the transposed operands, the other way round
		m, n = n, m
		left, right = right.transposed(), left.transposed()
	}
	if max(n, r.k) > gemm.MostSmall {
		return false
	}
	size := m * n
	add := smallOperand[T]{r.sums, r.residual.batch, r.residual.row, r.residual.col}
	if r.swapped {
		add = add.transposed()
	}
	multiply := func(i int, room []T) bool {
		b, step := right.data[right.begin[i]:], right.row
		if right.col != 1 {
			b, step = right.dense(room, i, r.k, n), n
		}
		c := r.dst[i*size : (i+1)*size]
		if !gemm.Small(c, m, n, r.k, left.data[left.begin[i]:], left.row, left.col, b, step) {
			return false
		}
		if r.hasResidual {
			add.to(c, i, m, n)
		}
		return true
	}
	w := workers.Get().(*worker)
	multiplied := multiply(0, smallRoom[T](w))
	workers.Put(w)
	if !multiplied {
		return false
	}
	r.options.Limiter.For(r.batch, 1+smallGrain/(size*r.k), func(lo, hi int) {
		w := workers.Get().(*worker)
		room := smallRoom[T](w)
		for i := lo; i < hi; i++ {
			multiply(i, room)
		}
		workers.Put(w)
	})
	return true
}

// smallRoom is the scratch memory for a matrix.
func smallRoom[T float32 | float64](w *worker) []T {
	return scratchOf[T](w, gemm.MostSmall*gemm.MostSmall)
}

func (o smallOperand[T]) transposed() smallOperand[T] {
	return smallOperand[T]{o.data, o.begin, o.col, o.row}
}

// dense returns matrix i with dense rows, in room.
func (o *smallOperand[T]) dense(room []T, i, rows, cols int) []T {
	from := o.data[o.begin[i]:]
	for p := range rows {
		at := p * o.row
		for j := range cols {
			room[p*cols+j] = from[at]
			at += o.col
		}
	}
	return room
}

// to adds matrix i to one with dense rows.
func (o *smallOperand[T]) to(c []T, i, rows, cols int) {
	from := o.data[o.begin[i]:]
	for p := range rows {
		at := p * o.row
		for j := range cols {
			c[p*cols+j] += from[at]
			at += o.col
		}
	}
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
