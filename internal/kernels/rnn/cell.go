package rnn

import "math"

// lstm applies the gates of one row and updates its state. For each block of
// half hidden units, gates holds i, f, g and o.
func lstm[A Float](gates, h, c []A, half int) {
	for len(h) > 0 {
		i, f, g, o := gates[:half], gates[half:2*half], gates[2*half:3*half], gates[3*half:4*half]
		for u := range half {
			v := sigmoid(f[u])*float64(c[u]) + sigmoid(i[u])*math.Tanh(float64(g[u]))
			c[u] = A(v)
			h[u] = A(sigmoid(o[u]) * math.Tanh(v))
		}
		gates, h, c = gates[slots*half:], h[half:], c[half:]
	}
}

// gru does the same; gates holds r, z, and the parts of n from the input and
// from the state.
func gru[A Float](gates, h []A, half int) {
	for len(h) > 0 {
		r, z, nx, nh := gates[:half], gates[half:2*half], gates[2*half:3*half], gates[3*half:4*half]
		for u := range half {
			n := math.Tanh(float64(nx[u]) + sigmoid(r[u])*float64(nh[u]))
			s := sigmoid(z[u])
			h[u] = A((1-s)*n + s*float64(h[u]))
		}
		gates, h = gates[slots*half:], h[half:]
	}
}

func sigmoid[A Float](x A) float64 { return 1 / (1 + math.Exp(-float64(x))) }
