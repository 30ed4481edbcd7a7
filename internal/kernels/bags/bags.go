// Package bags makes one row of the rows of a table that each bag names.
package bags

import (
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Find sets of to the bag of each index, bounds to where the bags begin and the last ends, and sizes to
// how many indices count in each: all but padding, unless that is negative. offsets are where bags
// begin; with one more than there are bags, what is behind it belongs to none. A bag that begins outside
// of the list, or an index before the first bag, makes it panic with an IndexError.
// Unless each is wanted, of is memory that may be left as it is.
func Find(of, bounds, sizes, indices, offsets []int64, padding int64, each bool) {
	n, count := len(sizes), len(indices)
	if padding < 0 && findOrdered(of, bounds, sizes, offsets, each) {
		return
	}
	clear(of)
	for _, start := range offsets[:n] {
		if uint64(start) > uint64(count) {
			panic(kernels.IndexError{Index: start, Size: count + 1})
		}
		if start < int64(count) {
			of[start]++
		}
	}
	bag := int64(-1)
	for i, more := range of {
		for range more {
			bag++
			bounds[bag] = int64(i)
		}
		if bag < 0 {
			panic(kernels.IndexError{Index: bag, Size: n})
		}
		of[i] = bag
	}
	end := int64(count)
	if len(offsets) > n {
		end = min(max(offsets[n], 0), end)
	}
	for bag++; bag <= int64(n); bag++ {
		bounds[bag] = end
	}
	for k, b := range bounds {
		bounds[k] = min(b, end)
	}
	clear(sizes)
	for i, ix := range indices[:end] {
		if padding < 0 || ix != padding {
			sizes[of[i]]++
		}
	}
}

// findOrdered is Find where no index is padding and each bag begins no earlier than the one before, the first of
// them at 0. It reports false, and what it has set is to be set again, for others.
func findOrdered(of, bounds, sizes, offsets []int64, each bool) bool {
	n, count := len(sizes), int64(len(of))
	if n == 0 || len(bounds) != n+1 || offsets[0] != 0 {
		return false
	}
	end := count
	if len(offsets) > n {
		end = min(max(offsets[n], 0), count)
	}
	for bag := range n {
		from, to := offsets[bag], count
		if bag+1 < n {
			to = offsets[bag+1]
		}
		if from > to || to > count {
			return false
		}
		if each {
			part := of[from:to]
			for i := range part {
				part[i] = int64(bag)
			}
		}
		bounds[bag] = min(from, end)
		sizes[bag] = min(to, end) - bounds[bag]
	}
	bounds[n] = end
	return true
}

// Table is what bags name rows of.
type Table[E vec.Element] struct {
	Rows  []E // [rows, Width]
	Width int
	// Padding is the index whose rows count for nothing, unless it is negative.
	Padding int64
}

// row returns a row by its index; false for one that does not count.
func (t *Table[E]) row(at int64) ([]E, bool) {
	if t.Padding >= 0 && at == t.Padding {
		return nil, false
	}
	t.check(at)
	return t.Rows[int(at)*t.Width:][:t.Width], true
}

// check panics with an IndexError if there is no such row. Rows without elements are not counted.
func (t *Table[E]) check(at int64) {
	if t.Width > 0 && (uint64(at) > uint64(len(t.Rows)) || (int(at)+1)*t.Width > len(t.Rows)) {
		panic(kernels.IndexError{Index: at, Size: len(t.Rows) / t.Width})
	}
}

// sumWhole sets rows of dst to the sums of the first bags that have no index but of rows that count, and returns how many
// those are; none if there is no kernel for it.
func (t *Table[E]) sumWhole(dst any, indices, bounds []int64) int {
	d, ok := dst.([]float32)
	if !ok || t.Width == 0 {
		return 0
	}
	n, rows, padding := 0, uint64(len(t.Rows)/t.Width), uint64(t.Padding) // padding is beyond all rows if there is none
	for n+1 < len(bounds) && allCount(indices[bounds[n]:bounds[n+1]], rows, padding) {
		n++
	}
	switch r := any(t.Rows).(type) {
	case []float32:
		vec.SumBags(d, r, t.Width, indices, bounds[:n+1])
	case []vec.BF16:
		vec.SumBags(d, r, t.Width, indices, bounds[:n+1])
	case []vec.F16:
		vec.SumBags(d, r, t.Width, indices, bounds[:n+1])
	}
	return n
}

// allCount reports whether all elements of a bag are rows, of so many, and none is the one that does not count.
func allCount(bag []int64, rows, padding uint64) bool {
	for _, at := range bag {
		if uint64(at) >= rows || uint64(at) == padding {
			return false
		}
	}
	return true
}

// Sums sets rows lo..hi-1 of dst, [bags, width], to the sums of the rows of their bags, each times its
// number in scales unless that is nil, and with sizes to their means.
func Sums[A vec.Float, E vec.Element](dst []A, t *Table[E], indices, bounds []int64, scales []A, sizes []int64, lo, hi int) {
	var wide []A
	for bag := lo; bag < hi; bag++ {
		if scales == nil {
			bag += t.sumWhole(dst[bag*t.Width:], indices, bounds[bag:hi+1])
			if bag == hi {
				break
			}
		}
		if wide == nil {
			wide = make([]A, t.Width)
		}
		out, first := dst[bag*t.Width:][:t.Width], bounds[bag]
		clear(out)
		for i, at := range indices[first:bounds[bag+1]] {
			row, ok := t.row(at)
			if !ok {
				continue
			}
			line := widened(wide, row)
			if scales == nil {
				add(out, line)
				continue
			}
			for j, v := range line {
				out[j] += v * scales[int(first)+i]
			}
		}
	}
	for bag := lo; bag < hi && sizes != nil; bag++ {
		if n := A(sizes[bag]); n > 1 {
			out := dst[bag*t.Width:][:t.Width]
			for j := range out {
				out[j] /= n
			}
		}
	}
}

// widened returns the elements of a row as A, in place or converted to room.
func widened[A vec.Float, E vec.Element](room []A, row []E) []A {
	if same, ok := any(row).([]A); ok {
		return same
	}
	vec.Load(room, row)
	return room
}

// add adds a row to another.
func add[A vec.Float](dst, row []A) {
	if d, ok := any(dst).([]float32); ok {
		vec.Add(d, d, any(row).([]float32))
		return
	}
	kernels.AddRow(dst, row)
}

// Maxima sets rows lo..hi-1 of dst, [bags, width], to the greatest elements of the rows of their bags,
// and from to the indices that they are of, the first of equal ones. An element that is of no row, or
// among which is a NaN, is 0, and so is its index.
func Maxima[A vec.Float, E vec.Element](dst []A, from []int64, t *Table[E], indices, bounds []int64, lo, hi int) {
	wide := make([]A, t.Width)
	for bag := lo; bag < hi; bag++ {
		out, at := dst[bag*t.Width:][:t.Width], from[bag*t.Width:][:t.Width]
		for j := range out {
			out[j], at[j] = 0, -1
		}
		for _, index := range indices[bounds[bag]:bounds[bag+1]] {
			row, ok := t.row(index)
			if !ok {
				continue
			}
			for j, v := range widened(wide, row) {
				if at[j] < 0 || v > out[j] || v != v { // nothing is greater than a NaN
					out[j], at[j] = v, index
				}
			}
		}
		for j, v := range out {
			if at[j] < 0 || v != v {
				out[j], at[j] = 0, 0
			}
		}
	}
}
