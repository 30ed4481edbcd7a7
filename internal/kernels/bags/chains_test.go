package bags

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/strided"
)

// TestAddChained holds sums of narrow rows against kernels.IndexAdd in float32, whose results are rounded,
// bit for bit and for every way to cut the units.
func TestAddChained(t *testing.T) {
	testAddChained[vec.BF16](t)
	testAddChained[vec.F16](t)
}

func testAddChained[E vec.BF16 | vec.F16](t *testing.T) {
	const outer, size, inner = 2, 7, 19
	rng := rand.New(rand.NewPCG(9, 1))
	index := []int64{3, 0, 3, 6, 3, 0, 5}
	x, source := numbers[E](rng, outer*size*inner), numbers[E](rng, outer*len(index)*inner)
	wide, from := make([]float32, len(x)), make([]float32, len(source))
	vec.Load(wide, x)
	vec.Load(from, source)
	kernels.IndexAdd(wide, index, from, size, inner, 0, outer*inner)
	want := make([]E, len(x))
	vec.Store(want, wide)
	heads, next := make([]int64, size), make([]int64, len(index))
	kernels.Chain(heads, next, index)
	for _, step := range []int{1, 3, 100} {
		got := slices.Clone(x)
		for lo := 0; lo < outer*len(index); lo += step {
			AddChained(got, heads, next, index, source, inner, lo, min(lo+step, outer*len(index)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%T, %d units at a time: %v, want %v", x[0], step, got, want)
		}
	}
	defer func() {
		if _, ok := recover().(kernels.IndexError); !ok {
			t.Error("an index beyond the rows is no error")
		}
	}()
	kernels.Chain(heads, next, []int64{0, size})
}

// TestCombineChained holds combined narrow rows against kernels.CombineChained in float32, whose results are
// rounded, bit for bit, in their place and elsewhere.
func TestCombineChained(t *testing.T) {
	testCombineChained[vec.BF16](t)
	testCombineChained[vec.F16](t)
}

func testCombineChained[E vec.BF16 | vec.F16](t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 3))
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1e-7, -1e-40, 6e4}
	for _, how := range []kernels.Combine{kernels.CombineSum, kernels.CombineProd, kernels.CombineMean, kernels.CombineMax, kernels.CombineMin} {
		for _, include := range []bool{false, true} {
			for _, d := range [][4]int{{1, 1, 1, 2}, {2, 7, 9, 19}, {1, 40, 17, 3}, {3, 3, 0, 5}, {1, 3, 5, kernels.ChainColumns + 9}} {
				outer, size, n, inner := d[0], d[1], d[2], d[3]
				x, source := numbers[E](rng, outer*size*inner), numbers[E](rng, outer*n*inner)
				for range len(source) / 8 {
					source[rng.IntN(len(source))] = vec.Narrow[E](special[rng.IntN(len(special))])
					x[rng.IntN(len(x))] = vec.Narrow[E](special[rng.IntN(len(special))])
				}
				index := make([]int64, n)
				for i := range index {
					index[i] = rng.Int64N(int64(size))
				}
				heads, next := make([]int64, size), make([]int64, n)
				kernels.Chain(heads, next, index)
				wide, from := make([]float32, len(x)), make([]float32, len(source))
				vec.Load(wide, x)
				vec.Load(from, source)
				units := kernels.ChainUnits(outer*size, inner)
				kernels.CombineChained(wide, wide, heads, next, from, how, include, inner, 0, units)
				want, apart := make([]E, len(x)), make([]E, len(x))
				vec.Store(want, wide)
				for lo := 0; lo < units; lo += 3 {
					CombineChained(apart, x, heads, next, source, how, include, inner, lo, min(lo+3, units))
				}
				CombineChained(x, x, heads, next, source, how, include, inner, 0, units)
				if !slices.Equal(x, want) || !slices.Equal(apart, want) {
					t.Errorf("%T, how %v, include self %v, %v: %v in its place, %v elsewhere, want %v", x[0], how, include, d, x, apart, want)
				}
			}
		}
	}
}

// TestAddPlaced holds sums of few narrow elements against kernels.ScatterReduce in float32, whose results are
// rounded, bit for bit.
func TestAddPlaced(t *testing.T) {
	testAddPlaced[vec.BF16](t)
	testAddPlaced[vec.F16](t)
}

func testAddPlaced[E vec.BF16 | vec.F16](t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	for _, c := range []struct {
		dims, index []int
		dim         int
	}{
		{[]int{5}, []int{40}, 0}, {[]int{3, 7}, []int{3, 9}, 1}, {[]int{4, 3, 5}, []int{20, 2, 4}, 0}, {[]int{2, 3}, []int{0, 3}, 0},
	} {
		l := kernels.NewLines(c.dims, c.dim, c.index)
		view, dense := strided.Dense(c.index), strided.Dense(c.dims)
		x, source := numbers[E](rng, dense.Len()), numbers[E](rng, view.Len())
		index := make([]int64, view.Len())
		for i := range index {
			index[i] = int64(rng.IntN(c.dims[c.dim]))
		}
		wide, from := make([]float32, len(x)), make([]float32, len(source))
		vec.Load(wide, x)
		vec.Load(from, source)
		kernels.ScatterReduce(wide, index, from, &view, &l, kernels.CombineSum, true, nil, 0, l.Units())
		want := make([]E, len(x))
		vec.Store(want, wide)
		places := make([]int64, len(index))
		kernels.ScatterPlaces(places, index, &view, &l)
		if AddPlaced(x, source, places); !slices.Equal(x, want) {
			t.Errorf("%T, %v: %v, want %v", x[0], c, x, want)
		}
	}
}

func numbers[E vec.Element](rng *rand.Rand, n int) []E {
	s := make([]E, n)
	for i := range s {
		s[i] = vec.Narrow[E](rng.Float32() - 0.5)
	}
	return s
}
