package gemm

import "unsafe"

//go:generate go run _neon/main.go -out kernel_arm64.s -stubs kernel_stubs_arm64.go

// kernel is the inner loops for one element type on one kind of processor.
type kernel[A Float] struct {
	name   string
	mr, nr int // the largest tile; nr is the width of right panels
	masked bool
	// tiles[w][m] computes a tile of m rows and up to nr>>w columns; w is 1 only
	// if there is such a form. Unless masked, the columns must be exactly so many.
	tiles [2][]tileFunc[A]
	// broad computes tiles of few rows and twice as many columns, all of which
	// exist; nil if there are none.
	broad []tileFunc[A]
	// streams is how many rows a big right operand that a few rows meet is read by, if fewer than streamDepth: as many as
	// the processor follows by itself.
	streams int
	// panels does the same as tiles[0] for packed operands; nil if there is nothing
	// better for them.
	panels []panelFunc[A]
	// copyRows and transpose pack a panel of n elements across and a depth of
	// elements that are adjacent across, or along the depth; nil if there are no
	// better ones than in Go. Unless masked, copyRows also writes between rows that
	// are not all of a panel's width.
	copyRows, transpose packFunc[A]
	// copyPanels packs n elements that are adjacent across into panels that are
	// panel elements apart; nil if there is no better one than in Go.
	copyPanels func(dst *A, panel int, src *A, stride, n, depth int)
	dots       *dots[A] // nil if there are none
	// pairs is the kernel for operands of bfloat16, whose loops pack words; both nil if
	// the processor does not multiply pairs of them, or takes longer for that.
	pairs *kernel[A]
	loops *pairLoops
	// narrow is, by the format of 16-bit elements, the kernel for a few rows times a right operand of
	// those, which it reads as they are; nil if there is none.
	narrow [formats]*kernel[A]
	// stored is the format of the right operands that it reads.
	stored format
	// deep says that panels of the left operand have their rows one after another, not
	// steps of the depth, and that tiles do not multiply by alpha.
	deep bool
	// finish sets x = max(x + y + z, least) for n elements, a multiple of half nr;
	// a nil row counts as zeros. Nil if there is no better one than in Go.
	finish func(x, y, z *A, n int, least A)
	// times multiplies rows of n elements, a multiple of half nr, that follow one
	// another by the row y. Nil if there is no better one than in Go.
	times func(x, y *A, rows, n int)
}

// tileFunc sets the tile of c (or adds to it) to alpha times the product of the
// given depth. Element (i, p) of the left operand is a[i·aRow+p·aK], element
// (p, j) of the right one b[p·bK+j]. Meanwhile it may ask for the lines of memory
// from next on, step bytes further at each step of the depth: part of the panel
// that comes after this one, which is far away when it belongs to weights.
type tileFunc[A Float] func(depth int, a *A, aRow, aK int, b *A, bK int, c *A, ldc, cols int, alpha A, flags int, next *A, step int)

// panelFunc is a tileFunc of a panel of the left operand and one of the right one,
// each with the elements of a step of the depth next to those of the step before.
type panelFunc[A Float] func(depth int, a, b, c *A, ldc, cols int, alpha A, flags int, next *A, step int)

// Flags of a tileFunc.
const (
	flagAdd    = 1 << iota // to what c holds
	flagPadded             // rows of b may be read up to the full width
	flagBelow              // the tile below this one comes soon, and so its lines are asked for if this takes less time than that
)

// packFunc sets dst[p·width+i], for i < n and p < depth, to the elements of a
// panel of which those adjacent in memory follow one another (across it or along
// its depth), and those in the other direction are stride apart.
type packFunc[A Float] func(dst *A, width int, src *A, stride, n, depth int)

// slim reports whether there is a form for at most half the columns.
func (k *kernel[A]) slim() bool { return k.tiles[1] != nil }

// kernels32 and kernels64 list what this processor can run, best first; the
// portable one is last.
var (
	kernels32 = append(nativeKernels[float32](), portable[float32]())
	kernels64 = append(nativeKernels[float64](), portable[float64]())
)

// kernelsFor returns the list for an element type.
func kernelsFor[A Float]() []*kernel[A] {
	if l, ok := any(kernels32).([]*kernel[A]); ok {
		return l
	}
	return any(kernels64).([]*kernel[A])
}

const (
	portableRows = 4
	portableCols = 8
)

// portable returns the inner loop in Go: what the others must agree with.
func portable[A Float]() *kernel[A] {
	k := &kernel[A]{name: "go", mr: portableRows, nr: portableCols, masked: true, tiles: [2][]tileFunc[A]{make([]tileFunc[A], portableRows+1)}}
	for m := 1; m <= portableRows; m++ {
		k.tiles[0][m] = func(depth int, a *A, aRow, aK int, b *A, bK int, c *A, ldc, cols int, alpha A, flags int, _ *A, _ int) {
			portableTile(m, depth, a, aRow, aK, b, bK, c, ldc, cols, alpha, flags)
		}
	}
	return k
}

func portableTile[A Float](rows, depth int, a *A, aRow, aK int, b *A, bK int, c *A, ldc, cols int, alpha A, flags int) {
	var acc [portableRows][portableCols]A
	if depth > 0 {
		pa := unsafe.Slice(a, (rows-1)*aRow+(depth-1)*aK+1)
		pb := unsafe.Slice(b, (depth-1)*bK+cols)
		i := 0
		for ; i+2 <= rows; i += 2 {
			j := 0
			for ; j+4 <= cols; j += 4 {
				portable2x4(acc[i][j:j+4], acc[i+1][j:j+4], pa[i*aRow:], pa[(i+1)*aRow:], aK, pb[j:], bK, depth)
			}
			for ; j < cols; j++ {
				acc[i][j] = portableDot(pa[i*aRow:], aK, pb[j:], bK, depth)
				acc[i+1][j] = portableDot(pa[(i+1)*aRow:], aK, pb[j:], bK, depth)
			}
		}
		for ; i < rows; i++ {
			for j := range cols {
				acc[i][j] = portableDot(pa[i*aRow:], aK, pb[j:], bK, depth)
			}
		}
	}
	out := unsafe.Slice(c, (rows-1)*ldc+cols)
	for i := range rows {
		row := out[i*ldc:][:cols]
		for j, v := range acc[i][:cols] {
			if v *= alpha; flags&flagAdd != 0 {
				v += row[j]
			}
			row[j] = v
		}
	}
}

// portable2x4 is the innermost loop: eight sums fit in the vector registers
// that compilers use for scalars.
func portable2x4[A Float](r0, r1, a0, a1 []A, aK int, b []A, bK, depth int) {
	var s00, s01, s02, s03, s10, s11, s12, s13 A
	for p := range depth {
		x, y := a0[p*aK], a1[p*aK]
		q := b[p*bK:][:4]
		s00 += x * q[0]
		s01 += x * q[1]
		s02 += x * q[2]
		s03 += x * q[3]
		s10 += y * q[0]
		s11 += y * q[1]
		s12 += y * q[2]
		s13 += y * q[3]
	}
	r0[0], r0[1], r0[2], r0[3] = s00, s01, s02, s03
	r1[0], r1[1], r1[2], r1[3] = s10, s11, s12, s13
}

func portableDot[A Float](a []A, aK int, b []A, bK, depth int) A {
	var s A
	for p := range depth {
		s += a[p*aK] * b[p*bK]
	}
	return s
}
