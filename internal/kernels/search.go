package kernels

// Search sets dst[i] to where x[i] belongs in its sorted line of rows: behind the
// elements that are smaller, and with right behind those that are equal, too. A NaN
// counts as greater than all else. Lines have n elements and belong to each run of
// perRow elements of x; with order, which may be nil, element k of a line is the one at
// place order[k]. It works on elements lo..hi-1 and panics with an IndexError for a
// place outside of the line.
func Search[T Number](dst []int64, rows, x []T, order []int64, n, perRow int, right bool, lo, hi int) {
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

// beforeEqual and behindEqual halve a line by the keys of its elements, without branches that
// depend on them: which way they go is not to be foreseen.
func beforeEqual[T Number](line []T, v T) int {
	key := sortKey(v, false)
	at, n := 0, len(line)
	for n > 1 {
		half := n >> 1
		if sortKey(line[at+half-1], false) < key {
			at += half
		}
		n -= half
	}
	if n == 1 && sortKey(line[at], false) < key {
		at++
	}
	return at
}

func behindEqual[T Number](line []T, v T) int {
	key := sortKey(v, false)
	at, n := 0, len(line)
	for n > 1 {
		half := n >> 1
		if sortKey(line[at+half-1], false) <= key {
			at += half
		}
		n -= half
	}
	if n == 1 && sortKey(line[at], false) <= key {
		at++
	}
	return at
}

func searchOrdered[T Number](line []T, order []int64, v T, right bool) int {
	from, to := 0, len(line)
	for from < to {
		if mid := int(uint(from+to) >> 1); goesBefore(line[checked(order[mid], len(line))], v, right) {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// goesBefore reports whether an element y of a line comes before the place of v.
func goesBefore[T Number](y, v T, right bool) bool {
	if right {
		return !(v < y || y != y && v == v)
	}
	return y < v || v != v && y == y
}
