package cpu

import (
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/conv"
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/igemm"
	"github.com/loris-ml/loris/internal/kernels/pool"
	"github.com/loris-ml/loris/internal/strided"
)

func init() {
	lowerings[aten.MatMul] = func(c *call) {
		d := c.Operands[0].DType()
		if f, ok := wideProducts[d]; ok && c.Shapes[0].DType() == ir.F32 {
			f(c)
			return
		}
		if f, ok := floatMatmuls[d]; ok {
			f(c)
			return
		}
		widened(func(c *call) {
			if c.Operands[0].DType() == ir.F32 { // the 8-bit floats
				floatMatmul[float32](c)
				return
			}
			matmuls.of(c.Operands[0].DType())(c)
		})(c)
	}
	lowerings[aten.MaxPoolWithIndices] = widened(func(c *call) { maxPools.of(c.Operands[0].DType())(c) })
	for op := range adaptiveSpatial {
		composites[op] = true
		lowerings[op] = widened(func(c *call) { adaptiveMaxPools.of(c.Operands[0].DType())(c) })
	}
}

var (
	matmuls      = integers(intMatmul[uint8], intMatmul[int8], intMatmul[int16], intMatmul[int32], longMatmul)
	floatMatmuls = byType[lowerFunc]{
		ir.F32: floatMatmul[float32], ir.F64: floatMatmul[float64], ir.BF16: floatMatmul[gemm.BF16], ir.F16: floatMatmul[gemm.F16],
	}
	adaptiveMaxPools = pools(adaptiveMaxPool[int32], adaptiveMaxPool[int64], adaptiveMaxPool[float32], adaptiveMaxPool[float64])
	maxPools         = pools(maxPool[int32], maxPool[int64], maxPool[float32], maxPool[float64])
)

// product is a batch of matrix products c = a·b with strided operands: a is m×k
// and b is k×n.
type product struct {
	m, n, k        int
	batch          int
	a, b           int // buffers
	aRow, aK       int // strides of a
	bK, bCol       int // strides of b
	aBatch, bBatch []int
	aOnce, bOnce   bool   // the same matrix in all batches
	begins         [2]int // what aBatch and bBatch are of where there is one matrix of each
}

// productOf reads the operands of matmul: a vector is a matrix of one row or
// column, and a left operand of many matrices with one right matrix is one tall
// matrix if its strides allow.
func productOf(x, y plan.Value) *product {
	p := &product{}
	p.of(&x, &y)
	return p
}

// of is productOf in memory that is there.
func (p *product) of(x, y *plan.Value) {
	*p = product{a: x.Buf, b: y.Buf, m: 1, n: 1, batch: 1}
	xr, yr := x.View.Rank, y.View.Rank
	p.k, p.aK = x.View.Dims[xr-1], x.View.Strides[xr-1]
	if xr > 1 {
		p.m, p.aRow = x.View.Dims[xr-2], x.View.Strides[xr-2]
	}
	p.bK = y.View.Strides[max(yr-2, 0)]
	if yr > 1 {
		p.n, p.bCol = y.View.Dims[yr-1], y.View.Strides[yr-1]
	}
	xb, yb := batchOf(x), batchOf(y)
	if yb.Len() == 1 && xr > 1 {
		rows := x.View
		rows.Rank--
		rows.Offset = 0
		if rows = rows.Merge(); rows.Rank <= 1 && rows.Len() > 0 {
			p.m = rows.Len()
			p.aRow = rows.Strides[0]
			xb = strided.View{}
			xb.Offset = x.View.Offset
		}
	}
	if xb.Rank == 0 && yb.Rank == 0 {
		p.begins = [2]int{xb.Offset, yb.Offset}
		p.aBatch, p.bBatch = p.begins[:1:1], p.begins[1:]
		p.aOnce, p.bOnce = true, true
		return
	}
	p.batches(xb, yb)
}

// batchOf returns the view of the batch dimensions.
func batchOf(v *plan.Value) strided.View {
	b := v.View
	b.Rank = max(b.Rank-2, 0)
	return b
}

