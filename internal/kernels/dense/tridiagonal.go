package dense

import "math"

// mostFused is the order of the largest matrices that are changed in each step of their reduction: they
// stay in the second cache. Larger ones are changed once in block steps.
const mostFused = 224

// tridiagonal reduces a symmetric matrix, which it changes, to three diagonals by reflections: d is the
// main one and e the one beside it. The reflections are returned if they are wanted.
func tridiagonal(a *Matrix, wanted bool) (d, e []float64, all []*reflections) {
	n := a.Rows
	if n > mostFused {
		return blockTridiagonal(a)
	}
	room := a.room.zeros(3*n + 3*a.Stride)
	d, e, tau := room[:n:n], room[n:2*n-1:2*n], room[2*n:3*n]
	fusedTridiagonal(a, d, e, tau, room[3*n:])
	if !wanted {
		return d, e, nil
	}
	for j0 := 0; j0 < n-1; j0 += block {
		r := newReflections(a.room, j0+1, n, min(block, n-1-j0))
		for j := j0; j < min(j0+block, n-1); j++ {
			r.add(a.row(j)[j+1:], tau[j])
		}
		r.finish()
		all = append(all, r)
	}
	return d, e, all
}

// fusedTridiagonal leaves the vectors of the reflections in the rows of a, behind the diagonal. One pass
// over what is left of the matrix takes the last step's change from it and multiplies it by the vector of
// this step. room is three rows of zeros.
func fusedTridiagonal(a *Matrix, d, e, tau, room []float64) {
	n := a.Rows
	w, y, spare := room[:a.Stride], room[a.Stride:2*a.Stride], room[2*a.Stride:]
	v, none := w, []float64{0} // no change before the first step
	for j := range n {
		x := a.Data[j*a.Stride:][:a.Stride]
		c := j &^ (lanes - 1)
		update(x[c:], a.Stride, v[j:], w[j:], none, w[c:], v[c:], spare[c:], 1, n-c)
		d[j] = x[j]
		if j == n-1 {
			break
		}
		c = (j + 1) &^ (lanes - 1)
		clear(x[c : j+1])
		e[j], tau[j] = reflectionAt(x[c:], j+1-c, n-c)
		clear(y[c:])
		update(a.at(j+1, c), a.Stride, v[j+1:], w[j+1:], x[j+1:], w[c:], v[c:], y[c:], n-j-1, n-c)
		// w is tau·y less its part along x.
		dots(spare[:1], y[c:], a.Stride, x[c:], n-c)
		factors := spare[:2]
		factors[0], factors[1] = -tau[j], tau[j]*tau[j]*spare[0]/2
		clear(w[c:])
		update(w[c:], a.Stride, factors, factors[1:], none, y[c:], x[c:], spare[c:], 1, n-c)
		v = x
	}
}

// reflectionAt makes x, which is zero before an element and has n elements, the vector of a reflection
// I - tau·x·xᵀ that maps x to a multiple, beta, of the unit vector of that element. Where x is one already
// it becomes zeros and tau is 0.
func reflectionAt(x []float64, at, n int) (beta, tau float64) {
	alpha := x[at]
	x[at] = 0
	var sum [1]float64
	dots(sum[:], x, len(x), x, n)
	if !(sum[0] > 1e-200 && sum[0] < 1e200) {
		return farReflection(x[:n], alpha, at)
	}
	beta = -math.Copysign(math.Sqrt(math.FMA(alpha, alpha, sum[0])), alpha)
	x[at] = alpha - beta
	return beta, 1 / (beta * (beta - alpha))
}

// farReflection is reflectionAt for elements whose squares are not numbers of full precision, which it
// scales.
func farReflection(x []float64, alpha float64, at int) (beta, tau float64) {
	var most float64
	for _, v := range x {
		if v = math.Abs(v); !(v <= most) { // NaN, too
			most = v
		}
	}
	if most == 0 {
		return alpha, 0
	}
	most = max(most, math.Abs(alpha))
	if math.IsNaN(most) || math.IsInf(most, 0) {
		return math.NaN(), math.NaN()
	}
	_, e := math.Frexp(most)
	alpha = math.Ldexp(alpha, -e)
	sum := alpha * alpha
	for i, v := range x {
		x[i] = math.Ldexp(v, -e)
		sum += x[i] * x[i]
	}
	beta = -math.Copysign(math.Sqrt(sum), alpha)
	x[at] = alpha - beta
	return math.Ldexp(beta, e), 1 / (beta * (beta - alpha))
}
