// Package bags makes one row of the rows of a table that each bag names.
package bags

import (
	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// Float is the element types.
type Float interface{ float32 | float64 }

// Find sets of to the bag of each index, bounds to where the bags begin and the last ends, and sizes to
// how many indices count in each: all but padding, unless that is negative. offsets are where bags
// begin; with one more than there are bags, what is behind it belongs to none. A bag that begins outside
// of the list, or an index before the first bag, makes it panic with an IndexError.
func Find(of, bounds, sizes, indices, offsets []int64, padding int64) {
	n, count := len(sizes), len(indices)
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

// Table is what bags name rows of.
type Table[T Float] struct {
	Rows  []T // [rows, Width]
	Width int
	// Gathered says that row i is that of index i, whatever the index is.
	Gathered bool
	// Padding is the index whose rows count for nothing, unless it is negative.
	Padding int64
}

// row returns the row of index i; false for one that does not count.
func (t *Table[T]) row(i int64, indices []int64) ([]T, bool) {
	r := indices[i]
	if t.Padding >= 0 && r == t.Padding {
		return nil, false
	}
	if t.Gathered {
		r = i
	}
	if n := len(t.Rows) / max(t.Width, 1); uint64(r) >= uint64(n) && t.Width > 0 {
		panic(kernels.IndexError{Index: r, Size: n})
	}
	return t.Rows[int(r)*t.Width:][:t.Width], true
}

// Sums sets rows lo..hi-1 of dst, [bags, width], to the sums of the rows of their bags, each times its
// number in scales unless that is nil, and with sizes to their means.
func Sums[T Float](dst []T, t *Table[T], indices, bounds []int64, scales []T, sizes []int64, lo, hi int) {
	for bag := lo; bag < hi; bag++ {
		out := dst[bag*t.Width:][:t.Width]
		clear(out)
		for i := bounds[bag]; i < bounds[bag+1]; i++ {
			row, ok := t.row(i, indices)
			if !ok {
				continue
			}
			if scales == nil {
				add(out, row)
				continue
			}
			for j, v := range row {
				out[j] += v * scales[i]
			}
		}
		if sizes != nil && sizes[bag] > 1 {
			for j := range out {
				out[j] /= T(sizes[bag])
			}
		}
	}
}

// add adds a row to another.
func add[T Float](dst, row []T) {
	if d, ok := any(dst).([]float32); ok {
		vec.Add(d, d, any(row).([]float32))
		return
	}
	kernels.Add(dst, dst, row)
}

// Maxima sets rows lo..hi-1 of dst, [bags, width], to the greatest elements of the rows of their bags,
// and from to the indices that they are of, the first of equal ones. An element that is of no row, or
// among which is a NaN, is 0, and so is its index.
func Maxima[T Float](dst []T, from []int64, t *Table[T], indices, bounds []int64, lo, hi int) {
	for bag := lo; bag < hi; bag++ {
		out, at := dst[bag*t.Width:][:t.Width], from[bag*t.Width:][:t.Width]
		for j := range out {
			out[j], at[j] = 0, -1
		}
		for i := bounds[bag]; i < bounds[bag+1]; i++ {
			row, ok := t.row(i, indices)
			if !ok {
				continue
			}
			for j, v := range row {
				if at[j] < 0 || v > out[j] || v != v { // nothing is greater than a NaN
					out[j], at[j] = v, indices[i]
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