// batches lists where each matrix of the broadcast batch begins.
func (p *product) batches(xb, yb strided.View) {
	rank := max(xb.Rank, yb.Rank)
	x, y := align(xb, rank), align(yb, rank)
	dims := make([]int, rank)
	for d := range dims {
		dims[d] = max(x.Dims[d], y.Dims[d])
		if x.Dims[d] == 0 || y.Dims[d] == 0 {
			dims[d] = 0
		}
		if x.Dims[d] != dims[d] {
			x.Strides[d] = 0
		}
		if y.Dims[d] != dims[d] {
			y.Strides[d] = 0
		}
		p.batch *= dims[d]
	}
	copy(x.Dims[:], dims)
	copy(y.Dims[:], dims)
	p.aBatch, p.bBatch = positions(x), positions(y)
	p.aOnce, p.bOnce = allEqual(p.aBatch), allEqual(p.bBatch)
}

// positions lists where the elements of a view are.
func positions(v strided.View) []int {
	out := make([]int, v.Len())
	for i := range out {
		out[i] = v.Offset
		for d, rest := v.Rank-1, i; d >= 0; d-- {
			out[i] += rest % v.Dims[d] * v.Strides[d]
			rest /= v.Dims[d]
		}
	}
	return out
}

// align gives a view more leading dimensions of size 1.
func align(v strided.View, rank int) strided.View {
	out := strided.View{Offset: v.Offset, Rank: rank}
	off := rank - v.Rank
	for d := range rank {
		out.Dims[d] = 1
		if d >= off {
			out.Dims[d], out.Strides[d] = v.Dims[d-off], v.Strides[d-off]
		}
	}
	return out
}

func allEqual(x []int) bool {
	for _, v := range x {
		if v != x[0] {
			return false
		}
	}
	return true
}

const (
	// Products with fewer rows or columns, less depth or less work are not packed.
	packRows  = 4
	packDepth = 8
	packWork  = 4096
	// A unit of a packed product is a tile of at most so many panels.
	tileRows = 16
	tileCols = 16
	macCost  = 0.45 // nanoseconds for one multiplication and addition
	// longMacCost is that of a native loop for 64-bit numbers.
	longMacCost = 0.1
)

// upward returns a value whose strides are not negative, copying one whose are.
func (c *call) upward(v plan.Value) plan.Value {
	for d := range v.View.Rank {
		if v.View.Strides[d] < 0 {
			return c.l.Copied(c.Instr, v)
		}
	}
	return v
}

// panels is a way to multiply packed operands: the widths of their panels, and how many nanoseconds one
// multiplication and addition takes.
type panels[T kernels.Integer] struct {
	mr, nr int
	cost   float64
	mul    func(c, a, b []T, m, n, k, rowLo, rowHi, colLo, colHi int)
}

func matmul[T kernels.Integer](c *call) {
	multiply(c, panels[T]{kernels.MR, kernels.NR, macCost, kernels.MatMul[T]})
}

// longMatmul is matmul of 64-bit numbers by the processor's own loop, if it has one.
func longMatmul(c *call) {
	if l := igemm.NativeLong(); l != nil {
		multiply(c, panels[int64]{l.MR, l.NR, longMacCost, func(dst, a, b []int64, m, n, k, rowLo, rowHi, colLo, colHi int) {
			w := workers.Get().(*worker)
			defer workers.Put(w)
			l.Mul(w.tile(), dst, a, b, m, n, k, rowLo, rowHi, colLo, colHi)
		}})
		return
	}
	matmul[int64](c)
}

// intProduct reads the operands of a product of integers, and emits it if it is
// too small for packing.
func intProduct[T kernels.Integer](c *call) (p *product, out operand, small bool) {
	p, out = productOf(c.Operands[0], c.Operands[1]), c.result()
	switch {
	case out.n == 0:
		c.emit(0, 1, []operand{out}, nil, nil)
	case p.m < packRows || p.n < packRows || p.k < packDepth || p.m*p.n*p.k < packWork:
		smallProduct[T](c, p, out)
	default:
		return p, out, false
	}
	return p, out, true
}

