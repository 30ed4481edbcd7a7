package figure

import (
	"bytes"
	"image/png"
	"math"
	"testing"
)

// What reaches over the edge of a canvas is left out or cut.
func TestDrawingOutside(t *testing.T) {
	c := NewCanvas(40, 30)
	c.Rect(-10, -10, 5, 5, Blue)
	c.Line(-5, 10, 60, 10, 2, Blue)
	c.Dot(39, 29, 8, Blue)
	c.Text(30, 15, "text", Left, Ink)
	a := NewAxes(c, 0, 0, 40, 30, "t", "x", "y")
	a.Fit([]float64{math.Inf(1), 0})
	a.Curve([]float64{0, 1}, []float64{0, 0}, Orange)
	var b bytes.Buffer
	if err := c.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil || img.Bounds().Dx() != 40 || img.Bounds().Dy() != 30 {
		t.Fatalf("%v %v", img, err)
	}
	if r, g, bl, _ := img.At(2, 2).RGBA(); uint8(r) != Blue.R || uint8(g) != Blue.G || uint8(bl) != Blue.B {
		t.Error("the part inside is not drawn")
	}
}

func TestFit(t *testing.T) {
	a := new(Axes)
	if a.Fit() || a.Fit(nil) {
		t.Error("nothing to fit")
	}
	if !a.Fit([]float64{2}) || a.Bottom != 1.5 || a.Top != 2.5 {
		t.Errorf("one value: %v to %v", a.Bottom, a.Top)
	}
	if n := len(RoundTicks(0, math.Inf(1))); n != 0 {
		t.Errorf("%d ticks of an endless range", n)
	}
}
