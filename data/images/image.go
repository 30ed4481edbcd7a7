// Package images reads PNG, JPEG and GIF files into arrays, and transforms them before they become
// batches: sizes, crops, flips, turns.
//
//	ds, classes, err := images.Folder(os.DirFS("flowers")) // flowers/rose/1.jpg, …
//	train := data.Augment(ds, images.ToSample(images.CHW,
//		images.Resize(72, 72), images.RandomCrop(64, 64, 0), images.RandomFlip(0.5)))
//	l := data.NewLoader(train, 32, data.Stack, data.Shuffle(seed)) // batches [32, 3, 64, 64] and [32]
package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"  // formats that Decode reads
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"io"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
	"github.com/loris-ml/loris/internal/ir"
)

// ErrTooLarge is returned for a file that says it has more than MaxPixels pixels.
var ErrTooLarge = errors.New("images: too many pixels")

// MaxPixels is the size to which Decode reads files: what a file says of itself would otherwise
// decide how much memory is taken.
const MaxPixels = 1 << 26

// Image is an image of C channels, H rows and W columns, of numbers from 0 to 1: Pix holds channel
// after channel, row after row.
type Image struct {
	C, H, W int
	Pix     []float32
}

// New returns a black image. It panics with an *OpError if a size is not positive.
func New(c, h, w int) *Image {
	if c < 1 || h < 1 || w < 1 {
		panic(ir.NewOpError("images.New", loris.ErrShape, nil, "%d channels of %d by %d pixels", c, h, w))
	}
	return &Image{c, h, w, make([]float32, c*h*w)}
}

// row returns a row of a channel.
func (im *Image) row(c, y int) []float32 {
	i := (c*im.H + y) * im.W
	return im.Pix[i : i+im.W : i+im.W]
}

// Decode reads a PNG, JPEG or GIF file, of the last its first image. Grey images have one channel,
// others three: red, green and blue. Transparency is left out. Errors are those of the standard
// library's decoders, and ErrTooLarge.
func Decode(r io.Reader) (*Image, error) {
	var head bytes.Buffer
	cfg, _, err := image.DecodeConfig(io.TeeReader(r, &head))
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	if cfg.Width > 0 && cfg.Height > MaxPixels/cfg.Width {
		return nil, fmt.Errorf("%w: %d by %d, more than %d", ErrTooLarge, cfg.Height, cfg.Width, MaxPixels)
	}
	img, _, err := image.Decode(io.MultiReader(&head, r))
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	if b := img.Bounds(); b.Empty() {
		return nil, fmt.Errorf("images: %w: %d by %d pixels", loris.ErrShape, b.Dy(), b.Dx())
	}
	return From(img), nil
}

// From copies an image of the standard library, which is not empty: one channel of *image.Gray and
// *image.Gray16, else three.
func From(img image.Image) *Image {
	b := img.Bounds()
	switch src := img.(type) {
	case *image.Gray:
		im := New(1, b.Dy(), b.Dx())
		for y := range im.H {
			row := src.Pix[src.PixOffset(b.Min.X, b.Min.Y+y):]
			for x, to := 0, im.row(0, y); x < im.W; x++ {
				to[x] = float32(row[x]) / 255
			}
		}
		return im
	case *image.Gray16:
		im := New(1, b.Dy(), b.Dx())
		for y := range im.H {
			for x, to := 0, im.row(0, y); x < im.W; x++ {
				to[x] = float32(src.Gray16At(b.Min.X+x, b.Min.Y+y).Y) / 65535
			}
		}
		return im
	}
	im := New(3, b.Dy(), b.Dx())
	at := colours(img)
	for y := range im.H {
		red, green, blue := im.row(0, y), im.row(1, y), im.row(2, y)
		for x := range im.W {
			c := at(b.Min.X+x, b.Min.Y+y)
			red[x], green[x], blue[x] = float32(c.R)/255, float32(c.G)/255, float32(c.B)/255
		}
	}
	return im
}

// colours returns a function for the pixels of an image that does not allocate for the usual kinds.
func colours(img image.Image) func(x, y int) color.NRGBA {
	switch src := img.(type) {
	case *image.YCbCr:
		return func(x, y int) color.NRGBA {
			c := src.YCbCrAt(x, y)
			r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
			return color.NRGBA{r, g, b, 255}
		}
	case *image.NRGBA:
		return src.NRGBAAt
	case *image.Paletted:
		var palette [256]color.NRGBA
		for i, c := range src.Palette[:min(256, len(src.Palette))] {
			palette[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		return func(x, y int) color.NRGBA { return palette[src.ColorIndexAt(x, y)] }
	}
	return func(x, y int) color.NRGBA { return color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA) }
}

// Channels returns the image with c channels, 1 or 3: grey in three channels, or of colours their
// brightness, 0.299 red + 0.587 green + 0.114 blue. It panics with an *OpError for other numbers.
func (im *Image) Channels(c int) *Image {
	switch {
	case c == im.C:
		return im
	case c == 3 && im.C == 1:
		out := New(3, im.H, im.W)
		for k := range 3 {
			copy(out.Pix[k*len(im.Pix):], im.Pix)
		}
		return out
	case c == 1 && im.C == 3:
		out := New(1, im.H, im.W)
		n := len(out.Pix)
		for i := range out.Pix {
			out.Pix[i] = 0.299*im.Pix[i] + 0.587*im.Pix[n+i] + 0.114*im.Pix[2*n+i]
		}
		return out
	}
	panic(ir.NewOpError("images.Channels", loris.ErrShape, nil, "%d channels of an image of %d", c, im.C))
}

// Layout is the order of the dimensions of an image's array; a batch has the number of the image
// before them, so that it is NCHW or NHWC.
type Layout int

// The layouts. Loris's convolutions take CHW.
const (
	CHW Layout = iota
	HWC
)

// Array returns the pixels as an array of f32, in CHW without a copy.
func (im *Image) Array(l Layout) data.Array {
	if l == CHW {
		return data.Of(im.Pix, im.C, im.H, im.W)
	}
	out := make([]float32, len(im.Pix))
	n := im.H * im.W
	for c := range im.C {
		for i, v := range im.Pix[c*n : (c+1)*n] {
			out[i*im.C+c] = v
		}
	}
	return data.Of(out, im.H, im.W, im.C)
}