// smallProduct emits the product by rows without packing.
func smallProduct[T kernels.Integer](c *call, p *product, out operand) {
	m := c.l.mem
	a, b := p.a, p.b
	reads := []operand{{buf: a}, {buf: b}}
	c.emit(p.batch*p.m, c.l.grain(macCost*float64(p.n*p.k)), []operand{out}, reads, func(lo, hi int) {
		dst, x, y := elements[T](m, out), as[T](m.bufs[a]), as[T](m.bufs[b])
		for lo < hi {
			i, row := lo/p.m, lo%p.m
			end := min(p.m, row+hi-lo)
			kernels.MatVec(dst[i*p.m*p.n:(i+1)*p.m*p.n], x, y, p.n, p.k, p.aBatch[i], p.aRow, p.aK, p.bBatch[i], p.bK, p.bCol, row, end)
			lo += end - row
		}
	})
}

// pack emits the packing of one operand with n rows (or columns) and depth k.
func pack[T kernels.Integer](c *call, src, width, n, k int, batch []int, once bool, step, kStep int) operand {
	if once {
		batch = batch[:1]
	}
	size := kernels.PackedLen(n, k, width)
	dst := c.l.bytesTemp(sizeOf[T](), size*len(batch))
	panels := (n + width - 1) / width
	m := c.l.mem
	c.emit(len(batch)*panels, c.l.grain(float64(width*k)), []operand{dst}, []operand{{buf: src}}, func(lo, hi int) {
		to, from := elements[T](m, dst), as[T](m.bufs[src])
		for lo < hi {
			i, panel := lo/panels, lo%panels
			end := min(panels, panel+hi-lo)
			kernels.Pack(to[i*size:(i+1)*size], from, width, n, k, batch[i], step, kStep, panel, end)
			lo += end - panel
		}
	})
	return dst
}

// multiply packs the operands and emits their product, a tile of each batch a unit.
func multiply[T kernels.Integer](c *call, w panels[T]) {
	p, out, small := intProduct[T](c)
	if small {
		return
	}
	a := pack[T](c, p.a, w.mr, p.m, p.k, p.aBatch, p.aOnce, p.aRow, p.aK)
	b := pack[T](c, p.b, w.nr, p.n, p.k, p.bBatch, p.bOnce, p.bCol, p.bK)
	rows, cols := ceilDiv(p.m, w.mr), ceilDiv(p.n, w.nr)
	rowTiles, colTiles := (rows+tileRows-1)/tileRows, (cols+tileCols-1)/tileCols
	aSize, bSize := kernels.PackedLen(p.m, p.k, w.mr), kernels.PackedLen(p.n, p.k, w.nr)
	if p.aOnce {
		aSize = 0
	}
	if p.bOnce {
		bSize = 0
	}
	m := c.l.mem
	cost := w.cost * float64(min(tileRows, rows)*w.mr*min(tileCols, cols)*w.nr*p.k)
	c.emit(p.batch*rowTiles*colTiles, c.l.grain(cost), []operand{out}, []operand{a, b}, func(lo, hi int) {
		dst, x, y := elements[T](m, out), elements[T](m, a), elements[T](m, b)
		for u := lo; u < hi; u++ {
			i, row, col := u/(rowTiles*colTiles), u/colTiles%rowTiles*tileRows, u%colTiles*tileCols
			w.mul(dst[i*p.m*p.n:(i+1)*p.m*p.n], x[i*aSize:], y[i*bSize:], p.m, p.n, p.k,
				row, min(row+tileRows, rows), col, min(col+tileCols, cols))
		}
	})
}

// pools has those that the vectors have loops for. Narrow integers are computed in i32: to convert them and
// the results takes less than to compare elements one by one.
func pools(i32, i64, f32, f64 func(c *call, d ir.DType)) byType[lowerFunc] {
	t := byType[lowerFunc]{}
	for d, f := range map[ir.DType]func(c *call, d ir.DType){ir.I32: i32, ir.I64: i64, ir.F32: f32, ir.F64: f64} {
		t[d] = func(c *call) { f(c, d) }
	}
	for _, d := range []ir.DType{ir.Bool, ir.U8, ir.I8, ir.I16} {
		t[d] = func(c *call) {
			wide := &call{c.Inner([]plan.Value{c.l.cast(c.Instr, c.Operands[0], ir.I32)}, []ir.Shape{c.Shapes[0].WithDType(ir.I32), c.Shapes[1]}), c.l}
			i32(wide, d)
			c.Results = append(c.Results, c.l.cast(c.Instr, wide.Results[0], d), wide.Results[1])
		}
	}
	return t
}

