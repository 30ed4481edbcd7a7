package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/strided"
)

// Short lines give what their meaning says, in any pieces.
func TestShortLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, n := range []int{1, 2, 5, 16, 17} {
		for _, size := range []int{1, 5, 33} {
			checkShortLines(t, rng, n, size)
		}
	}
}

func checkShortLines(t *testing.T, rng *rand.Rand, n, size int) {
	t.Helper()
	const outer, most = 2, 7
	rows := outer * most
	l := NewLines([]int{outer, most, size}, 2, []int{outer, most, n})
	view := strided.Dense([]int{outer, most, n + 1}).Slice(2, 1, n, 1)
	index, x, src := make([]int64, rows*n), make([]int32, rows*size), make([]int32, rows*(n+1))
	for i := range index {
		index[i] = rng.Int64N(int64(size))
	}
	for _, s := range [][]int32{x, src} {
		for i := range s {
			s[i] = rng.Int32N(1000)
		}
	}
	gathered, put, added := make([]int32, rows*n), slices.Clone(x), slices.Clone(x)
	selected := make([]int32, rows*n)
	for r := range rows {
		for j, ix := range index[r*n : (r+1)*n] {
			at := r*size + int(ix)
			gathered[r*n+j] = x[at]
			put[at] = src[r*(n+1)+1+j]
			added[at] += src[r*(n+1)+1+j]
			selected[r*n+j] = x[r*size+int(index[j])]
		}
	}
	for _, cut := range []int{1, 3, n + 1, rows * n} {
		got := make([]uint32, rows*n)
		for lo := 0; lo < len(got); lo += cut {
			Gather(got, bitsOf(x), index, &l, lo, min(lo+cut, len(got)))
		}
		if !slices.Equal(got, bitsOf(gathered)) {
			t.Fatalf("gather of %d of %d in pieces of %d: %v, want %v", n, size, cut, got, gathered)
		}
		clear(got)
		for lo := 0; lo < len(got); lo += cut {
			IndexSelect(got, bitsOf(x), index[:n], size, 1, lo, min(lo+cut, len(got)))
		}
		if !slices.Equal(got, bitsOf(selected)) {
			t.Fatalf("index_select of %d of %d in pieces of %d: %v, want %v", n, size, cut, got, selected)
		}
	}
	for _, cut := range []int{1, 3, l.Units()} {
		a, b := slices.Clone(x), slices.Clone(x)
		for lo := 0; lo < l.Units(); lo += cut {
			hi := min(lo+cut, l.Units())
			Scatter(bitsOf(a), index, bitsOf(src), &view, &l, lo, hi)
			ScatterReduce(b, index, src, &view, &l, CombineSum, true, nil, lo, hi)
		}
		if !slices.Equal(a, put) || !slices.Equal(b, added) {
			t.Fatalf("scatter of %d into %d in pieces of %d: %v and sums %v, want %v and %v", n, size, cut, a, b, put, added)
		}
	}
}

func bitsOf(s []int32) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(&s[0])), len(s)) }

// An index that is out of range is found in short lines, too.
func TestShortLinesOutOfRange(t *testing.T) {
	l := NewLines([]int{2, 3}, 1, []int{2, 2})
	v := strided.Dense([]int{2, 2})
	for _, bad := range []int64{3, -1, 1 << 40} {
		index := []int64{0, 1, 2, bad}
		for name, f := range map[string]func(){
			"gather":       func() { Gather(make([]uint8, 4), make([]uint8, 6), index, &l, 0, 4) },
			"scatter":      func() { Scatter(make([]uint8, 6), index, make([]uint8, 4), &v, &l, 0, 2) },
			"sums":         func() { ScatterReduce(make([]uint8, 6), index, make([]uint8, 4), &v, &l, CombineSum, true, nil, 0, 2) },
			"index_select": func() { IndexSelect(make([]uint8, 8), make([]uint8, 6), index, 3, 1, 0, 8) },
		} {
			refuses(t, name, bad, f)
		}
	}
}
