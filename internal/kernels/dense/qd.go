package dense

import (
	"math"
	"slices"
)

// qd finds the squares of the singular values of a matrix of two diagonals by the differential qd algorithm:
// one division for each row of a step, and nothing is lost by cancellation.
type qd struct {
	now, next [2][]float64 // the squares of the main diagonal, and of the one above it
	found     []float64
	// What the last step left of the last rows, the last first, and the least of those before each.
	left, least [3]float64
}

// part is rows of qd that are apart from the others. From their values shift was taken, and rest is what
// rounding took from the shift.
type part struct {
	lo, hi      int
	shift, rest float64
}

// differentialQD makes d, the main diagonal of a matrix with e above it, the singular values, but for
// signs.
func differentialQD(memory *Room, d, e []float64) bool {
	n := len(d)
	if len(e) == 0 || slices.Max(e) == 0 && slices.Min(e) == 0 { // also numbers whose squares are 0
		return true
	}
	room := memory.zeros(5 * n)
	s := qd{[2][]float64{room[:n], room[n : 2*n]}, [2][]float64{room[2*n : 3*n], room[3*n : 4*n]}, room[4*n:], [3]float64{}, [3]float64{}}
	for i, v := range d {
		s.now[0][i] = v * v
	}
	for i, v := range e {
		s.now[1][i] = v * v
	}
	parts := []part{{hi: n - 1}}
	for len(parts) > 0 {
		p := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		var ok bool
		if parts, ok = s.solve(p, parts); !ok {
			return false
		}
	}
	for i, v := range s.found {
		d[i] = math.Sqrt(max(v, 0))
	}
	return true
}

// solve finds the values of a part. What falls apart from it is added to others.
func (s *qd) solve(p part, others []part) ([]part, bool) {
	s.turnAround(p)
	tau := 0.0
	for steps := 0; p.hi > p.lo+1; {
		q, e := s.now[0], s.now[1]
		if tiny(e[p.hi-1], p.shift+q[p.hi]) {
			s.found[p.hi] = p.value(q[p.hi])
			p.hi--
			s.left, s.least = [3]float64{s.left[1], s.left[2]}, [3]float64{s.least[1], s.least[2]}
			tau, steps = s.guess(p), 0
			continue
		}
		for i := p.hi - 2; i >= p.lo; i-- {
			if tiny(e[i], p.shift+min(q[i], q[i+1])) {
				above := p
				above.hi = i
				for k := range 2 { // which list is the present one then is not known
					copy(s.next[k][above.lo:i+1], s.now[k][above.lo:])
				}
				others = append(others, above)
				p.lo = i + 1
				s.turnAround(p)
				tau = 0
				break
			}
		}
		if p.hi <= p.lo+1 {
			break
		}
		if steps++; steps > maxSteps {
			return nil, false
		}
		p = s.advance(p, tau)
		tau = s.guess(p)
	}
	return others, s.few(p)
}

// tiny reports whether the square of an element above the diagonal is taken for 0 beside others.
func tiny(e, size float64) bool { return e <= epsilon*epsilon*size || e <= negligible*negligible }

// value is a value of the part before its shift.
func (p *part) value(v float64) float64 { return p.shift + (p.rest + v) }

// few finds the values of a part of at most two rows.
func (s *qd) few(p part) bool {
	q, e := s.now[0], s.now[1]
	if p.hi == p.lo {
		s.found[p.lo] = p.value(q[p.lo])
		return true
	}
	x, y, beside := max(q[p.lo], q[p.hi]), min(q[p.lo], q[p.hi]), e[p.lo]
	if half := (x - y + beside) / 2; half > 0 {
		more := y * beside / (half + math.Sqrt(half*half+y*beside))
		sum := x + (more + beside)
		x, y = sum, y*(x/sum)
	}
	s.found[p.lo], s.found[p.hi] = p.value(x), p.value(y)
	return !math.IsNaN(x + y)
}

