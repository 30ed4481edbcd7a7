package pool

import "github.com/loris-ml/loris/internal/kernels"

// Means is the means of windows that split a dimension of N elements, each of Inner adjoining ones; what lies in
// front of the dimension is apart.
type Means struct {
	N, Inner int
	Windows  [][2]int
	runs     []run
}

// run is elements from..to-1 that are in the same windows, lo..hi-1.
type run struct{ from, to, lo, hi int }

// NewMeans returns those that split n elements into the given number of parts as evenly as can be.
func NewMeans(n, parts, inner int) *Means {
	m := &Means{N: n, Inner: inner}
	m.Windows, _ = Adaptive(n, parts)
	lo, hi := 0, 0
	for i := range n {
		for m.Windows[lo][1] <= i {
			lo++
		}
		for hi < parts && m.Windows[hi][0] <= i {
			hi++
		}
		if last := len(m.runs) - 1; last >= 0 && m.runs[last].lo == lo && m.runs[last].hi == hi {
			m.runs[last].to++
		} else {
			m.runs = append(m.runs, run{i, i + 1, lo, hi})
		}
	}
	return m
}

// Mean sets units lo..hi-1 of dst, which are windows one after another, to their means.
func Mean[T float32 | float64](m *Means, dst, src []T, lo, hi int) {
	parts, n := len(m.Windows), m.Inner
	for u := lo; u < hi; u++ {
		w := m.Windows[u%parts]
		x := src[(u/parts*m.N+w[0])*n : (u/parts*m.N+w[1])*n]
		count := T(w[1] - w[0])
		if n == 1 {
			dst[u] = sum(x) / count
			continue
		}
		row := dst[u*n:][:n]
		copy(row, x)
		for k := n; k < len(x); k += n {
			kernels.AddRow(row, x[k:])
		}
		for i := range row {
			row[i] /= count
		}
	}
}

// sum adds up elements in four chains, which a processor goes along at once.
func sum[T float32 | float64](x []T) T {
	var s [4]T
	for ; len(x) >= 4; x = x[4:] {
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
	}
	for i, v := range x {
		s[i] += v
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// Runs returns how many units MeanGradient has for each of what lies in front of the dimension.
func (m *Means) Runs() int { return len(m.runs) }

// MeanGradient sets units lo..hi-1 of dst, which are runs of elements in the same windows, to the sums of what
// src has for these, each divided by the number of its elements.
func MeanGradient[T float32 | float64](m *Means, dst, src []T, lo, hi int) {
	parts, n := len(m.Windows), m.Inner
	for u := lo; u < hi; u++ {
		r := m.runs[u%len(m.runs)]
		outer := u / len(m.runs)
		x := src[outer*parts*n:]
		all := dst[(outer*m.N+r.from)*n : (outer*m.N+r.to)*n]
		row := all[:n]
		for k := r.lo; k < r.hi; k++ {
			count := T(m.Windows[k][1] - m.Windows[k][0])
			from := x[k*n:][:n]
			if k == r.lo {
				for i, v := range from {
					row[i] = v / count
				}
				continue
			}
			for i, v := range from {
				row[i] += v / count
			}
		}
		double(all, n)
	}
}

// double repeats the first n elements.
func double[T any](x []T, n int) {
	if n == 1 {
		first := x[0]
		near := x[:min(len(x), 64)] // what is written so before copying pays
		for i := range near {
			near[i] = first
		}
		n = len(near)
	}
	for ; n < len(x); n *= 2 {
		copy(x[n:], x[:n])
	}
}
