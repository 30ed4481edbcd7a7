package kernels

import "slices"

// Count adds to counts[i] how many elements of x are i. It panics with an IndexError for one that
// counts has no place for.
func Count[T Integer](counts []int64, x []T) {
	for _, v := range x {
		counts[checked(int64(v), len(counts))]++
	}
}

// rangeLanes is how many of the least and greatest elements Range has at a time.
const rangeLanes = 256

// Range returns the least and the greatest element of x, NaN if there is one.
func Range[T Float](x []T) (lo, hi T) {
	var room [2][rangeLanes]T
	least, greatest := room[0][:min(rangeLanes, len(x))], room[1][:min(rangeLanes, len(x))]
	copy(least, x)
	copy(greatest, x)
	for x = x[len(least):]; len(x) > 0; {
		n := min(rangeLanes, len(x))
		CombineRow(CombineMin, least[:n], x[:n])
		CombineRow(CombineMax, greatest[:n], x[:n])
		x = x[n:]
	}
	for n := len(least); n > 8; {
		half := n / 2
		n -= half
		CombineRow(CombineMin, least[:half], least[n:n+half])
		CombineRow(CombineMax, greatest[:half], greatest[n:n+half])
		least, greatest = least[:n], greatest[:n]
	}
	return slices.Min(least), slices.Max(greatest)
}

// Histogram adds to counts how many elements of x lie in each of equal bins from lo to hi, both
// included. The arithmetic is that of T.
func Histogram[T Float](counts []int64, x []T, lo, hi T) {
	if lo == hi {
		lo, hi = lo-1, hi+1
	}
	width, bins, last := hi-lo, T(len(counts)), int64(len(counts)-1)
	for _, v := range x {
		if v >= lo && v <= hi {
			counts[checked(min(int64((v-lo)/width*bins), last), len(counts))]++
		}
	}
}

// AddCounts sets dst to the sums of the rows of parts, [len(parts)/len(dst), len(dst)].
func AddCounts[T Number](dst []T, parts []int64) {
	for i := range dst {
		n := int64(0)
		for p := i; p < len(parts); p += len(dst) {
			n += parts[p]
		}
		dst[i] = T(n)
	}
}

// NonZeroPlaces sets the rows of dst, [size, len(dims)], to the places of the first elements of x, a
// tensor of dimensions dims, that are not zero, and the rows that are left to fill.
func NonZeroPlaces[T Number](dst []int64, x []T, dims []int, size int, fill int64) {
	rank, row := len(dims), 0
	for i, v := range x {
		if v == 0 {
			continue
		}
		if row == size {
			break
		}
		rest := i
		for d := rank - 1; d > 0; d-- {
			q := rest / dims[d]
			dst[row*rank+d], rest = int64(rest-q*dims[d]), q
		}
		dst[row*rank] = int64(rest)
		row++
	}
	for i := row * rank; i < size*rank; i++ {
		dst[i] = fill
	}
}
