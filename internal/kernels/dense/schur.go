package dense

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels/gemm"
)

// schur is the iteration that makes a Hessenberg matrix an upper triangle but for blocks of two rows, which
// have pairs of conjugate eigenvalues. Memory behind the last rows of h and z may be touched.
type schur struct {
	h, z   *Matrix // the rows of z are multiplied with h's if it is not nil; h's upper part is then finished, too
	lo, hi int     // the rows of the part that is treated are lo to hi, both included
	re, im []float64

	factors []float64 // of the reflections of a sweep, numbers of each
	across  *Matrix   // columns as rows; nil for a matrix with so few that rows above a window are treated one by one
}

// Of a reflection I - f·(1, x, y)·(1, x, y)ᵀ the numbers x, y, f, f·x and f·y are noted.
const reflectionNumbers = 5

// window is about the rows that reflections are applied in before the rest of the matrix gets them all.
const window = 30

// roundedUp is the first column of a block from i on.
func roundedUp(i int) int { return start(i + block - 1) }

// newSchur has room for rows behind the last of matrices of n rows.
func newSchur(h, z *Matrix) *schur {
	n := h.Rows
	room := h.room.zeros((2 + reflectionNumbers) * n)
	s := &schur{h: extended(h), z: extended(z), re: room[:n], im: room[n : 2*n], factors: room[2*n:]}
	if n > window/2 {
		s.across = h.room.New(2*window, n)
	}
	return s
}

// extended returns a copy with room for two rows more.
func extended(m *Matrix) *Matrix {
	if m == nil {
		return nil
	}
	c := *m
	c.Data = m.room.zeros(len(m.Data) + 2*m.Stride)
	copy(c.Data, m.Data)
	return &c
}

// run finds all eigenvalues; it reports whether it did. What is less than a part epsilon of its
// neighbours on the diagonal is taken for 0.
func (s *schur) run(epsilon float64) bool {
	for s.hi = s.h.Rows - 1; s.hi >= 0; {
		if !s.one(epsilon) {
			return false
		}
	}
	return true
}

// one finds the last eigenvalue of the rest, or the last two.
func (s *schur) one(epsilon float64) bool {
	for step := 1; step <= 5*maxSteps; step++ {
		s.split(epsilon)
		switch s.hi - s.lo {
		case 0:
			s.re[s.hi] = s.h.at(s.hi, s.hi)[0]
			s.hi--
			return true
		case 1:
			s.pair()
			s.hi -= 2
			return true
		}
		s.sweep(s.shifts(step))
	}
	return false
}

// split makes lo the first row of the last part of h that zeros beside the diagonal do not divide.
func (s *schur) split(epsilon float64) {
	h := s.h
	for s.lo = s.hi; s.lo > 0; s.lo-- {
		i := s.lo
		size, here, before := math.Abs(h.at(i, i-1)[0]), h.at(i, i)[0], h.at(i-1, i-1)[0]
		if size > negligible {
			if size > epsilon*(math.Abs(here)+math.Abs(before)) {
				continue
			}
			// M. Ahues, F. Tisseur, A New Deflation Criterion for the QR Algorithm (1997).
			other, apart := math.Abs(h.at(i-1, i)[0]), math.Abs(before-here)
			least, most := min(size, other), max(size, other)
			small, large := min(math.Abs(here), apart), max(math.Abs(here), apart)
			if sum := most + large; least*(most/sum) > max(negligible, epsilon*(small*(large/sum))) {
				continue
			}
		}
		h.at(i, i-1)[0] = 0
		break
	}
}

// shifts returns the sum and the product of the two numbers that a sweep is shifted by: the eigenvalues of the
// last two rows, or the one nearer to the last element twice if they are real, and others now and then.
func (s *schur) shifts(step int) (x, y complex128) {
	a, b, c, d := s.corner(s.hi - 1)
	if step%10 == 0 {
		size := math.Abs(c) + math.Abs(s.h.at(s.hi-1, s.hi-2)[0])
		if step%20 != 0 {
			a, _, _, _ = s.corner(s.lo)
			size = math.Abs(s.h.at(s.lo+1, s.lo)[0]) + math.Abs(s.h.at(s.lo+2, s.lo+1)[0])
			d = a
		}
		a = d + 0.75*size
		b, c, d = -0.4375*size, size, a
	}
	half, mean := (a-d)/2, (a+d)/2
	square := half*half + b*c
	if square < 0 {
		r := math.Sqrt(-square)
		return complex(mean, r), complex(mean, -r)
	}
	r := math.Sqrt(square)
	near := mean + r
	if math.Abs(mean-r-d) < math.Abs(near-d) {
		near = mean - r
	}
	return complex(near, 0), complex(near, 0)
}

