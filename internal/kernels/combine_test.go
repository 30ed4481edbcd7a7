package kernels

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCombineRow holds rows of all lengths against elements by themselves, in every way and type.
func TestCombineRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 5))
	integer := rng.Uint64
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, 1e300, -1e-40}
	float := func() float64 { return special[rng.IntN(len(special))] }
	checkCombine(t, func() uint8 { return uint8(integer()) })
	checkCombine(t, func() int8 { return int8(integer()) })
	checkCombine(t, func() int16 { return int16(integer()) })
	checkCombine(t, func() int32 { return int32(integer()) })
	checkCombine(t, func() int64 { return int64(integer()) })
	checkCombine(t, func() float32 { return float32(float()) })
	checkCombine(t, float)
}

func checkCombine[T Number](t *testing.T, element func() T) {
	t.Helper()
	for n := range 100 {
		row, from := make([]T, n), make([]T, n)
		for i := range row {
			row[i], from[i] = element(), element()
		}
		for _, how := range []Combine{CombineSum, CombineProd, CombineMean, CombineMax, CombineMin} {
			got := append([]T{}, row...)
			CombineRow(how, got, from)
			for i, v := range got {
				want := combine(how, row[i], from[i])
				if same := v == want || v != v && want != want; !same || math.Signbit(float64(v)) != math.Signbit(float64(want)) && v == v {
					t.Fatalf("way %d of %d elements of %T: %v and %v give %v, want %v", how, n, v, row[i], from[i], v, want)
				}
			}
		}
	}
}
