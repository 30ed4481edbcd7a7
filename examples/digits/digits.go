// Package digits is a data set of 1,797 handwritten digits, small enough to
// live in the binary, for examples and tests that train a model. README.md
// names its source and shows how to read it in the same order from Python.
package digits

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/loris-ml/loris/data"
)

const (
	// Size is the number of images of the whole set.
	Size = 1797
	// Features is the number of pixels of an image, 8 rows of 8.
	Features = 64
	// Classes is the number of labels, 0 to 9.
	Classes = 10
	// TestPerClass is the number of images of each digit in the test part of a
	// split.
	TestPerClass = 36

	maxPixel = 16
)

//go:embed digits.csv.gz
var compressed []byte

// Dataset is n images and their labels.
type Dataset struct {
	Pixels []float32 // n×64, row-major, from 0 (paper) to 1 (ink)
	Labels []int64   // n, the digits
}

// Load returns the whole set in the order of its source. An error means that
// the embedded file is damaged.
func Load() (*Dataset, error) {
	return parse(bytes.NewReader(compressed))
}

// parse reads compressed lines of 64 pixels from 0 to 16 and a label.
func parse(r io.Reader) (*Dataset, error) {
	text, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("digits: %w", err)
	}
	rows := csv.NewReader(text)
	rows.FieldsPerRecord = Features + 1
	rows.ReuseRecord = true
	d := &Dataset{
		Pixels: make([]float32, 0, Size*Features),
		Labels: make([]int64, 0, Size),
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("digits: %w", err)
		}
		for i, field := range row {
			bound := uint64(maxPixel)
			if i == Features {
				bound = Classes - 1
			}
			v, err := strconv.ParseUint(field, 10, 8)
			if err != nil || v > bound {
				line, column := rows.FieldPos(i)
				return nil, fmt.Errorf("digits: line %d, column %d: %q is no number from 0 to %d", line, column, field, bound)
			}
			if i == Features {
				d.Labels = append(d.Labels, int64(v))
			} else {
				d.Pixels = append(d.Pixels, float32(v)/maxPixel)
			}
		}
	}
	if d.Len() != Size {
		return nil, fmt.Errorf("digits: %d images, want %d", d.Len(), Size)
	}
	return d, nil
}

// Len returns the number of images.
func (d *Dataset) Len() int { return len(d.Labels) }

// Image returns the 64 pixels of image i, which belong to d.
func (d *Dataset) Image(i int) []float32 {
	return d.Pixels[i*Features : (i+1)*Features : (i+1)*Features]
}

// Select returns a copy of the images at the indices, in that order.
func (d *Dataset) Select(indices []int) *Dataset {
	s := &Dataset{
		Pixels: make([]float32, 0, len(indices)*Features),
		Labels: make([]int64, 0, len(indices)),
	}
	for _, i := range indices {
		s.Pixels = append(s.Pixels, d.Image(i)...)
		s.Labels = append(s.Labels, d.Labels[i])
	}
	return s
}

// Split divides d into two parts: in the order of data.Permutation(d.Len(), seed),
// the first 36 images of each digit are for testing, the others for training.
// Of the whole set these are 360 and 1,437 images.
func (d *Dataset) Split(seed uint64) (train, test *Dataset) {
	var trainIndices, testIndices []int
	var taken [Classes]int
	for _, i := range data.Permutation(d.Len(), seed) {
		label := d.Labels[i]
		if taken[label] < TestPerClass {
			taken[label]++
			testIndices = append(testIndices, i)
		} else {
			trainIndices = append(trainIndices, i)
		}
	}
	return d.Select(trainIndices), d.Select(testIndices)
}

// Batches goes once over d, in the order of data.Permutation(d.Len(), seed+epoch), in
// batches of size images. Images that do not fill a last batch make a smaller
// one, so that an epoch sees every image once. Every batch is a new copy, which
// the caller may keep. It panics unless size is positive.
func (d *Dataset) Batches(size int, seed, epoch uint64) iter.Seq[*Dataset] {
	if size <= 0 {
		panic(fmt.Sprintf("digits: batches of %d", size))
	}
	return func(yield func(*Dataset) bool) {
		order := data.Permutation(d.Len(), seed+epoch)
		for len(order) > 0 {
			n := min(size, len(order))
			if !yield(d.Select(order[:n])) {
				return
			}
			order = order[n:]
		}
	}
}
