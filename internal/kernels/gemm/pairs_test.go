package gemm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSumsOfBF16 holds products of bfloat16 against sums in float64, within the error of
// sums in float32 and one rounding, for every form that a plan may take.
func TestSumsOfBF16(t *testing.T) {
	each(t, &kernels32, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(31, 32))
		for i, d := range [][3]int{{3, 513, 9}, {9, 1025, 40}, {70, 333, 130}, {350, 97, 70}, {1, 200, 300}, {64, 64, 7}, {40, 1, 50}} {
			for layout := range 4 {
				a, b := fractions[BF16](rng, d[0], d[1], layout%2), fractions[BF16](rng, d[1], d[2], layout/2)
				c, unrounded := made[BF16](rng, d[0], d[2], i%3), made[float32](rng, d[0], d[2], i%3)
				Mul(c, a, b, nil)
				Mul(unrounded, a, b, nil)
				x, y := a.numbers(), b.T().numbers()
				for r := range d[0] {
					for j := range d[2] {
						var sum, size float64
						for p, v := range x[r*d[1] : (r+1)*d[1]] {
							sum += v * y[j*d[1]+p]
							size += math.Abs(v * y[j*d[1]+p])
						}
						summed := size * float64(d[1]) * 0x1p-24
						for k, got := range []float64{c.get(r, j), unrounded.get(r, j)} {
							most := summed + math.Abs(sum)*[]float64{0x1p-8, 0}[k]
							if !(math.Abs(got-sum) <= most) {
								t.Fatalf("%v, layout %d: element (%d, %d) is %v, want %v within %v", d, layout, r, j, got, sum, most)
							}
						}
					}
				}
			}
		}
	})
}

// TestBF16Bounds multiplies the largest, the smallest normal and subnormal numbers, which
// processors that multiply pairs take as zero.
func TestBF16Bounds(t *testing.T) {
	most, least, tiny := BF16(0x7f7f), BF16(0x0080), BF16(0x0001)
	one, minus := toElement[BF16](1), toElement[BF16](-1)
	for _, n := range []int{1, 2, 50, 51} {
		for _, k := range []int{1, 2, 49, 64} {
			for _, c := range []struct {
				x, y BF16
				want []float64
			}{
				{most, one, []float64{float64(k) * fromElement(most)}},
				{most, most, []float64{math.Inf(1)}},
				{least, minus, []float64{-float64(k) * fromElement(least)}},
				{tiny, one, []float64{0, float64(k) * fromElement(tiny)}},
				{tiny, most, []float64{0, float64(k) * fromElement(tiny) * fromElement(most)}},
			} {
				each(t, &kernels32, func(t *testing.T) { testBound(t, n, k, c.x, c.y, c.want) })
			}
		}
	}
}

func testBound(t *testing.T, n, k int, x, y BF16, want []float64) {
	for layout := range 4 {
		a, b := Dense(make([]BF16, n*k), n, k), Dense(make([]BF16, k*n), k, n)
		for i := range a.Data {
			a.Data[i], b.Data[i] = x, y
		}
		if layout%2 != 0 {
			a.RowStride, a.ColStride = 1, n
		}
		if layout/2 != 0 {
			b.RowStride, b.ColStride = 1, k
		}
		c := Dense(make([]BF16, n*n), n, n)
		Mul(c, a, b, nil)
		for i, v := range c.numbers() {
			ok := false
			for _, w := range want {
				if math.Abs(w) > 3.39e38 {
					w = math.Inf(1)
				}
				ok = ok || v == w || math.Abs(v-w) <= math.Abs(w)/256
			}
			if !ok {
				t.Fatalf("%d×%d×%d of %v and %v, layout %d: element %d is %v, want one of %v", n, k, n, fromElement(x), fromElement(y), layout, i, v, want)
			}
		}
	}
}
