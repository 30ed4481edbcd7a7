package images

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

// Labeled is an image and the number of its class.
type Labeled struct {
	Image *Image
	Label int64
}

// Folder returns a dataset of images that lie in folders by class: every folder of fsys is a class,
// their numbers follow the order of their names, and every file in and below it whose name ends in
// .png, .jpg, .jpeg or .gif is an image of it. Files are read when they are asked for. It also
// returns the names of the classes. No class, or a class without an image, is an error.
func Folder(fsys fs.FS) (data.Dataset[Labeled], []string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("images: %w", err)
	}
	var classes, paths []string
	var labels []int64
	for _, e := range entries { // by name
		if !e.IsDir() {
			continue
		}
		before := len(paths)
		err := fs.WalkDir(fsys, e.Name(), func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif"}, strings.ToLower(path.Ext(name))) {
				paths, labels = append(paths, name), append(labels, int64(len(classes)))
			}
			return err
		})
		if err != nil {
			return nil, nil, fmt.Errorf("images: %w", err)
		}
		if len(paths) == before {
			return nil, nil, fmt.Errorf("images: the folder %s has no images", e.Name())
		}
		classes = append(classes, e.Name())
	}
	if classes == nil {
		return nil, nil, fmt.Errorf("images: there are no folders, one for each class")
	}
	label := make(map[string]int64, len(paths))
	for i, p := range paths {
		label[p] = labels[i]
	}
	return data.Files(fsys, paths, func(name string, r io.Reader) (Labeled, error) {
		im, err := Decode(r)
		return Labeled{im, label[name]}, err
	}), classes, nil
}

// ToSample returns a function for data.Augment that applies transforms and makes samples of two
// arrays: the pixels in the layout, and the label as an i64.
func ToSample(l Layout, ts ...Transform) func(r *rand.Rand, s Labeled) (data.Sample, error) {
	all := Compose(ts...)
	return func(r *rand.Rand, s Labeled) (data.Sample, error) {
		return data.Sample{all(r, s.Image).Array(l), data.Of([]int64{s.Label}, []int{}...)}, nil
	}
}

// FromArray returns the images of an array [N, H, W], [N, 1, H, W] or [N, 3, H, W] of u8, from 0 to
// 255, or f32, which they share, with their labels, an array [N] of u8 or i64: what data.ReadIDX and
// data.ReadCIFAR give, say.
func FromArray(pixels, labels data.Array) (data.Dataset[Labeled], error) {
	dims := pixels.Shape.Dims()
	if len(dims) == 3 {
		dims = []int{dims[0], 1, dims[1], dims[2]}
	}
	if len(dims) != 4 || dims[1] != 1 && dims[1] != 3 || slices.Min(dims[1:]) < 1 {
		return nil, fmt.Errorf("images: %w: %v is not [N, H, W], [N, 1, H, W] or [N, 3, H, W]", loris.ErrShape, pixels.Shape)
	}
	rows, err := data.Rows(pixels, labels)
	if err != nil {
		return nil, err
	}
	return data.Map(rows, func(s data.Sample) (out Labeled, err error) {
		if out.Image, err = imageOf(s[0], dims); err == nil {
			out.Label, err = labelOf(s[1])
		}
		return out, err
	}), nil
}

func imageOf(a data.Array, dims []int) (*Image, error) {
	im := &Image{C: dims[1], H: dims[2], W: dims[3]}
	if a.Shape.DType() == loris.U8 {
		im.Pix = make([]float32, len(a.Data))
		for i, v := range a.Data {
			im.Pix[i] = float32(v) / 255
		}
		return im, nil
	}
	var err error
	im.Pix, err = data.Values[float32](a)
	return im, err
}

func labelOf(a data.Array) (int64, error) {
	if a.Shape.Rank() != 0 {
		return 0, fmt.Errorf("images: %w: labels of %v", loris.ErrShape, a.Shape)
	}
	if a.Shape.DType() == loris.U8 {
		return int64(a.Data[0]), nil
	}
	v, err := data.Values[int64](a)
	if err != nil {
		return 0, err
	}
	return v[0], nil
}
