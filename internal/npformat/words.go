package npformat

import (
	"math"
	"strconv"
	"strings"

	"github.com/loris-ml/loris/internal/half"
)

// words returns the elements at the indices as text, all of one width.
func (e Elem) words(indices []int, scalar bool, o Options) []string {
	words := make([]string, len(indices))
	switch e.Kind {
	case Bool:
		for k, i := range indices {
			switch {
			case e.Int(i) == 0:
				words[k] = "False"
			case scalar:
				words[k] = "True"
			default:
				words[k] = " True"
			}
		}
	case Int:
		width := 0
		for k, i := range indices {
			words[k] = strconv.FormatInt(e.Int(i), 10)
			width = max(width, len(words[k]))
		}
		for k, w := range words {
			words[k] = pad(w, width)
		}
	default:
		values := make([]float64, len(indices))
		for k, i := range indices {
			values[k] = e.Float(i)
		}
		formatFloats(words, values, e.Kind, o)
	}
	return words
}

// pad puts spaces before s.
func pad(s string, width int) string {
	return strings.Repeat(" ", max(width-len(s), 0)) + s
}

// formatFloats sets words to the values as text.
func formatFloats(words []string, values []float64, kind Kind, o Options) {
	scientific := kind.needsExponent(values, o.Suppress)
	parts := make([]number, len(values))
	var left, right, exponent int // widest of the parts; left has the sign
	var other int                 // widest of nan and inf, with its sign
	for k, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			parts[k] = number{whole: nonFinite(v)}
			// NumPy makes room for both as soon as there is one of them.
			other = max(other, len(parts[k].whole), len("nan"))
			continue
		}
		parts[k] = kind.digits(v, o.Precision, scientific)
		left = max(left, len(parts[k].whole))
		right = max(right, len(parts[k].frac))
		exponent = max(exponent, len(parts[k].exp))
	}
	width := left + 1 + right
	if scientific {
		width += len("e+") + exponent
	}
	// Room for a long nan or inf goes before the point of the numbers.
	if other > width {
		left += other - width
		width = other
	}
	for k, n := range parts {
		switch {
		case math.IsNaN(values[k]) || math.IsInf(values[k], 0):
			words[k] = pad(n.whole, width)
		case scientific:
			// To the common precision the digits are those of the exact value,
			// not zeros after the fewest.
			n = split(strconv.FormatFloat(values[k], 'e', right, 64))
			words[k] = pad(n.whole, left) + "." + n.frac +
				"e" + n.expSign + strings.Repeat("0", exponent-len(n.exp)) + n.exp
		default:
			words[k] = pad(n.whole, left) + "." + n.frac + strings.Repeat(" ", right-len(n.frac))
		}
	}
}

func nonFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case v < 0:
		return "-inf"
	default:
		return "inf"
	}
}

// number is the text of a finite float in parts.
type number struct {
	whole, frac  string // before, with the sign, and after the point
	expSign, exp string // of scientific notation
}

// digits returns v with the fewest digits that tell it from other values of its
// kind, or rounded to precision digits after the point if those are fewer.
func (k Kind) digits(v float64, precision int, scientific bool) number {
	verb := byte('f')
	if scientific {
		verb = 'e'
	}
	n := split(k.shortest(v, verb))
	if len(n.frac) > precision {
		n = split(strconv.FormatFloat(v, verb, precision, 64))
		n.frac = strings.TrimRight(n.frac, "0")
	}
	return n
}

// split takes a result of strconv.FormatFloat to parts.
func split(s string) (n number) {
	mantissa, exp, ok := strings.Cut(s, "e")
	if ok {
		n.expSign, n.exp = exp[:1], exp[1:]
	}
	n.whole, n.frac, _ = strings.Cut(mantissa, ".")
	return n
}

// shortest formats v with the fewest digits that give v back when they are
// rounded to the kind.
func (k Kind) shortest(v float64, verb byte) string {
	switch k {
	case Float64:
		return strconv.FormatFloat(v, verb, -1, 64)
	case Float32:
		return strconv.FormatFloat(v, verb, -1, 32)
	}
	// strconv knows no narrower floats. They need no more than five digits.
	for places := 0; ; places++ {
		s := strconv.FormatFloat(v, 'e', places, 64)
		short, err := strconv.ParseFloat(s, 64)
		if err != nil || k.round(short) == v || places == 8 {
			// short is a float64 of few digits, which are then its shortest too.
			return strconv.FormatFloat(short, verb, -1, 64)
		}
	}
}

// round rounds a float64 to the kind.
func (k Kind) round(v float64) float64 {
	switch k {
	case Float32:
		return float64(float32(v))
	case Float16:
		return float64(half.F16ToF32(half.F64ToF16(v)))
	case BFloat16:
		return float64(half.BF16ToF32(half.F64ToBF16(v)))
	default:
		return v
	}
}

// large is the magnitude from which on numbers take scientific notation: ten to
// the digits that the kind is sure to hold, at most eight. BFloat16, which NumPy
// lacks, does as Float16.
func (k Kind) large() float64 {
	switch k {
	case Float64:
		return 1e8
	case Float32:
		return 1e6
	default:
		return 1e3
	}
}

// needsExponent reports whether any finite value is large, or, unless that is
// suppressed, small, or far from another. NumPy compares in the array's own
// type, hence the roundings.
func (k Kind) needsExponent(values []float64, suppress bool) bool {
	lo, hi := math.Inf(1), 0.0
	for _, v := range values {
		if v = math.Abs(v); v != 0 && v <= math.MaxFloat64 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if hi == 0 {
		return false
	}
	return hi >= k.large() || !suppress && (lo < k.round(1e-4) || k.round(hi/lo) > 1000)
}
