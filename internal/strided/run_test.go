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
	src := make([]T, 3*7*140)
	for i := range src {
		src[i] = T(i * 37)
	}
	for _, n := range []int{2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 64, 128, 129} {
		v := Dense([]int{3, 7, 140}).Slice(2, 5, n, 1)
		for _, w := range []View{v, v.Flip([MaxRank]bool{false, true}), v.Permute([]int{1, 0, 2})} {
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
