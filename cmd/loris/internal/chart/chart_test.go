package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/figure"
)

func pic(t *testing.T, r Run) image.Image {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// count returns how many pixels of the part between two fractions of the width
// have the colour.
func count(img image.Image, from, to float64, want color.RGBA) int {
	n, b := 0, img.Bounds()
	for x := int(from * float64(b.Dx())); x < int(to*float64(b.Dx())); x++ {
		for y := range b.Dy() {
			if r, g, bl, _ := img.At(x, y).RGBA(); uint8(r>>8) == want.R && uint8(g>>8) == want.G && uint8(bl>>8) == want.B {
				n++
			}
		}
	}
	return n
}

func TestWrite(t *testing.T) {
	r := Run{
		TrainLoss: []float64{2, 1, 0.5}, TestLoss: []float64{1.8, 1, 0.6},
		TrainAccuracy: []float64{0.3, 0.8, 0.95}, TestAccuracy: []float64{0.4, 0.8, 0.94},
		Confusion: [][]int{{9, 0}, {0, 8}},
	}
	img := pic(t, r)
	if b := img.Bounds(); b.Dx() != 1584 || b.Dy() != 550 {
		t.Errorf("size %v", b)
	}
	for _, part := range [][2]float64{{0, 0.33}, {0.34, 0.66}} {
		if count(img, part[0], part[1], figure.Blue) < 100 || count(img, part[0], part[1], figure.Orange) < 100 {
			t.Errorf("no curves from %v to %v of the width", part[0], part[1])
		}
	}
	if all := count(img, 0.67, 1, figure.Blue); all < 10_000 {
		t.Errorf("%d pixels of the diagonal", all)
	}
	if count(img, 0.67, 1, figure.Orange) != 0 {
		t.Error("mistakes where there are none")
	}
	r.Confusion = [][]int{{0, 9}, {8, 0}}
	if img = pic(t, r); count(img, 0.67, 1, figure.Orange) < 10_000 || count(img, 0.67, 1, figure.Blue) != 0 {
		t.Error("mistakes are not drawn as such")
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []figure.Tick) string {
		var words []string
		for _, tick := range ticks {
			words = append(words, tick.Label)
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{0, 2.02, "0.0 0.5 1.0 1.5 2.0"},
		{50, 100, "50 60 70 80 90 100"},
		{91.3, 100, "92 94 96 98 100"},
		{0, 0.013, "0.000 0.005 0.010"},
		{0, 1e6, "0 200000 400000 600000 800000 1000000"},
		{3, 3, ""},
	} {
		if got := labels(figure.RoundTicks(c.lo, c.hi)); got != c.want {
			t.Errorf("round ticks from %v to %v: %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
	for span, want := range map[[2]float64]string{
		{1, 2}: "1 2", {1, 3}: "1 2 3", {1, 20}: "1 2 4 6 8 10 12 14 16 18 20",
		{1, 300}: "1 50 100 150 200 250 300", {49, 300}: "49 100 150 200 250 300", {7, 8}: "7 8",
	} {
		if got := labels(wholeTicks(span[0], span[1])); got != want {
			t.Errorf("whole ticks of %v: %q, want %q", span, got, want)
		}
	}
}

func TestWriteLittle(t *testing.T) {
	for name, r := range map[string]Run{
		"nothing":   {},
		"one epoch": {TrainLoss: []float64{1}, TestLoss: []float64{1}, TrainAccuracy: []float64{0}, TestAccuracy: []float64{0}, Confusion: [][]int{{0}}},
		"resumed":   {First: 31, TrainLoss: []float64{1, 0.5}, TestLoss: []float64{1, 0.6}},
		"diverged":  {TrainLoss: []float64{1, math.NaN(), math.Inf(1)}, TestLoss: []float64{math.NaN()}, TrainAccuracy: []float64{0.1, 0.1, 0.1}},
	} {
		if img := pic(t, r); img.Bounds().Dx() != 1584 {
			t.Errorf("%s: size %v", name, img.Bounds())
		}
	}
}
