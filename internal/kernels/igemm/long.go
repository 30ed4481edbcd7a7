package igemm

import "unsafe"

// Long is the inner loop of one kind of processor for products of 64-bit numbers. Its operands are
// packed by kernels.Pack, into panels of MR rows and of NR columns.
type Long struct {
	name   string
	MR, NR int
	// tile sets the dense tile c to the product of two panels.
	tile func(depth int, a, b, c *int64)
}

var longs = nativeLongs()

// NativeLong returns the fastest loop for 64-bit numbers that this processor has, or nil: package
// kernels has one in Go.
func NativeLong() *Long {
	if len(longs) == 0 {
		return nil
	}
	return longs[0]
}

// Mul is kernels.MatMul, with memory for sums.
func (l *Long) Mul(sums *Tile, c, a, b []int64, m, n, k, rowLo, rowHi, colLo, colHi int) {
	tile := (*[maxTile / 2]int64)(unsafe.Pointer(sums))
	clear(tile[:]) // what sums of nothing are
	for col := colLo; col < colHi; col++ {
		pb := b[col*l.NR*k:][:l.NR*k]
		cols := min(l.NR, n-col*l.NR)
		for row := rowLo; row < rowHi; row++ {
			if k > 0 {
				l.tile(k, &a[row*l.MR*k:][:l.MR*k][0], &pb[0], &tile[0])
			}
			for i := range min(l.MR, m-row*l.MR) {
				copy(c[(row*l.MR+i)*n+col*l.NR:][:cols], tile[i*l.NR:])
			}
		}
	}
}
