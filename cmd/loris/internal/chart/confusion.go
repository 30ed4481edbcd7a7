package chart

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// confusionPlot draws the matrix with label 0 at the top.
func confusionPlot(r Run) *plot.Plot {
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
	p := newPlot(title, "predicted digit", "digit")
	n := len(r.Confusion)
	p.Add(&matrix{counts: r.Confusion})
	p.X.Min, p.X.Max = -0.5, float64(n)-0.5
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	p.Y.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
	ticks := make(plot.ConstantTicks, n)
	for i := range n {
		ticks[i] = plot.Tick{Value: float64(i), Label: fmt.Sprint(i)}
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Marker = ticks
		a.Tick.Length = 0
		a.Padding = 0
		a.LineStyle.Width = 0
	}
	return p
}

// matrix draws a cell per label and prediction: shades of blue where they are
// equal, of orange for mistakes, each as strong as its share of the label.
type matrix struct{ counts [][]int }

// Plot draws the cells and the counts that are not zero.
func (m *matrix) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	style := text.Style{
		Font: sized(tickSize), Handler: plot.DefaultTextHandler,
		XAlign: draw.XCenter, YAlign: draw.YCenter,
	}
	for i, row := range m.counts {
		sum := 0
		for _, n := range row {
			sum += n
		}
		for j, n := range row {
			x0, x1 := tx(float64(j)-0.5), tx(float64(j)+0.5)
			y0, y1 := ty(float64(i)+0.5), ty(float64(i)-0.5)
			const seam = 0.7
			cell := []vg.Point{{X: x0 + seam, Y: y0 + seam}, {X: x1 - seam, Y: y0 + seam}, {X: x1 - seam, Y: y1 - seam}, {X: x0 + seam, Y: y1 - seam}}
			share := 0.0
			if sum > 0 {
				share = float64(n) / float64(sum)
			}
			c.FillPolygon(shade(i == j, share), cell)
			if n == 0 {
				continue
			}
			style.Color = color.Color(ink)
			if i == j && share > 0.5 {
				style.Color = color.White
			}
			c.FillText(style, vg.Point{X: (x0 + x1) / 2, Y: (y0 + y1) / 2}, fmt.Sprint(n))
		}
	}
}

// shade mixes the hue into the empty cell's grey. A single mistake is a small
// share but must be seen, so mistakes begin with a quarter and grow by the root.
func shade(right bool, share float64) color.Color {
	hue, part := orange, 0.25+0.75*math.Sqrt(share)
	if right {
		hue, part = blue, 0.15+0.85*share
	}
	if share == 0 {
		part = 0
	}
	empty := color.RGBA{0xf3, 0xf4, 0xf6, 0xff}
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + part*(float64(b)-float64(a))) }
	return color.RGBA{mix(empty.R, hue.R), mix(empty.G, hue.G), mix(empty.B, hue.B), 0xff}
}
