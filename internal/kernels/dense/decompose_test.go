package dense

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// one is the identity.
func one(n int) *Matrix {
	m := newMatrix(n, n)
	for i := range n {
		m.at(i, i)[0] = 1
	}
	return m
}

// orthogonal fails unless the rows of m are of length 1 and at right angles to each other.
func orthogonal(t *testing.T, what string, m *Matrix) {
	t.Helper()
	near(t, what, Product(m, m.Transposed()), one(m.Rows))
}

// shapes are rows and columns of matrices that have more rows, or as many.
var shapes = [][2]int{{1, 1}, {2, 2}, {3, 1}, {7, 5}, {16, 16}, {17, 17}, {33, 20}, {40, 33}, {70, 64}, {100, 100}}

func TestQR(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, s := range append(shapes, [2]int{5, 12}, [2]int{20, 50}) {
			a := random(s[0], s[1])
			k := min(s[0], s[1])
			f, tau := copied(a), make([]float64, k)
			QR(f, tau)
			r := newMatrix(s[0], s[1])
			for i := range s[0] {
				for j := i; j < s[1]; j++ {
					r.at(i, j)[0] = f.at(i, j)[0]
				}
			}
			q := Q(f, tau, s[0])
			orthogonal(t, fmt.Sprint(s, " q"), q)
			near(t, fmt.Sprint(s, " q·r"), multiplied(q, r), a)
			x := copied(a)
			MultiplyQ(f, tau, x, true)
			near(t, fmt.Sprint(s, " qᵀ·a"), x, r)
			MultiplyQ(f, tau, x, false)
			near(t, fmt.Sprint(s, " q·qᵀ·a"), x, a)
			thin := Q(f, tau, k)
			for i := range thin.Rows {
				for j, v := range thin.row(i) {
					if math.Abs(v-q.at(i, j)[0]) > 1e-12 {
						t.Fatalf("%v: the first %d columns are others", s, k)
					}
				}
			}
			all = append(all, f.Data, tau, q.Data)
		}
		return all
	})
}

// diagonal has values on the diagonal.
func diagonal(rows, cols int, values []float64) *Matrix {
	m := newMatrix(rows, cols)
	for i, v := range values {
		m.at(i, i)[0] = v
	}
	return m
}

var hardNames = []string{"zero", "one", "random", "of low rank", "far apart", "with zeros", "tiny", "huge"}

// hard are matrices whose values are equal, zero or far apart.
func hard(n int) map[string]*Matrix {
	m := map[string]*Matrix{"zero": newMatrix(n, n), "one": one(n), "random": random(n, n)}
	low, steps, gaps := newMatrix(n, n), newMatrix(n, n), newMatrix(n, n)
	for i := range n {
		steps.at(i, i)[0] = math.Pow(10, -float64(i)/4)
		gaps.at(i, i)[0] = float64(i % 3)
		if i > 0 {
			steps.at(i, i-1)[0], gaps.at(i-1, i)[0] = steps.at(i, i)[0]/2, 1
		}
		for j := range n {
			low.at(i, j)[0] = float64(i%3+1) * float64(j%2+1)
		}
	}
	m["of low rank"], m["far apart"], m["with zeros"] = low, steps, gaps
	tiny, huge := copied(m["random"]), copied(m["random"])
	for i := range tiny.Data {
		tiny.Data[i] *= 1e-290
		huge.Data[i] *= 1e290
	}
	m["tiny"], m["huge"] = tiny, huge
	return m
}

// nearTo is near relative to the greatest element.
func nearTo(t *testing.T, what string, got, want *Matrix) {
	t.Helper()
	var most float64
	for _, v := range want.Data {
		most = max(most, math.Abs(v))
	}
	for i := range want.Rows {
		for j, v := range want.row(i) {
			if d := math.Abs(got.at(i, j)[0] - v); !(d <= 1e-12*most*float64(want.Rows)) {
				t.Fatalf("%s: element %d, %d is %v, want %v (the greatest is %v)", what, i, j, got.at(i, j)[0], v, most)
			}
		}
	}
}

// ascending fails unless numbers are in order.
func ascending(t *testing.T, what string, x []float64) {
	t.Helper()
	if !slices.IsSorted(x) {
		t.Fatalf("%s: %v are not in order", what, x)
	}
}

// sameValues fails unless numbers are others to within rounding of the greatest.
func sameValues(t *testing.T, what string, got, want []float64) {
	t.Helper()
	var most float64
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(got[i]-v) <= 1e-14*most*float64(len(want))) {
			t.Fatalf("%s: value %d is %v, want %v (the greatest is %v)", what, i, got[i], v, most)
		}
	}
}

func TestSymmetric(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range append(orders, mostFused, mostFused+1) {
			names := hardNames
			if n > 100 {
				names = []string{"random"}
			}
			for _, name := range names {
				a := hard(n)[name]
				a.Mirror(true)
				what := fmt.Sprint(n, " ", name)
				values, v, ok := Symmetric(copied(a), true)
				if !ok {
					t.Fatalf("%s: nothing found", what)
				}
				orthogonal(t, what, v)
				nearTo(t, what, Product(Product(v, diagonal(n, n, values)), v.Transposed()), a)
				alone, _, _ := Symmetric(copied(a), false)
				ascending(t, what, values)
				sameValues(t, what, alone, values)
				all = append(all, values, v.Data, alone)
			}
		}
		return all
	})
}

