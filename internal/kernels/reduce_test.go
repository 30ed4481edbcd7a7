package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/strided"
)

// naiveReduce lists the elements of each result in order.
func naiveReduce(dims []int, reduced []bool) (groups [][]int) {
	outs := 1
	for d, n := range dims {
		if !reduced[d] {
			outs *= n
		}
	}
	groups = make([][]int, outs)
	total := 1
	for _, n := range dims {
		total *= n
	}
	for flat := range total {
		rest, o, step := flat, 0, 1
		for d := len(dims) - 1; d >= 0; d-- {
			i := rest % dims[d]
			rest /= dims[d]
			if !reduced[d] {
				o += i * step
				step *= dims[d]
			}
		}
		groups[o] = append(groups[o], flat)
	}
	return groups
}

func TestReduce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, dims := range [][]int{nil, {1}, {7}, {0}, {3, 0}, {0, 3}, {5, 6}, {1, 300}, {300, 1}, {4, 300}, {3, 4, 5}, {2, 3, 4, 5}, {2, 1, 3, 1, 4}} {
		for mask := range 1 << len(dims) {
			reduced := make([]bool, len(dims))
			for d := range dims {
				reduced[d] = mask>>d&1 != 0
			}
			groups := naiveReduce(dims, reduced)
			x := make([]float32, numel(dims))
			for i := range x {
				x[i] = float32(rng.IntN(200) - 100)
			}
			r := NewReduction(dims, reduced)
			if r.Outs() != len(groups) {
				t.Fatalf("%v over %v: %d results, want %d", dims, reduced, r.Outs(), len(groups))
			}
			least, _ := Limits[float32]()
			sum, most, any := make([]float32, r.Outs()), make([]float32, r.Outs()), make([]uint8, r.Outs())
			for lo := 0; lo < r.Outs(); lo += 3 {
				hi := min(lo+3, r.Outs())
				reduceInRoom(sum, x, &r, lo, hi, SumReducer[float32, float32, float64]())
				reduceInRoom(most, x, &r, lo, hi, MaxReducer(least))
				reduceInRoom(any, x, &r, lo, hi, AnyReducer[float32]())
			}
			for o, g := range groups {
				var s float32
				m, b := float32(math.Inf(-1)), uint8(0)
				for _, i := range g {
					s += x[i]
					m = max(m, x[i])
					b |= flag(x[i] != 0)
				}
				if sum[o] != s || most[o] != m || any[o] != b {
					t.Errorf("%v over %v: result %d is %v, %v, %v; want %v, %v, %v", dims, reduced, o, sum[o], most[o], any[o], s, m, b)
				}
			}
		}
	}
}

func TestReduceParts(t *testing.T) {
	for _, c := range []struct {
		dims    []int
		reduced []bool
		splits  bool
	}{
		{[]int{100}, []bool{true}, true},
		{[]int{30, 4}, []bool{true, false}, true},
		{[]int{30, 4, 5}, []bool{true, false, true}, true},
		{[]int{4, 30}, []bool{false, true}, false},
		{[]int{4, 30, 2}, []bool{false, true, false}, false},
	} {
		r := NewReduction(c.dims, c.reduced)
		n, ok := r.Splits()
		if ok != c.splits {
			t.Fatalf("%v over %v splits: %v", c.dims, c.reduced, ok)
		}
		if !ok {
			continue
		}
		x := make([]int64, r.Elements())
		for i := range x {
			x[i] = int64(i * i)
		}
		whole, parts := make([]int64, r.Outs()), make([]int64, r.Outs())
		f := SumReducer[int64, int64, int64]()
		reduceInRoom(whole, x, &r, 0, r.Outs(), f)
		for lo := 0; lo < n; lo += 7 {
			part, off := r.Part(lo, min(lo+7, n))
			got := make([]int64, part.Outs())
			reduceInRoom(got, x[off:], &part, 0, part.Outs(), f)
			Add(parts, parts, got)
		}
		for o := range whole {
			if whole[o] != parts[o] {
				t.Errorf("%v over %v: result %d is %d in parts, %d as a whole", c.dims, c.reduced, o, parts[o], whole[o])
			}
		}
	}
}

// TestSumAccuracy sums a million elements whose float32 running sum would be
// off by far.
func TestSumAccuracy(t *testing.T) {
	const n = 1 << 20
	x := make([]float32, n)
	exact := 0.0
	for i := range x {
		x[i] = 0.1 + float32(i%97)*1e-3
		exact += float64(x[i])
	}
	r := NewReduction([]int{n}, []bool{true})
	var got [1]float32
	reduceInRoom(got[:], x, &r, 0, 1, SumReducer[float32, float32, float64]())
	if d := math.Abs(float64(got[0])-exact) / exact; d > 1e-7 {
		t.Errorf("sum is %v, want %v (relative %v)", got[0], exact, d)
	}
}

func TestExtremesOfNaN(t *testing.T) {
	x := []float64{1, nan, 3, -inf, 2, inf}
	r := NewReduction([]int{2, 3}, []bool{false, true})
	got := make([]float64, 2)
	reduceInRoom(got, x, &r, 0, 2, MaxReducer(-inf))
	if !sameBits(got[0], nan) || got[1] != inf {
		t.Errorf("max = %v", got)
	}
	reduceInRoom(got, x, &r, 0, 2, MinReducer(inf))
	if !sameBits(got[0], nan) || got[1] != -inf {
		t.Errorf("min = %v", got)
	}
}

