package vec

import "math"

// LSTM applies the gates of some hidden units and updates their states h and c. Each
// row has as many units, whose states follow each other in h, where rows are step
// apart, and in c, where they are adjacent. For each row gates holds i, f, g and o:
//
//	c′ = σ(f)·c + σ(i)·tanh(g), h′ = σ(o)·tanh(c′)
func LSTM[A Float](gates, h, c []A, units, step int) {
	if g, ok := any(gates).([]float32); ok && lstmNative(g, any(h).([]float32), any(c).([]float32), units, step) {
		return
	}
	for len(c) > 0 {
		i, f, g, o := gates[:units], gates[units:2*units], gates[2*units:3*units], gates[3*units:4*units]
		for u := range units {
			v := sigmoid(float64(f[u]))*float64(c[u]) + sigmoid(float64(i[u]))*math.Tanh(float64(g[u]))
			c[u] = A(v)
			h[u] = A(sigmoid(float64(o[u])) * math.Tanh(v))
		}
		if c = c[units:]; len(c) > 0 {
			gates, h = gates[4*units:], h[step:]
		}
	}
}

// GRU does the same for a gated recurrent unit of some rows, whose states go from one
// place to another and whose gates are r, z, and the parts of n from the input and
// from the state:
//
//	n = tanh(nx + σ(r)·nh), h′ = (1−σ(z))·n + σ(z)·h
//
// It leaves the gates changed.
func GRU[A Float](gates, from, to []A, units, rows, fromStep, step int) {
	if g, ok := any(gates).([]float32); ok && gruNative(g, any(from).([]float32), any(to).([]float32), units, rows, fromStep, step) {
		return
	}
	for row := range rows {
		g := gates[row*4*units:][:4*units]
		rz, n, nh := g[:2*units], g[2*units:3*units], g[3*units:]
		Apply(Activation{Kind: Sigmoid}, rz)
		for u, r := range rz[:units] {
			n[u] += r * nh[u]
		}
		Apply(Activation{Kind: Tanh}, n)
		was, h := from[row*fromStep:][:units], to[row*step:][:units]
		for u, z := range rz[units:] {
			h[u] = (1-z)*n[u] + z*was[u]
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
