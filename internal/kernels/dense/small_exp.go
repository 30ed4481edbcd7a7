package dense

import "math"

// SmallExponent is the number of rows and columns up to which SmallExp takes less time than Exp.
const SmallExponent = Small / 2

// SmallExp makes dst what Exp gives for n×n elements; rows adjoin.
func (r *Room) SmallExp(dst, a []float64, n int, singles bool) {
	var norm float64
	for j := range n {
		var sum float64
		for i := range n {
			sum += math.Abs(a[i*n+j])
		}
		norm = max(norm, sum)
	}
	degree, halvings, ok := exponentsFor(singles).approximation(norm)
	if !ok {
		for i := range dst {
			dst[i] = math.NaN()
		}
		return
	}
	size := n * n
	work := r.zeros(7 * size)
	part := func(i int) []float64 { return work[i*size:][:size] }
	x, square, power, spare, odd, even, below := part(0), part(1), part(2), part(3), part(4), part(5), part(6)
	f := math.Ldexp(1, -halvings)
	for i, v := range a {
		x[i] = f * v
	}
	multiply(square, x, x, n)
	for i := range n {
		power[i*n+i] = 1
	}
	for k, c := 0, 1.0; ; k++ {
		to := odd
		if k%2 == 0 {
			switch to = even; {
			case k == 2:
				copy(power, square)
			case k > 2:
				multiply(spare, power, square, n)
				power, spare = spare, power
			}
		}
		for i, v := range power {
			to[i] += c * v
		}
		if k == degree {
			break
		}
		c = coefficient(c, degree, k)
	}
	multiply(spare, x, odd, n)
	for i, v := range even {
		below[i], dst[i] = v-spare[i], v+spare[i]
	}
	var pivots [Small]int
	SmallLU(below, n, n, pivots[:n])
	for i, p := range pivots[:n] {
		if i != p {
			SwapRows(dst, n, i, p)
		}
	}
	SmallSolve(below, n, n, 1, dst, n, false, true)
	SmallSolve(below, n, n, 1, dst, n, true, false)
	for range halvings {
		multiply(spare, dst, dst, n)
		copy(dst, spare)
	}
}

// multiply makes dst the product of two matrices of n rows and columns.
func multiply(dst, a, b []float64, n int) {
	for i := range n {
		to := dst[i*n:][:n]
		clear(to)
		for k, f := range a[i*n:][:n] {
			more(to, b[k*n:][:n], f)
		}
	}
}

// more adds f times from to to.
func more(to, from []float64, f float64) {
	to = to[:len(from)]
	for k, v := range from {
		to[k] = math.FMA(f, v, to[k])
	}
}
