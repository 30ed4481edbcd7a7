// Package chart draws how the training of a classifier went, as one PNG: the
// curves of loss and accuracy and the confusion matrix.
package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Run is what there is to draw. Each curve has a value per epoch, from the First
// on, whose number is 1 unless training was resumed.
type Run struct {
	First                       int
	TrainLoss, TestLoss         []float64
	TrainAccuracy, TestAccuracy []float64 // from 0 to 1
	// Confusion counts, by label and then by prediction, the test images.
	Confusion [][]int
}

// Sizes of the picture and its text, in points at dpi dots an inch.
const (
	width, height = 14.4 * vg.Inch, 5 * vg.Inch
	dpi           = 110
	titleSize     = 14
	labelSize     = 11
	tickSize      = 10
)

var (
	ink     = color.RGBA{0x26, 0x2b, 0x33, 0xff}
	faint   = color.RGBA{0xe6, 0xe8, 0xeb, 0xff}
	blue    = color.RGBA{0x1f, 0x6f, 0xb4, 0xff}
	orange  = color.RGBA{0xe0, 0x6c, 0x1b, 0xff}
	regular = font.Font{Typeface: "Liberation", Variant: "Sans"}
)

// Write draws the run as a PNG.
func Write(w io.Writer, r Run) error {
	loss, err := curves("Loss", "cross entropy", r.First, r.TrainLoss, r.TestLoss)
	if err != nil {
		return err
	}
	loss.Y.Min = 0
	loss.Legend.Top = true
	accuracy, err := curves("Accuracy", "% right", r.First, percent(r.TrainAccuracy), percent(r.TestAccuracy))
	if err != nil {
		return err
	}
	accuracy.Y.Max = 100
	confusion := confusionPlot(r)

	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	all := draw.New(c)
	all = draw.Crop(all, 10, -14, 10, -10)
	third := all.Size().X / 3
	const gap = 10
	loss.Draw(draw.Crop(all, 0, -2*third-gap, 0, 0))
	accuracy.Draw(draw.Crop(all, third, -third-gap, 0, 0))
	confusion.Draw(draw.Crop(all, 2*third+gap, 0, 0, 0))
	_, err = vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// newPlot returns an empty plot in the common style.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font = sized(titleSize)
	p.Title.TextStyle.Color = ink
	p.Title.Padding = 8
	p.Legend.TextStyle.Font = sized(labelSize)
	p.Legend.TextStyle.Color = ink
	p.Legend.Padding = 3
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = sized(labelSize)
		a.Label.TextStyle.Color = ink
		a.Label.Padding = 4
		a.Tick.Label.Font = sized(tickSize)
		a.Tick.Label.Color = ink
		a.Tick.Color, a.Color = ink, ink
		a.LineStyle.Width = 0.8
	}
	return p
}

func sized(points vg.Length) font.Font {
	f := regular
	f.Size = points
	return f
}

// curves draws the values of each epoch for training and test.
func curves(title, unit string, first int, train, test []float64) (*plot.Plot, error) {
	first = max(first, 1)
	p := newPlot(title, "epoch", unit)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, color.Transparent
	p.Add(grid)
	for _, c := range []struct {
		name   string
		values []float64
		color  color.Color
		dashes []vg.Length
	}{{"training", train, blue, nil}, {"test", test, orange, nil}} {
		var xys plotter.XYs
		for i, v := range c.values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) { // a run that diverged has such losses
				xys = append(xys, plotter.XY{X: float64(first + i), Y: v})
			}
		}
		if xys == nil {
			continue
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return nil, fmt.Errorf("chart: %s: %w", c.name, err)
		}
		line.Color, line.Width = c.color, 1.8
		points.Shape, points.Color, points.Radius = draw.CircleGlyph{}, c.color, 2.2
		p.Add(line, points)
		p.Legend.Add(c.name, line, points)
	}
	p.X.Min = float64(first)
	p.X.Max = p.X.Min + math.Max(1, float64(len(train)-1))
	p.X.Tick.Marker = plot.TickerFunc(wholeTicks)
	p.Y.Tick.Marker = plot.TickerFunc(roundTicks)
	return p, nil
}

// roundTicks marks multiples of 1, 2 or 5 times a power of ten, six at most.
func roundTicks(lo, hi float64) []plot.Tick {
	if !(hi > lo) {
		return nil
	}
	exp := math.Floor(math.Log10(hi - lo))
	step := math.Pow(10, exp)
	for _, m := range []float64{0.2, 0.5, 1, 2} {
		if (hi-lo)/(m*math.Pow(10, exp)) <= 5 {
			step = m * math.Pow(10, exp)
			if m < 1 {
				exp--
			}
			break
		}
	}
	var ticks []plot.Tick
	for k := int(math.Ceil(lo/step - 1e-9)); ; k++ {
		v := float64(k) * step
		if v > hi+1e-9*step {
			return ticks
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.*f", max(0, -int(exp)), v)})
	}
}

// wholeTicks marks whole epochs, the first and some ten more at most.
func wholeTicks(lo, hi float64) []plot.Tick {
	step := 1
	for _, s := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if step = s; (hi-lo)/float64(s) <= 10 {
			break
		}
	}
	first := int(lo)
	ticks := []plot.Tick{{Value: lo, Label: fmt.Sprint(first)}}
	for e := step; e <= int(hi); e += step {
		if e > first && (e-first)*2 >= step { // no two labels on one another
			ticks = append(ticks, plot.Tick{Value: float64(e), Label: fmt.Sprint(e)})
		}
	}
	return ticks
}

func percent(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = 100 * x
	}
	return out
}
