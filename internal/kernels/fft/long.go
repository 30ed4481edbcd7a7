package fft

import "math"

// Long returns the transform of complex lines that are so long, or so few, that their elements are
// better side by side than the lines themselves: as two transforms, of count·n2 lines of n1 elements to
// memory as large as the lines, and from there of count·n1 lines of n2 elements. ok is false where
// lines have no such parts.
func Long[T Float](n, count int, inverse bool, scale float64) (first, second *Lines[T], n1, n2 int, ok bool) {
	if _, order := lineOrder(n, available[T]()[0]); order != nil && n <= longestLine {
		return nil, nil, 0, 0, false // is better transformed along the line
	}
	return apart[T](n, count, inverse, scale)
}

// apart is Long for lines that have no vectors along them.
func apart[T Float](n, count int, inverse bool, scale float64) (first, second *Lines[T], n1, n2 int, ok bool) {
	if n < 512 || count >= Lanes[T]()/2 && n < 1<<14 {
		return nil, nil, 0, 0, false
	}
	for d := int(math.Sqrt(float64(n))); d >= 8 && n1 == 0; d-- {
		if n%d == 0 {
			n1 = d
		}
	}
	if n1 == 0 {
		return nil, nil, 0, 0, false
	}
	n2 = n / n1
	_, ok1 := factorize(n1)
	if _, ok = factorize(n2); !ok || !ok1 {
		return nil, nil, 0, 0, false
	}
	first = New[T](Complex, n1, inverse, Layout{n2, n1}, Layout{n2, n1}, 1)
	first.long = true
	second = New[T](Complex, n2, inverse, Layout{1, n2}, Layout{n1, n2}, scale)
	return first, second, n1, n2, true
}

// turn multiplies element j of line u by factor j, u%Inner. The factors of an element are as many more as a group may
// have behind the last.
func (l *Lines[T]) turn(y []T, g group) {
	row := rowFloats[T]()
	y = y[:l.n*row]
	l.k.products(y, y, l.turns[2*(g.first%l.in.Inner):], row, 2*l.in.Inner+row)
}
