package tensorboard

import (
	"fmt"
	"io"
	"math"

	"github.com/loris-ml/loris/internal/figure"
)

// buckets is the number of buckets of a histogram.
const buckets = 50

// Histogram is how values are distributed: Counts[i] of them are at most Limits[i] and above the
// limit before.
type Histogram struct {
	Min, Max, Sum, SumSquares float64
	Count                     int
	Limits                    []float64
	Counts                    []int
}

// NewHistogram counts the finite values in buckets of one width.
func NewHistogram(values []float32) *Histogram {
	h := &Histogram{Min: math.Inf(1), Max: math.Inf(-1)}
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for _, f := range values {
		if v := float64(f); finite(v) {
			h.Min, h.Max = min(h.Min, v), max(h.Max, v)
			h.Sum, h.SumSquares, h.Count = h.Sum+v, h.SumSquares+v*v, h.Count+1
		}
	}
	if h.Count == 0 {
		return &Histogram{}
	}
	n, width := buckets, (h.Max-h.Min)/buckets
	if width == 0 {
		n = 1
	}
	h.Limits, h.Counts = make([]float64, n), make([]int, n)
	for i := range h.Limits {
		h.Limits[i] = h.Min + float64(i+1)*width
	}
	h.Limits[n-1] = h.Max
	for _, f := range values {
		if v := float64(f); finite(v) {
			i := 0
			if width > 0 {
				i = min(int((v-h.Min)/width), n-1)
			}
			h.Counts[i]++
		}
	}
	return h
}

// WritePNG draws the histogram as a PNG of 800 by 500 pixels.
func (h *Histogram) WritePNG(w io.Writer, title string) error {
	const width, height = 800, 500
	c := figure.NewCanvas(width, height)
	a := figure.NewAxes(c, 0, 0, width, height, fmt.Sprintf("%s: %d values", title, h.Count), "value", "count")
	if h.Count == 0 {
		return c.WritePNG(w)
	}
	a.Left, a.Right = h.Min, h.Max
	if h.Min == h.Max {
		a.Left, a.Right = h.Min-0.5, h.Max+0.5
	}
	for _, n := range h.Counts {
		a.Top = max(a.Top, float64(n))
	}
	a.Ticks(figure.RoundTicks(a.Left, a.Right), figure.RoundTicks(0, a.Top), true)
	from := a.Left
	for i, n := range h.Counts {
		to := h.Limits[i]
		if len(h.Counts) == 1 {
			to = a.Right
		}
		c.Rect(a.X(from), a.Y(float64(n)), a.X(to), a.Y1, figure.Blue)
		from = to
	}
	a.Frame()
	return c.WritePNG(w)
}
