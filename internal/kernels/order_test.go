package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// lineOf returns lines of n elements, two of them interleaved, with many equal ones and special
// values; of each kind, those that a type lacks are zeros.
func lineOf[T Number](rng *rand.Rand, kind string, n int) []T {
	x := make([]T, 2*n)
	for i := range x {
		var v float64
		switch k := rng.IntN(20); {
		case kind == "equal":
			v = 3
		case kind == "rising":
			v = float64(i)
		case kind == "wide" && k > 1:
			v = rng.Float64()*1e6 - 5e5
		case k == 0:
			v = nan
		case k == 1:
			v = negZ
		case k == 2:
			v = -inf
		default:
			v = float64(k - 10)
		}
		half := 0.5
		if T(half) == 0 {
			x[i] = T(int64(min(max(v, -100), 100))) // a NaN is some integer
			if v != v {
				x[i] = 0
			}
			continue
		}
		x[i] = T(v)
	}
	return x
}

// sortedPlaces is the order that Sort is defined to give, of line 0 or 1.
func sortedPlaces[T Number](x []T, line int, descending bool) []int {
	order := make([]int, len(x)/2)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := x[2*order[i]+line], x[2*order[j]+line]
		if descending {
			a, b = b, a
		}
		return a < b || (b != b && a == a)
	})
	return order
}

func equalBits[T Number](a, b T) bool { return sameBits(float64(a), float64(b)) }

var orderLengths = []int{0, 1, 2, 15, 16, 17, 33, bytesLeast - 1, bytesLeast, bucketLeast - 1, bucketLeast, 100, bucketMost, radixLeast - 1, radixLeast, 3000}

func eachLine(t *testing.T, f func(t *testing.T, rng *rand.Rand, kind string, n int, descending bool)) {
	for _, kind := range []string{"mixed", "wide", "equal", "rising"} {
		for _, n := range orderLengths {
			for _, descending := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, n, descending), func(t *testing.T) {
					f(t, rand.New(rand.NewPCG(7, uint64(n))), kind, n, descending)
				})
			}
		}
	}
}

func testSort[T Number](t *testing.T, rng *rand.Rand, kind string, n int, descending bool) {
	x := lineOf[T](rng, kind, n)
	values, at := make([]T, 2*n), make([]int64, 2*n)
	Sort(values, at, x, n, 2, descending, make([]uint64, 2*n), make([]int32, 2*n), 0, 2)
	for line := range 2 {
		for i, o := range sortedPlaces(x, line, descending) {
			if at[2*i+line] != int64(o) || !equalBits(values[2*i+line], x[2*o+line]) {
				t.Fatalf("%T: place %d of line %d is %v from %d, want %v from %d", x, i, line, values[2*i+line], at[2*i+line], x[2*o+line], o)
			}
		}
	}
}

func TestSort(t *testing.T) {
	eachLine(t, func(t *testing.T, rng *rand.Rand, kind string, n int, descending bool) {
		testSort[float64](t, rng, kind, n, descending)
		testSort[float32](t, rng, kind, n, descending)
		testSort[int64](t, rng, kind, n, descending)
		testSort[int32](t, rng, kind, n, descending)
		testSort[uint8](t, rng, kind, n, descending)
		testSort[int8](t, rng, kind, n, descending)
	})
}

func testTopK[T Number](t *testing.T, rng *rand.Rand, kind string, n int, descending bool) {
	x := lineOf[T](rng, kind, n)
	for _, k := range []int{0, 1, 2, 7, n / 2, n} {
		if k > n {
			continue
		}
		values, at := make([]T, 2*k), make([]int64, 2*k)
		room := TopKScratch(n, k)
		TopK(values, at, x, n, k, 2, descending, make([]uint64, room), make([]int32, room), 0, 2)
		for line := range 2 {
			for i, o := range sortedPlaces(x, line, descending)[:k] {
				if at[2*i+line] != int64(o) || !equalBits(values[2*i+line], x[2*o+line]) {
					t.Fatalf("%T, k %d: place %d of line %d is %v from %d, want %v from %d", x, k, i, line, values[2*i+line], at[2*i+line], x[2*o+line], o)
				}
			}
		}
	}
}

