package cpu

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels/igemm"
)

func init() {
	composites[aten.IntMM] = true
	lowerings[aten.IntMM] = intMM
}

// intMacCost is macCost of a word of the native loops.
const intMacCost = 0.02

// intMatmul is matmul by the processor's own loops for integers of at most 32
// bits, if it has any.
func intMatmul[T igemm.Integer](c *call) {
	kn := igemm.Native()
	if kn == nil {
		matmul[T](c)
		return
	}
	p, out, small := intProduct[T](c)
	if small {
		return
	}
	multiplyWords[T, T, T](c, kn, p, out, false)
}

// intMM is the product of bytes that is summed in 32 bits.
func intMM(c *call) {
	p, out := productOf(c.upward(c.Operands[0]), c.upward(c.Operands[1])), c.result()
	if out.n == 0 {
		c.emit(0, 1, []operand{out}, nil, nil)
		return
	}
	if c.Operands[0].DType() == ir.U8 {
		multiplyWords[uint8, int8, int32](c, igemm.Best(), p, out, false)
	} else {
		multiplyWords[int8, int8, int32](c, igemm.Best(), p, out, true)
	}
}

// multiplyWords emits the product of operands in the kernel's words; signed says that the
// left one's signs count.
func multiplyWords[X, Y, R igemm.Integer](c *call, kn *igemm.Kernel, p *product, out operand, signed bool) {
	f := igemm.FormOf[X](kn)
	sizes := igemm.Product{Form: f, M: p.m, N: p.n, K: p.k, Signed: signed}
	left := packing[X](c, f, p.a, kn.MR, p.m, p.k, p.aBatch, p.aOnce, p.aRow, p.aK, packLeft[X](sizes.Biased()))
	right := packing[Y](c, f, p.b, kn.NR, p.n, p.k, p.bBatch, p.bOnce, p.bCol, p.bK, igemm.Pack[Y])
	a, b, aSize, bSize := left.dst, right.dst, left.size, right.size
	written := []operand{a, b}
	var excess operand
	excessSize := 0
	if sizes.Biased() {
		excess, excessSize = right.withExcess(c, kn, f.Words(p.k))
		written = append(written, excess)
	}
	rows, cols := ceilDiv(p.m, kn.MR), ceilDiv(p.n, kn.NR)
	rowTiles := ceilDiv(rows, tileRows)
	// A unit is some panels of rows by one of columns, which it packs itself if no other unit reads it.
	writes, reads, alone := []operand{out}, written, rowTiles == 1 && (p.batch == 1 || !p.bOnce)
	if alone {
		writes, reads = append(writes, written[1:]...), []operand{a, right.src}
		c.emit(left.count, c.l.grain(float64(left.cost)), written[:1], []operand{left.src}, left.run)
	} else {
		c.packBoth(left, right, written)
	}
	if p.aOnce {
		aSize = 0
	}
	if p.bOnce {
		bSize, excessSize = 0, 0
	}
	m, size := c.l.mem, p.m*p.n
	cost := intMacCost * float64(min(tileRows, rows)*kn.MR*kn.NR*f.Words(p.k))
	c.emit(p.batch*cols*rowTiles, c.l.grain(cost), writes, reads, func(lo, hi int) {
		dst, x, y := elements[R](m, out), elements[uint32](m, a), elements[uint32](m, b)
		var less []int32
		if sizes.Biased() {
			less = elements[int32](m, excess)
		}
		w := workers.Get().(*worker)
		defer workers.Put(w)
		tile := w.tile()
		for u := lo; u < hi; u++ {
			if alone {
				right.run(u, u+1)
			}
			i, col, row := u/(cols*rowTiles), u/rowTiles%cols, u%rowTiles*tileRows
			igemm.Mul(kn, sizes, tile, dst[i*size:(i+1)*size], x[i*aSize:], y[i*bSize:], less[i*excessSize:], row, min(row+tileRows, rows), col, col+1)
		}
	})
}

// tile returns memory of the goroutine for the sums of a tile.
func (w *worker) tile() *igemm.Tile {
	return (*igemm.Tile)(as[int32](w.scratch.bytes(int(unsafe.Sizeof(igemm.Tile{})))))
}

// packer packs panels of an operand in a form.
type packer[T igemm.Integer] func(f igemm.Form, dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int)

// packLeft returns what packs left operands.
func packLeft[T igemm.Integer](biased bool) packer[T] {
	if !biased {
		return igemm.Pack[T]
	}
	return func(_ igemm.Form, dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int) {
		igemm.PackBiased(dst, src, width, n, k, off, step, kStep, lo, hi)
	}
}

// packed is an operand that is packed to words, in units of a panel of one of its matrices.
type packed struct {
	src, dst    operand
	n, size     int // rows or columns, and words, of a matrix
	count, cost int // of units, and in elements of each
	run         func(lo, hi int)
}

// packing returns the packing of one operand with n rows (or columns) and depth k.
func packing[T igemm.Integer](c *call, f igemm.Form, src, width, n, k int, batch []int, once bool, step, kStep int, pack packer[T]) *packed {
	if once {
		batch = batch[:1]
	}
	panels, size, m := ceilDiv(n, width), f.PackedLen(n, k, width), c.l.mem
	dst := c.l.bytesTemp(sizeOf[uint32](), size*len(batch))
	return &packed{operand{buf: src}, dst, n, size, len(batch) * panels, width * k, func(lo, hi int) {
		to, from := elements[uint32](m, dst), as[T](m.bufs[src])
		for u := lo; u < hi; u++ {
			i, panel := u/panels, u%panels
			pack(f, to[i*size:(i+1)*size], from, width, n, k, batch[i], step, kStep, panel, panel+1)
		}
	}}
}

// withExcess has units also set what the bias of the left operand's bytes adds to the sums of each column, of panels so
// many words deep. It returns where, and the elements of one matrix.
func (p *packed) withExcess(c *call, kn *igemm.Kernel, words int) (dst operand, size int) {
	panels := ceilDiv(p.n, kn.NR)
	size = panels * kn.NR
	dst = c.l.bytesTemp(sizeOf[int32](), size*(p.count/max(panels, 1)))
	pack, m := p.run, c.l.mem
	p.run = func(lo, hi int) {
		sums, y := elements[int32](m, dst), elements[uint32](m, p.dst)
		for u := lo; u < hi; u++ { // while the panel is in the nearest cache
			pack(u, u+1)
			i, col := u/panels, u%panels
			kn.Excess(sums[i*size:], y[i*p.size:], words, col, col+1)
		}
	}
	return dst, size
}

// packBoth emits the packing of both operands, as one step since each is short.
func (c *call) packBoth(left, right *packed, written []operand) {
	n := left.count + right.count
	cost := float64(left.count*left.cost+right.count*right.cost) / float64(max(n, 1))
	c.emit(n, c.l.grain(cost), written, []operand{left.src, right.src}, func(lo, hi int) {
		left.run(min(lo, left.count), min(hi, left.count))
		right.run(max(lo, left.count)-left.count, max(hi, left.count)-left.count)
	})
}

func ceilDiv(n, d int) int { return (n + d - 1) / d }
