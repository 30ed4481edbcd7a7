package distance

import (
	"math"
	"unsafe"
)

// maxWidth is the greatest width of panels.
const maxWidth = 32

// kernels are tiles for one kind of processor. Steps are in bytes.
type kernels[T Float] struct {
	name    string
	width   int // of a panel
	sumRows int // of a tile of sums, in many
	norms   [3]normTiles[T]
	sums    [2]sumTiles[T] // of signs, of differences
}

// normTiles compute normRows rows and one.
type normTiles[T Float] struct {
	many, one func(dst, x, y *T, dstStep, xStep, depth int)
}

// sumTiles compute sumRows rows and one.
type sumTiles[T Float] struct {
	many, one func(dst, w, x, y *T, dstStep, wStep, depth int)
}

var (
	best32 = available[float32]()[0]
	best64 = available[float64]()[0]
)

// best returns the fastest kernels.
func best[T Float]() *kernels[T] {
	if k, ok := any(best32).(*kernels[T]); ok {
		return k
	}
	return any(best64).(*kernels[T])
}

func sizeOf[T Float]() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// portableWidth is the width of panels where there are no vectors.
const portableWidth = 4

// portable is the formulas: what the others must agree with.
func portable[T Float]() *kernels[T] {
	norm := func(term func(acc, d T) T, end func(T) T) normTiles[T] {
		one := func(dst, x, y *T, _, _, depth int) {
			var acc [portableWidth]T
			cols := unsafe.Slice(y, depth*portableWidth)
			for p, v := range unsafe.Slice(x, depth) {
				for j, c := range cols[p*portableWidth:][:portableWidth] {
					acc[j] = term(acc[j], v-c)
				}
			}
			for j, out := 0, unsafe.Slice(dst, portableWidth); j < len(out); j++ {
				out[j] = end(acc[j])
			}
		}
		return normTiles[T]{many: func(dst, x, y *T, dstStep, xStep, depth int) {
			for i := range normRows {
				one(after(dst, i*dstStep), after(x, i*xStep), y, dstStep, xStep, depth)
			}
		}, one: one}
	}
	sum := func(term func(w, d T) T) sumTiles[T] {
		one := func(dst, w, x, y *T, _, _, depth int) {
			var acc [portableWidth]T
			row, rows := unsafe.Slice(x, portableWidth), unsafe.Slice(y, depth*portableWidth)
			for p, f := range unsafe.Slice(w, depth) {
				for j, c := range rows[p*portableWidth:][:portableWidth] {
					acc[j] += term(f, row[j]-c)
				}
			}
			copy(unsafe.Slice(dst, portableWidth), acc[:])
		}
		return sumTiles[T]{many: one, one: one}
	}
	itself := func(x T) T { return x }
	return &kernels[T]{"go", portableWidth, 1,
		[3]normTiles[T]{
			norm(func(acc, d T) T { return acc + T(math.Abs(float64(d))) }, itself),
			norm(func(acc, d T) T { return acc + d*d }, func(x T) T { return T(math.Sqrt(float64(x))) }),
			norm(func(acc, d T) T { return max(acc, T(math.Abs(float64(d)))) }, itself),
		},
		[2]sumTiles[T]{
			sum(func(w, d T) T {
				switch {
				case d > 0:
					return w
				case d < 0:
					return -w
				}
				return 0
			}),
			sum(func(w, d T) T { return w * d }),
		},
	}
}

// after returns the address that is bytes behind p.
func after[T Float](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }
