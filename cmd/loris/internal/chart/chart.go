// Package chart draws how the training of a classifier went, as one PNG: the
// curves of loss and accuracy and the confusion matrix.
package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"github.com/loris-ml/loris/internal/figure"
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

// The size of the picture, in pixels.
const width, height = 1584, 550

// Write draws the run as a PNG.
func Write(w io.Writer, r Run) error {
	c := figure.NewCanvas(width, height)
	const third = width / 3
	loss := figure.NewAxes(c, 0, 0, third, height, "Loss", "epoch", "cross entropy")
	curves(loss, r.First, true, r.TrainLoss, r.TestLoss, func() { loss.Bottom = 0 })
	accuracy := figure.NewAxes(c, third, 0, 2*third, height, "Accuracy", "epoch", "% right")
	curves(accuracy, r.First, false, percent(r.TrainAccuracy), percent(r.TestAccuracy), func() { accuracy.Top = 100 })
	confusion(c, 2*third, r)
	return c.WritePNG(w)
}

// curves draws the values of each epoch for training and test, over a range along y that bound
// adjusts.
func curves(a *figure.Axes, first int, legendOnTop bool, train, test []float64, bound func()) {
	first = max(first, 1)
	a.Left, a.Right = float64(first), float64(first)+math.Max(1, float64(len(train)-1))
	var names []string
	var colors []color.RGBA
	type curve struct {
		xs, ys []float64
		color  color.RGBA
	}
	var drawn []curve
	for _, c := range []struct {
		name   string
		values []float64
		color  color.RGBA
	}{{"training", train, figure.Blue}, {"test", test, figure.Orange}} {
		x := curve{color: c.color}
		for i, v := range c.values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) { // a run that diverged has such losses
				x.xs, x.ys = append(x.xs, float64(first+i)), append(x.ys, v)
			}
		}
		if x.xs != nil {
			names, colors, drawn = append(names, c.name), append(colors, c.color), append(drawn, x)
		}
	}
	var all [][]float64
	for _, c := range drawn {
		all = append(all, c.ys)
	}
	a.Fit(all...)
	bound()
	if !(a.Top > a.Bottom) {
		a.Top = a.Bottom + 1
	}
	a.Ticks(wholeTicks(a.Left, a.Right), figure.RoundTicks(a.Bottom, a.Top), true)
	a.Frame()
	for _, c := range drawn {
		a.Curve(c.xs, c.ys, c.color)
	}
	a.Legend(legendOnTop, names, colors)
}

// wholeTicks marks whole epochs, the first and some ten more at most.
func wholeTicks(lo, hi float64) []figure.Tick {
	step := 1
	for _, s := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if step = s; (hi-lo)/float64(s) <= 10 {
			break
		}
	}
	first := int(lo)
	ticks := []figure.Tick{{Value: lo, Label: fmt.Sprint(first)}}
	for e := step; e <= int(hi); e += step {
		if e > first && (e-first)*2 >= step { // no two labels on one another
			ticks = append(ticks, figure.Tick{Value: float64(e), Label: fmt.Sprint(e)})
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
