package figure

import (
	"fmt"
	"image/color"
	"math"
)

// Tick is a mark on an axis.
type Tick struct {
	Value float64
	Label string
}

// Axes is a part of a canvas with a coordinate system. NewAxes draws its frame.
type Axes struct {
	Canvas         *Canvas
	X0, Y0, X1, Y1 float64 // the frame, in pixels
	Left, Right    float64 // of the values along x
	Bottom, Top    float64 // of the values along y
}

// The room around a frame.
const (
	marginLeft   = 76
	marginRight  = 20
	marginTop    = 40
	marginBottom = 52
)

// NewAxes draws a frame with a title and names of the axes into the part of the canvas from x0, y0
// to x1, y1. Left, Right, Bottom and Top of the result are to be set.
func NewAxes(c *Canvas, x0, y0, x1, y1 float64, title, x, y string) *Axes {
	a := &Axes{Canvas: c, X0: x0 + marginLeft, Y0: y0 + marginTop, X1: x1 - marginRight, Y1: y1 - marginBottom, Right: 1, Top: 1}
	c.Text((a.X0+a.X1)/2, y0+marginTop/2, title, Center, Ink)
	c.Text((a.X0+a.X1)/2, y1-12, x, Center, Ink)
	c.Text(x0+4, y0+marginTop/2, y, Left, Ink)
	return a
}

// X returns the pixel of a value along x.
func (a *Axes) X(v float64) float64 { return a.X0 + (v-a.Left)/(a.Right-a.Left)*(a.X1-a.X0) }

// Y returns the pixel of a value along y.
func (a *Axes) Y(v float64) float64 { return a.Y1 - (v-a.Bottom)/(a.Top-a.Bottom)*(a.Y1-a.Y0) }

// Ticks draws the axes and their marks, with a line across for each mark along y if grid is set.
func (a *Axes) Ticks(x, y []Tick, grid bool) {
	for _, t := range y {
		p := a.Y(t.Value)
		if grid {
			a.Canvas.Line(a.X0, p, a.X1, p, 1, Faint)
		}
		a.Canvas.Text(a.X0-8, p, t.Label, Right, Ink)
	}
	for _, t := range x {
		a.Canvas.Text(a.X(t.Value), a.Y1+14, t.Label, Center, Ink)
	}
}

// Frame draws the two axes.
func (a *Axes) Frame() {
	a.Canvas.Line(a.X0, a.Y1, a.X1, a.Y1, 1, Ink)
	a.Canvas.Line(a.X0, a.Y0, a.X0, a.Y1, 1, Ink)
}

// Curve draws a line through points, with a dot on each.
func (a *Axes) Curve(xs, ys []float64, col color.Color) {
	for i := range xs {
		x, y := a.X(xs[i]), a.Y(ys[i])
		if i > 0 {
			a.Canvas.Line(a.X(xs[i-1]), a.Y(ys[i-1]), x, y, 2.5, col)
		}
		a.Canvas.Dot(x, y, 3, col)
	}
}

// Legend writes the names of curves inside the frame, from the top or the bottom.
func (a *Axes) Legend(top bool, names []string, colors []color.RGBA) {
	for i, name := range names {
		y := a.Y0 + 14 + float64(i)*20
		if !top {
			y = a.Y1 - 14 - float64(len(names)-1-i)*20
		}
		a.Canvas.Text(a.X1-34, y, name, Right, Ink)
		a.Canvas.Line(a.X1-28, y, a.X1-4, y, 2.5, colors[i])
	}
}

// RoundTicks marks multiples of 1, 2 or 5 times a power of ten, six at most.
func RoundTicks(lo, hi float64) []Tick {
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
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
	var ticks []Tick
	for k := math.Ceil(lo/step-1e-9) + 0; k*step <= hi+1e-9*step && len(ticks) < 8; k++ {
		ticks = append(ticks, Tick{Value: k * step, Label: label(k*step, exp)})
	}
	return ticks
}

// label writes a value with the digits that a step of the exponent needs.
func label(v, exp float64) string {
	if exp < -4 || exp > 6 {
		return fmt.Sprintf("%.3g", v)
	}
	return fmt.Sprintf("%.*f", max(0, -int(exp)), v)
}

// Fit sets the values along y to the range of those given and returns whether there were any.
func (a *Axes) Fit(curves ...[]float64) bool {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, v := range c {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if lo > hi {
		return false
	}
	if lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	a.Bottom, a.Top = lo, hi
	return true
}
