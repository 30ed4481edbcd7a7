package strided

import (
	"slices"
	"testing"
)

// TestShortRuns reads views of short runs, from every start, of elements of every size.
func TestShortRuns(t *testing.T) {
	shortRuns[uint8](t)
	shortRuns[uint16](t)
	shortRuns[uint32](t)
	shortRuns[uint64](t)
}

func shortRuns[T uint8 | uint16 | uint32 | uint64](t *testing.T) {
	src := make([]T, 2*2*9*140)
	for i := range src {
		src[i] = T(i * 37)
	}
	for _, n := range []int{2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 64, 128, 129} {
		v := Dense([]int{3, 7, 140}).Slice(2, 5, n, 1)
		for _, w := range []View{
			v, v.Flip([MaxRank]bool{false, true}), v.Permute([]int{1, 0, 2}), v.Flip([MaxRank]bool{true, true}).Permute([]int{1, 0, 2}),
			Dense([]int{2, 2, 9, n}).Permute([]int{0, 2, 1, 3}),
		} {
			var want []T
			for i := range w.Len() {
				var at [MaxRank]int
				want = append(want, src[w.Seek(i, &at)])
			}
			for start := 0; start < len(want); start += 1 + n/3 {
				got := make([]T, len(want)-start)
				if Read(got, src, &w, start); !slices.Equal(got, want[start:]) {
					t.Fatalf("runs of %d from %d of %v: %v, want %v", n, start, w, got, want[start:])
				}
				checkWrite(t, want, &w, len(src), start)
			}
		}
	}
}

// TestRepeats reads views that repeat elements of every size, from every start, and looks that nothing is
// written behind them.
func TestRepeats(t *testing.T) {
	repeats[uint8](t)
	repeats[uint16](t)
	repeats[uint32](t)
	repeats[uint64](t)
}

func repeats[T uint8 | uint16 | uint32 | uint64](t *testing.T) {
	src := make([]T, 3*29)
	for i := range src {
		src[i] = ^T(i * 37)
	}
	for _, n := range []int{2, 3, 4, 5, 8, 9, 16} {
		for _, v := range []View{
			makeView(0, []int{3, 29, n}, []int{29, 1, 0}), makeView(1, []int{3, 14, n}, []int{29, 2, 0}), makeView(28, []int{3, 29, n}, []int{29, -1, 0}),
		} {
			for start := range 2 * n {
				got := make([]T, v.Len()-start+1)
				Read(got[:len(got)-1], src, &v, start)
				for i, x := range got {
					var at [MaxRank]int
					if want := T(0); i < len(got)-1 {
						if want = src[v.Seek(start+i, &at)]; x != want {
							t.Fatalf("element %d of %v is %d, want %d", start+i, v, x, want)
						}
					} else if x != want {
						t.Fatalf("Read of %v from %d has written behind the end", v, start)
					}
				}
			}
		}
	}
}

// checkWrite writes elements of a View from one on, all of them but the last, and looks that those between
// and behind are as before.
func checkWrite[T uint8 | uint16 | uint32 | uint64](t *testing.T, elements []T, v *View, size, start int) {
	t.Helper()
	got, want := make([]T, size), make([]T, size)
	end := max(start, len(elements)-1)
	for i := start; i < end; i++ {
		var at [MaxRank]int
		want[v.Seek(i, &at)] = elements[i]
	}
	if Write(got, elements, v, start, end); !slices.Equal(got, want) {
		t.Fatalf("Write of elements %d to %d of %v", start, end, v)
	}
}

// TestFewElements reads rows of few elements that do not adjoin: columns that are dense, rows in
// reverse, every third element.
func TestFewElements(t *testing.T) {
	fewOf[uint8](t)
	fewOf[uint32](t)
	fewOf[Bits128](t)
}

func fewOf[T Bits](t *testing.T) {
	const rows = 1100
	src := make([]T, 2*rows*3*17)
	bytes := bytesOf(src)
	for i := range bytes {
		bytes[i] = byte(i * 37 >> 3)
	}
	for _, n := range []int{2, 3, 5, 6, 7, 8, 16, 17} {
		columns, every := Dense([]int{2, n, rows}).Permute([]int{0, 2, 1}), Dense([]int{2, rows, 3 * n}).Slice(2, 1, n, 3)
		for _, v := range []View{columns, every, every.Flip([MaxRank]bool{2: true}), columns.Flip([MaxRank]bool{1: true})} {
			want := make([]T, v.Len())
			for i := range want {
				var at [MaxRank]int
				want[i] = src[v.Seek(i, &at)]
			}
			for _, start := range []int{0, 1, n, rows*n - 1, rows * n} {
				got := make([]T, len(want)-start-1)
				if Read(got, src, &v, start); !slices.Equal(got, want[start:len(want)-1]) {
					t.Fatalf("rows of %d elements of %T from %d of %v", n, src[0], start, v)
				}
			}
		}
	}
}

// TestCopyShort copies between Views of short lines, in any pieces.
func TestCopyShort(t *testing.T) {
	copiesShort[uint8](t)
	copiesShort[uint16](t)
	copiesShort[uint32](t)
	copiesShort[uint64](t)
	copiesShort[Bits128](t)
}

func copiesShort[T Bits](t *testing.T) {
	size := len(bytesOf(make([]T, 1)))
	for _, n := range []int{1, 2, 3, 5, 7, 8, 17, 40, 64} {
		wide, up := Dense([]int{2, 3, 11, n + 2}).Slice(3, 1, n, 1), Dense([]int{11, 3, 2, n})
		far := Dense([]int{2, 3, 11, 3 * n}).Slice(3, 0, n, 3)
		for _, pair := range [][2]View{
			{wide, wide}, {wide, up.Permute([]int{2, 1, 0, 3})}, {up.Permute([]int{2, 1, 0, 3}), wide}, {wide, far}, {far, wide.Flip([MaxRank]bool{0: true, 3: true})},
			{wide.Flip([MaxRank]bool{2: true}), far}, {Dense([]int{2, 3, 11, n}).Permute([]int{0, 1, 3, 2}), Dense([]int{2, 3, 3 * n, 11}).Slice(2, 0, n, 3)},
		} {
			to, from := MergeBoth(pair[0], pair[1])
			if !Short(&to, &from, size) {
				continue
			}
			src := make([]T, 2*3*11*3*(n+2))
			for i, b := 0, bytesOf(src); i < len(b); i++ {
				b[i] = byte(i*37>>3) | 1
			}
			want := make([]T, len(src))
			for i := range pair[0].Len() {
				var a, b [MaxRank]int
				want[pair[0].Seek(i, &a)] = src[pair[1].Seek(i, &b)]
			}
			for _, cut := range []int{1, 2, to.Dims[0]} {
				got := make([]T, len(src))
				for lo := 0; lo < to.Dims[0]; lo += cut {
					CopyShort(got, src, &to, &from, lo, min(lo+cut, to.Dims[0]))
				}
				if !slices.Equal(got, want) {
					t.Fatalf("copy of %d elements of %T a line from %v to %v in pieces of %d", n, src[0], from, to, cut)
				}
			}
		}
	}
}
