package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// ramp is an image whose pixels are different.
func ramp(c, h, w int) *Image {
	im := New(c, h, w)
	for i := range im.Pix {
		im.Pix[i] = float32(i*37%11) / 10
	}
	return im
}

func near(t *testing.T, what string, got, want []float32, bound float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i, v := range got {
		if math.Abs(float64(v-want[i])) > bound {
			t.Errorf("%s: element %d is %v, want %v", what, i, v, want[i])
			return
		}
	}
}

// The picture that the files of TestDecode have: its corner is not at 0, 0.
func picture(blank func(r image.Rectangle) settable) image.Image {
	img := blank(image.Rect(2, 3, 2+16, 3+8))
	for y := range 8 {
		for x := range 16 {
			img.Set(2+x, 3+y, color.NRGBA{uint8(16 * x), uint8(32 * y), 128, 255})
		}
	}
	return img
}

type settable = interface {
	image.Image
	Set(x, y int, c color.Color)
}

func TestDecode(t *testing.T) {
	encode := func(err error, buf *bytes.Buffer) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	asPNG := func(img image.Image) []byte { var b bytes.Buffer; return encode(png.Encode(&b, img), &b) }
	colour, grey := New(3, 8, 16), New(1, 8, 16)
	for y := range 8 {
		for x := range 16 {
			colour.row(0, y)[x], colour.row(1, y)[x], colour.row(2, y)[x] = float32(16*x)/255, float32(32*y)/255, 128./255
			grey.row(0, y)[x] = float32(color.GrayModel.Convert(color.NRGBA{uint8(16 * x), uint8(32 * y), 128, 255}).(color.Gray).Y) / 255
		}
	}
	nrgba := picture(func(r image.Rectangle) settable { return image.NewNRGBA(r) })
	palette := make(color.Palette, 0, 128)
	for y := range 8 {
		for x := range 16 {
			palette = append(palette, color.NRGBA{uint8(16 * x), uint8(32 * y), 128, 255})
		}
	}
	var asJPEG, asGIF bytes.Buffer
	encode(jpeg.Encode(&asJPEG, nrgba, &jpeg.Options{Quality: 100}), &asJPEG)
	encode(gif.Encode(&asGIF, picture(func(r image.Rectangle) settable { return image.NewPaletted(r, palette) }), nil), &asGIF)
	for _, c := range []struct {
		name  string
		file  []byte
		want  *Image
		bound float64
	}{
		{"NRGBA", asPNG(nrgba), colour, 0},
		{"RGBA64", asPNG(picture(func(r image.Rectangle) settable { return image.NewRGBA64(r) })), colour, 0},
		{"palette", asPNG(picture(func(r image.Rectangle) settable { return image.NewPaletted(r, palette) })), colour, 0},
		{"grey", asPNG(picture(func(r image.Rectangle) settable { return image.NewGray(r) })), grey, 0},
		{"grey of 16 bits", asPNG(picture(func(r image.Rectangle) settable { return image.NewGray16(r) })), grey, 1. / 200},
		{"JPEG", asJPEG.Bytes(), colour, 0.25}, // which keeps colours of 2 by 2 pixels,
		{"GIF", asGIF.Bytes(), colour, 0},
	} {
		im, err := Decode(bytes.NewReader(c.file))
		if err != nil || im.C != c.want.C || im.H != 8 || im.W != 16 {
			t.Errorf("%s: %v, %v", c.name, im, err)
			continue
		}
		near(t, c.name, im.Pix, c.want.Pix, c.bound)
		for n := range c.file { // whatever is cut off, nothing panics
			if n%7 == 0 {
				Decode(bytes.NewReader(c.file[:n]))
			}
		}
	}
	near(t, "a part of a grey image", From(nrgba.(*image.NRGBA).SubImage(image.Rect(4, 5, 6, 7))).Pix[:4], []float32{32. / 255, 48. / 255, 32. / 255, 48. / 255}, 0)
	if _, err := Decode(strings.NewReader("no image")); !errors.Is(err, image.ErrFormat) {
		t.Errorf("error %v", err)
	}
}