// spatial fills in the leading dimensions of size 1 that kernels over three
// spatial dimensions want.
func spatial(src [3]int, n, lead int) [3]int {
	out := [3]int{lead, lead, lead}
	copy(out[3-n:], src[:n])
	return out
}

func maxPool[T kernels.Number](c *call, d ir.DType) {
	p := ir.PoolOf(c.Args)
	n := p.Spatial
	g := pool.Geometry{
		N: 1, C: 1, In: spatial(p.InDims, n, 1), Kernel: spatial(p.Kernel, n, 1), Out: spatial(p.OutDims, n, 1),
		Stride: spatial(p.Stride, n, 1), Pad: spatial(p.Padding, n, 0), Dilation: spatial(p.Dilation, n, 1),
	}
	poolMaxima[T](c, g, n, d)
}

// adaptiveSpatial is the spatial dimensions of the ops that pool to a given size.
var adaptiveSpatial = map[ir.Op]int{aten.AdaptiveMaxPool1d: 1, aten.AdaptiveMaxPool2d: 2, aten.AdaptiveMaxPool3d: 3}

func adaptiveMaxPool[T kernels.Number](c *call, d ir.DType) {
	n := adaptiveSpatial[c.Instr.Op]
	ones := [3]int{1, 1, 1}
	g := pool.Geometry{N: 1, C: 1, In: ones, Kernel: ones, Out: ones, Stride: ones, Dilation: ones}
	in, out := c.Operands[0].Shape.Dims(), c.Shapes[0].Dims()
	for i := range n {
		d, at := 3-n+i, len(in)-n+i
		g.In[d], g.Out[d] = in[at], out[at]
		g.Windows[d], g.Kernel[d] = pool.Adaptive(in[at], out[at])
	}
	poolMaxima[T](c, g, n, d)
}

// poolMaxima emits a pooling over the last n dimensions; N and C of g are found here. Elements are of the
// dtype d before they are converted to T.
func poolMaxima[T kernels.Number](c *call, g pool.Geometry, n int, d ir.DType) {
	x := c.upward(c.Operands[0])
	lead := x.View.Rank - n
	// More than a batch and channels are all taken for channels; and neither rows nor channels adjoin.
	adjoins := func(d int) bool { return d >= 0 && (x.View.Strides[d] == 1 || x.View.Dims[d] == 1) }
	if lead > 2 || !adjoins(x.View.Rank-1) && !adjoins(lead-1) {
		x = c.l.Copied(c.Instr, x)
	}
	var strides [3]int
	copy(strides[:], x.View.Strides[lead:x.View.Rank])
	layout := pool.Layout{Spatial: spatial(strides, n, 0)}
	for d := range lead {
		g.C *= x.View.Dims[d]
	}
	switch lead {
	case 0:
	case 2:
		g.N, g.C = x.View.Dims[0], x.View.Dims[1]
		layout.Batch, layout.Channel = x.View.Strides[0], x.View.Strides[1]
	default:
		layout.Channel = x.View.Strides[lead-1]
	}
	values, indices := c.result(), c.result()
	out := conv.ChannelsFirst(g.C, g.Out)
	least, _ := kernels.Limits[T]()
	switch d {
	case ir.Bool, ir.U8:
		least = 0
	case ir.I8, ir.I16:
		least = T(int64(-1) << (8*d.Size() - 1))
	}
	run := &pool.Max[T]{Limiter: c.l.limiter, Geometry: g, XLayout: layout, ValuesLayout: out, IndicesLayout: out, Least: least}
	m, places := c.l.mem, !c.unused(1)
	c.emit(1, 1, []operand{values, indices}, []operand{{buf: x.Buf}}, func(_, _ int) {
		run.X, run.Values = as[T](m.bufs[x.Buf])[x.View.Offset:], elements[T](m, values)
		if places {
			run.Indices = elements[int64](m, indices)
		}
		run.Run()
		run.X, run.Values, run.Indices = nil, nil, nil
	})
}
