// Package quant computes layers of 8-bit integers: products and convolutions
// whose sums of 32 bits are scaled, finished and rounded where they are made.
//
// Left operands are 16-bit numbers: those of 8 bits, less the zero point, fit.
// So padding is zero, and sums need no correction.
package quant

import (
	"sync"

	"github.com/loris-ml/loris/internal/kernels/igemm"
	"github.com/loris-ml/loris/internal/parallel"
)

// Packed is a right operand: the weights of a layer, laid out for the inner
// loops of this processor. It may be used by many products at once.
type Packed struct {
	kernel      *igemm.Kernel
	depth, cols int
	panel       int // words of a panel
	words       []uint32

	// Where sums are made of blocks of the depth with scales of their own: the words
	// of a row in a block, and the scale of each block and column.
	block  int
	scales []float32
}

// Depth returns the length of the sums.
func (w *Packed) Depth() int { return w.depth }

// Cols returns the number of columns.
func (w *Packed) Cols() int { return w.cols }

// Pack packs a right operand: element k of column j is src[j·depth + k].
func Pack(src []int8, cols, depth int) *Packed {
	kn := igemm.Best()
	w := &Packed{kernel: kn, depth: depth, cols: cols, panel: kn.NR * igemm.Pairs.Words(depth)}
	w.words = make([]uint32, igemm.Pairs.PackedLen(cols, depth, kn.NR))
	parallel.For(ceil(cols, kn.NR), max(1, packGrain/(kn.NR*depth+1)), func(lo, hi int) {
		igemm.Pack(igemm.Pairs, w.words, src, kn.NR, cols, depth, 0, depth, 1, lo, hi)
	})
	return w
}

// PackBlocks is Pack for sums of blocks that are scaled each: block b of column j
// by scales[b·cols + j]. The length of a block is even and divides the depth.
func PackBlocks(src []int8, cols, depth, block int, scales []float32) *Packed {
	w := Pack(src, cols, depth)
	w.block, w.scales = block/2, scales
	return w
}

// packGrain is how many elements are packed in some ten microseconds.
const packGrain = 16 << 10

// Rows writes row i of a left operand: 16-bit numbers, as many as the sums are
// long. Calls come from several goroutines at once.
type Rows func(dst []int16, i int)

// Shift returns the rows of a dense matrix of 8-bit integers whose zero is the
// given one.
func Shift[T uint8 | int8](x []T, depth int, zero int32) Rows {
	return func(dst []int16, i int) {
		for k, v := range x[i*depth:][:depth] {
			dst[k] = int16(v) - int16(zero)
		}
	}
}

// Mul multiplies a left operand of the given number of rows by w and finishes
// each sum.
func Mul(rows int, left Rows, w *Packed, f *Finish) {
	if rows == 0 || w.cols == 0 {
		return
	}
	kn := w.kernel
	rowUnits, cols := ceil(rows, unitPanels*kn.MR), ceil(w.cols, kn.NR)
	// Where there are few rows, units share them.
	parts := min(cols, ceil(leastUnits, rowUnits))
	cost := sumCost * float64(min(rows, unitPanels*kn.MR)) * float64(w.cols) / float64(parts) * float64(w.depth)
	parallel.For(rowUnits*parts, max(1, int(unitTime/(cost+1))), func(lo, hi int) {
		s := scratches.Get().(*scratch)
		for u := lo; u < hi; {
			// The parts that this call has of a unit's columns.
			unit, part := u/parts, u%parts
			end := min(hi-u+part, parts)
			s.multiply(w, left, unit*unitPanels*kn.MR, min(rows, (unit+1)*unitPanels*kn.MR), part*cols/parts, end*cols/parts, f)
			u += end - part
		}
		scratches.Put(s)
	})
}

const (
	// unitPanels is how many panels of rows meet each panel of columns while it is
	// in the cache.
	unitPanels = 4
	// leastUnits keeps the processors busy where there are few rows.
	leastUnits = 16
	// unitTime is the nanoseconds of work that are worth handing over.
	unitTime = 10e3
	// sumCost is the nanoseconds of a multiplication, roughly.
	sumCost = 0.02
)

// scratch is the memory of one worker.
type scratch struct {
	row    []int16
	words  []uint32
	tile   []int32
	sums   []float32
	others []float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// multiply computes rows lo..hi-1 and column panels from..to-1.
func (s *scratch) multiply(w *Packed, left Rows, lo, hi, from, to int, f *Finish) {
	kn := w.kernel
	s.pack(kn, left, w.depth, lo, hi)
	s.tile = grown(s.tile, kn.MR*kn.NR)
	s.sums, s.others = grown(s.sums, kn.MR*kn.NR), grown(s.others, kn.NR)
	size := kn.MR * igemm.Pairs.Words(w.depth)
	for col := from; col < to; col++ {
		right := w.words[col*w.panel:][:w.panel]
		j := col * kn.NR
		n := min(kn.NR, w.cols-j)
		for i, at := lo, 0; i < hi; i, at = i+kn.MR, at+size {
			rows := min(kn.MR, hi-i)
			if w.block > 0 {
				s.blocks(w, s.words[at:][:size], right, rows, j, n)
			} else {
				kn.Pairs(s.tile, s.words[at:][:size], right)
				for r := range rows {
					f.scale(s.sums[r*kn.NR:][:n], s.tile[r*kn.NR:], j)
				}
			}
			for r := range rows {
				f.row(s.sums[r*kn.NR:][:n], s.others, i+r, j)
			}
		}
	}
}

// blocks sets the sums of a tile to those of its blocks, scaled.
func (s *scratch) blocks(w *Packed, left, right []uint32, rows, j, n int) {
	kn := w.kernel
	clear(s.sums)
	for b := 0; len(left) > 0; b++ {
		kn.Pairs(s.tile, left[:w.block*kn.MR], right)
		scales := w.scales[b*w.cols+j:][:n]
		for r := range rows {
			sums, tile := s.sums[r*kn.NR:][:n], s.tile[r*kn.NR:][:n]
			for c, v := range tile {
				sums[c] += float32(float32(v) * scales[c])
			}
		}
		left, right = left[w.block*kn.MR:], right[w.block*kn.NR:]
	}
}

// pack lays out rows lo..hi-1 of a left operand in panels. The rows that the last
// panel lacks are whatever was there: nobody reads their sums.
func (s *scratch) pack(kn *igemm.Kernel, left Rows, depth, lo, hi int) {
	words := igemm.Pairs.Words(depth)
	if words == 0 {
		return
	}
	s.row = grown(s.row, 2*words)
	s.words = grown(s.words, ceil(hi-lo, kn.MR)*kn.MR*words)
	row := s.row
	row[2*words-1] = 0 // where the depth is odd
	for i := lo; i < hi; i++ {
		left(row[:depth], i)
		r := i - lo
		out := s.words[r/kn.MR*kn.MR*words:][:kn.MR*words]
		at := r % kn.MR
		for p := range words {
			out[at] = uint32(uint16(row[2*p])) | uint32(uint16(row[2*p+1]))<<16
			at += kn.MR
		}
	}
}

func ceil(n, d int) int { return (n + d - 1) / d }

// grown returns n elements of memory that is used again.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
