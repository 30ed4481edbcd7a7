package ir

import (
	"math"
	"math/bits"

	"github.com/loris-ml/loris/internal/twooverpi"
)

// The sine, cosine and tangent of package math lose most bits of results next to 0, since they reduce an
// angle in one float. What defines ours reduces it to the sum of two.

// reduceAngle returns the quadrant of a finite x and what remains of it, within π/4, as the sum of two
// floats.
func reduceAngle(x float64) (quadrant uint64, r, rest float64) {
	// π/2 in three parts.
	const first, second, third = math.Pi / 2, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110
	a := math.Abs(x)
	switch {
	case a <= math.Pi/4:
		return 0, x, 0
	case a < 0x1p36:
		k := math.RoundToEven(x * (2 / math.Pi))
		y := math.FMA(-k, first, x) // exact
		t := k * second
		r = y - t
		back := r - y
		rest = (y - (r - back)) - (t + back)
		rest = math.FMA(-k, third, rest-math.FMA(k, second, -t))
		return uint64(int64(k)), r + rest, rest - ((r + rest) - r)
	}
	// x is m·2ᵏ. Of the product of m and 2/π·2ᵏ the bits that count four quadrants and more are left out.
	b := math.Float64bits(a)
	m := b&(1<<52-1) | 1<<52
	at := int(b>>52) - 1075 - 2 // where the two bits are that count quadrants
	word := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return twooverpi.Words[i]
	}
	w := func(i int) uint64 {
		i += at >> 6
		return word(i)<<(at&63) | word(i+1)>>(64-at&63)
	}
	low, _ := bits.Mul64(m, w(2))
	high, mid := bits.Mul64(m, w(1))
	mid, carry := bits.Add64(mid, low, 0)
	high += m*w(0) + carry
	quadrant = (high + 1<<61) >> 62
	high, mid = high<<2|mid>>62, mid<<2
	sign := math.Copysign(1, x)
	if int64(high) < 0 {
		sign = -sign
		var borrow uint64
		mid, borrow = bits.Sub64(0, mid, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	if x < 0 {
		quadrant = -quadrant
	}
	// The 53 highest bits and those behind, of a quadrant.
	q := float64(high&^(1<<11-1)) * 0x1p-64 * sign
	behind := float64(high<<53|mid>>11) * 0x1p-117 * sign
	r = q * first
	rest = math.FMA(q, first, -r) + (q*second + behind*first)
	return quadrant, r + rest, rest - ((r + rest) - r)
}

// sinCos returns the sine and the cosine of x.
func sinCos(x float64) (s, c float64) {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return math.Sin(x), math.Cos(x)
	}
	quadrant, r, rest := reduceAngle(x)
	s, c = math.Sin(r), math.Cos(r)
	s, c = s+c*rest, c-s*rest
	switch quadrant % 4 {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

func sin(x float64) float64 {
	s, _ := sinCos(x)
	return s
}

func cos(x float64) float64 {
	_, c := sinCos(x)
	return c
}

func tan(x float64) float64 {
	s, c := sinCos(x)
	if s == 0 {
		return s // -0 stays
	}
	return s / c
}
