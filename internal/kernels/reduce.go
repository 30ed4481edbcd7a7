package kernels

import (
	"math"

	"github.com/loris-ml/loris/internal/strided"
)

// Reduction is the geometry of a reduction of a dense tensor over some of its dimensions. Adjacent
// dimensions that are all kept, or all reduced, are merged to groups.
type Reduction struct {
	// Inner is the number of elements of the last, contiguous group.
	Inner int
	// InnerKept says that the last group is kept. Results are then computed in runs of Inner,
	// otherwise one by one.
	InnerKept bool
	keep, red strided.View // the kept and the reduced ones of the groups before it
	outs      int
	count     int
}

// NewReduction returns the geometry of a reduction of the dimensions that are marked in reduced.
func NewReduction(dims []int, reduced []bool) Reduction {
	type group struct {
		n, stride int
		red       bool
	}
	var groups [strided.MaxRank]group
	k := 0
	full := strided.Dense(dims)
	for i, d := range dims {
		if d == 1 {
			continue
		}
		if k > 0 && groups[k-1].red == reduced[i] {
			groups[k-1].n *= d
			groups[k-1].stride = full.Strides[i]
			continue
		}
		groups[k] = group{d, full.Strides[i], reduced[i]}
		k++
	}
	r := Reduction{Inner: 1, InnerKept: true}
	if k > 0 {
		k--
		r.Inner, r.InnerKept = groups[k].n, !groups[k].red
	}
	for _, g := range groups[:k] {
		v := &r.keep
		if g.red {
			v = &r.red
		}
		v.Dims[v.Rank], v.Strides[v.Rank] = g.n, g.stride
		v.Rank++
	}
	r.outs, r.count = r.keep.Len(), r.red.Len()
	if r.InnerKept {
		r.outs *= r.Inner
	} else {
		r.count *= r.Inner
	}
	return r
}

// Outs returns the number of results.
func (r *Reduction) Outs() int { return r.outs }

// Count returns the number of elements in each result.
func (r *Reduction) Count() int { return r.count }

// Splits reports whether the first group is a reduced one, so that the reduction
// can be done in parts, and its size.
func (r *Reduction) Splits() (n int, ok bool) {
	if r.red.Rank > 0 && (r.keep.Rank == 0 || r.red.Strides[0] > r.keep.Strides[0]) {
		return r.red.Dims[0], true
	}
	return r.Inner, r.red.Rank == 0 && r.keep.Rank == 0 && !r.InnerKept
}

// Part returns the geometry of the reduction of slices lo..hi-1 of the first
// group, where Splits allows it, and where in the tensor they begin.
func (r *Reduction) Part(lo, hi int) (part Reduction, offset int) {
	part = *r
	if r.red.Rank > 0 {
		part.red.Dims[0] = hi - lo
		offset = lo * r.red.Strides[0]
		part.count = r.count / r.red.Dims[0] * (hi - lo)
		return part, offset
	}
	part.Inner, part.count = hi-lo, hi-lo
	return part, lo
}

// Elements returns the number of elements that the reduction reads.
func (r *Reduction) Elements() int { return r.outs * r.count }

// ReduceRoom is how many results of a kept inner group are accumulated at a
// time: the accumulators stay in the first-level cache.
const ReduceRoom = 256

// Reduce sets results lo..hi-1 of dst to the reductions by f of their elements of x. room has ReduceRoom
// elements of scratch memory.
func Reduce[R, T, A any](dst []R, x []T, r *Reduction, room []A, lo, hi int, f *Reducer[R, T, A]) {
	if lo >= hi {
		return
	}
	if r.InnerKept {
		reduceCols(dst, x, r, room, lo, hi, f)
		return
	}
	var at [strided.MaxRank]int
	base := r.keep.Seek(lo, &at)
	n := r.red.Len()
	for o := lo; o < hi; o++ {
		acc := f.Init
		var in [strided.MaxRank]int
		pos := base
		for range n {
			acc = f.Row(acc, x[pos:pos+r.Inner])
			pos = r.red.Next(&in, r.red.Rank, pos)
		}
		dst[o] = f.Finish(acc)
		base = r.keep.Next(&at, r.keep.Rank, base)
	}
}

func reduceCols[R, T, A any](dst []R, x []T, r *Reduction, room []A, lo, hi int, f *Reducer[R, T, A]) {
	n := r.red.Len()
	for lo < hi {
		col := lo % r.Inner
		k := min(r.Inner-col, hi-lo, ReduceRoom)
		acc := room[:k]
		for i := range acc {
			acc[i] = f.Init
		}
		var at, in [strided.MaxRank]int
		pos := r.keep.Seek(lo/r.Inner, &at) + col
		for range n {
			f.Col(acc, x[pos:pos+k])
			pos = r.red.Next(&in, r.red.Rank, pos)
		}
		for i, a := range acc {
			dst[lo+i] = f.Finish(a)
		}
		lo += k
	}
}

