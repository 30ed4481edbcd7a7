package chart

import (
	"fmt"
	"image/color"
	"math"

	"github.com/loris-ml/loris/internal/figure"
)

// confusion draws the matrix with label 0 at the top, from x on.
func confusion(c *figure.Canvas, x float64, r Run) {
	title := "Confusion matrix"
	right, all := 0, 0
	for i, row := range r.Confusion {
		for j, n := range row {
			all += n
			if i == j {
				right += n
			}
		}
	}
	if all > 0 {
		title = fmt.Sprintf("Test: %d of %d right (%.1f %%)", right, all, 100*float64(right)/float64(all))
	}
	a := figure.NewAxes(c, x, 0, width, height, title, "predicted digit", "digit")
	n := len(r.Confusion)
	if n == 0 {
		return
	}
	a.Left, a.Right = -0.5, float64(n)-0.5
	a.Bottom, a.Top = float64(n)-0.5, -0.5
	ticks := make([]figure.Tick, n)
	for i := range ticks {
		ticks[i] = figure.Tick{Value: float64(i), Label: fmt.Sprint(i)}
	}
	a.Ticks(ticks, ticks, false)
	for i, row := range r.Confusion {
		cells(a, i, row)
	}
}

// cells draws a cell for each prediction of a label: shades of blue where they are equal, of orange
// for mistakes, each as strong as its share of the label, with the counts that are not zero.
func cells(a *figure.Axes, label int, row []int) {
	sum := 0
	for _, n := range row {
		sum += n
	}
	for j, n := range row {
		share := 0.0
		if sum > 0 {
			share = float64(n) / float64(sum)
		}
		const seam = 1
		x0, x1 := a.X(float64(j)-0.5), a.X(float64(j)+0.5)
		y0, y1 := a.Y(float64(label)-0.5), a.Y(float64(label)+0.5)
		a.Canvas.Rect(x0+seam, y0+seam, x1-seam, y1-seam, shade(label == j, share))
		if n == 0 {
			continue
		}
		ink := color.Color(figure.Ink)
		if label == j && share > 0.5 {
			ink = color.White
		}
		a.Canvas.Text((x0+x1)/2, (y0+y1)/2, fmt.Sprint(n), figure.Center, ink)
	}
}

// shade mixes the hue into the empty cell's grey. A single mistake is a small
// share but must be seen, so mistakes begin with a quarter and grow by the root.
func shade(right bool, share float64) color.Color {
	hue, part := figure.Orange, 0.25+0.75*math.Sqrt(share)
	if right {
		hue, part = figure.Blue, 0.15+0.85*share
	}
	if share == 0 {
		part = 0
	}
	empty := color.RGBA{0xf3, 0xf4, 0xf6, 0xff}
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + part*(float64(b)-float64(a))) }
	return color.RGBA{mix(empty.R, hue.R), mix(empty.G, hue.G), mix(empty.B, hue.B), 0xff}
}
