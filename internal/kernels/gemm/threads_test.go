package gemm

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/longtest"
)

// TestThreadsSameBits holds products equal to the last bit however many goroutines
// share them, with every form of plan, and alone or in a batch.
func TestThreadsSameBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(5))
	types(t, sameBits[float32], sameBits[float64], sameBits[BF16], sameBits[F16])
}

// fractions returns a matrix of fractions in a layout.
func fractions[T Element](rng *rand.Rand, rows, cols, layout int) Matrix[T] {
	m := made[T](rng, rows, cols, layout)
	for i := range m.Data {
		m.Data[i] = toElement[T](rng.Float64() - 0.4)
	}
	return m
}

func sameBits[T Element](t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	shapes := [][3]int{{900, 29, 65}, {1, 700, 333}, {17, 400, 130}, {64, 300, 70}, {3, 2100, 230}, {45, 520, 390}, {64, 1100, 70}, {130, 260, 190}, {330, 520, 140}, {333, 700, 1}, {190, 800, 5}, {260, 90, 47}}
	orders := 4
	if !longtest.Enabled() {
		shapes, orders = shapes[:4], 2
	}
	for i, d := range shapes {
		for layout := range orders {
			a, b := fractions[T](rng, d[0], d[1], layout%2), fractions[T](rng, d[1], d[2], layout/2)
			bias, column, residual := fractions[T](rng, 1, d[2], 0), fractions[T](rng, 1, d[0], 0), fractions[T](rng, d[0], d[2], i%3)
			o := []Options[T]{{}, {ColBias: bias.Data, Act: Gelu}, {Alpha: 0.3, Residual: residual, Act: Tanh}, {RowBias: column.Data, Act: Relu}}[(i+layout)%4]
			var want []float64
			for _, o.Threads = range []int{1, 2, 3, 5} {
				c := made[T](rng, d[0], d[2], i%4)
				Mul(c, a, b, &o)
				got := c.numbers()
				if want == nil {
					want = got
				} else if !slices.Equal(got, want) {
					t.Fatalf("%v, layout %d, act %v: %d threads give other bits", d, layout, o.Act, o.Threads)
				}
			}
		}
	}
	a, b := fractions[T](rng, 40, 130, 0), fractions[T](rng, 130, 60, 1)
	var want []float64
	for _, threads := range []int{1, 2, 3, 5} {
		all := make([]Matrix[T], 8)
		for i := range all {
			all[i] = made[T](rng, 40, 60, 0)
		}
		MulBatch(len(all), func(i int) (x, y, z Matrix[T]) { return all[i], a, b }, &Options[T]{Threads: threads, Act: Silu})
		for i := range all {
			if got := all[i].numbers(); want == nil {
				want = got
			} else if !slices.Equal(got, want) {
				t.Fatalf("product %d of a batch on %d threads has other bits", i, threads)
			}
		}
	}
}