func TestTopK(t *testing.T) {
	eachLine(t, func(t *testing.T, rng *rand.Rand, kind string, n int, descending bool) {
		testTopK[float64](t, rng, kind, n, descending)
		testTopK[float32](t, rng, kind, n, descending)
		testTopK[int64](t, rng, kind, n, descending)
		testTopK[uint8](t, rng, kind, n, descending)
	})
}

func testNth[T Number](t *testing.T, rng *rand.Rand, kind string, n int) {
	x := lineOf[T](rng, kind, n)
	for line := range 2 {
		order := sortedPlaces(x, line, false)
		numbers := slices.IndexFunc(order, func(o int) bool { return x[2*o+line] != x[2*o+line] })
		if numbers < 0 {
			numbers = n
		}
		middle := (n - 1) / 2
		if numbers < n {
			middle = numbers
		}
		for _, c := range []struct {
			rank Rank
			want int
		}{
			{Rank{At: 0}, 0}, {Rank{At: n - 1}, n - 1}, {Rank{At: n / 3}, n / 3},
			{Rank{Median: true}, middle}, {Rank{Median: true, SkipNaN: true}, max(numbers-1, 0) / 2},
		} {
			values, at := make([]T, 2), make([]int64, 2)
			Nth(values, at, x, n, 2, c.rank, make([]uint64, n), line, line+1)
			if o := order[c.want]; at[line] != int64(o) || !equalBits(values[line], x[2*o+line]) {
				t.Fatalf("%T %+v: %v from %d, want %v from %d", x, c.rank, values[line], at[line], x[2*o+line], o)
			}
		}
	}
}

func TestNth(t *testing.T) {
	eachLine(t, func(t *testing.T, rng *rand.Rand, kind string, n int, descending bool) {
		if n > 0 && !descending {
			testNth[float64](t, rng, kind, n)
			testNth[float32](t, rng, kind, n)
			testNth[int64](t, rng, kind, n)
			testNth[int32](t, rng, kind, n)
			testNth[uint8](t, rng, kind, n)
		}
	})
}

// TestKeyAt holds the loops against sorting, with keys at the ends of the range, and with few different ones.
func TestKeyAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, loop := range keyLoops() {
		for _, n := range []int{keyStep, 2 * keyStep, 5 * keyStep} {
			for _, shift := range []int{0, 20, 29} {
				k := make([]int32, n)
				for i := range k {
					k[i] = int32(rng.Uint32()) >> shift
				}
				k[1], k[7], k[n-1] = math.MinInt32, math.MaxInt32, math.MaxInt32
				want := slices.Clone(k)
				slices.Sort(want)
				for at := range n {
					first, _ := slices.BinarySearch(want, want[at])
					if got, less := loop(&k[0], n, at); got != want[at] || less != first {
						t.Fatalf("place %d of %d: %d with %d less, want %d with %d", at, n, got, less, want[at], first)
					}
				}
			}
		}
	}
}

// Every place of lists of few different keys, and of many of which a sample is taken, which misleads where the
// keys repeat with its step.
func TestNthOfFewKeys(t *testing.T) {
	different := map[int]int{600: 7, 1023: 1 << 20, 1024: 32, 1100: 1 << 20}
	for n := 1; n < 200; n++ {
		different[n] = 13
	}
	for n, most := range different {
		k := make([]uint64, n)
		for i := range k {
			k[i] = uint64((i * 7919) % most)
		}
		want := slices.Clone(k)
		slices.Sort(want)
		for at := range n {
			if got := nth(slices.Clone(k), at); got != want[at] {
				t.Fatalf("place %d of %d: %d, want %d", at, n, got, want[at])
			}
		}
	}
}
