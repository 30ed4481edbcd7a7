package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestShortRowsAreFinished checks rows that are finished several at a time, and those beside them that can't be.
func TestShortRowsAreFinished(t *testing.T) {
	types(t, testShortRows[float32], testShortRows[float64], testShortRows[BF16], testShortRows[F16])
}

func testShortRows[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 2, 3, 5, 16, 33, 300} {
		for i := range 48 {
			m, k, act := finishTogether/n+1+i, 1+i%7, []Activation{Identity, Relu, Sigmoid}[i%3]
			o := &Options[T]{Act: act, Alpha: 0.25}
			if i&1 != 0 {
				o.ColBias = made[T](rng, 1, n, 0).Data
			}
			if i&2 != 0 {
				o.Residual = made[T](rng, m, n, i%len(layouts))
			}
			if i&4 != 0 {
				o.Beta = 2
			}
			if i%11 == 0 {
				o.RowBias = made[T](rng, 1, m, 0).Data
			}
			a, b, c := made[T](rng, m, k, i%2), made[T](rng, k, n, i%3), made[T](rng, m, n, i/8%len(layouts))
			want := naive(c, a, b, o)
			Mul(c, a, b, o)
			t.Run(fmt.Sprint(m, n, k, i), func(t *testing.T) { agree(t, c, want) })
		}
	}
}
