// Package tile holds the innermost loop of convolution, attention and recurrent
// layers: a register tile of a matrix product whose left operand is read where
// it lies, element by element, and whose right operand is read a row of a panel
// at a time.
//
//	C[p][v] = clamp(Init[p][v] + Σ_k X[p][k] · W[k][v] + Add[p][v])
//
// The left element of row p and step k is found by byte offsets: segments begin
// at Segs[0], Segs[1], … after X, each is Run steps long with KStep between
// steps, and rows are XStep apart. An image in either layout, a matrix with any
// strides and the taps of a kernel are all read so without being packed. The
// right operand is a panel of Width columns, or two panels, with WStep between
// its rows, which follow each other through all segments.
//
// Best returns the fastest implementation that the processor has; Sets returns
// all of them for tests.
package tile

import (
	"fmt"
	"unsafe"
)

// Float is the types that tiles compute in.
type Float interface{ float32 | float64 }

// Args are the operands of one tile. Pointers may be to Go or other memory;
// nothing keeps them past the call. Steps and the offsets in Segs are in bytes.
// The assembly reads the fields by their order.
type Args[A Float] struct {
	X    unsafe.Pointer // left element of row 0, before the segments' offsets
	W    unsafe.Pointer // first row of the panel
	W2   unsafe.Pointer // first row of the second panel, if there are two
	Init unsafe.Pointer // row 0 of what the sums begin with; two panels adjoin
	Add  unsafe.Pointer // row 0 of what is added at the end; two panels adjoin
	C    unsafe.Pointer // row 0 of the result; two panels adjoin
	Segs unsafe.Pointer // *int: offset of each segment

	NSegs, Run               int
	XStep, KStep, WStep      int
	InitStep, AddStep, CStep int
	Lo, Hi                   A // bounds of the results; a NaN passes
}

// Set is one implementation.
type Set[A Float] struct {
	Name  string
	Width int // columns of a panel
	// Tiles by rows, from 1: half a panel, one panel, and two panels wide.
	half, one, two []tileFunc
	depthwise      []tileFunc
	winograd       transforms
	join           func(dst, src *A, n int)
}

// tileFunc computes a tile of certain rows and columns from the Args at its
// argument, whose type assembly does not know.
type tileFunc func(args *byte)

// Panel is how many columns a tile has, in half panels.
type Panel int

// The widths of tiles.
const (
	Half Panel = 1
	One  Panel = 2
	Two  Panel = 4
)

// Rows returns the most rows a tile of the given width has.
func (s *Set[A]) Rows(p Panel) int { return len(s.tiles(p)) }

func (s *Set[A]) tiles(p Panel) []tileFunc {
	switch p {
	case Half:
		return s.half
	case One:
		return s.one
	case Two:
		return s.two
	}
	panic(fmt.Sprintf("tile: no tiles of %d half panels", p))
}

// Run computes one tile of 1..Rows(p) rows.
func (s *Set[A]) Run(a *Args[A], rows int, p Panel) {
	s.tiles(p)[rows-1]((*byte)(unsafe.Pointer(a)))
}

// Lanes returns the columns of half a panel, a vector of the processor's; those
// of depthwise tiles are a multiple of it.
func (s *Set[A]) Lanes() int { return s.Width / 2 }

// DepthwiseRows returns the most rows of a depthwise tile.
func (s *Set[A]) DepthwiseRows() int { return len(s.depthwise) }

// RunDepthwise computes one tile of a product by columns,
//
//	C[p][v] = clamp(Init[v] + Σ_s X[p][s][v] · W[s][v])
//
// for 1..DepthwiseRows() rows and Run·Lanes() columns, at least one Lanes.
// Columns adjoin everywhere; the left element of row p, segment s and column v
// is at X + Segs[s] + p·XStep, and the right one WStep further for each segment.
func (s *Set[A]) RunDepthwise(a *Args[A], rows int) {
	s.depthwise[rows-1]((*byte)(unsafe.Pointer(a)))
}

// Join makes n rows of the words of a panel of as many pairs of rows of its elements, which are
// bfloat16 held as float32. The Set must be that of Pairs.
func (s *Set[A]) Join(dst, src []A, n int) {
	// Some microseconds at a time, in which the runtime can't stop the goroutine.
	const most = 1024
	dst, src = dst[:n*s.Width], src[:2*n*s.Width]
	for at := 0; at < n; at += most {
		s.join(&dst[at*s.Width], &src[2*at*s.Width], min(most, n-at))
	}
}

// Zeros is a row of zeros wide enough for Init or Add of any tile, with step 0.
var Zeros = unsafe.Pointer(&zeros)

var zeros [maxWidth * 2]float64

const maxWidth = 32

// Sets returns all implementations that this processor has, the fastest first.
func Sets[A Float]() []*Set[A] {
	var a A
	if unsafe.Sizeof(a) == 4 {
		return any(sets32).([]*Set[A])
	}
	return any(sets64).([]*Set[A])
}

// Best returns the fastest implementation.
func Best[A Float]() *Set[A] { return Sets[A]()[0] }

// Pairs returns the tiles whose operands are words of two bfloat16, which float32 stands for, and
// whose sums are those of both products, or nil if the processor does not multiply pairs. Numbers
// below the normal ones count as zero in it. It has no depthwise tiles and no transforms.
func Pairs() *Set[float32] { return pairs }

var (
	pairs  = nativePairs()
	sets32 = append(native32(), portable[float32]())
	sets64 = append(native64(), portable[float64]())
)
