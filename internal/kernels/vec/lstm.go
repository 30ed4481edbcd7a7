package vec

import "math"

// LSTM applies the gates of one row and updates its state h and c. For each
// block of half hidden units, gates holds i, f, g and o:
//
//	c′ = σ(f)·c + σ(i)·tanh(g), h′ = σ(o)·tanh(c′)
func LSTM[A Float](gates, h, c []A, half int) {
	if g, ok := any(gates).([]float32); ok && lstmNative(g, any(h).([]float32), any(c).([]float32), half) {
		return
	}
	for len(h) > 0 {
		i, f, g, o := gates[:half], gates[half:2*half], gates[2*half:3*half], gates[3*half:4*half]
		for u := range half {
			v := sigmoid(float64(f[u]))*float64(c[u]) + sigmoid(float64(i[u]))*math.Tanh(float64(g[u]))
			c[u] = A(v)
			h[u] = A(sigmoid(float64(o[u])) * math.Tanh(v))
		}
		gates, h, c = gates[4*half:], h[half:], c[half:]
	}
}

// GRU does the same for a gated recurrent unit, whose gates are r, z, and the
// parts of n from the input and from the state:
//
//	n = tanh(nx + σ(r)·nh), h′ = (1−σ(z))·n + σ(z)·h
//
// It leaves the gates changed.
func GRU[A Float](gates, h []A, half int) {
	for len(h) > 0 {
		rz, n, nh := gates[:2*half], gates[2*half:3*half], gates[3*half:4*half]
		Apply(Activation{Kind: Sigmoid}, rz)
		for u, r := range rz[:half] {
			n[u] += r * nh[u]
		}
		Apply(Activation{Kind: Tanh}, n)
		for u, z := range rz[half:] {
			h[u] = (1-z)*n[u] + z*h[u]
		}
		gates, h = gates[4*half:], h[half:]
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
