package kernels

// Bounds sets bounds, [outer, count+1], to where the stretches of lines of along elements begin and
// end: ends has their lengths, [outer, count], or with offsets the bounds themselves. It panics with
// an IndexError if a line does not have them.
func Bounds(bounds, ends []int64, offsets bool, count, along int) {
	outer := len(bounds) / (count + 1)
	n := len(ends) / max(outer, 1)
	for o := range outer {
		line, from := bounds[o*(count+1):(o+1)*(count+1)], ends[o*n:(o+1)*n]
		before := int64(0)
		if !offsets {
			line[0], line = 0, line[1:]
		}
		for i, v := range from[:len(line)] {
			if !offsets {
				v += before
			}
			if v < before || v > int64(along) {
				panic(IndexError{v, along + 1})
			}
			line[i], before = v, v
		}
	}
}

// Segments is the geometry of x, [outer, Along, Inner], whose lines are cut into Count stretches each;
// Bounds are those of Bounds.
type Segments struct {
	Bounds              []int64
	Count, Along, Inner int
}

// A stretch is one of Segments, from an element of x to another: i of line o.
type stretch struct{ o, i, from, to int }

// stretch returns stretch u.
func (s *Segments) stretch(u int) stretch {
	t := stretch{o: u / s.Count, i: u % s.Count}
	t.find(s)
	return t
}

// find sets where the stretch lies in x.
func (t *stretch) find(s *Segments) {
	at := t.o*(s.Count+1) + t.i
	bounds, first := s.Bounds[at:at+2], t.o*s.Along
	t.from, t.to = (first+int(bounds[0]))*s.Inner, (first+int(bounds[1]))*s.Inner
}

// next goes on to the stretch after this one, of which there may be none.
func (t *stretch) next(s *Segments) {
	if t.i++; t.i == s.Count {
		t.o, t.i = t.o+1, 0
	}
	if at := t.o*(s.Count+1) + t.i; at+1 < len(s.Bounds) {
		t.find(s)
	}
}

// ReduceSegments sets rows lo..hi-1 of dst, [outer·Count, Inner], to the reductions by f of the stretches of x
// and of start; with mean each is divided by the number of its elements, by at least least. room is as that of Reduce.
func ReduceSegments[T Float, A Number](dst, x []T, s *Segments, room []A, start A, f *Reducer[T, T, A], mean bool, least, lo, hi int) {
	t := s.stretch(lo)
	for u := lo; u < hi; u++ {
		from, to := t.from, t.to
		t.next(s)
		row := dst[u*s.Inner : (u+1)*s.Inner]
		if s.Inner == 1 {
			row[0] = f.Finish(f.Row(start, x[from:to]))
		} else {
			for c := 0; c < len(row); c += ReduceRoom {
				acc := room[:min(ReduceRoom, len(row)-c)]
				for i := range acc {
					acc[i] = start
				}
				for p := from; p < to; p += s.Inner {
					f.Col(acc, x[p+c:p+c+len(acc)])
				}
				for i, a := range acc {
					row[c+i] = f.Finish(a)
				}
			}
		}
		if mean {
			n := T(max((to-from)/max(s.Inner, 1), least))
			for i := range row {
				row[i] /= n
			}
		}
	}
}

// SegmentGradient sets dst, of the shape of x, in the stretches lo..hi-1 to the gradient of their
// reductions: grad and y, [outer·Count, Inner], are the cotangents and the results, start is what
// products begin with. Equal largest or least elements share it. What is in no stretch gets 0 with the
// first and the last of its line.
func SegmentGradient[T Float](dst, x, grad, y []T, s *Segments, how Combine, start float64, lo, hi int) {
	t := s.stretch(lo)
	for u := lo; u < hi; u++ {
		from, to := t.from, t.to
		if t.i == 0 {
			clear(dst[t.o*s.Along*s.Inner : from])
		}
		if t.i == s.Count-1 {
			clear(dst[to : (t.o+1)*s.Along*s.Inner])
		}
		t.next(s)
		g, out := grad[u*s.Inner:(u+1)*s.Inner], y[u*s.Inner:(u+1)*s.Inner]
		if how == CombineSum || how == CombineMean {
			n := T(1)
			if how == CombineMean {
				n = T((to - from) / max(s.Inner, 1))
			}
			if s.Inner == 1 {
				v := g[0] / n
				for p := range dst[from:to] {
					dst[from+p] = v
				}
				continue
			}
			for p := from; p < to; p += s.Inner {
				for c, v := range g {
					dst[p+c] = v / n
				}
			}
			continue
		}
		for c := range g {
			line, values := dst[from:to], x[from:to]
			if how == CombineProd {
				prodGradient(line, values, c, s.Inner, g[c], start)
			} else {
				shareGradient(line, values, c, s.Inner, g[c], out[c])
			}
		}
	}
}

// prodGradient multiplies g with the product of the other elements, for the elements c, c+step, …
func prodGradient[T Float](dst, x []T, c, step int, g T, start float64) {
	product, zeros := start, 0
	for p := c; p < len(x); p += step {
		if v := x[p]; v == 0 {
			zeros++
		} else {
			product *= float64(v)
		}
	}
	for p := c; p < len(x); p += step {
		switch v := x[p]; {
		case zeros == 0:
			dst[p] = g * T(product/float64(v))
		case zeros == 1 && v == 0:
			dst[p] = g * T(product)
		default:
			dst[p] = g * 0
		}
	}
}

// shareGradient divides g among the elements c, c+step, … that are y or NaN.
func shareGradient[T Float](dst, x []T, c, step int, g, y T) {
	n := 0
	for p := c; p < len(x); p += step {
		if v := x[p]; v == y || v != v {
			n++
		}
	}
	share := g / T(max(n, 1))
	for p := c; p < len(x); p += step {
		dst[p] = 0
		if v := x[p]; v == y || v != v {
			dst[p] = share
		}
	}
}
