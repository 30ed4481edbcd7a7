package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// patterns are matrices with eigenvalues that are real, conjugates, equal, or without as many vectors.
func patterns(n int) map[string]*Matrix {
	m := hard(n)
	jordan, cycle, turns, lower, graded := newMatrix(n, n), newMatrix(n, n), newMatrix(n, n), newMatrix(n, n), random(n, n)
	for i := range n {
		jordan.at(i, i)[0] = 0.5
		cycle.at(i, (i+1)%n)[0] = 1
		if i > 0 {
			jordan.at(i-1, i)[0] = 1
		}
		if i%2 == 1 {
			c, s := math.Cos(float64(i)), math.Sin(float64(i))
			turns.at(i-1, i-1)[0], turns.at(i-1, i)[0], turns.at(i, i-1)[0], turns.at(i, i)[0] = c, 2*s, -s/2, c
		}
		for j := range i + 1 {
			lower.at(i, j)[0] = float64((i*7+j*3)%11) - 5
		}
		for j := range n {
			graded.at(i, j)[0] *= math.Pow(10, float64(i-j)/4)
		}
	}
	nilpotent := copied(jordan)
	for i := range n {
		nilpotent.at(i, i)[0] = 0
	}
	pairs := copied(jordan) // blocks of pairs with the same values, joined
	for i := range n {
		pairs.at(i, i)[0] = 1
		if i%2 == 1 {
			pairs.at(i, i-1)[0] = -1
		}
	}
	m["jordan"], m["nilpotent"], m["cycle"], m["turns"], m["lower"], m["graded"], m["pairs"] = jordan, nilpotent, cycle, turns, lower, graded, pairs
	return m
}

func TestGeneral(t *testing.T) {
	names := append([]string{"jordan", "nilpotent", "cycle", "turns", "lower", "graded", "pairs"}, hardNames...)
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range []int{1, 2, 3, 7, 17, 32, 49, 90} {
			for _, name := range names {
				if n > 50 && name != "random" && name != "graded" {
					continue
				}
				a, what := patterns(n)[name], fmt.Sprint(n, " ", name)
				re, im, v, ok := General(copied(a), true, epsilon)
				if !ok {
					t.Fatalf("%s: nothing found", what)
				}
				checkGeneral(t, what, a, re, im, v)
				x, y, none, _ := General(copied(a), false, epsilon)
				for i := range re {
					if x[i] != re[i] || y[i] != im[i] || none != nil {
						t.Fatalf("%s: value %d is %v %v, with vectors %v %v", what, i, x[i], y[i], re[i], im[i])
					}
				}
				all = append(all, re, im, v.Data)
			}
		}
		return all
	})
}

// checkGeneral checks the vectors by their definition, and the values by their sum.
func checkGeneral(t *testing.T, what string, a *Matrix, re, im []float64, v *Matrix) {
	t.Helper()
	n := a.Rows
	var size, trace, sum float64
	for i := range n {
		trace += a.at(i, i)[0]
		sum += re[i]
		for _, x := range a.row(i) {
			size = max(size, math.Abs(x))
		}
	}
	if size == 0 {
		size = 1
	}
	bound := 1e-14 * float64(n+5) * size
	if !(math.Abs(trace-sum) <= bound*float64(n)) {
		t.Errorf("%s: the sum of the values is %v, want %v", what, sum, trace)
	}
	product := Product(v, a.Transposed()) // rows are a·v
	for j := 0; j < n; j++ {
		x, y, w := v.row(j), make([]float64, n), im[j]
		ax, ay := product.row(j), make([]float64, n)
		if w != 0 {
			if y, ay = v.row(j+1), product.row(j+1); w < 0 || re[j+1] != re[j] || im[j+1] != -w {
				t.Fatalf("%s: value %d is %v %v, the next %v %v", what, j, re[j], w, re[j+1], im[j+1])
			}
			j++
		}
		var length, greatest float64
		flat := 1.0 // the least imaginary part of the greatest elements
		for i := range n {
			square := x[i]*x[i] + y[i]*y[i]
			length += square
			greatest = max(greatest, square)
			p, q := ax[i]-(re[j]*x[i]-w*y[i]), ay[i]-(re[j]*y[i]+w*x[i])
			if !(math.Hypot(p, q) <= bound) {
				t.Fatalf("%s: a·v of value %d (%v %v) is off by %v at %d, of elements to %v", what, j, re[j], w, math.Hypot(p, q), i, size)
			}
		}
		for i := range n {
			if x[i]*x[i]+y[i]*y[i] >= greatest*(1-1e-12) {
				flat = min(flat, math.Abs(y[i]))
			}
		}
		if !(math.Abs(length-1) < 1e-12) || flat > 0 {
			t.Fatalf("%s: vector %d has length %v, and %v beside its greatest element", what, j, math.Sqrt(length), flat)
		}
	}
}

