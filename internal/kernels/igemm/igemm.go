// Package igemm multiplies matrices of integers of at most 32 bits, with sums of
// 32 bits that wrap around and are cut to the type: what sums in the type itself
// would give.
//
// Operands are packed into panels of words of 32 bits, rows or columns of a panel
// side by side: whole numbers, or two or four narrower ones that follow each other
// along the depth, whose products one instruction adds.
package igemm

import (
	"crypto/subtle"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// Integer is the element types; uint8 also stands for bool.
type Integer interface{ int8 | int16 | int32 | uint8 }

// Kernel is the inner loops of one kind of processor. MR and NR are the rows and
// columns of a tile, and so the widths of left and right panels.
type Kernel struct {
	name   string
	MR, NR int
	// These set the dense tile c to the product of two panels, of words of each Form;
	// quads is nil if there is none. Bytes of its left words have no sign, those of
	// its right ones have.
	whole, pairs, quads func(depth int, a, b *uint32, c *int32)
	// quadsHalf is quads of the left half of the columns, quadsTop that of the first half of the rows, and biasSums sets the
	// sums of a panel's columns to what a left operand of words bias makes of them. They are there where quads is.
	quadsHalf, quadsTop func(depth int, a, b *uint32, c *int32)
	biasSums            func(depth int, bias uint32, b *uint32, sums *int32)
	// difference sets rows of dst, stride elements apart, to those of a tile less a row, so many vectors
	// of 8 elements of each; nil if there is none. The tile has 32 columns.
	difference func(dst *int32, stride int, tile, less *int32, rows, vectors int)
	// fours packs n groups of four rows of 32 bytes, step bytes apart, into words; nil if there is none. The words of
	// a group begin by bytes behind those of the one before. fewFours packs rows of 16 bytes.
	fours, fewFours func(dst *uint32, by int, src *byte, step, n int)
}

// Form is how many elements a word has.
type Form int

// The forms of words: a number of 32 bits, two of 16, to which narrower ones are
// extended, and four of 8.
const (
	Whole Form = 1
	Pairs Form = 2
	Quads Form = 4
)

// FormOf returns the form in which the kernel multiplies elements of type T fastest.
func FormOf[T Integer](kn *Kernel) Form {
	var x T
	switch {
	case unsafe.Sizeof(x) == 4:
		return Whole
	case unsafe.Sizeof(x) == 1 && kn.quads != nil:
		return Quads
	}
	return Pairs
}

// Words returns the depth in words of operands of depth k.
func (f Form) Words(k int) int { return (k + int(f) - 1) / int(f) }

// PackedLen returns the words of a packed operand with n rows or columns and
// depth k, in panels of the given width.
func (f Form) PackedLen(n, k, width int) int { return (n + width - 1) / width * width * f.Words(k) }

func (kn *Kernel) tile(f Form) func(depth int, a, b *uint32, c *int32) {
	switch f {
	case Whole:
		return kn.whole
	case Pairs:
		return kn.pairs
	}
	return kn.quads
}

// tileOf is tile where so many rows and columns are wanted.
func (kn *Kernel) tileOf(f Form, rows, cols int) func(depth int, a, b *uint32, c *int32) {
	switch {
	case f == Quads && cols <= kn.NR/2:
		return kn.quadsHalf
	case f == Quads && rows <= kn.MR/2:
		return kn.quadsTop
	}
	return kn.tile(f)
}

// maxTile is the most elements of a tile, maxCols its columns at most.
const (
	maxTile = 12 * maxCols
	maxCols = 32
)

// Tile is memory for the sums of the products of two panels. Callers keep it, since to allocate one takes as long
// as a small product.
type Tile [maxTile]int32

var native = natives()

// loops are the loops of vectors beside the tiles, of the fastest kernel.
var loops = Best()

// Native returns the fastest kernel that this processor has, or nil: the loops
// of package kernels are better than portable ones here, which only say what
// the others do.
func Native() *Kernel {
	if len(native) == 0 {
		return nil
	}
	return native[0]
}

// Best returns the fastest kernel there is, in Go where the processor has none.
func Best() *Kernel {
	if kn := Native(); kn != nil {
		return kn
	}
	return portable
}

// Pairs sets the first MR·NR elements of c, a dense tile, to the product of a
// left and a right panel whose words are pairs of 16-bit numbers. The panels are
// equally deep.
func (kn *Kernel) Pairs(c []int32, left, right []uint32) {
	depth := len(left) / kn.MR
	if c = c[:kn.MR*kn.NR]; depth == 0 {
		clear(c)
		return
	}
	kn.pairs(depth, &left[0], &right[:depth*kn.NR][0], &c[0])
}

// portable is the formula: what the others must agree with.
var portable = &Kernel{
	name: "go", MR: 2, NR: 4,
	pairs: portablePairs,
	whole: func(depth int, a, b *uint32, c *int32) {
		portableTile(depth, a, b, c, func(x, y uint32) int32 { return int32(x * y) })
	},
}

// portablePairs keeps its sums in registers: processors without loops of their
// own run it, too.
func portablePairs(depth int, a, b *uint32, c *int32) {
	const rows, cols = 2, 4
	x, y := unsafe.Slice(a, depth*rows), unsafe.Slice(b, depth*cols)
	var c00, c01, c02, c03, c10, c11, c12, c13 int32
	for len(x) >= rows && len(y) >= cols {
		lo, hi := int32(int16(x[0])), int32(x[0])>>16
		lo1, hi1 := int32(int16(x[1])), int32(x[1])>>16
		b0, b1, b2, b3 := int32(y[0]), int32(y[1]), int32(y[2]), int32(y[3])
		c00 += lo*int32(int16(b0)) + hi*(b0>>16)
		c01 += lo*int32(int16(b1)) + hi*(b1>>16)
		c02 += lo*int32(int16(b2)) + hi*(b2>>16)
		c03 += lo*int32(int16(b3)) + hi*(b3>>16)
		c10 += lo1*int32(int16(b0)) + hi1*(b0>>16)
		c11 += lo1*int32(int16(b1)) + hi1*(b1>>16)
		c12 += lo1*int32(int16(b2)) + hi1*(b2>>16)
		c13 += lo1*int32(int16(b3)) + hi1*(b3>>16)
		x, y = x[rows:], y[cols:]
	}
	copy(unsafe.Slice(c, rows*cols), []int32{c00, c01, c02, c03, c10, c11, c12, c13})
}

func portableTile(depth int, a, b *uint32, c *int32, product func(x, y uint32) int32) {
	const rows, cols = 2, 4
	x, y, out := unsafe.Slice(a, depth*rows), unsafe.Slice(b, depth*cols), unsafe.Slice(c, rows*cols)
	clear(out)
	for p := range depth {
		for i := range rows {
			for j := range cols {
				out[i*cols+j] += product(x[p*rows+i], y[p*cols+j])
			}
		}
	}
}

// Pack packs panels lo..hi-1 of an operand with n rows (for panels of MR; columns
// for NR) and depth k: element (i, p) is src[off+i·step+p·kStep]. What a panel
// has beyond k is zero, and beyond n zero or anything that is in src. dst is the whole packed operand.
func Pack[T Integer](f Form, dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int) {
	pack(f, dst, src, width, n, k, off, step, kStep, lo, hi, 0)
}

// PackBiased is Pack of the left operand of a Biased product: 128 is added to its bytes, which have a sign.
func PackBiased[T Integer](dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int) {
	pack(Quads, dst, src, width, n, k, off, step, kStep, lo, hi, bias)
}

func pack[T Integer](f Form, dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int, flip uint32) {
	words := f.Words(k)
	for panel := lo; panel < hi; panel++ {
		out := dst[panel*width*words : (panel+1)*width*words]
		rows := min(width, n-panel*width)
		if rows < width {
			clear(out)
		}
		base := off + panel*width*step
		switch f {
		case Whole:
			packWhole(out, src, width, rows, k, base, step, kStep)
		case Pairs:
			packPairs(out, src, width, rows, k, base, step, kStep)
		case Quads:
			packQuads(out, src, width, rows, k, base, step, kStep, flip)
		}
	}
}

func packWhole[T Integer](out []uint32, src []T, width, rows, k, base, step, kStep int) {
	if step == 1 {
		for p := range k {
			from, to := src[base+p*kStep:][:rows], out[p*width:][:rows]
			for i, v := range from {
				to[i] = uint32(v)
			}
		}
		return
	}
	for i := range rows {
		at := base + i*step
		for p := range k {
			out[p*width+i] = uint32(src[at])
			at += kStep
		}
	}
}

// packQuads packs words whose bits are those of flip apart from the elements'. Bytes beyond the depth may be
// anything in a left operand, as the right one has zeros there.
func packQuads[T Integer](out []uint32, src []T, width, rows, k, base, step, kStep int, flip uint32) {
	quad := func(a, b, c, d T) uint32 {
		return uint32(uint8(a)) | uint32(uint8(b))<<8 | uint32(uint8(c))<<16 | uint32(uint8(d))<<24 ^ flip
	}
	switch {
	case step == 1:
		first := packFours(out, src[base:], width, k/4, kStep)
		flipWords(out[:first*width], flip)
		for p := first; p < k/4; p++ {
			at := base + 4*p*kStep
			x, y, z, w := src[at:][:rows], src[at+kStep:][:rows], src[at+2*kStep:][:rows], src[at+3*kStep:][:rows]
			to := out[p*width:][:rows]
			for i, v := range x {
				to[i] = quad(v, y[i], z[i], w[i])
			}
		}
	case kStep == 1 && k >= 4 && unsafe.Sizeof(src[0]) == 1 && step%4 == 0:
		from := unsafe.Slice((*byte)(unsafe.Pointer(&src[base])), (rows-1)*step+k/4*4)
		transposeWords(out, width, from, step/4, rows, k/4, flip)
	case kStep == 1 && k >= 4 && unsafe.Sizeof(src[0]) == 1:
		packApart(out, unsafe.Slice((*byte)(unsafe.Pointer(&src[base])), (rows-1)*step+k/4*4), width, rows, k/4, step, flip)
	default:
		for i := range rows {
			at := base + i*step
			for p := range k / 4 {
				out[p*width+i] = quad(src[at], src[at+kStep], src[at+2*kStep], src[at+3*kStep])
				at += 4 * kStep
			}
		}
	}
	if k%4 != 0 && step == 1 {
		words := out[k/4*width:][:rows]
		for i := range words {
			words[i] = flip
		}
		for q := range k % 4 {
			for i, v := range src[base+(k/4*4+q)*kStep:][:rows] {
				words[i] ^= uint32(uint8(v)) << (8 * q)
			}
		}
	} else if k%4 != 0 {
		for i := range rows {
			var last [4]T
			for q := range k % 4 {
				last[q] = src[base+i*step+(k/4*4+q)*kStep]
			}
			out[k/4*width+i] = quad(last[0], last[1], last[2], last[3])
		}
	}
}

// rooms has memory for the part that packApart copies, of so many words of each row.
var rooms = sync.Pool{New: func() any { return new([maxCols * copiedWords]uint32) }}

const copiedWords = 64

// packApart packs rows of so many whole words that are any number of bytes apart, from a copy of a part of each.
func packApart(out []uint32, src []byte, width, rows, words, step int, flip uint32) {
	const part = copiedWords
	room := rooms.Get().(*[maxCols * part]uint32)
	defer rooms.Put(room)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), 4*len(room))
	for at := 0; at < words; at += part {
		n := min(part, words-at)
		for i := range rows {
			copy(bytes[4*part*i:][:4*n], src[i*step+4*at:])
		}
		transposeWords(out[at*width:], width, bytes[:4*part*(rows-1)+4*n], part, rows, n, flip)
	}
}