// corner returns the elements of rows i and i+1 in columns i and i+1.
func (s *schur) corner(i int) (a, b, c, d float64) {
	x, y := s.h.at(i, i), s.h.at(i+1, i)
	return x[0], x[1], y[0], y[1]
}

// begin returns the row that a sweep begins with, and the first column of the shifted square of the matrix
// from there.
func (s *schur) begin(p, q complex128) (m int, v [3]float64) {
	for m = s.hi - 2; ; m-- {
		a, b, c, d := s.corner(m)
		below := s.h.at(m+2, m+1)[0]
		size := math.Abs(a-real(q)) + math.Abs(imag(q)) + math.Abs(c)
		c /= size
		v[0] = c*b + (a-real(p))*((a-real(q))/size) - imag(p)*(imag(q)/size)
		v[1] = c * (a + d - real(p) - real(q))
		v[2] = c * below
		sum := math.Abs(v[0]) + math.Abs(v[1]) + math.Abs(v[2])
		for i := range v {
			v[i] /= sum
		}
		if m == s.lo {
			return m, v
		}
		before, beside := s.h.at(m-1, m-1)[0], math.Abs(s.h.at(m, m-1)[0])
		if beside*(math.Abs(v[1])+math.Abs(v[2])) <= epsilon*math.Abs(v[0])*(math.Abs(before)+math.Abs(a)+math.Abs(d)) {
			return m, v
		}
	}
}

// sweep is a step of the QR algorithm with two shifts: a reflection of three rows at its begin, and others
// that bring the elements that it makes under the diagonal downwards and out.
func (s *schur) sweep(p, q complex128) {
	m, v := s.begin(p, q)
	s.factors = s.factors[:0]
	for k := m; k < s.hi; {
		first, end := max(k-1, m), start(k+window)
		if end+block/2 > s.hi {
			end = s.hi + 1
		}
		from := len(s.factors)
		last := k
		for ; last < s.hi && (last+3 < end || end > s.hi); last++ {
			s.reflect(m, last, first, end, v)
		}
		s.spread(k, last-k, first, end, s.factors[from:])
		k = last
	}
	if s.z != nil {
		s.z.reflect(m, 0, s.z.Cols, len(s.factors)/reflectionNumbers, s.factors)
	}
}

// reflect makes column k-1 of the rows from k on that of a Hessenberg matrix, by a reflection that it applies to
// columns to the end, rounded up, and to rows from the first on. The reflection of row m is that of v.
func (s *schur) reflect(m, k, first, end int, v [3]float64) {
	h, most := s.h, min(3, s.hi-k+1)
	if k > m {
		v = [3]float64{}
		for i := range most {
			v[i] = h.at(k+i, k-1)[0]
		}
	}
	beta, x, y, f := reflectionOfThree(v)
	if k == m && m > s.lo {
		beta = h.at(m, m-1)[0] * (1 - f)
	}
	s.factors = append(s.factors, x, y, f, f*x, f*y)
	last := s.factors[len(s.factors)-reflectionNumbers:]
	h.reflect(k, start(k), roundedUp(end), 1, last)
	if k > s.lo {
		h.at(k, k-1)[0] = beta
		for i := 1; i < most; i++ {
			h.at(k+i, k-1)[0] = 0
		}
	}
	for i := first; i <= min(k+3, s.hi); i++ {
		rowTimes(h.at(i, k)[:3], last)
	}
}

// rowTimes multiplies three elements of a row with a reflection.
func rowTimes(to, f []float64) {
	t := math.FMA(f[0], to[1], math.FMA(f[1], to[2], to[0]))
	to[0], to[1], to[2] = math.FMA(-f[2], t, to[0]), math.FMA(-f[3], t, to[1]), math.FMA(-f[4], t, to[2])
}

