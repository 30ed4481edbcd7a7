package quant

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Finish is what becomes of a sum, in this order: it is scaled by a factor for
// all, by column and by row, the bias and the element of Other are added, it is activated, divided by
// Step, moved by Zero, and rounded to nearest, of two to even, to the type of
// Out. Integers are cut to the range of their type.
type Finish struct {
	Factor   float32   // for all; this and Scale are not used for blocks
	Scale    []float32 // of the columns, or of all
	RowScale []float32 // of the rows; nil for none
	Bias     []float32 // of the columns; nil for none

	Other      Values // laid out as Out, which it may be; nil for none
	OtherScale float32
	OtherZero  int32

	Activation vec.Activation
	Step       float32
	Zero       int32

	Out    Values
	Stride int // between rows of Out
	Offset int // of the first element in Out
}

// Values are the elements of a tensor.
type Values interface {
	load(dst []float32, at int)
	store(src []float32, at int)
}

// The types of values.
type (
	U8s   []uint8
	I8s   []int8
	F32s  []float32
	BF16s []vec.BF16
)

// scale sets dst to the sums from column j on, scaled.
func (f *Finish) scale(dst []float32, sums []int32, j int) {
	sums = sums[:len(dst)]
	if len(f.Scale) == 1 {
		s := f.Scale[0]
		for c, v := range sums {
			dst[c] = float32(float32(v)*f.Factor) * s
		}
		return
	}
	scales := f.Scale[j:][:len(dst)]
	for c, v := range sums {
		dst[c] = float32(float32(v)*f.Factor) * scales[c]
	}
}

// row finishes the elements of row i from column j on. Products are rounded
// before anything is added to them, on every processor.
func (f *Finish) row(row, others []float32, i, j int) {
	if f.RowScale != nil {
		s := f.RowScale[i]
		for c := range row {
			row[c] *= s
		}
	}
	if f.Bias != nil {
		bias := f.Bias[j:][:len(row)]
		for c, b := range bias {
			row[c] += b
		}
	}
	at := i*f.Stride + f.Offset + j
	if f.Other != nil {
		others = others[:len(row)]
		f.Other.load(others, at)
		f.add(row, others)
	}
	vec.Apply(f.Activation, row)
	if f.Step != 1 {
		by := 1 / f.Step
		for c := range row {
			row[c] *= by
		}
	}
	if f.Zero != 0 {
		zero := float32(f.Zero)
		for c := range row {
			row[c] += zero
		}
	}
	f.Out.store(row, at)
}

func (f *Finish) add(row, others []float32) {
	if f.OtherScale == 1 && f.OtherZero == 0 {
		for c, v := range others {
			row[c] += v
		}
		return
	}
	zero := float32(f.OtherZero)
	for c, v := range others {
		row[c] += float32((v - zero) * f.OtherScale)
	}
}

func (s U8s) load(dst []float32, at int) {
	for i, v := range s[at:][:len(dst)] {
		dst[i] = float32(v)
	}
}

func (s I8s) load(dst []float32, at int) {
	for i, v := range s[at:][:len(dst)] {
		dst[i] = float32(v)
	}
}

func (s F32s) load(dst []float32, at int)  { copy(dst, s[at:][:len(dst)]) }
func (s BF16s) load(dst []float32, at int) { vec.Load(dst, s[at:][:len(dst)]) }

func (s U8s) store(src []float32, at int) {
	for i, v := range src {
		s[at+i] = uint8(round(v, 0, math.MaxUint8))
	}
}

func (s I8s) store(src []float32, at int) {
	for i, v := range src {
		s[at+i] = int8(round(v, math.MinInt8, math.MaxInt8))
	}
}

func (s F32s) store(src []float32, at int)  { copy(s[at:][:len(src)], src) }
func (s BF16s) store(src []float32, at int) { vec.Store(s[at:][:len(src)], src) }

// round cuts x to a range of small integers and rounds it. What is added has its
// last bit at one, and so the sum is x rounded to even.
func round(x, lo, hi float32) int32 {
	const big = 3 << 22
	if !(x > lo) {
		x = lo
	} else if x > hi {
		x = hi
	}
	return int32(math.Float32bits(x+big)) - int32(bigBits)
}

// bigBits is the pattern of 3·2²².
const bigBits = 0x4b400000
