package dense

import "math"

// Two is the eigenvalues of a matrix of two rows, as of General, and its vectors, one after the other.
type Two struct {
	Re, Im  [2]float64
	Vectors [4]float64
}

// unevenness is how many times as large as the other one of the elements beside the diagonal may be for the
// matrix not to gain from balancing.
const unevenness = 64

// GeneralOfTwo is General of two rows that adjoin, if their elements are of usual sizes: those beside the
// diagonal of nearly the same. It reports whether they are.
func GeneralOfTwo(x []float64) (r Two, ok bool) {
	a, b, c, d := x[0], x[1], x[2], x[3]
	size, other := math.Abs(b), math.Abs(c)
	squares := a*a + b*b + c*c + d*d
	if !(squares > 1e-150 && squares < 1e150 && size <= unevenness*other && other <= unevenness*size && size*other > 1e-150) {
		return r, false
	}
	a, b, c, d, cosine, sine := standard(a, b, c, d)
	r.Re = [2]float64{a, d}
	first, second := [2]float64{cosine, sine}, [2]float64{-sine, cosine}
	if c != 0 {
		im := math.Sqrt(math.Abs(b)) * math.Sqrt(math.Abs(c))
		r.Im = [2]float64{im, -im}
		// The vector of the form is (1, i·im/b) or (-im/c, i).
		f, g := 1.0, im/b
		if math.Abs(b) < math.Abs(c) {
			f, g = -im/c, 1
		}
		r.Vectors = [4]float64{f * first[0], f * first[1], g * second[0], g * second[1]}
		normalize(r.Vectors[:2], r.Vectors[2:])
		return r, true
	}
	between := a - d
	if least := epsilon * math.Abs(d); math.Abs(between) < max(least, tooSmall) {
		between = max(least, tooSmall)
	}
	f := -b / between
	r.Vectors = [4]float64{first[0], first[1], f*first[0] + second[0], f*first[1] + second[1]}
	normalize(r.Vectors[:2], nil)
	normalize(r.Vectors[2:], nil)
	return r, true
}