func TestIntegerSumsWrap(t *testing.T) {
	r := NewReduction([]int{3}, []bool{true})
	var s8 [1]int8
	x := []int8{100, 100, 100}
	reduceInRoom(s8[:], x, &r, 0, 1, SumReducer[int8, int8, int64]())
	var s64 [1]int64
	reduceInRoom(s64[:], x, &r, 0, 1, SumReducer[int64, int8, int64]())
	if s8[0] != 44 || s64[0] != 300 {
		t.Errorf("sums are %d in int8, %d in int64", s8[0], s64[0])
	}
}

func TestScans(t *testing.T) {
	// [2, 3, 2] along the middle.
	x := []float64{1, 5, 2, 5, 0, 7, nan, 1, 4, 1, nan, 0}
	sum := make([]float64, 12)
	Cumsum[float64, float64, float64](sum, x, 3, 2, 0, 4)
	values, at := make([]float64, 12), make([]int64, 12)
	Cummax(values, at, x, false, 3, 2, 0, 4)
	argmax, argmin := make([]int64, 4), make([]int64, 4)
	Argmax(argmax, x, 3, 2, 0, 4)
	Argmin(argmin, x, 3, 2, 0, 4)
	wantSum := []float64{1, 5, 3, 10, 3, 17, nan, 1, nan, 2, nan, 2}
	wantMax := []float64{1, 5, 2, 5, 2, 7, nan, 1, nan, 1, nan, 1}
	wantAt := []int64{0, 0, 1, 1, 1, 2, 0, 0, 0, 1, 2, 1}
	for i := range x {
		if !sameBits(sum[i], wantSum[i]) {
			t.Errorf("cumsum %d is %v, want %v", i, sum[i], wantSum[i])
		}
		if !sameBits(values[i], wantMax[i]) || at[i] != wantAt[i] {
			t.Errorf("cummax %d is %v at %d, want %v at %d", i, values[i], at[i], wantMax[i], wantAt[i])
		}
	}
	if [4]int64(argmax) != [4]int64{1, 2, 0, 0} || [4]int64(argmin) != [4]int64{2, 0, 0, 2} {
		t.Errorf("argmax %v, argmin %v", argmax, argmin)
	}
}

// TestScansAlongLines holds scans of lines that go along together against lines by themselves.
func TestScansAlongLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	for _, d := range [][3]int{{1, 5, 1}, {7, 3, 1}, {4, 1, 1}, {9, 6, 1}, {2, 4, 5}, {1, 3, 11}, {2, 5, 70}} {
		outer, n, inner := d[0], d[1], d[2]
		x, g, y := make([]float32, outer*n*inner), make([]float32, outer*n*inner), make([]float32, outer*n*inner)
		for i := range x {
			x[i], g[i], y[i] = rng.Float32()-0.5, rng.Float32(), rng.Float32()
		}
		x[rng.IntN(len(x))] = float32(math.NaN())
		bytes := make([]int8, len(x))
		for i := range bytes {
			bytes[i] = int8(rng.Uint32())
		}
		lines := outer * inner
		sum, product, gradient, long := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x)), make([]int64, len(x))
		Cumsum[float32, float32, float64](sum, x, n, inner, 0, lines)
		Cumprod[float32, float32, float64](product, x, n, inner, 0, lines)
		Cumprod[int64, int8, int64](long, bytes, n, inner, 0, lines)
		CumprodGradient(gradient, g, x, y, n, inner, 0, lines)
		least, greatest := make([]int64, lines), make([]int64, lines)
		Argmin(least, x, n, inner, 0, lines)
		Argmax(greatest, x, n, inner, 0, lines)
		for l := range lines {
			first := l/inner*n*inner + l%inner
			a, b, c, s := 0.0, 1.0, int64(1), 0.0
			min, max := first, first
			for k := range n {
				p, q := first+k*inner, first+(n-1-k)*inner
				a, b, c = a+float64(x[p]), b*float64(x[p]), c*int64(bytes[p])
				if s += float64(g[q]); !sameBits(float64(gradient[q]), float64(float32(factorBefore(y, q, inner, k < n-1)*s))) {
					t.Errorf("%v: gradient %d is %v", d, q, gradient[q])
				}
				s *= float64(x[q])
				if v := float64(x[p]); v < float64(x[min]) || v != v && x[min] == x[min] {
					min = p
				}
				if v := float64(x[p]); v > float64(x[max]) || v != v && x[max] == x[max] {
					max = p
				}
				if !sameBits(float64(sum[p]), float64(float32(a))) || !sameBits(float64(product[p]), float64(float32(b))) || long[p] != c {
					t.Errorf("%v: element %d has the sum %v, the products %v and %d, want %v, %v and %d", d, p, sum[p], product[p], long[p], a, b, c)
				}
			}
			if int(least[l]) != (min-first)/inner || int(greatest[l]) != (max-first)/inner {
				t.Errorf("%v: line %d is least at %d, greatest at %d; want %d and %d", d, l, least[l], greatest[l], (min-first)/inner, (max-first)/inner)
			}
		}
	}
}

// factorBefore is the factor of a gradient: the product before an element, or 1 for the first.
func factorBefore(y []float32, p, inner int, has bool) float64 {
	if !has {
		return 1
	}
	return float64(y[p-inner])
}

func numel(dims []int) int {
	v := strided.Dense(dims)
	return v.Len()
}

// reduceInRoom is Reduce with memory of its own.
func reduceInRoom[R, T, A any](dst []R, x []T, r *Reduction, lo, hi int, f *Reducer[R, T, A]) {
	Reduce(dst, x, r, make([]A, ReduceRoom), lo, hi, f)
}
