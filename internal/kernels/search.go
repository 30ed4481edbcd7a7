package kernels

// Search sets dst[i] to where x[i] belongs in its sorted line of rows: behind the
// elements that are smaller, and with right behind those that are equal, too. Lines have n elements and belong to each run of
// perRow elements of x; with order, which may be nil, element k of a line is the one at
// place order[k]. It works on elements lo..hi-1 and panics with an IndexError for a
// place outside of the line.
func Search(dst, rows, x, order []int64, n, perRow int, right bool, lo, hi int) {
	for lo < hi {
		first := lo / perRow * n
		end := min(hi, (lo/perRow+1)*perRow)
		line := rows[first : first+n]
		switch {
		case order != nil:
			for i := lo; i < end; i++ {
				dst[i] = int64(searchOrdered(line, order[first:first+n], x[i], right))
			}
		case right:
			for i, v := range x[lo:end] {
				dst[lo+i] = int64(behindEqual(line, v))
			}
		default:
			for i, v := range x[lo:end] {
				dst[lo+i] = int64(beforeEqual(line, v))
			}
		}
		lo = end
	}
}

// SortKeys sets dst to integers of the same order as the elements of x, as Sort has it.
func SortKeys[T Number](dst []int64, x []T) {
	for i, v := range x {
		dst[i] = int64(sortKey(v, false) ^ 1<<63)
	}
}

// beforeEqual and behindEqual halve a line of integers without branches that depend on
// them: which way they go is not to be foreseen.
func beforeEqual(line []int64, v int64) int {
	at, n := 0, len(line)
	for n > 1 {
		half := n >> 1
		if line[at+half-1] < v {
			at += half
		}
		n -= half
	}
	if n == 1 && line[at] < v {
		at++
	}
	return at
}

func behindEqual(line []int64, v int64) int {
	at, n := 0, len(line)
	for n > 1 {
		half := n >> 1
		if line[at+half-1] <= v {
			at += half
		}
		n -= half
	}
	if n == 1 && line[at] <= v {
		at++
	}
	return at
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