// Reducer is how a reduction combines elements of type T, by way of accumulators of type A, into a
// result of type R.
type Reducer[R, T, A any] struct {
	Init   A                    // the accumulator of no elements
	Row    func(acc A, x []T) A // adds all elements of x to one accumulator
	Col    func(acc []A, x []T) // adds element i of x to accumulator i
	Finish func(acc A) R        // turns an accumulator into a result
}

// SumReducer returns the Reducer of sums: of floats in float64, of integers in int64.
func SumReducer[R, T Number, A int64 | float64]() *Reducer[R, T, A] {
	return &Reducer[R, T, A]{0, sumRow[T, A], sumCol[T, A], convert[R, A]}
}

// ProdReducer returns the Reducer of products: of floats in float64, of integers in int64.
func ProdReducer[R, T Number, A int64 | float64]() *Reducer[R, T, A] {
	return &Reducer[R, T, A]{1, prodRow[T, A], prodCol[T, A], convert[R, A]}
}

// MaxReducer returns the Reducer that finds the greatest element, or NaN if there is one.
func MaxReducer[T Number](least T) *Reducer[T, T, T] {
	return &Reducer[T, T, T]{least, maxRow[T], func(acc, x []T) { Max(acc, acc, x) }, same[T]}
}

// MinReducer returns the Reducer that finds the smallest element, or NaN if there is one.
func MinReducer[T Number](greatest T) *Reducer[T, T, T] {
	return &Reducer[T, T, T]{greatest, minRow[T], func(acc, x []T) { Min(acc, acc, x) }, same[T]}
}

// BoolReducer returns a Reducer with the results of f as bools.
func BoolReducer[T, A Number](f *Reducer[A, T, A]) *Reducer[uint8, T, A] {
	return &Reducer[uint8, T, A]{f.Init, f.Row, f.Col, func(a A) uint8 { return flag(a != 0) }}
}

// AnyReducer returns the Reducer that tells whether an element is not 0.
func AnyReducer[T Number]() *Reducer[uint8, T, uint8] {
	return &Reducer[uint8, T, uint8]{0, anyRow[T], anyCol[T], same[uint8]}
}

// AllReducer returns the Reducer that tells whether no element is 0.
func AllReducer[T Number]() *Reducer[uint8, T, uint8] {
	return &Reducer[uint8, T, uint8]{1, allRow[T], allCol[T], same[uint8]}
}

// Limits returns what compares below and above all else of T: infinities of
// floats, the ends of the range of integers.
func Limits[T Number]() (least, greatest T) {
	set := func(lo, hi any) { least, greatest = lo.(T), hi.(T) }
	switch any(least).(type) {
	case uint8:
		set(uint8(0), uint8(math.MaxUint8))
	case int8:
		set(int8(math.MinInt8), int8(math.MaxInt8))
	case int16:
		set(int16(math.MinInt16), int16(math.MaxInt16))
	case int32:
		set(int32(math.MinInt32), int32(math.MaxInt32))
	case int64:
		set(int64(math.MinInt64), int64(math.MaxInt64))
	case float32:
		set(float32(math.Inf(-1)), float32(math.Inf(1)))
	case float64:
		set(math.Inf(-1), math.Inf(1))
	}
	return least, greatest
}

func convert[R, A Number](a A) R { return R(a) }

func same[T any](x T) T { return x }

// sumShort is how many elements have one sum: that the ends of two loops are not foreseen takes longer.
const sumShort = 12

func sumRow[T Number, A Number](acc A, x []T) A {
	if len(x) <= sumShort {
		for _, v := range x {
			acc += A(v)
		}
		return acc
	}
	var s0, s1, s2, s3 A
	for len(x) >= 4 {
		s0 += A(x[0])
		s1 += A(x[1])
		s2 += A(x[2])
		s3 += A(x[3])
		x = x[4:]
	}
	for _, v := range x {
		s0 += A(v)
	}
	return acc + ((s0 + s1) + (s2 + s3))
}

func sumCol[T Number, A Number](acc []A, x []T) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] += A(x[i])
	}
}

func prodRow[T Number, A Number](acc A, x []T) A {
	for _, v := range x {
		acc *= A(v)
	}
	return acc
}

func prodCol[T Number, A Number](acc []A, x []T) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] *= A(x[i])
	}
}

func maxRow[T Number](acc T, x []T) T {
	for _, v := range x {
		if v > acc || v != v {
			acc = v
		}
	}
	return acc
}

func minRow[T Number](acc T, x []T) T {
	for _, v := range x {
		if v < acc || v != v {
			acc = v
		}
	}
	return acc
}

func anyRow[T Number](acc uint8, x []T) uint8 {
	for _, v := range x {
		if v != 0 {
			return 1
		}
	}
	return acc
}

func anyCol[T Number](acc []uint8, x []T) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] |= flag(x[i] != 0)
	}
}

func allRow[T Number](acc uint8, x []T) uint8 {
	for _, v := range x {
		if v == 0 {
			return 0
		}
	}
	return acc
}

func allCol[T Number](acc []uint8, x []T) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] &= flag(x[i] != 0)
	}
}
