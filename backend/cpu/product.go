package cpu

import (
	"github.com/loris-ml/loris/backend/internal/fuse"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/strided"
)

// productRun is a step that computes a batch of products of floats of type T with results of type R.
// Operands are bound when it runs.
type productRun[R, T gemm.Element] struct {
	product
	mem     *memory
	out     operand
	swapped bool // the result's columns are dense
	factors []factor
	bias    operand // one for each column
	hasBias bool
	// residual has the dimensions of the result.
	residual    addend
	hasResidual bool

	// keeps says that the right operand is one matrix of an input, which may be kept packed, packs
	// whether it is packed; that is found out by the first run that may keep it.
	keeps, planned, packs bool

	options     gemm.Options[R]
	dst, sums   []R
	left, right []T
	at          func(i int) (c gemm.Matrix[R], a, b gemm.Matrix[T])
}

// factor is a number in memory.
type factor struct {
	at     operand
	divide bool
}

// addend is a matrix for each product of a batch.
type addend struct {
	buf      int
	row, col int   // strides
	batch    []int // where each matrix begins
}

// floatMatmul emits a product of floats as one step, which shares itself out.
func floatMatmul[T gemm.Element](c *call) { multiplyFloats[T, T](c) }

// multiplyFloats emits a product of floats of type T whose results are of type R.
func multiplyFloats[R, T gemm.Element](c *call) {
	x, y := c.upward(c.Operands[0]), c.upward(c.Operands[1])
	r := &productRun[R, T]{mem: c.l.mem}
	p := &r.product
	p.of(&x, &y)
	if c.Epilogue == nil && p.m == 1 && p.n == 1 && p.batch == 1 && p.k >= 2*dotPart {
		longDot[R, T](c, p)
		return
	}
	r.at = r.matrices
	r.options.Limiter = c.l.limiter
	var room [4]operand
	reads := append(room[:0], operand{buf: p.a}, operand{buf: p.b})
	if c.Epilogue != nil {
		reads = r.finish(c, c.Epilogue, reads)
	}
	swap := [2]int{2, 1}
	if rank := c.Shapes[0].Rank(); rank < 2 || p.m != c.Shapes[0].Dim(-2) {
		swap[0] = strided.MaxRank + 1 // rows of several dimensions are one
	}
	if c.Epilogue == nil && p.foldColumns() {
		r.out, r.swapped = c.result(), true
	} else {
		r.out, r.swapped = c.resultFor(swap)
	}
	r.keeps = p.batch == 1 && !r.swapped && p.b < len(c.l.Program.Params)
	c.emit(1, 1, []operand{r.out}, reads, r.run)
}

// finish has the product compute an epilogue. It appends the operands of the epilogue to reads.
func (r *productRun[R, T]) finish(c *call, e *fuse.Epilogue, reads []operand) []operand {
	r.options.Act = activationKinds[e.Act]
	for _, k := range e.Links {
		o := c.dense(c.l.Computed(k.ID))
		reads = append(reads, o)
		if k.Op == aten.Add {
			r.bias, r.hasBias = o, true
		} else {
			r.factors = append(r.factors, factor{o, k.Op == aten.Div})
			r.options.Scaled = true
		}
	}
	if e.Residual == fuse.NoValue {
		return reads
	}
	v := c.upward(c.l.Computed(e.Residual))
	if r.residual, r.hasResidual = r.addend(v); !r.hasResidual {
		v = c.l.Copied(c.Instr, v)
		r.residual, r.hasResidual = r.addend(v)
	}
	r.options.Residuals = r.addends
	return append(reads, operand{buf: v.Buf})
}

// addend reads a value of the result's dimensions as matrices; ok is false if
// the rows of one are not evenly spaced.
func (p *product) addend(v plan.Value) (a addend, ok bool) {
	rank := v.View.Rank
	a = addend{buf: v.Buf, col: v.View.Strides[rank-1]}
	rows := v.View
	rows.Rank--
	if p.batch == 1 {
		rows = rows.Merge()
		if rows.Rank > 1 {
			return a, false
		}
		a.row, a.batch = rows.Strides[0], []int{rows.Offset}
		return a, true
	}
	if rows.Rank > 0 && p.m == rows.Dims[rows.Rank-1] {
		rows.Rank--
		a.row = rows.Strides[rows.Rank]
	}
	a.batch = positions(rows)
	return a, true
}

func (r *productRun[R, T]) matrices(i int) (c gemm.Matrix[R], a, b gemm.Matrix[T]) {
	size := r.m * r.n
	a = gemm.Matrix[T]{Data: r.left[r.aBatch[i]:], Rows: r.m, Cols: r.k, RowStride: r.aRow, ColStride: r.aK}
	b = gemm.Matrix[T]{Data: r.right[r.bBatch[i]:], Rows: r.k, Cols: r.n, RowStride: r.bK, ColStride: r.bCol}
	if c = gemm.Dense(r.dst[i*size:(i+1)*size], r.m, r.n); r.swapped {
		c.RowStride, c.ColStride = 1, r.m
	}
	return c, a, b
}

func (r *productRun[R, T]) addends(i int) gemm.Matrix[R] {
	a := &r.residual
	return gemm.Matrix[R]{Data: r.sums[a.batch[i]:], Rows: r.m, Cols: r.n, RowStride: a.row, ColStride: a.col}
}

func (r *productRun[R, T]) run(_, _ int) {
	if r.out.n == 0 {
		return
	}
	r.dst, r.left, r.right = elements[R](r.mem, r.out), as[T](r.mem.bufs[r.a]), as[T](r.mem.bufs[r.b])
	if r.hasBias {
		r.options.ColBias = elements[R](r.mem, r.bias)
	}
	if r.hasResidual {
		r.sums = as[R](r.mem.bufs[r.residual.buf])
	}
	r.options.Alpha = 1
	for _, f := range r.factors {
		v := vec.Wide[float64](elements[R](r.mem, f.at)[0])
		if f.divide {
			v = 1 / v
		}
		r.options.Alpha *= v
	}
	if r.small() {
		// It is done.
	} else if w := r.packed(); w != nil {
		out, left, _ := r.matrices(0)
		if r.hasResidual {
			r.options.Residual = r.addends(0)
		}
		gemm.MulPacked(out, left, w, &r.options)
		r.options.Residual = gemm.Matrix[R]{}
	} else {
		gemm.MulBatch(r.batch, r.at, &r.options)
	}
	r.dst, r.left, r.right, r.sums, r.options.ColBias = nil, nil, nil, nil, nil
}

// packedKey is what a packed matrix of an input depends on besides its contents.
type packedKey struct{ at, rows, cols, row, col int }

// packed returns the right operand as the input keeps it packed; nil where it is not kept, or
// the product does not pack it.
func (r *productRun[R, T]) packed() *gemm.Packed[T] {
	if !r.keeps {
		return nil
	}
	in := r.mem.steady(r.b)
	if in == nil {
		return nil
	}
	out, left, right := r.matrices(0)
	if !r.planned {
		r.packs, r.planned = gemm.Packs(out, left, right, &r.options), true
	}
	if !r.packs {
		return nil
	}
	key := packedKey{r.bBatch[0], r.k, r.n, r.bK, r.bCol}
	if w := hostmem.Kept[packedKey, gemm.Packed[T]](in, &key); w != nil {
		return w
	}
	return hostmem.Keep(in, key, int64(gemm.PackedBytes(right)), r.mem.limit, func() *gemm.Packed[T] { return gemm.Pack(right) })
}
