package aoti

import (
	"fmt"
	"io"

	"github.com/loris-ml/loris/aoti/internal/pt2"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/ir"
)

// mapping is a file of a package in memory; nil has no bytes.
type mapping struct {
	data  []byte
	unmap func() error
}

func (m *mapping) bytes() []byte {
	if m == nil {
		return nil
	}
	return m.data
}

func (m *mapping) close() error {
	if m == nil || m.unmap == nil {
		return nil
	}
	return m.unmap()
}

// openSection maps a section, or reads it where it cannot be mapped, and closes
// it.
func openSection(s *pt2.Section) (*mapping, error) {
	defer s.Close()
	if m, err := mapSection(s); err == nil {
		return m, nil
	}
	data := make([]byte, s.Size)
	if _, err := s.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	return &mapping{data: data}, nil
}

// readWeights opens the weights that lie outside of the library: one file for
// all, which the library reads, or one for each, which are set as constants.
func (c *hostedModel) readWeights(m *pt2.Model) error {
	if m.BlobFile != "" {
		s, err := m.Open(m.BlobFile)
		if err != nil {
			return err
		}
		if c.blob, err = openSection(s); err != nil {
			return err
		}
	}
	spec, err := m.Spec()
	if err != nil || len(m.Weights) == 0 {
		return err
	}
	dtypes := map[string]ir.DType{}
	for _, k := range spec.Constants {
		dtypes[k.Name], dtypes[k.OriginalName] = k.Shape.DType(), k.Shape.DType()
	}
	c.weights = make(map[string]Buffer, len(m.Weights))
	for name := range m.Weights {
		b, err := readWeight(m, name, dtypes[name])
		if err != nil {
			return fmt.Errorf("weight %q: %w", name, err)
		}
		c.weights[name] = b
	}
	return nil
}

// readWeight returns a stored weight as a dense tensor. Its file does not say its
// dtype.
func readWeight(m *pt2.Model, name string, d ir.DType) (Buffer, error) {
	if !d.Valid() {
		return nil, fmt.Errorf("%w: the package does not tell it", ir.ErrDType)
	}
	s, w, err := m.Weight(name)
	if err != nil {
		return nil, err
	}
	dims := make([]int, len(w.Shape))
	for i, n := range w.Shape {
		dims[i] = int(n)
	}
	shape, err := ir.NewShape(d, dims)
	if err != nil {
		s.Close()
		return nil, err
	}
	if err := inStorage(w, shape, s.Size); err != nil {
		s.Close()
		return nil, err
	}
	data, err := openSection(s)
	if err != nil {
		return nil, err
	}
	if rowMajor(w.Shape, w.Strides) {
		at := w.Offset * int64(d.Size())
		return hostmem.Wrap(shape, cpu(), data.data[at:at+int64(shape.Bytes())], func() { data.close() })
	}
	defer data.close()
	b := allocator.New(shape, cpu())
	gather(b.Data(), data.data, w, d.Size())
	return b, nil
}

// inStorage checks that a weight lies inside its storage of size bytes.
func inStorage(w pt2.StoredWeight, s ir.Shape, size int64) error {
	n := size / int64(s.DType().Size())
	last := w.Offset
	for d, stride := range w.Strides {
		if stride < 0 || stride > n || w.Shape[d] > n {
			return fmt.Errorf("%w: strides %v in a file of %d bytes", ir.ErrShape, w.Strides, size)
		}
		last += max(w.Shape[d]-1, 0) * stride
		if last >= n && s.Bytes() > 0 {
			return fmt.Errorf("%w: %v with strides %v at %d in a file of %d bytes", ir.ErrShape, s, w.Strides, w.Offset, size)
		}
	}
	return nil
}

// gather copies strided elements of the given size to dense ones.
func gather(dst, src []byte, w pt2.StoredWeight, size int) {
	index := make([]int64, len(w.Shape))
	for ; len(dst) > 0; dst = dst[size:] {
		at := w.Offset
		for d, i := range index {
			at += i * w.Strides[d]
		}
		copy(dst[:size], src[at*int64(size):])
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < w.Shape[d] {
				break
			}
			index[d] = 0
		}
	}
}
