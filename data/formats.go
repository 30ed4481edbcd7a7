package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// idxTypes are the element types of the IDX format.
var idxTypes = map[byte]loris.DType{
	0x08: loris.U8, 0x09: loris.I8, 0x0b: loris.I16, 0x0c: loris.I32, 0x0d: loris.F32, 0x0e: loris.F64,
}

// ReadIDX reads an array in the IDX format, in which MNIST and the data sets after it are
// distributed: those of images are [N, 28, 28] of u8, those of labels [N]. The files are compressed;
// gzip.NewReader reads them. Memory grows with what r has, not with what it says. A file that is not
// of the format, too short or too long, is an error wrapping ErrFormat.
func ReadIDX(r io.Reader) (Array, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Array{}, malformed("idx", "the head", err)
	}
	d, ok := idxTypes[head[2]]
	if head[0] != 0 || head[1] != 0 || !ok {
		return Array{}, fmt.Errorf("data: idx: %w: it begins with % x", ErrFormat, head)
	}
	if head[3] > ir.MaxRank {
		return Array{}, fmt.Errorf("data: idx: %w: %d dimensions", ErrFormat, head[3])
	}
	sizes := make([]byte, 4*head[3])
	if _, err := io.ReadFull(r, sizes); err != nil {
		return Array{}, malformed("idx", "the sizes", err)
	}
	dims := make([]int, head[3])
	for i := range dims {
		dims[i] = int(binary.BigEndian.Uint32(sizes[4*i:]))
	}
	s, err := ir.NewShape(d, dims)
	if err != nil {
		return Array{}, fmt.Errorf("data: idx: %w: %w", ErrFormat, err)
	}
	var data bytes.Buffer
	if _, err := io.CopyN(&data, r, int64(s.Bytes())); err != nil {
		return Array{}, malformed("idx", s.String(), err)
	}
	if n, err := io.ReadFull(r, head[:1]); n > 0 {
		return Array{}, fmt.Errorf("data: idx: %w: bytes follow %v", ErrFormat, s)
	} else if err != io.EOF {
		return Array{}, fmt.Errorf("data: idx: %w", err)
	}
	for element := range slices.Chunk(data.Bytes(), d.Size()) { // they are big endian
		slices.Reverse(element)
	}
	return Array{s, data.Bytes()}, nil
}

// malformed is the error of a read that ended with err; what says of what.
func malformed(format, what string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("data: %s: %w: it ends within %s: %w", format, ErrFormat, what, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("data: %s: %w", format, err)
}

// cifarPixels is the size of an image of the CIFAR data sets: 3 channels of 32 by 32 pixels.
const cifarPixels = 3 * 32 * 32

// ReadCIFAR10 reads a file of the binary version of CIFAR-10: the images, [N, 3, 32, 32] of u8, and
// their labels, [N] of u8. A file that is not of the format is an error wrapping ErrFormat.
func ReadCIFAR10(r io.Reader) (images, labels Array, err error) {
	images, all, err := readCIFAR(r, 10)
	if err != nil {
		return Array{}, Array{}, err
	}
	return images, all[0], nil
}

// ReadCIFAR100 reads a file of the binary version of CIFAR-100: as ReadCIFAR10, with two labels for
// each image, one of 20 coarse and one of 100 fine classes.
func ReadCIFAR100(r io.Reader) (images, coarse, fine Array, err error) {
	images, all, err := readCIFAR(r, 20, 100)
	if err != nil {
		return Array{}, Array{}, Array{}, err
	}
	return images, all[0], all[1], nil
}

// readCIFAR reads images with as many labels as there are numbers of classes.
func readCIFAR(r io.Reader, classes ...int) (images Array, labels []Array, err error) {
	record := make([]byte, len(classes)+cifarPixels)
	var pixels []byte
	all := make([][]byte, len(classes))
	n := 0
	for ; ; n++ {
		if _, err := io.ReadFull(r, record); err == io.EOF {
			break
		} else if err != nil {
			return Array{}, nil, malformed("cifar", fmt.Sprintf("image %d", n), err)
		}
		for k, bound := range classes {
			if int(record[k]) >= bound {
				return Array{}, nil, fmt.Errorf("data: cifar: %w: image %d has the label %d of %d", ErrFormat, n, record[k], bound)
			}
			all[k] = append(all[k], record[k])
		}
		pixels = append(pixels, record[len(classes):]...)
	}
	for k := range classes {
		labels = append(labels, Array{loris.MakeShape(loris.U8, n), all[k]})
	}
	return Array{loris.MakeShape(loris.U8, n, 3, 32, 32), pixels}, labels, nil
}
