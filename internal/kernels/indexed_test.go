package kernels

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/strided"
)

// TestIndexLoops holds the processor's loops over an index against elements by themselves, of all short
// lengths, and with an index out of range anywhere: what is before it is done, and nothing after it.
func TestIndexLoops(t *testing.T) {
	native := indexed
	defer func() { indexed = native }()
	for _, loops := range []indexLoops{native, {}} {
		indexed = loops
		checkMoves[uint8](t)
		checkMoves[uint16](t)
		checkMoves[uint32](t)
		checkMoves[uint64](t)
		checkWrapped[uint8](t)
		checkWrapped[uint16](t)
		checkWrapped[uint32](t)
		checkWrapped[uint64](t)
		checkSums(t, func(rng *rand.Rand) uint8 { return uint8(rng.Uint32()) })
		checkSums(t, func(rng *rand.Rand) int16 { return int16(rng.Uint32()) })
		checkSums(t, func(rng *rand.Rand) int32 { return int32(rng.Uint32()) })
		checkSums(t, func(rng *rand.Rand) int64 { return int64(rng.Uint64()) })
		checkSums(t, func(rng *rand.Rand) float32 { return rng.Float32() })
		checkSums(t, func(rng *rand.Rand) float64 { return rng.Float64() })
	}
}

// indexes calls f with indexes of all short lengths, one that is cut and one of runs, valid but for perhaps one place.
func indexes(f func(rng *rand.Rand, size int, index []int64, good int)) {
	rng := rand.New(rand.NewPCG(3, 14))
	for n := range 24 {
		for good := range n + 1 {
			size := 1 + rng.IntN(9)
			index := make([]int64, n)
			for i := range index {
				index[i] = rng.Int64N(int64(size))
			}
			if good < n {
				index[good] = []int64{-1, int64(size), math.MinInt64, math.MaxInt64}[rng.IntN(4)]
			}
			f(rng, size, index, good)
		}
	}
	index := make([]int64, 2*indexMost+5)
	for i := range index {
		index[i] = rng.Int64N(100)
	}
	f(rng, 100, index, len(index))
	for i := range index {
		if i%37 != 0 {
			index[i] = index[i-1]
		}
	}
	f(rng, 100, index, len(index))
	index[len(index)-2] = 100
	f(rng, 100, index, len(index)-2)
}

// recovers reports whether f panics with an IndexError of the index.
func recovers(index int64, size int, f func()) (ok bool) {
	defer func() {
		err, _ := recover().(error)
		var ie IndexError
		ok = errors.As(err, &ie) && ie == IndexError{index, size}
	}()
	f()
	return false
}

func checkMoves[T uint8 | uint16 | uint32 | uint64](t *testing.T) {
	t.Helper()
	random := func(rng *rand.Rand, n int) []T {
		list := make([]T, n)
		for i := range list {
			list[i] = T(rng.Uint64())
		}
		return list
	}
	indexes(func(rng *rand.Rand, size int, index []int64, good int) {
		row, part := random(rng, size), random(rng, len(index))
		taken, put := slices.Clone(part), slices.Clone(row)
		for j, ix := range index[:good] {
			taken[j], put[ix] = row[ix], part[j]
		}
		gotTaken, gotPut := slices.Clone(part), slices.Clone(row)
		take, set := func() { takeEach(gotTaken, row, index) }, func() { putEach(gotPut, index, part) }
		if good < len(index) {
			if !recovers(index[good], size, take) || !recovers(index[good], size, set) {
				t.Fatalf("%T: no panic of index %d of %v", row, good, index)
			}
		} else {
			take()
			set()
		}
		if !slices.Equal(gotTaken, taken) || !slices.Equal(gotPut, put) {
			t.Fatalf("%T: %d of index %v: taken %v, want %v; put %v, want %v", row, good, index, gotTaken, taken, gotPut, put)
		}
	})
}

