package bags

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
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

func numbers[E vec.Element](rng *rand.Rand, n int) []E {
	s := make([]E, n)
	for i := range s {
		s[i] = vec.Narrow[E](rng.Float32() - 0.5)
	}
	return s
}