// transposeWords sets words of out, width apart, to those of rows of bytes that are step words apart, so many words
// each, with a bias if flip is that.
func transposeWords(out []uint32, width int, from []byte, step, rows, words int, flip uint32) {
	dst := unsafe.Slice((*float32)(unsafe.Pointer(&out[0])), len(out))
	src := unsafe.Slice((*float32)(unsafe.Pointer(&from[0])), len(from)/4)
	gemm.Transpose(dst, width, src, step, rows, words)
	flipWords(out[:words*width], flip)
}

// flipWords adds the bias to words if flip is that, and nothing if it is 0.
func flipWords(out []uint32, flip uint32) {
	for flip == bias && len(out) > 0 {
		n := min(len(out), len(biased))
		part := unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), 4*n)
		subtle.XORBytes(part, part, unsafe.Slice((*byte)(unsafe.Pointer(&biased[0])), 4*n))
		out = out[n:]
	}
}

// packFours packs groups of four rows of so many bytes, step apart, by vectors, which are of 16 or 32 bytes: what they store
// beyond a group is overwritten by the next ones. It returns how many groups it packs, from the first on.
func packFours[T Integer](out []uint32, src []T, width, groups, step int) int {
	pack, bytes := loops.fours, 32
	if width <= 16 {
		pack, bytes = loops.fewFours, 16
	}
	if pack == nil || unsafe.Sizeof(src[0]) != 1 || width > bytes || len(src) < bytes {
		return 0
	}
	n := groups - ((bytes - 1) / width)
	if inside := (len(src) - bytes) / step; inside < 4*n-1 {
		n = (inside + 1) / 4
	}
	if n < 1 {
		return 0
	}
	_, _ = src[(4*n-1)*step+bytes-1], out[(n-1)*width+bytes-1]
	pack(&out[0], 4*width, (*byte)(unsafe.Pointer(&src[0])), step, n)
	return n
}

