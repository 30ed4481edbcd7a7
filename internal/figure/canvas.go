// Package figure draws charts as images: curves and bars over labelled axes.
package figure

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/inconsolata"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// Colours of text, grids and curves.
var (
	Ink    = color.RGBA{0x26, 0x2b, 0x33, 0xff}
	Faint  = color.RGBA{0xe6, 0xe8, 0xeb, 0xff}
	Blue   = color.RGBA{0x1f, 0x6f, 0xb4, 0xff}
	Orange = color.RGBA{0xe0, 0x6c, 0x1b, 0xff}
)

// The size of a letter, in pixels.
const (
	LetterWidth  = 8
	LetterHeight = 16
)

// Canvas is a picture that is being drawn. Coordinates are pixels from its top left corner.
type Canvas struct{ img *image.RGBA }

// NewCanvas returns a white picture.
func NewCanvas(width, height int) *Canvas {
	c := &Canvas{image.NewRGBA(image.Rect(0, 0, width, height))}
	draw.Draw(c.img, c.img.Bounds(), image.White, image.Point{}, draw.Src)
	return c
}

// WritePNG writes the picture.
func (c *Canvas) WritePNG(w io.Writer) error { return png.Encode(w, c.img) }

// Rect fills a rectangle.
func (c *Canvas) Rect(x0, y0, x1, y1 float64, col color.Color) {
	r := image.Rect(round(x0), round(y0), round(x1), round(y1))
	draw.Draw(c.img, r, image.NewUniform(col), image.Point{}, draw.Over)
}

func round(v float64) int { return int(math.Round(v)) }

// Line draws a straight line.
func (c *Canvas) Line(x0, y0, x1, y1, width float64, col color.Color) {
	dx, dy := x1-x0, y1-y0
	l := math.Hypot(dx, dy)
	if l == 0 {
		return
	}
	nx, ny := -dy/l*width/2, dx/l*width/2
	c.fill(col, [][2]float64{{x0 + nx, y0 + ny}, {x1 + nx, y1 + ny}, {x1 - nx, y1 - ny}, {x0 - nx, y0 - ny}})
}

// Dot fills a circle.
func (c *Canvas) Dot(x, y, radius float64, col color.Color) {
	const corners = 16
	p := make([][2]float64, corners)
	for i := range p {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		p[i] = [2]float64{x + radius*cos, y + radius*sin}
	}
	c.fill(col, p)
}

// fill fills a polygon, which is shifted and rasterised in its bounds alone.
func (c *Canvas) fill(col color.Color, p [][2]float64) {
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, q := range p {
		x0, y0, x1, y1 = min(x0, q[0]), min(y0, q[1]), max(x1, q[0]), max(y1, q[1])
	}
	r := image.Rect(int(math.Floor(x0)), int(math.Floor(y0)), int(math.Ceil(x1)), int(math.Ceil(y1)))
	if r.Empty() || !r.In(c.img.Bounds()) {
		return
	}
	z := vector.NewRasterizer(r.Dx(), r.Dy())
	for i, q := range p {
		x, y := float32(q[0])-float32(r.Min.X), float32(q[1])-float32(r.Min.Y)
		if i == 0 {
			z.MoveTo(x, y)
		} else {
			z.LineTo(x, y)
		}
	}
	z.ClosePath()
	z.Draw(c.img, r, image.NewUniform(col), image.Point{})
}

// Align says where a text is beside its place.
type Align int

// The alignments.
const (
	Left Align = iota
	Center
	Right
)

// Text writes a line whose middle height is y.
func (c *Canvas) Text(x, y float64, s string, at Align, col color.Color) {
	width := float64(len([]rune(s)) * LetterWidth)
	switch at {
	case Center:
		x -= width / 2
	case Right:
		x -= width
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(col), Face: inconsolata.Regular8x16,
		Dot: fixed.P(round(x), round(y)+LetterHeight/2-4)}
	d.DrawString(s)
}