// spread applies reflections of rows from k on to the columns behind the window from first to end and to the
// rows above it.
func (s *schur) spread(k, count, first, end int, factors []float64) {
	h, top, right := s.h, s.lo, s.hi+1
	if s.z != nil {
		top, right = 0, h.Cols
	}
	h.reflect(k, roundedUp(end), right, count, factors)
	if s.across == nil {
		for i := top; i < first; i++ {
			for l := range count {
				rowTimes(h.at(i, k+l)[:3], factors[l*reflectionNumbers:])
			}
		}
	} else if above := first - top; above > 0 {
		across, from := s.across, h.at(top, k)
		gemm.Transpose(across.Data, across.Stride, from, h.Stride, above, count+2)
		across.reflect(0, 0, above, count, factors)
		gemm.Transpose(from, h.Stride, across.Data, across.Stride, count+2, above)
	}
}

// pair makes the last two rows the form in which eigenvalues are read off: equal elements on the diagonal and
// others of different signs, or a triangle.
func (s *schur) pair() {
	h, i := s.h, s.hi-1
	a, b, c, d := s.corner(i)
	var re [2]float64
	var im, cosine, sine float64
	a, b, c, d, cosine, sine = standard(a, b, c, d)
	re = [2]float64{a, d}
	if c != 0 {
		im = math.Sqrt(math.Abs(b)) * math.Sqrt(math.Abs(c))
	}
	copy(s.re[i:], re[:])
	s.im[i], s.im[i+1] = im, -im
	if s.z == nil {
		return
	}
	turn := [2][]float64{{cosine}, {sine}}
	h.rotate(i, false, turn[0], turn[1])
	s.z.rotate(i, false, turn[0], turn[1])
	for k := range i {
		to := h.at(k, i)[:2]
		to[0], to[1] = cosine*to[0]+sine*to[1], cosine*to[1]-sine*to[0]
	}
	copy(h.at(i, i), []float64{a, b})
	copy(h.at(i+1, i), []float64{c, d})
}

// standard turns a matrix of two rows, (a b) and (c d), by an angle.
func standard(a, b, c, d float64) (a1, b1, c1, d1, cosine, sine float64) {
	switch {
	case c == 0:
		return a, b, c, d, 1, 0
	case b == 0:
		return d, -c, 0, a, 0, 1
	case a == d && (b > 0) != (c > 0):
		return a, b, c, d, 1, 0
	}
	half := (a - d) / 2
	if root, ok := realRoot(half, b, c); ok {
		// (half+root, c) is an eigenvector's direction.
		z := half + math.Copysign(root, half)
		r := math.Hypot(c, z)
		return d + z, b - c, 0, d - b/z*c, z / r, c / r
	}
	// The angle makes both elements of the diagonal their mean.
	sum := b + c
	r := math.Hypot(sum, a-d)
	cosine = math.Sqrt((1 + math.Abs(sum)/r) / 2)
	sine = -half / (r * cosine) * math.Copysign(1, sum)
	x, y := a*cosine+b*sine, b*cosine-a*sine
	z, w := c*cosine+d*sine, d*cosine-c*sine
	mean := (x*cosine + z*sine + w*cosine - y*sine) / 2
	b, c = y*cosine+w*sine, z*cosine-x*sine
	if c == 0 || b != 0 && (b > 0) != (c > 0) {
		return mean, b, c, mean, cosine, sine
	}
	if b == 0 {
		return mean, -c, 0, mean, -sine, cosine
	}
	// Rounding made the two values real after all.
	p, q := math.Sqrt(math.Abs(b)), math.Sqrt(math.Abs(c))
	root, f := math.Copysign(p*q, c), 1/math.Sqrt(math.Abs(b+c))
	u, v := p*f, q*f
	return mean + root, b - c, 0, mean - root, cosine*u - sine*v, cosine*v + sine*u
}

// realRoot returns the root of half² + b·c if that is not less than 0 but for rounding.
func realRoot(half, b, c float64) (root float64, ok bool) {
	size := max(math.Abs(half), math.Abs(b), math.Abs(c))
	square := half/size*half + b/size*c
	if square < 4*epsilon*size {
		return 0, false
	}
	return math.Sqrt(size) * math.Sqrt(square), true
}

// reflectionOfThree returns the reflection of v to a multiple beta of the first unit vector, I - f·(1, x, y)·(1, x, y)ᵀ.
func reflectionOfThree(v [3]float64) (beta, x, y, f float64) {
	if v[1] == 0 && v[2] == 0 {
		return v[0], 0, 0, 0
	}
	beta = math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2])
	if beta < 1e-140 {
		beta = math.Hypot(math.Hypot(v[0], v[1]), v[2])
	}
	if v[0] > 0 {
		beta = -beta
	}
	return beta, v[1] / (v[0] - beta), v[2] / (v[0] - beta), (beta - v[0]) / beta
}
