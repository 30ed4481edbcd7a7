package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSumRows holds the sums of rows against those of one element after the other, of widths around
// whole vectors, with special values, and looks that nothing beyond is written.
func TestSumRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		testSumRows[float32](t)
		testSumRows[BF16](t)
		testSumRows[F16](t)
	})
}

func testSumRows[T float32 | BF16 | F16](t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, width := range []int{1, 7, 8, 16, 17, 64, 65, 100, 128, 200} {
		const count = 9
		rows := make([]T, count*width)
		for i := range rows {
			rows[i] = Narrow[T](rng.Float32() - 0.5)
		}
		rows[0], rows[len(rows)-1] = Narrow[T](float32(math.Inf(1))), Narrow[T](float32(math.NaN()))
		for _, n := range []int{0, 1, 5, 30} {
			index := make([]int64, n)
			for i := range index {
				index[i] = rng.Int64N(count)
			}
			want, got := make([]float32, width), make([]float32, width+32)
			for _, at := range index {
				for c := range want {
					want[c] += Wide[float32](rows[int(at)*width+c])
				}
			}
			got[width] = 5
			SumRows(got[:width], rows, index)
			for c, w := range want {
				if math.Float32bits(got[c]) != math.Float32bits(w) && w == w {
					t.Fatalf("%d rows of %d %T: element %d is %v, want %v", n, width, rows[0], c, got[c], w)
				}
			}
			if got[width] != 5 {
				t.Fatalf("%d rows of %d %T: wrote beyond", n, width, rows[0])
			}
		}
	}
}