func checkWrapped[T uint8 | uint16 | uint32 | uint64](t *testing.T) {
	t.Helper()
	indexes(func(rng *rand.Rand, size int, index []int64, good int) {
		index = slices.Clone(index)
		row, want := make([]T, size), make([]T, len(index))
		for i := range row {
			row[i] = T(rng.Uint64())
		}
		bad := int64(0) // what a bad index is counted from the start
		if good < len(index) {
			if index[good] == -1 { // which is good here
				index[good] -= int64(size)
			}
			if bad = index[good]; bad < 0 {
				bad += int64(size)
			}
		}
		for j, ix := range index[:good] {
			if want[j] = row[ix]; rng.IntN(2) == 0 {
				index[j] -= int64(size)
			}
		}
		got := make([]T, len(index))
		take := func() { TakeWrapped(got, row, index) }
		if good == len(index) {
			take()
		} else if !recovers(bad, size, take) {
			t.Fatalf("%T: no panic of index %d of %v", row, good, index)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%T: %d of index %v: %v, want %v", row, good, index, got, want)
		}
	})
}

func checkSums[T Number](t *testing.T, element func(rng *rand.Rand) T) {
	t.Helper()
	indexes(func(rng *rand.Rand, size int, index []int64, good int) {
		row, part := make([]T, size), make([]T, len(index))
		for i := range row {
			row[i] = element(rng)
		}
		for i := range part {
			part[i] = element(rng)
		}
		want, got := slices.Clone(row), slices.Clone(row)
		for j, ix := range index[:good] {
			want[ix] += part[j]
		}
		sum := func() { addEach(got, index, part) }
		if good == len(index) {
			sum()
		} else if !recovers(index[good], size, sum) {
			t.Fatalf("%T: no panic of index %d of %v", row, good, index)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%T: %d of index %v: %v, want %v", row, good, index, got, want)
		}
	})
}

// TestSearchByTable holds searches in lines of few values, which go by a table, against counting.
func TestSearchByTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	for _, c := range []struct{ from, values int64 }{{0, 5}, {-3, 1}, {-100, 250}, {math.MaxInt64 - 3, 4}, {math.MinInt64, 4}, {math.MinInt64 + 1, 4}, {5, 1 << 40}} {
		for _, n := range []int{0, 1, 2, 50} {
			const lines, perRow = 3, 400
			rows, x := make([]int64, lines*n), make([]int64, lines*perRow)
			for i := range rows {
				rows[i] = c.from + rng.Int64N(c.values)
			}
			for i := range lines {
				slices.Sort(rows[i*n : (i+1)*n])
			}
			for i := range x {
				x[i] = c.from + rng.Int64N(c.values)
				if i%7 == 0 {
					x[i] = int64(rng.Uint64())
				}
			}
			copy(x, []int64{math.MinInt64, math.MaxInt64, c.from - 1, c.from + c.values})
			for _, right := range []bool{false, true} {
				got := make([]int64, len(x))
				for lo := 0; lo < len(x); lo += 70 {
					Search(got, rows, x, nil, n, perRow, right, make([]int32, TableMost), lo, min(lo+70, len(x)))
				}
				for i, v := range x {
					want := int64(0)
					for _, y := range rows[i/perRow*n : (i/perRow+1)*n] {
						if y < v || right && y == v {
							want++
						}
					}
					if got[i] != want {
						t.Fatalf("%d of %d from %d, right %v: %d, want %d", v, n, c.from, right, got[i], want)
					}
				}
			}
		}
	}
}

// TestSelectRows has elements selected from rows of all sizes of elements, in pieces.
func TestSelectRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	const outer, size, n = 3, 11, 7
	x, index := make([]strided.Bits128, outer*size), make([]int64, n)
	for i := range x {
		x[i].Lo = rng.Uint64()
	}
	for i := range index {
		index[i] = rng.Int64N(size)
	}
	narrow, got := make([]uint16, len(x)), make([]uint16, outer*n)
	wide := make([]strided.Bits128, outer*n)
	for i := range x {
		narrow[i] = uint16(x[i].Lo)
	}
	for lo := 0; lo < outer*n; lo += 4 {
		IndexSelect(wide, x, index, size, 1, lo, min(lo+4, outer*n))
		IndexSelect(got, narrow, index, size, 1, lo, min(lo+4, outer*n))
	}
	for i := range got {
		if want := x[i/n*size+int(index[i%n])]; wide[i] != want || got[i] != uint16(want.Lo) {
			t.Fatalf("element %d is %v and %d, want %v", i, wide[i], got[i], want)
		}
	}
}