func packPairs[T Integer](out []uint32, src []T, width, rows, k, base, step, kStep int) {
	pair := func(lo, hi T) uint32 { return uint32(uint16(lo)) | uint32(uint16(hi))<<16 }
	if step == 1 {
		for p := range k / 2 {
			x, y := src[base+2*p*kStep:][:rows], src[base+(2*p+1)*kStep:][:rows]
			to := out[p*width:][:rows]
			for i, v := range x {
				to[i] = pair(v, y[i])
			}
		}
	} else {
		for i := range rows {
			at := base + i*step
			for p := range k / 2 {
				out[p*width+i] = pair(src[at], src[at+kStep])
				at += 2 * kStep
			}
		}
	}
	if k%2 != 0 {
		for i := range rows {
			out[k/2*width+i] = pair(src[base+i*step+(k-1)*kStep], 0)
		}
	}
}

// Product is what Mul multiplies: packed operands of m rows, n columns and depth k.
type Product struct {
	Form    Form
	M, N, K int
	// Signed says that left elements of Quads are signed, and count as such: sums are
	// those of 32 bits. Without it they are right in the last 8 bits whatever the signs.
	Signed bool
}

// Biased reports whether the left words have the bias of Bias.
func (p Product) Biased() bool { return p.Signed && p.Form == Quads }

