package strided

import (
	"slices"
	"testing"
	"unsafe"
)

// TestCrossed reads patches of images, in any direction, whole and from the middle on, of elements of every size.
func TestCrossed(t *testing.T) {
	crossed[uint8](t)
	crossed[uint16](t)
	crossed[uint32](t)
	crossed[uint64](t)
	crossed[Bits128](t)
}

func crossed[T Bits](t *testing.T) {
	size, found := int(unsafe.Sizeof(*new(T))), 0
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 11, 16, 20} {
		for _, flipped := range [][MaxRank]bool{{}, {1: true}, {2: true}, {0: true, 3: true, 4: true}} {
			image := Dense([]int{2, 4, 3, 9, n})
			v := image.Permute([]int{0, 1, 3, 2, 4}).Flip(flipped)
			src := make([]T, image.Len())
			for i := range src {
				*(*byte)(unsafe.Pointer(&src[i])) = byte(i * 37)
			}
			var want []T
			for i := range v.Len() {
				var at [MaxRank]int
				want = append(want, src[v.Seek(i, &at)])
			}
			block := v.Crossed(size)
			if block > 0 {
				found++
			}
			for _, start := range []int{0, 1, n, 9 * 3 * n, 4 * 9 * 3 * n, len(want) - n} {
				for _, count := range []int{1, n, 9 * 3 * n, 2 * 9 * 3 * n, len(want)} {
					got := make([]T, min(count, len(want)-start))
					if Read(got, src, &v, start); !slices.Equal(got, want[start:][:len(got)]) {
						t.Fatalf("%d elements of %d bytes from %d of %v", len(got), size, start, v)
					}
				}
			}
		}
	}
	if found == 0 {
		t.Errorf("no view of elements of %d bytes is crossed", size)
	}
}
