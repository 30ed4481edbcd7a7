package gemm

import (
	"fmt"
	"testing"
)

// BenchmarkTile runs the largest tile of each kernel on panels in the first-level
// cache: what a product can reach at most.
func BenchmarkTile(b *testing.B) {
	for _, k := range kernels32 {
		b.Run("f32/"+k.name, func(b *testing.B) { benchTile(b, k) })
	}
	if k := vectorPairs(); k != nil { // of which each word is two elements
		b.Run("pairs/"+k.name, func(b *testing.B) { benchTile(b, k) })
	}
	for _, k := range kernels64 {
		b.Run("f64/"+k.name, func(b *testing.B) { benchTile(b, k) })
	}
}

func benchTile[A Float](b *testing.B, k *kernel[A]) {
	const depth, repeat = 256, 50
	x, y, c := grown[A](nil, depth*k.mr), grown[A](nil, depth*k.nr), grown[A](nil, k.mr*k.nr)
	for m := 1; m <= k.mr; m++ {
		b.Run(fmt.Sprint(m), func(b *testing.B) {
			best(b, repeat*2*depth*m*k.nr, func() {
				for range repeat {
					k.tiles[0][m](depth, &x[0], 1, m, &y[0], k.nr, &c[0], k.nr, k.nr, 1, flagAdd|flagPadded, &y[0], 0)
				}
			})
		})
	}
}
