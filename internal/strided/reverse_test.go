package strided

import (
	"fmt"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// TestReversedRows reads rows from their ends, of memory that ends at a page that can't be touched, also more than one call moves.
func TestReversedRows(t *testing.T) {
	testReversed[uint8](t)
	testReversed[uint16](t)
	testReversed[uint32](t)
	testReversed[uint64](t)
}

func testReversed[T uint8 | uint16 | uint32 | uint64](t *testing.T) {
	for _, rows := range []int{1, 2, 5} {
		for _, n := range []int{1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 100, 1<<16 + 3, 1<<18 + 5} {
			src, dst := guarded.Slice[T](rows*(n+2)-2), guarded.Slice[T](rows*n)
			for i := range src {
				src[i] = T(i * 7)
			}
			v := makeView(n-1, []int{rows, n}, []int{n + 2, -1})
			for _, start := range []int{0, n / 2, rows * n / 2} {
				clear(dst)
				Read(dst[start:], src, &v, start)
				t.Run(fmt.Sprintf("%T %d×%d from %d", src[0], rows, n, start), func(t *testing.T) {
					for i, got := range dst {
						want := T((i/n*(n+2) + n - 1 - i%n) * 7)
						if i < start {
							want = 0
						}
						if got != want {
							t.Fatalf("element %d is %d, want %d", i, got, want)
						}
					}
				})
			}
		}
	}
}
