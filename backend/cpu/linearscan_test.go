package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// logSums are the logarithms of the running sums of the exponentials of a row, one after the other.
func logSums(row []float64) []float64 {
	sums, sum := make([]float64, len(row)), math.Inf(-1)
	for i, x := range row {
		switch {
		case x != x || sum != sum:
			sum = math.NaN()
		case !math.IsInf(max(x, sum), 0):
			sum = max(x, sum) + math.Log1p(math.Exp(-math.Abs(x-sum)))
		default:
			sum = max(x, sum)
		}
		sums[i] = sum
	}
	return sums
}

// TestLogCumsumExpOfRows has rows whose numbers are far apart, rise, fall, begin with infinities or have a NaN amidst.
func TestLogCumsumExpOfRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	inf := math.Inf(1)
	for name, element := range map[string]func(i int) float64{
		"near":             func(int) float64 { return 4*rng.Float64() - 2 },
		"far apart":        func(i int) float64 { return float64(rng.IntN(3)-1) * 1e4 },
		"rising":           func(i int) float64 { return float64(i) },
		"falling":          func(i int) float64 { return -float64(i) / 16 },
		"equal":            func(int) float64 { return -3 },
		"begins with -Inf": func(i int) float64 { return map[bool]float64{true: -inf, false: rng.Float64()}[i < 9 || i%7 == 0] },
		"-Inf":             func(int) float64 { return -inf },
		"has Inf":          func(i int) float64 { return map[bool]float64{true: inf, false: rng.Float64()}[i%700 == 699] },
		"has NaN":          func(i int) float64 { return map[bool]float64{true: math.NaN(), false: rng.Float64()}[i == 600] },
	} {
		for _, n := range []int{0, 1, 2, 3, 37, 1024, 5001} {
			row := make([]float64, n)
			for i := range row {
				row[i] = element(i)
			}
			for d, tolerance := range map[ir.DType]float64{ir.F32: 1e-6, ir.F64: 1e-14, ir.BF16: 4e-3, ir.F16: 5e-4} {
				for backendName, b := range map[string]*Backend{"native": New(), "portable": NewPortable()} {
					t.Run(fmt.Sprint(name, n, d, backendName), func(t *testing.T) { sameLogSums(t, b, d, tolerance, row) })
				}
			}
		}
	}
}

// sameLogSums holds three rows, of which two go along together, and the same as columns against their running sums.
func sameLogSums(t *testing.T, b *Backend, d ir.DType, tolerance float64, row []float64) {
	t.Helper()
	text := fmt.Sprintf(`program @p {
		%%x = parameter "x" : %v[%d]
		%%rows = expand(%%x, [3,%d])
		return logcumsumexp(%%rows, 1), permute(logcumsumexp(permute(%%rows, [1,0]), 0), [1,0])
	}`, d, len(row), len(row))
	data := encode(d, row)
	want := logSums(decode(d, data))
	for r, out := range optimizedOutputs(t, b, text, data) {
		for i, got := range decode(d, out) {
			w := want[i%len(row)]
			if got != w && !(math.Abs(got-w) <= tolerance*max(1, math.Abs(w))) && (got == got || w == w) {
				t.Fatalf("result %d, element %d is %v, want %v", r, i, got, w)
			}
		}
	}
}
