package dense

import (
	"math"
	"unsafe"
)

// secular is the equation 1/rho + sum of z²/(d-x) = 0. It has a root between each d and the next, and one
// behind the last.
type secular struct {
	d, z, squares, found []float64 // whole blocks of lanes
	place                []int     // where the numbers of each root are, in the order of d
	origin, offset       []float64 // of each root: it is their sum
	inverse              float64   // of rho
	n                    int
}

// newSecular has room for n numbers each.
func newSecular(memory *Room, n int, rho float64) *secular {
	size := (n + lanes - 1) &^ (lanes - 1)
	room := memory.zeros(4*size + 2*n)
	s := &secular{n: n, inverse: 1 / rho, place: make([]int, n)}
	s.d, s.z, s.squares, s.found = room[:size], room[size:2*size], room[2*size:3*size], room[3*size:4*size]
	s.origin, s.offset = room[4*size:4*size+n], room[4*size+n:]
	for i := n; i < size; i++ { // of no weight, and far
		s.d[i] = 1e300
	}
	return s
}

// at returns the function at a point, its derivative and the sum of the sizes of its terms, and makes x the
// differences of d to the point.
func (s *secular) at(origin, offset float64, x []float64) (f, slope, size float64) {
	var sums [3]float64
	use.sums(&s.d[0], &s.squares[0], origin, offset, &x[0], &sums[0], len(s.d)/lanes)
	return s.inverse + sums[0], sums[1], s.inverse + sums[2]
}

// root returns root k, and leaves the differences of all d to it in the row of that number.
func (s *secular) root(k int, differences *Matrix) float64 {
	x := differences.Data[k*differences.Stride:][:len(s.d)]
	var lo, hi float64 // what the offset is between
	i, next := s.place[k], -1
	origin := s.d[i]
	if k == s.n-1 {
		for _, v := range s.squares {
			hi += v
		}
		hi /= s.inverse
		s.offset[k] = hi / 2
	} else {
		next = s.place[k+1]
		gap := s.d[next] - origin
		f, _, _ := s.at(origin, gap/2, x)
		c := f - s.squares[i]/x[i] - s.squares[next]/x[next]
		if f > 0 {
			hi = gap / 2
			s.offset[k] = lesser(c, c*gap+s.squares[i]+s.squares[next], s.squares[i]*gap)
		} else {
			origin, lo = s.d[next], -gap/2
			s.offset[k] = -lesser(-c, -c*gap+s.squares[i]+s.squares[next], s.squares[next]*gap)
		}
	}
	if t := s.offset[k]; !(t > lo && t < hi) {
		s.offset[k] = (lo + hi) / 2
	}
	s.origin[k] = origin
	s.refine(k, i, next, lo, hi, x)
	return origin + s.offset[k]
}

// lesser returns the root of c·x² - a·x + b that is nearer to 0, for a positive b.
func lesser(c, a, b float64) float64 {
	root := math.Sqrt(math.Abs(a*a - 4*b*c))
	if a > 0 {
		return 2 * b / (a + root)
	}
	return (a - root) / (2 * c)
}

// refine brings the offset of root k, which is between lo and hi, to the precision of numbers.
func (s *secular) refine(k, i, next int, lo, hi float64, x []float64) {
	t := s.offset[k]
	before := math.Inf(1)
	for step := 0; ; step++ {
		f, slope, size := s.at(s.origin[k], t, x)
		if math.Abs(f) <= epsilon*(8*size+math.Abs(t)*slope) || !(hi-lo > epsilon*math.Abs(t)) || step == 4*maxSteps {
			break
		}
		if f < 0 {
			lo = t
		} else {
			hi = t
		}
		var by float64
		if next < 0 {
			by = f * x[i] / (f - slope*x[i])
		} else {
			by = s.correction(f, slope, x[i], x[next], i, next, s.origin[k] == s.d[i])
		}
		if !(f*by < 0) {
			by = -f / slope
		}
		// A step that leaves the interval, and one of those that gain little, halves it.
		if moved := t + by; !(moved >= lo && moved <= hi && moved != 0) || step > 4 && step%2 == 1 && math.Abs(f) > before/8 {
			t = (lo + hi) / 2
		} else {
			t = moved
		}
		before = math.Abs(f)
	}
	s.offset[k] = t
}

// correction returns the step to the root of the function that has the nearest two of the terms, the one at
// the origin as it is, and the value and the slope of the whole: left and right are the differences to them.
func (s *secular) correction(f, slope, left, right float64, i, next int, first bool) float64 {
	var c float64
	if first {
		c = f - right*slope - (left-right)*(s.squares[i]/left/left)
	} else {
		c = f - left*slope - (right-left)*(s.squares[next]/right/right)
	}
	a, b := (left+right)*f-left*right*slope, left*right*f
	if c == 0 {
		return b / a
	}
	root := math.Sqrt(math.Abs(a*a - 4*b*c))
	if a <= 0 {
		return (a - root) / (2 * c)
	}
	return 2 * b / (a + root)
}

// vectors makes the differences to all roots, rows of x, the vectors with the sign changed: of unit length,
// their elements in the places of d. They are those of the z whose roots are exactly the ones found, so that
// they are at right angles to each other, however near these are.
func (s *secular) vectors(x *Matrix) {
	blocks := len(s.d) / lanes
	for i := range s.found {
		s.found[i] = 1
	}
	for k := range s.n {
		i := s.place[k]
		row := x.Data[k*x.Stride:]
		kept := s.found[i] * row[i]
		use.ratios(&s.found[0], &row[0], &s.d[0], s.d[i], blocks)
		s.found[i] = kept
	}
	for i := range s.found {
		s.found[i] = math.Copysign(math.Sqrt(math.Abs(s.found[i])), s.z[i])
		if i >= s.n {
			s.found[i] = 0
		}
		s.squares[i] = s.found[i] * s.found[i]
	}
	for k := range s.n {
		row := x.Data[k*x.Stride:][:len(s.d)]
		_, length, _ := s.at(s.origin[k], s.offset[k], row)
		use.quotients(&row[0], &s.found[0], -1/math.Sqrt(length), blocks)
	}
}

func sumsOf(d, z *float64, origin, offset float64, x, sums *float64, blocks int) {
	n := lanes * blocks
	from, squares, to := unsafe.Slice(d, n), unsafe.Slice(z, n), unsafe.Slice(x, n)
	var all [3][lanes]float64
	for i, v := range from {
		to[i] = v - origin - offset
		inverse := 1 / to[i]
		term, lane := squares[i]*inverse, i%lanes
		all[0][lane] += term
		all[1][lane] = math.FMA(term, inverse, all[1][lane])
		all[2][lane] += math.Abs(term)
	}
	for i, sum := range all {
		unsafe.Slice(sums, 3)[i] = folded(sum)
	}
}

func ratiosOf(y, x, d *float64, from float64, blocks int) {
	n := lanes * blocks
	to, above, below := unsafe.Slice(y, n), unsafe.Slice(x, n), unsafe.Slice(d, n)
	for i, v := range above {
		to[i] *= v / (below[i] - from)
	}
}

func quotientsOf(x, z *float64, factor float64, blocks int) {
	n := lanes * blocks
	to := unsafe.Slice(x, n)
	for i, v := range unsafe.Slice(z, n) {
		to[i] = v * factor / to[i]
	}
}