// A file that says it is huge is refused before memory is taken for it.
func TestDecodeRefusesHugeImages(t *testing.T) {
	chunk := append([]byte("IHDR"), 0, 1, 0, 0, 0, 1, 0, 0, 8, 2, 0, 0, 0) // 65536 by 65536
	file := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
	file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(chunk))
	if _, err := Decode(bytes.NewReader(file)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// The numbers are those of PyTorch's interpolate(mode="bilinear", antialias=True).
func TestResize(t *testing.T) {
	for _, c := range []struct {
		h, w int
		want []float32
	}{
		{2, 3, []float32{0.514286, 0.455882, 0.542857, 0.442857, 0.511765, 0.492857}},
		{3, 9, []float32{0.257143, 0.52381, 0.625397, 0.534921, 0.357143, 0.301587, 0.507937, 0.609524, 0.457143, 0.344444, 0.448148, 0.569136, 0.608642}},
		{10, 7, []float32{0.0, 0.4, 0.8, 0.1, 0.5, 0.9, 0.2, 0.15, 0.55, 0.675, 0.25, 0.375, 0.775, 0.35, 0.45, 0.85, 0.425, 0.55, 0.125}},
		{1, 1, []float32{0.491038}},
		{5, 7, ramp(1, 5, 7).Pix},
	} {
		im := Resize(c.h, c.w)(nil, ramp(2, 5, 7))
		if im.C != 2 || im.H != c.h || im.W != c.w {
			t.Errorf("%d by %d pixels, want %d by %d", im.H, im.W, c.h, c.w)
		}
		near(t, "resized", im.Pix[:len(c.want)], c.want, 2e-6)
	}
}

func TestCropsAndFlips(t *testing.T) {
	im := New(1, 2, 3)
	copy(im.Pix, []float32{1, 2, 3, 4, 5, 6})
	for _, c := range []struct {
		name string
		t    Transform
		want []float32
	}{
		{"CenterCrop", CenterCrop(2, 1), []float32{2, 5}},
		{"larger CenterCrop", CenterCrop(4, 5), []float32{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0}},
		{"RandomCrop of all", RandomCrop(2, 3, 0), im.Pix},
		{"RandomFlip", RandomFlip(1), []float32{3, 2, 1, 6, 5, 4}},
		{"no RandomFlip", RandomFlip(0), im.Pix},
		{"RandomAffine of nothing", RandomAffine(0, 0, 0), im.Pix},
		{"Normalize", Normalize([]float32{1}, []float32{2}), []float32{0, .5, 1, 1.5, 2, 2.5}},
		{"Compose", Compose(RandomFlip(1), CenterCrop(2, 2)), []float32{3, 2, 6, 5}},
	} {
		near(t, c.name, c.t(random(), im).Pix, c.want, 1e-6)
	}
	near(t, "the image is as it was", im.Pix, []float32{1, 2, 3, 4, 5, 6}, 0)
	seen := map[float32]bool{} // where the crop's corner was
	r := random()
	for range 100 {
		seen[RandomCrop(1, 1, 1)(r, im).Pix[0]] = true
	}
	if len(seen) != 7 { // 1 to 6, and 0 around them
		t.Errorf("corners %v", seen)
	}
}

// A turn by exactly 90 degrees moves pixels to pixels; shifts and scales move them as far as they say.
func TestAffine(t *testing.T) {
	im := ramp(2, 3, 3)
	turned := im.sample(func(y, x float64) (float64, float64) { return -x, y })
	want := []float32{}
	for c := range 2 {
		for y := range 3 {
			for x := range 3 {
				want = append(want, im.at(c, 2-x, y))
			}
		}
	}
	near(t, "turned", turned.Pix, want, 1e-6)
	r := random()
	white := New(1, 9, 9)
	for i := range white.Pix {
		white.Pix[i] = 1
	}
	moved := false
	for range 50 {
		out := RandomAffine(30, 0.2, 0.1)(r, white)
		sum := float32(0)
		for _, v := range out.Pix {
			if v < 0 || v > 1.000001 {
				t.Fatalf("a pixel is %v", v)
			}
			sum += v
		}
		moved = moved || sum < 80
		if out.at(0, 4, 4) < 0.999 {
			t.Errorf("the middle became %v", out.at(0, 4, 4))
		}
	}
	if !moved {
		t.Error("nothing moved")
	}
}

func TestChannelsAndLayouts(t *testing.T) {
	im := ramp(3, 2, 2)
	grey := im.Channels(1)
	near(t, "grey", grey.Pix[:1], []float32{0.299*im.Pix[0] + 0.587*im.Pix[4] + 0.114*im.Pix[8]}, 1e-6)
	if back := grey.Channels(3); back.C != 3 || !slices.Equal(back.Pix[4:8], grey.Pix) {
		t.Errorf("%+v", back)
	}
	chw, hwc := im.Array(CHW), im.Array(HWC)
	if chw.Shape != loris.MakeShape(loris.F32, 3, 2, 2) || hwc.Shape != loris.MakeShape(loris.F32, 2, 2, 3) {
		t.Errorf("%v, %v", chw.Shape, hwc.Shape)
	}
	a, errA := loris.Read[float32](t.Context(), chw.Tensor(loris.With()).Permute(1, 2, 0))
	b, errB := data.Values[float32](hwc)
	if errors.Join(errA, errB) != nil || !slices.Equal(a, b) {
		t.Errorf("%v, %v", a, b)
	}
}

func TestMisuse(t *testing.T) {
	for want, fn := range map[string]func(){
		"0 channels":              func() { New(0, 1, 1) },
		"2 channels":              func() { New(1, 1, 1).Channels(2) },
		"Resize":                  func() { Resize(0, 1) },
		"CenterCrop":              func() { CenterCrop(0, 1) },
		"RandomCrop":              func() { RandomCrop(1, 1, -1) },
		"of an image of 2 by 2":   func() { RandomCrop(3, 1, 0)(random(), New(1, 2, 2)) },
		"RandomFlip":              func() { RandomFlip(math.NaN()) },
		"RandomAffine":            func() { RandomAffine(1, 1, 1) },
		"deviation of 0":          func() { Normalize([]float32{0}, []float32{0}) },
		"2 means and 1 standard ": func() { Normalize([]float32{0, 1}, []float32{1})(nil, New(3, 1, 1)) },
	} {
		var op *loris.OpError
		if err := loris.Try(fn); !errors.As(err, &op) || !strings.Contains(err.Error(), want) || !strings.Contains(op.Line, "_test.go") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func pngOf(t *testing.T, grey uint8) *fstest.MapFile {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 4, 4))
	for i := range img.Pix {
		img.Pix[i] = grey
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

func TestFolder(t *testing.T) {
	fsys := fstest.MapFS{
		"b/1.png": pngOf(t, 255), "a/x/2.PNG": pngOf(t, 0), "a/1.png": pngOf(t, 51), "a/notes.txt": {}, "README": {},
		"b/broken.jpg": {Data: []byte("x")},
	}
	ds, classes, err := Folder(fsys)
	if err != nil || !slices.Equal(classes, []string{"a", "b"}) || ds.Len() != 4 {
		t.Fatalf("%v of %d, %v", classes, ds.Len(), err)
	}
	l := data.NewLoader(data.Augment(ds, ToSample(CHW, Resize(2, 2))), 3, data.Stack)
	batch, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, _ := data.Values[float32](batch[0])
	y, _ := data.Values[int64](batch[1])
	if batch[0].Shape != loris.MakeShape(loris.F32, 3, 1, 2, 2) || !slices.Equal(y, []int64{0, 0, 1}) ||
		!slices.Equal([]float32{x[0], x[4], x[8]}, []float32{0.2, 0, 1}) {
		t.Errorf("%v, %v, %v", batch[0].Shape, x, y)
	}
	if _, err := l.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "b/broken.jpg") {
		t.Errorf("error %v", err)
	}
	for want, fsys := range map[string]fstest.MapFS{
		"no folders":                 {"a.png": pngOf(t, 0)},
		"the folder b has no images": {"a/a.png": pngOf(t, 0), "b/README": {}},
	} {
		if _, _, err := Folder(fsys); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestFromArray(t *testing.T) {
	for _, c := range []struct{ pixels, labels data.Array }{
		{data.Of([]uint8{0, 51, 255, 102}, 2, 1, 2), data.Of([]uint8{3, 4})},
		{data.Of([]float32{0, 0.2, 1, 0.4}, 2, 1, 1, 2), data.Of([]int64{3, 4})},
	} {
		ds, err := FromArray(c.pixels, c.labels)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ds.At(t.Context(), 1, nil)
		if err != nil || s.Label != 4 || s.Image.C != 1 || s.Image.H != 1 || s.Image.W != 2 {
			t.Errorf("%+v, %v", s, err)
		}
		near(t, "pixels", s.Image.Pix, []float32{1, 0.4}, 1e-6)
	}
	labels := data.Of([]int64{1})
	for _, pixels := range []data.Array{data.Of(make([]uint8, 4), 1, 4), data.Of(make([]uint8, 4), 1, 4, 1, 1), data.Of([]uint8{}, 1, 1, 0, 4)} {
		if _, err := FromArray(pixels, labels); !errors.Is(err, loris.ErrShape) {
			t.Errorf("%v: %v", pixels.Shape, err)
		}
	}
}