// TestGeneralOfKnown checks values: of the matrices that cyclic exchanges are they are the roots of 1.
func TestGeneralOfKnown(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 31} {
		re, im, _, ok := General(patterns(n)["cycle"], false, epsilon)
		found := map[int]bool{}
		for i := range re {
			k := int(math.Round(math.Atan2(im[i], re[i]) / (2 * math.Pi) * float64(n)))
			angle := 2 * math.Pi * float64(k) / float64(n)
			if math.Hypot(re[i]-math.Cos(angle), im[i]-math.Sin(angle)) > 1e-13 {
				t.Errorf("%d: value %v %v", n, re[i], im[i])
			}
			found[(k+n)%n] = true
		}
		if !ok || len(found) != n {
			t.Errorf("%d: %d values", n, len(found))
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		a := random(5, 5)
		a.at(2, 3)[0] = bad
		if _, _, _, ok := General(a, true, epsilon); ok {
			t.Errorf("values of a matrix with %v", bad)
		}
	}
}

// TestGeneralOfTwo has real values, pairs and equal ones, and matrices that it leaves to General.
func TestGeneralOfTwo(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 5000 {
		x := make([]float64, 4)
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		switch i % 5 {
		case 1:
			x[3] = x[0]
		case 2:
			x[1], x[2] = 1, -1
			x[3] = x[0] + 2*float64(i%3) // with 2 the values are equal
		case 3:
			for j := range x {
				x[j] = float64(rng.IntN(3) - 1)
			}
		case 4:
			x[0], x[3] = math.Ldexp(x[0], rng.IntN(60)-30), math.Ldexp(x[3], rng.IntN(60)-30)
		}
		a := newMatrix(2, 2)
		copy(a.row(0), x[:2])
		copy(a.row(1), x[2:])
		r, ok := GeneralOfTwo(x)
		if near := math.Abs(x[1]) <= unevenness*math.Abs(x[2]) && math.Abs(x[2]) <= unevenness*math.Abs(x[1]) && x[1] != 0; ok != near {
			t.Fatalf("%v: found %v", x, ok)
		}
		if !ok {
			continue
		}
		v := newMatrix(2, 2)
		copy(v.row(0), r.Vectors[:2])
		copy(v.row(1), r.Vectors[2:])
		checkGeneral(t, fmt.Sprint(x), a, r.Re[:], r.Im[:], v)
		re, im, _, _ := General(a, false, epsilon)
		size := math.Abs(x[0]) + math.Abs(x[1]) + math.Abs(x[2]) + math.Abs(x[3])
		for j := range re {
			// Values that are nearly equal are known to the root of the precision.
			if math.Hypot(re[j]-r.Re[j], im[j]-r.Im[j]) > 1e-7*size {
				t.Fatalf("%v: value %d is %v %v, want %v %v", x, j, r.Re[j], r.Im[j], re[j], im[j])
			}
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e200, 1e-200} {
		for j := range 4 {
			x := []float64{1, 2, 3, 4}
			x[j] = bad
			if _, ok := GeneralOfTwo(x); ok != (bad == 1e-200 && j%3 == 0) {
				t.Errorf("%v: found %v", x, ok)
			}
		}
	}
}
