// Package igemm multiplies matrices of integers of at most 32 bits, with sums of
// 32 bits that wrap around and are cut to the type: what sums in the type itself
// would give.
//
// Operands are packed into panels of words of 32 bits, rows or columns of a panel
// side by side: whole numbers, or two narrower ones that follow each other along
// the depth, whose products one instruction adds.
package igemm

import "unsafe"

// Integer is the element types; uint8 also stands for bool.
type Integer interface{ int8 | int16 | int32 | uint8 }

// Kernel is the inner loops of one kind of processor. MR and NR are the rows and
// columns of a tile, and so the widths of left and right panels.
type Kernel struct {
	name   string
	MR, NR int
	// pairs and whole set the dense tile c to the product of two panels.
	pairs, whole func(depth int, a, b *uint32, c *int32)
}

// maxTile is the most elements of a tile.
const maxTile = 12 * 32

var native = natives()

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

// isWhole reports whether elements are words of their own.
func isWhole[T Integer]() bool {
	var x T
	return unsafe.Sizeof(x) == 4
}

// Words returns the depth in words of operands of depth k.
func Words[T Integer](k int) int {
	if isWhole[T]() {
		return k
	}
	return (k + 1) / 2
}

// PackedLen returns the words of a packed operand with n rows or columns and
// depth k, in panels of the given width.
func PackedLen[T Integer](n, k, width int) int { return (n + width - 1) / width * width * Words[T](k) }

// Pack packs panels lo..hi-1 of an operand with n rows (for panels of MR; columns
// for NR) and depth k: element (i, p) is src[off+i·step+p·kStep]. What a panel
// has beyond n and k is zero. dst is the whole packed operand.
func Pack[T Integer](dst []uint32, src []T, width, n, k, off, step, kStep, lo, hi int) {
	words := Words[T](k)
	for panel := lo; panel < hi; panel++ {
		out := dst[panel*width*words : (panel+1)*width*words]
		rows := min(width, n-panel*width)
		if rows < width {
			clear(out)
		}
		base := off + panel*width*step
		if isWhole[T]() {
			packWhole(out, src, width, rows, k, base, step, kStep)
		} else {
			packPairs(out, src, width, rows, k, base, step, kStep)
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

// Mul sets the part of the dense m×n matrix c that lies in row panels
// rowLo..rowHi-1 and column panels colLo..colHi-1 to the product of operands of
// depth k, above zero, that Pack has packed for this kernel.
func Mul[T Integer](kn *Kernel, c []T, a, b []uint32, m, n, k, rowLo, rowHi, colLo, colHi int) {
	var tile [maxTile]int32
	words := Words[T](k)
	f := kn.pairs
	if isWhole[T]() {
		f = kn.whole
	}
	for col := colLo; col < colHi; col++ {
		pb := b[col*kn.NR*words:][:kn.NR*words]
		cols := min(kn.NR, n-col*kn.NR)
		for row := rowLo; row < rowHi; row++ {
			pa := a[row*kn.MR*words:][:kn.MR*words]
			f(words, &pa[0], &pb[0], &tile[0])
			for i := range min(kn.MR, m-row*kn.MR) {
				to := c[(row*kn.MR+i)*n+col*kn.NR:][:cols]
				from := tile[i*kn.NR:][:cols]
				for j, v := range from {
					to[j] = T(v)
				}
			}
		}
	}
}
