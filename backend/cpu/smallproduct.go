package cpu

import "github.com/loris-ml/loris/internal/kernels/gemm"

// small computes products so small that planning each takes most of the time. It reports false for others.
func (r *productRun[R, T]) small() bool {
	if r.batch < 1 || r.hasBias || len(r.factors) > 0 || r.options.Act != 0 {
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
	if r.batch == 1 && right.col != 1 {
		return false // a single operand that has to be packed may be kept so
	}
	product, ok := gemm.SmallOf[T](m, n, r.k, left.row, left.col, right.row, right.col)
	if !ok {
		return false
	}
	add := smallOperand[T]{r.sums, r.residual.batch, r.residual.row, r.residual.col}
	if r.swapped {
		add = add.transposed()
	}
	b := smallBatch[T]{product, m, n, r.dst, left, right, add, r.hasResidual}
	if r.batch == 1 {
		b.multiply(0, 1)
		return true
	}
	r.options.Limiter.For(r.batch, 1+smallGrain/(m*n*r.k), b.multiply)
	return true
}

// smallBatch is small products that share themselves out.
type smallBatch[T float32 | float64] struct {
	gemm.Small[T]
	m, n             int
	dst              []T
	left, right, add smallOperand[T]
	adds             bool
}

// multiply computes products lo..hi-1.
func (s *smallBatch[T]) multiply(lo, hi int) {
	w := workers.Get().(*worker)
	room := scratchOf[T](w, s.Room())
	size := s.m * s.n
	var b []T
	var step int
	for i := lo; i < hi; i++ {
		if i == lo || s.right.begin[i] != s.right.begin[i-1] {
			b, step = s.Right(s.right.data[s.right.begin[i]:], room)
		}
		c := s.dst[i*size : hi*size] // what follows is computed later
		s.Mul(c, s.left.data[s.left.begin[i]:], b, step, room)
		if s.adds {
			s.add.to(c[:size], i, s.m, s.n)
		}
	}
	workers.Put(w)
}

func (o smallOperand[T]) transposed() smallOperand[T] {
	return smallOperand[T]{o.data, o.begin, o.col, o.row}
}

// to adds matrix i to one with dense rows.
func (o *smallOperand[T]) to(c []T, i, rows, cols int) {
	from := o.data[o.begin[i]:]
	if o.col == 1 && o.row == cols {
		gemm.AddRow(c, from, false)
		return
	}
	for p := range rows {
		row := c[p*cols : (p+1)*cols]
		if o.col == 1 {
			gemm.AddRow(row, from[p*o.row:], false)
			continue
		}
		at := p * o.row
		for j := range row {
			row[j] += from[at]
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
