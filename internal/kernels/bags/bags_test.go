package bags

import (
	"math"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// The bags of the tests: the second is empty, and index 2 counts for nothing.
var (
	indices = []int64{4, 2, 1, 3, 3, 0, 1}
	offsets = []int64{0, 3, 3, 5, 6}
)

func TestFind(t *testing.T) {
	of, bounds, sizes := make([]int64, 7), make([]int64, 5), make([]int64, 4)
	Find(of, bounds, sizes, indices, offsets, 2, true)
	if !slices.Equal(of, []int64{0, 0, 0, 2, 2, 3, 4 - 1}) || !slices.Equal(bounds, []int64{0, 3, 3, 5, 6}) || !slices.Equal(sizes, []int64{2, 0, 2, 1}) {
		t.Errorf("with an end: %v, %v, %v", of, bounds, sizes)
	}
	bounds, sizes = make([]int64, 6), make([]int64, 5)
	Find(of, bounds, sizes, indices, offsets, -1, true)
	if !slices.Equal(of, []int64{0, 0, 0, 2, 2, 3, 4}) || !slices.Equal(bounds, []int64{0, 3, 3, 5, 6, 7}) || !slices.Equal(sizes, []int64{3, 0, 2, 1, 1}) {
		t.Errorf("without: %v, %v, %v", of, bounds, sizes)
	}
	clear(of)
	clear(bounds)
	Find(of, bounds, sizes, indices, offsets, -1, false)
	if slices.Max(of) > 0 || !slices.Equal(bounds, []int64{0, 3, 3, 5, 6, 7}) || !slices.Equal(sizes, []int64{3, 0, 2, 1, 1}) {
		t.Errorf("without the bag of each index: %v, %v, %v", of, bounds, sizes)
	}
	// Bags in an order of their own, and one behind the end of the last.
	for _, padding := range []int64{-1, 9} { // none, in two ways
		of, bounds, sizes = make([]int64, 7), make([]int64, 4), make([]int64, 3)
		Find(of, bounds, sizes, indices, []int64{0, 6, 7, 4}, padding, true)
		if !slices.Equal(of, []int64{0, 0, 0, 0, 0, 0, 1}) || !slices.Equal(bounds, []int64{0, 4, 4, 4}) || !slices.Equal(sizes, []int64{4, 0, 0}) {
			t.Errorf("with an early end: %v, %v, %v", of, bounds, sizes)
		}
		of, bounds, sizes = make([]int64, 7), make([]int64, 4), make([]int64, 3)
		Find(of, bounds, sizes, indices, []int64{0, 5, 2}, padding, true)
		if !slices.Equal(of, []int64{0, 0, 1, 1, 1, 2, 2}) || !slices.Equal(bounds, []int64{0, 2, 5, 7}) || !slices.Equal(sizes, []int64{2, 3, 2}) {
			t.Errorf("out of order: %v, %v, %v", of, bounds, sizes)
		}
	}
	for _, bad := range [][]int64{{1}, {0, 8}, {0, -1}} {
		func() {
			defer func() {
				if _, ok := recover().(kernels.IndexError); !ok {
					t.Errorf("offsets %v are no error", bad)
				}
			}()
			Find(of, make([]int64, len(bad)+1), make([]int64, len(bad)), indices, bad, -1, true)
		}()
	}
}

func TestReduce(t *testing.T) {
	nan := float32(math.NaN())
	table := &Table[float32]{Rows: []float32{1, 2, nan, 4, 50, 60, 7, 8, 9, -1}, Width: 2, Padding: 2}
	bounds, sizes := []int64{0, 3, 3, 5, 6}, []int64{2, 0, 2, 1}
	check := func(what string, got []float32, want ...float32) {
		t.Helper()
		for i, v := range want {
			if got[i] != v && (v == v || got[i] == got[i]) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
	}
	dst, from := make([]float32, 8), make([]int64, 8)
	Sums(dst, table, indices, bounds, nil, nil, 0, 4)
	check("sums", dst, nan, 3, 0, 0, 14, 16, 1, 2)
	Sums(dst, table, indices, bounds, nil, sizes, 0, 4)
	check("means", dst, nan, 1.5, 0, 0, 7, 8, 1, 2)
	Sums(dst, table, indices, bounds, []float32{2, 9, 1, 1, -1, 3, 9}, nil, 0, 4)
	check("scaled", dst, nan, 2, 0, 0, 0, 0, 3, 6)
	Maxima(dst, from, table, indices, bounds, 0, 4)
	check("maxima", dst, 0, 4, 0, 0, 7, 8, 1, 2)
	if !slices.Equal(from, []int64{0, 1, 0, 0, 3, 3, 0, 0}) {
		t.Errorf("maxima are of %v", from)
	}
}

// TestRowsWithoutElements reduces rows of which a table has none to count: any index is of one.
func TestRowsWithoutElements(t *testing.T) {
	bounds := []int64{0, 2, 3}
	defer func() {
		if e := recover(); e != nil {
			t.Errorf("it panics with %v", e)
		}
	}()
	Sums([]float32(nil), &Table[float32]{Padding: -1}, []int64{5, 9, 1}, bounds, nil, nil, 0, 2)
	Sums([]float64(nil), &Table[float64]{Padding: -1}, []int64{5, 9, 1}, bounds, nil, []int64{2, 1}, 0, 2)
	Sums([]float32(nil), &Table[vec.BF16]{Padding: -1}, []int64{5, 9, 1}, bounds, nil, nil, 0, 2)
	Maxima([]float32(nil), nil, &Table[float32]{Padding: -1}, []int64{5, 9, 1}, bounds, 0, 2)
}
