package gemm

import (
	"unsafe"

	"github.com/loris-ml/loris/internal/half"
)

// Processors with tiles as registers (AMX) multiply 16 rows of words, pairs of bfloat16, by 16 columns of
// them at once, and as many steps of the depth. The left operand then lies along the depth: a panel has
// its rows one after another, all of its pass of depth, instead of steps of the depth.

// Sides of a tile: rows, 32-bit columns, and the words of the depth that one instruction multiplies.
const (
	tileRows  = 16
	tileCols  = 16
	tileDepth = 16
)

// deepTile sets the tile of c, of up to twice tileRows and tileCols, to the product of the given depth in
// words, or adds to it. Word (i, p) of the left operand is a[i·aRow+p], (p, j) of the right one b[p·bK+j].
type deepTile func(rows, depth int, a *float32, aRow int, b *float32, bK int, c *float32, ldc, cols int, add bool)

// deepKernel returns a kernel for pairs that multiplies by a loop over tiles. All else is that of another
// kernel for pairs, but what reads a left operand in its layout.
func deepKernel(name string, pairs *kernel[float32], tile deepTile) *kernel[float32] {
	k := &kernel[float32]{
		name: name, mr: 2 * tileRows, nr: 2 * tileCols, masked: true, deep: true,
		tiles: [2][]tileFunc[float32]{make([]tileFunc[float32], 2*tileRows+1)},
		dots:  pairs.dots, loops: pairs.loops, finish: pairs.finish, times: pairs.times,
	}
	for m := 1; m <= k.mr; m++ {
		k.tiles[0][m] = func(depth int, a *float32, aRow, _ int, b *float32, bK int, c *float32, ldc, cols int, _ float32, flags int, _ *float32, _ int) {
			add := flags&flagAdd != 0
			if depth > 0 {
				tile(m, depth, a, aRow, b, bK, c, ldc, cols, add)
				return
			}
			for i := 0; i < m && !add; i++ {
				clear(unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), 4*i*ldc)), cols))
			}
		}
	}
	return k
}

// scalesLater reports whether the loops leave alpha out, so that it is applied to finished sums.
func (s *state[A]) scalesLater() bool {
	return s.kernel.deep && s.alpha != 1 && !s.alongDepth()
}

// pass returns how deep each pass is when it is to be at most so deep: a whole number of steps.
func (s *state[A]) pass(most int) int {
	d := balanced(s.k, most)
	if s.kernel.deep {
		d = roundUp(d, tileDepth)
	}
	return d
}

// packLeft packs rows r0..r1-1 of the left operand for a pass of depth, see packFunc, or row by row for
// kernels that want it so.
func (s *state[A]) packLeft(w *scratch[A], dst []A, r0, r1, k0, k1 int) {
	o, n := &s.a, r1-r0
	if !s.kernel.deep {
		s.pack(w, dst, n, o, o.rs, o.cs, r0, r1, k0, k1)
		return
	}
	row := k1 - k0
	if n <= 0 || row <= 0 {
		return
	}
	words := unsafe.Slice((*uint32)(dataOf(dst)), n*row)
	whole := min(k1, s.deep/2) - k0
	switch {
	case o.cs == 1:
		for i := range n {
			copy(unsafe.Slice((*uint16)(unsafe.Pointer(&words[i*row])), 2*row)[:2*whole], unsafe.Slice((*uint16)(o.at(r0+i, 2*k0, 2)), 2*whole))
		}
	case o.rs == 1 && s.kernel.loops.turn != nil:
		w.wide = grown(w.wide, turnDepth*n)
		for p := 0; p < whole; p += turnDepth {
			part := min(turnDepth, whole-p)
			turned := (*float32)(dataOf(w.wide))
			s.kernel.loops.rows(turned, n, (*uint16)(o.at(r0, 2*(k0+p), 2)), o.cs, n, part)
			s.kernel.loops.turn((*float32)(unsafe.Pointer(&words[p])), row, turned, n, part, n)
		}
	default:
		for i := range n {
			for p := range whole {
				low, high := *(*uint16)(o.at(r0+i, 2*(k0+p), 2)), *(*uint16)(o.at(r0+i, 2*(k0+p)+1, 2))
				words[i*row+p] = uint32(low) | uint32(high)<<16
			}
		}
	}
	if whole < row { // the last element has no other
		for i := range n {
			words[i*row+whole] = uint32(*(*uint16)(o.at(r0+i, s.deep-1, 2)))
		}
	}
}

// turnDepth is how many words of the depth of a left operand whose rows are adjacent are packed at once.
const turnDepth = 64

// multiplies reports whether a loop gets a product of small whole numbers right, all sums of which are
// exact: of two tiles and a part of two, and of a step and a part.
func multiplies(tile deepTile) bool {
	const rows, cols, depth = tileRows + 3, tileCols + 5, tileDepth + 7
	var a [rows * depth]uint32
	var b [depth * 2 * tileCols]uint32
	var c, want [rows * cols]float32
	x := func(i, p int) float32 { return float32((7*i+3*p)%11 - 5) }
	y := func(p, j int) float32 { return float32((5*p+2*j)%13 - 6) }
	word := func(low, high float32) uint32 {
		return uint32(half.F32ToBF16(low)) | uint32(half.F32ToBF16(high))<<16
	}
	for p := range depth {
		for i := range rows {
			a[i*depth+p] = word(x(i, 2*p), x(i, 2*p+1))
		}
		for j := range cols {
			b[p*2*tileCols+j] = word(y(2*p, j), y(2*p+1, j))
		}
	}
	for i := range rows {
		for j := range cols {
			c[i*cols+j] = 1
			want[i*cols+j] = 1
			for p := range 2 * depth {
				want[i*cols+j] += x(i, p) * y(p, j)
			}
		}
	}
	tile(rows, depth, (*float32)(unsafe.Pointer(&a)), depth, (*float32)(unsafe.Pointer(&b)), 2*tileCols, &c[0], cols, cols, true)
	return c == want
}
