package kernels

import (
	"math"
	"math/bits"
)

// Search sets dst[i] to where x[i] belongs in its sorted line of rows: behind the
// elements that are smaller, and with right behind those that are equal, too. Lines have n elements and belong to each run of
// perRow elements of x; with order, which may be nil, element k of a line is the one at
// place order[k]. It works on elements lo..hi-1 and panics with an IndexError for a
// place outside of the line. table is scratch memory, TableMost long, that is used without order.
func Search(dst, rows, x, order []int64, n, perRow int, right bool, table []int32, lo, hi int) {
	for lo < hi {
		first := lo / perRow * n
		end := min(hi, (lo/perRow+1)*perRow)
		line := rows[first : first+n]
		switch {
		case order != nil:
			for i := lo; i < end; i++ {
				dst[i] = int64(searchOrdered(line, order[first:first+n], x[i], right))
			}
		case tabulates(line, perRow):
			beforeByTable(dst[lo:end], line, x[lo:end], right, table)
		default:
			beforeAll(dst[lo:end], line, x[lo:end], right)
		}
		lo = end
	}
}

// TableMost is how many entries the table of a search has at most.
const TableMost = 1 << 14

// tabulates reports whether n searches in a line shall go by a table of all values between its first and
// its last: where these are few, and it costs less to make than the searches. What is found in a line that
// is not sorted does not depend on how the searches are cut.
func tabulates(line []int64, n int) bool {
	if len(line) == 0 || len(line) > math.MaxInt32 {
		return false
	}
	first, last := line[0], line[len(line)-1]
	values := uint64(last) - uint64(first) // huge if it is below
	return first > math.MinInt64 && last < math.MaxInt64 && values < TableMost-2 && int(values)+len(line) <= 4*n
}

// beforeByTable is beforeAll by a table of how many elements of the line are below each value.
func beforeByTable(dst []int64, line, x []int64, right bool, table []int32) {
	first, last := line[0], line[len(line)-1]
	table = table[:last-first+2]
	k := 0
	for i, v := range line {
		for ; k < len(table)-1 && int64(k) <= v-first; k++ {
			table[k] = int32(i)
		}
	}
	table[len(table)-1] = int32(len(line))
	// Nothing is not above v that is not below v+1.
	lo, hi := first, last+1
	if right {
		lo, hi = first-1, last
	}
	for i, v := range x {
		dst[i] = int64(table[min(max(v, lo), hi)-lo])
	}
}

// SortKeys sets dst to integers of the same order as the elements of x, as Sort has it.
func SortKeys[T Number](dst []int64, x []T) {
	for i, v := range x {
		dst[i] = int64(sortKey(v, false) ^ 1<<63)
	}
}

// beforeAll sets each of dst to how many elements of a sorted line are below that of x, or with right not
// above it. Four searches go side by side, since each waits for memory.
func beforeAll(dst []int64, line, x []int64, right bool) {
	var v [4]int64
	for len(x) > 0 {
		n := copy(v[:], x)
		if right { // nothing is not above v that is not below v+1
			for i, y := range v {
				v[i] = y + 1
			}
		}
		at := before(line, &v)
		for i, y := range x[:n] {
			if dst[i] = int64(at[i]); right && y == math.MaxInt64 {
				dst[i] = int64(len(line))
			}
		}
		dst, x = dst[n:], x[n:]
	}
}

// before halves a line of integers without branches that depend on them: which way they go is not to be
// foreseen.
func before(line []int64, v *[4]int64) (at [4]int) {
	n := len(line)
	a, b, c, d := 0, 0, 0, 0
	for n > 1 {
		half := n >> 1
		a += half & -below(line[a+half-1], v[0])
		b += half & -below(line[b+half-1], v[1])
		c += half & -below(line[c+half-1], v[2])
		d += half & -below(line[d+half-1], v[3])
		n -= half
	}
	at = [4]int{a, b, c, d}
	if n == 1 {
		for i, p := range at {
			at[i] += below(line[p], v[i])
		}
	}
	return at
}

// below is 1 where x is below y, and otherwise 0: the borrow of a subtraction. The compiler makes a branch
// of a comparison here.
func below(x, y int64) int {
	_, borrow := bits.Sub64(uint64(x)^1<<63, uint64(y)^1<<63, 0)
	return int(borrow)
}

func searchOrdered(line, order []int64, v int64, right bool) int {
	from, to := 0, len(line)
	for from < to {
		mid := int(uint(from+to) >> 1)
		if y := line[checked(order[mid], len(line))]; y < v || right && y == v {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}
