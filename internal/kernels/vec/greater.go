package vec

// Greater replaces elements of best by those of x that are greater, that are
// NaN, or that are the first (at is negative), and sets at to index there.
func Greater(best []float32, at []int32, x []float32, index int32) {
	at, x = at[:len(best)], x[:len(best)]
	n := greaterNative(best, at, x, index)
	for i := n; i < len(best); i++ {
		if v := x[i]; v > best[i] || v != v || at[i] < 0 {
			best[i], at[i] = v, index
		}
	}
}
