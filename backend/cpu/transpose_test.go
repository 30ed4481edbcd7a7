package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/strided"
)

// TestReadSquares holds copies of transposed views against those of one element at a time, of every
// size of elements, whole and in ranges of rows.
func TestReadSquares(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	for _, dims := range [][]int{{8, 8}, {70, 9}, {9, 70}, {65, 130}, {3, 67, 33}, {2, 64, 64}, {5, 7}} {
		v := strided.Dense(dims)
		last := v.Rank - 1
		gap := rng.IntN(3)
		v.Strides[last-1], v.Strides[last] = 1, dims[last-1]+gap
		v.Offset = rng.IntN(4)
		for d := last - 2; d >= 0; d-- {
			v.Strides[d] = v.Strides[d+1] * dims[d+1]
			if d == last-2 {
				v.Strides[d] = v.Strides[last] * dims[last]
			}
		}
		n := v.Len()
		for _, size := range []int{1, 2, 4, 8, 16} {
			f := *map[int]*readFunc{1: &readers.b1, 2: &readers.b2, 4: &readers.b4, 8: &readers.b8, 16: &readers.b16}[size]
			src := make([]byte, size*(v.Offset+v.Len()*(dims[last-1]+gap)/dims[last-1]+gap))
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
			for _, rows := range []int{n / dims[last], 1, 13, 64} {
				part := min(rows*dims[last], n)
				start := n - part
				got := make([]byte, part*size)
				f(got, src, &v, start)
				for i := range part {
					var at [strided.MaxRank]int
					from := v.Seek(start+i, &at) * size
					if string(got[i*size:(i+1)*size]) != string(src[from:from+size]) {
						t.Fatalf("%v of %d bytes, %d rows: element %d is wrong", dims, size, rows, i)
					}
				}
			}
		}
	}
}