// Mul sets the part of the dense matrix c that lies in row panels rowLo..rowHi-1 and
// column panels colLo..colHi-1 to the product of operands that Pack has packed for this
// kernel, cut to the type. Of a Biased product excess is what Excess has set for all columns.
// The tile is memory for sums.
func Mul[R Integer](kn *Kernel, p Product, tile *Tile, c []R, a, b []uint32, excess []int32, rowLo, rowHi, colLo, colHi int) {
	less := none[:kn.NR]
	words := p.Form.Words(p.K)
	clear(tile[:]) // what sums of nothing are
	biased := p.Biased()
	for col := colLo; col < colHi; col++ {
		pb := b[col*kn.NR*words:][:kn.NR*words]
		cols := min(kn.NR, p.N-col*kn.NR)
		if biased {
			less = excess[col*kn.NR:][:kn.NR]
		}
		for row := rowLo; row < rowHi; row++ {
			rows := min(kn.MR, p.M-row*kn.MR)
			if words > 0 {
				kn.tileOf(p.Form, rows, cols)(words, &a[row*kn.MR*words:][:kn.MR*words][0], &pb[0], &tile[0])
			}
			if out := c[row*kn.MR*p.N+col*kn.NR:]; kn.difference != nil && unsafe.Sizeof(out[0]) == 4 && cols%8 == 0 {
				_ = out[(rows-1)*p.N+cols-1]
				kn.difference((*int32)(unsafe.Pointer(&out[0])), p.N, &tile[0], &less[0], rows, cols/8)
				continue
			}
			for i := range rows {
				to := c[(row*kn.MR+i)*p.N+col*kn.NR:][:cols]
				from := tile[i*kn.NR:][:cols]
				if biased {
					for j, v := range less[:cols] {
						from[j] -= v
					}
				}
				for j, v := range from {
					to[j] = R(v)
				}
			}
		}
	}
}

// bias flips the signs of the bytes of words, which adds 128 to them.
const bias = 0x80808080

// biased is words of the bias, for a part of the depth.
var biased = func() (words [maxTile]uint32) {
	for i := range words {
		words[i] = bias
	}
	return words
}()

// none is what the sums of a product without bias lose.
var none [maxCols]int32

// Excess sets the elements of sums for column panels colLo..colHi-1 of a packed right operand of Quads, so many
// words deep, to what the bias of the left bytes adds to the sums of each column. There is an element for each column
// of a panel.
func (kn *Kernel) Excess(sums []int32, right []uint32, words, colLo, colHi int) {
	for col := colLo; col < colHi; col++ {
		to, panel := sums[col*kn.NR:][:kn.NR], right[col*kn.NR*words:][:kn.NR*words]
		if clear(to); words > 0 {
			kn.biasSums(words, bias, &panel[0], &to[0])
		}
	}
}
