package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// TestSumBags holds the sums of rows against those of one element after the other, of widths around
// whole vectors, of few rows and of more than a call takes, with special values, in guarded memory.
func TestSumBags(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		testSumBags[float32](t)
		testSumBags[BF16](t)
		testSumBags[F16](t)
	})
}

func testSumBags[T float32 | BF16 | F16](t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, width := range []int{1, 7, 8, 16, 17, 64, 65, 100, 128, 200} {
		const count = 9
		rows := guarded.Slice[T](count * width)
		for i := range rows {
			rows[i] = Narrow[T](rng.Float32() - 0.5)
		}
		rows[0], rows[len(rows)-1] = Narrow[T](float32(math.Inf(1))), Narrow[T](float32(math.NaN()))
		for _, sizes := range [][]int{{}, {0}, {1}, {5}, {30, 0, 1, 7}, {3, 400, 2}, {5000, 1}} {
			bounds := []int64{2} // what is before the first bag counts for none
			for _, n := range sizes {
				bounds = append(bounds, bounds[len(bounds)-1]+int64(n))
			}
			index := make([]int64, bounds[len(sizes)]+1)
			for i := range index {
				index[i] = rng.Int64N(count)
			}
			want, got := make([]float32, len(sizes)*width), guarded.Slice[float32](len(sizes)*width)
			for i := range got {
				got[i] = 5
			}
			for b := range sizes {
				for _, at := range index[bounds[b]:bounds[b+1]] {
					for c := range width {
						want[b*width+c] += Wide[float32](rows[int(at)*width+c])
					}
				}
			}
			SumBags(got, rows, width, index, bounds)
			for i, w := range want {
				if math.Float32bits(got[i]) != math.Float32bits(w) && w == w {
					t.Fatalf("bags of %v rows of %d %T: element %d is %v, want %v", sizes, width, rows[0], i, got[i], w)
				}
			}
		}
	}
}
