package kernels

// LinearScan sets dst to the first-order linear recurrences of the factors a and the terms b along the middle of
// [outer, n, inner], computed in float64:
//
//	dst[k] = a[k] · dst[k-1] + b[k],  or with reverse  dst[k] = a[k] · dst[k+1] + b[k]
//
// Where they begin they are the term. lo and hi bound the outer·inner lines; dst may be a or b.
func LinearScan[T Float](dst, a, b []T, reverse bool, n, inner, lo, hi int) {
	if n == 0 {
		return
	}
	if inner > 1 {
		linearScanLanes(dst, a, b, reverse, n, inner, lo, hi)
		return
	}
	for ; hi-lo >= 2; lo += 2 {
		linearScanRows(dst[lo*n:], a[lo*n:], b[lo*n:], reverse, n)
	}
	if lo < hi {
		linearScanRow(dst[lo*n:][:n], a[lo*n:][:n], b[lo*n:][:n], reverse)
	}
}

// linearScanLanes is LinearScan of lines that lie beside each other.
func linearScanLanes[T Float](dst, a, b []T, reverse bool, n, inner, lo, hi int) {
	alongLanes(n, inner, lo, hi, func(p, lanes int) {
		step := inner
		if reverse {
			p, step = p+(n-1)*inner, -inner
		}
		var results [scanLanes]float64
		acc := results[:lanes]
		for k := range n {
			to, factors, terms := dst[p:][:len(acc)], a[p:][:len(acc)], b[p:][:len(acc)]
			for i, before := range acc {
				s := float64(terms[i])
				if k > 0 {
					product := before * float64(factors[i])
					s += product
				}
				acc[i], to[i] = s, T(s)
			}
			p += step
		}
	})
}

// linearScanRows is LinearScan of the first two rows, together, since each waits for a product and a sum of the element
// before. Of three arrays the lines of four rows would not fit the first cache where rows are a multiple of its ways
// apart, as those of 1024 elements are.
func linearScanRows[T Float](dst, a, b []T, reverse bool, n int) {
	a0, a1 := twoRows(a, n)
	b0, b1 := twoRows(b, n)
	d0, d1 := twoRows(dst, n)
	if reverse {
		s, t := float64(b0[n-1]), float64(b1[n-1])
		d0[n-1], d1[n-1] = T(s), T(t)
		for k := n - 2; k >= 0; k-- {
			s, t = s*float64(a0[k]), t*float64(a1[k])
			s, t = s+float64(b0[k]), t+float64(b1[k])
			d0[k], d1[k] = T(s), T(t)
		}
		return
	}
	s, t := float64(b0[0]), float64(b1[0])
	d0[0], d1[0] = T(s), T(t)
	for k := 1; k < n; k++ {
		s, t = s*float64(a0[k]), t*float64(a1[k])
		s, t = s+float64(b0[k]), t+float64(b1[k])
		d0[k], d1[k] = T(s), T(t)
	}
}

// linearScanRow is LinearScan of one row.
func linearScanRow[T Float](dst, a, b []T, reverse bool) {
	k, step := 0, 1
	if reverse {
		k, step = len(b)-1, -1
	}
	s := float64(b[k])
	dst[k] = T(s)
	for range len(b) - 1 {
		k += step
		s *= float64(a[k])
		s += float64(b[k])
		dst[k] = T(s)
	}
}