func TestSingular(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		check := func(what string, a *Matrix) {
			for _, full := range []bool{false, true} {
				values, u, v, ok := Singular(copied(a), true, full)
				if !ok {
					t.Fatalf("%s: nothing found", what)
				}
				orthogonal(t, what, u)
				orthogonal(t, what, v)
				nearTo(t, what, Product(Product(u.Transposed(), diagonal(u.Rows, v.Rows, values)), v), a)
				alone, _, _, _ := Singular(copied(a), false, full)
				for i, x := range values {
					if i > 0 && (x > values[i-1] || alone[i] > alone[i-1]) || x < 0 {
						t.Fatalf("%s: %v, alone %v", what, values, alone)
					}
				}
				sameValues(t, what, alone, values)
				all = append(all, values, u.Data, v.Data, alone)
			}
		}
		for _, s := range shapes {
			a := random(s[0], s[1])
			check(fmt.Sprint(s), a)
			check(fmt.Sprint(s, " transposed"), a.Transposed())
		}
		check("of more than is changed in each step", random(mostFused+6, mostFused-2))
		check("of more than is turned where it lies", random(101, 97))
		for _, n := range []int{2, 5, 16, 33} {
			for _, name := range hardNames {
				check(fmt.Sprint(n, " ", name), hard(n)[name])
			}
		}
		return all
	})
}

func TestSingularOfSingles(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		check := func(what string, a *Matrix) {
			for _, full := range []bool{false, true} {
				values, u, v, ok := SingularOfSingles(copied(a), true, full)
				if !ok {
					t.Fatalf("%s: nothing found", what)
				}
				nearSingle(t, what, multiplied(u, u.Transposed()), one(u.Rows), 1)
				orthogonal(t, what, v)
				wanted, _, _, _ := Singular(copied(a), false, false)
				nearSingle(t, what, multiplied(multiplied(u.Transposed(), diagonal(u.Rows, v.Rows, values)), v), a, wanted[0])
				alone, _, _, _ := SingularOfSingles(copied(a), false, full)
				for i, x := range values {
					if i > 0 && x > values[i-1] || x < 0 || !(math.Abs(x-wanted[i]) <= single*wanted[0]) || !(math.Abs(alone[i]-x) <= single*wanted[0]) {
						t.Fatalf("%s: %v, alone %v, want %v", what, values, alone, wanted)
					}
				}
				all = append(all, values, u.Data, v.Data)
			}
		}
		for _, s := range shapes {
			a := random(s[0], s[1])
			check(fmt.Sprint(s), a)
			check(fmt.Sprint(s, " transposed"), a.Transposed())
		}
		for _, n := range []int{2, 5, 16, 33} {
			for _, name := range hardNames {
				a := hard(n)[name]
				for i, v := range a.Data { // of float32's range
					if name == "tiny" {
						v *= 1e250
					}
					a.Data[i] = math.Copysign(min(math.Abs(v), 1e30), v)
				}
				check(fmt.Sprint(n, " ", name), a)
			}
		}
		return all
	})
}

// single is a fifth of the step of float32 beside 1.
const single = 0x1p-23 / 5

// nearSingle fails unless two matrices are as near as float32 rounds numbers of a size.
func nearSingle(t *testing.T, what string, got, want *Matrix, size float64) {
	t.Helper()
	for i := range want.Rows {
		for j, v := range want.row(i) {
			if d := math.Abs(got.at(i, j)[0] - v); !(d <= 2*single*size) {
				t.Fatalf("%s: element %d, %d is %v, want %v (of %v)", what, i, j, got.at(i, j)[0], v, size)
			}
		}
	}
}

// TestNotFinite checks that an iteration over no numbers ends.
func TestNotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		for _, n := range []int{1, 2, 20} {
			a := random(n, n)
			a.at(n/2, 0)[0] = x
			Symmetric(copied(a), true)
			Singular(copied(a), true, false)
			SingularOfSingles(copied(a), true, false)
			QR(a, make([]float64, n))
		}
	}
}

func TestConvert(t *testing.T) {
	eachKernel(t, func(t *testing.T) (all [][]float64) {
		for _, n := range []int{0, 1, 7, 8, 17, 64} {
			x := random(1, max(n, 1)).Data[:n]
			for i, v := range []float64{math.NaN(), math.Inf(-1), 1e300, 1e-300, math.Copysign(0, -1), 1e-42, 1 + 0x1p-24} {
				if i < n {
					x[n-1-i] = v
				}
			}
			narrow, wide := make([]float32, n), make([]float64, n)
			Narrow(narrow, x)
			Widen(wide, narrow)
			for i, v := range x {
				if math.Float32bits(narrow[i]) != math.Float32bits(float32(v)) || math.Float64bits(wide[i]) != math.Float64bits(float64(narrow[i])) {
					t.Fatalf("%d: %v becomes %v and %v", n, v, narrow[i], wide[i])
				}
			}
			all = append(all, wide)
		}
		return all
	})
}