// turnAround brings the lesser end of a part to its last rows, since values are found there first.
func (s *qd) turnAround(p part) {
	q, e := s.now[0][p.lo:p.hi+1], s.now[1][p.lo:p.hi+1]
	if last := len(q) - 1; q[0]*1.5 < q[last] {
		for i := 0; i < last-i; i++ {
			q[i], q[last-i] = q[last-i], q[i]
		}
		for i := 0; i < last-1-i; i++ {
			e[i], e[last-1-i] = e[last-1-i], e[i]
		}
	}
}

// advance takes tau, or less if that is more than the least value, from all values of a part.
func (s *qd) advance(p part, tau float64) part {
	for try := 0; !s.step(p, tau) && tau > 0; try++ {
		switch {
		case try > 2:
			tau = 0
		case s.least[0] > 0: // all but the last row: what that lacks makes a bound
			tau = max(tau+s.left[0], 0) * (1 - 4*epsilon)
		default:
			tau /= 4
		}
	}
	s.now, s.next = s.next, s.now
	sum := p.shift + tau
	p.rest += tau - (sum - p.shift)
	p.shift = sum
	return p
}

// step computes the next rows of a part, whose values are less by tau. It reports whether none is negative;
// if one is before the last row, it makes the least negative, too.
func (s *qd) step(p part, tau float64) bool {
	n := p.hi - p.lo
	q, e := s.now[0][p.lo:p.hi+1], s.now[1][p.lo:p.hi]
	toQ, toE := s.next[0][p.lo:p.hi+1], s.next[1][p.lo:p.hi]
	d, least := q[0]-tau, math.Inf(1)
	for i := range n {
		if i >= n-2 {
			s.left[n-i], s.least[n-i] = d, least
		}
		if !(d >= 0) {
			s.least[0] = -1
			return false
		}
		least = min(least, d)
		sum := d + e[i]
		f := q[i+1] / sum
		toQ[i], toE[i] = sum, e[i]*f
		d = math.FMA(d, f, -tau)
	}
	toQ[n] = d
	s.left[0], s.least[0] = d, least
	return d >= 0
}

// guess returns a shift for the next step: what bounds the least value from below, or hardly more.
func (s *qd) guess(p part) float64 {
	last, least := s.left[0], s.least[0]
	if p.hi < p.lo+2 || !(min(last, least) > 0) {
		return 0
	}
	if last > least {
		return least / 4
	}
	q, e := s.now[0][p.lo:p.hi+1], s.now[1][p.lo:p.hi]
	n := p.hi - p.lo
	if s.left[1] <= s.least[1] && !math.IsInf(s.least[1], 1) {
		return s.byGaps(q, e, n)
	}
	// The vector whose product with the matrix is a multiple of its last element, 1: sum is the squares of
	// the others.
	sum, term := 0.0, 1.0
	for i := n - 1; i >= 0; i-- {
		term *= e[i] / q[i]
		if sum += term; term < sum/128 || sum > 1 {
			break
		}
	}
	if sum *= 1.05; sum < 0.563 {
		return last * (1 - math.Sqrt(sum)) / (1 + sum)
	}
	return last / 4
}

// byGaps is guess where the last two rows are the least: what is beside them moves the least value by a
// square over the gap to the others.
func (s *qd) byGaps(q, e []float64, n int) float64 {
	last := s.left[0]
	one, two := math.Sqrt(q[n]*e[n-1]), math.Sqrt(q[n-1]*e[n-2])
	above := q[n-1] + e[n-1]
	gap := above - last - (one + two)
	if far := s.least[1]*0.75 - above; far > two {
		gap = above - last - two/far*two
	}
	if gap > one {
		return max(last-one/gap*one, last/2)
	}
	by := 0.0
	if last > one {
		by = last - one
	}
	if above > one+two {
		by = min(by, above-(one+two))
	}
	return max(by, last/3)
}
