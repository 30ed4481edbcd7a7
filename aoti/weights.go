package aoti

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
	"github.com/loris-ml/loris/internal/pt2"
)

// mapping is the contents of a file of a package; nil has no bytes. It counts the
// references of those who use them.
type mapping struct {
	data  []byte
	unmap func() error // nil for memory of the Go heap that is not counted
	refs  atomic.Int32
}

func newMapping(data []byte, unmap func() error) *mapping {
	m := &mapping{data: data, unmap: unmap}
	m.refs.Store(1)
	return m
}

func (m *mapping) bytes() []byte {
	if m == nil {
		return nil
	}
	return m.data
}

// retain adds a reference.
func (m *mapping) retain() { m.refs.Add(1) }

// release drops a reference and with the last one gives the memory back.
func (m *mapping) release() error {
	if m == nil || m.refs.Add(-1) > 0 || m.unmap == nil {
		return nil
	}
	return m.unmap()
}

// openSection brings the contents of a section to memory and closes it. With verify they
// are a verified copy, which no later change of the file reaches; without they are mapped
// where they can be.
func openSection(ctx context.Context, s *pt2.Section, verify bool) (*mapping, error) {
	defer s.Close()
	if !verify {
		if m, err := mapSection(s); err == nil {
			return m, nil
		}
	}
	var own *mapping
	data, err := s.Contents(ctx, func(size int64) ([]byte, error) {
		var err error
		own, err = countedMemory(size)
		return own.bytes(), err
	})
	switch {
	case err != nil:
		own.release()
		return nil, err
	case own == nil:
		return newMapping(data, nil), nil
	}
	return own, nil
}

// countedMemory is newMemory, counted with the memory that tensors hold: more than they
// may is an *ir.OutOfMemory.
func countedMemory(size int64) (*mapping, error) {
	if err := memlimit.Take(size, 0); err != nil {
		return nil, err
	}
	m, err := newMemory(size)
	if err != nil {
		memlimit.Give(size)
		return nil, err
	}
	unmap := m.unmap
	m.unmap = func() error { defer memlimit.Give(size); return unmap() }
	return m, nil
}

// readWeights opens the weights that lie outside of the library: one file for
// all, which the library reads, or one for each, which are set as constants.
func (c *hostedModel) readWeights(ctx context.Context, m *pt2.Model, verify bool) error {
	if m.BlobFile != "" {
		s, err := m.Open(m.BlobFile)
		if err != nil {
			return err
		}
		if c.blob, err = openSection(ctx, s, verify); err != nil {
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
	files := map[string][]string{} // the names of the weights in each
	for name, w := range m.Weights {
		files[w.File] = append(files[w.File], name)
	}
	r := weightReader{m: m, verify: verify, dtypes: dtypes, into: c.weights, room: maxExpanded}
	for file, names := range files {
		slices.Sort(names)
		if err := r.read(ctx, file, names); err != nil {
			return err
		}
	}
	return nil
}

// maxExpanded bounds by how many bytes weights that are expanded views of smaller
// storages may be larger than these together: a line of text asks for any size.
const maxExpanded = 1 << 30

// weightReader reads the files of data/weights.
type weightReader struct {
	m      *pt2.Model
	verify bool
	dtypes map[string]ir.DType // by the names of constants
	into   map[string]Buffer
	room   int64 // what is left of maxExpanded
}

// read reads a file, which is a storage, and makes the weights of it.
func (r *weightReader) read(ctx context.Context, file string, names []string) error {
	s, err := r.m.WeightFile(file)
	if err != nil {
		return err
	}
	data, err := openSection(ctx, s, r.verify)
	if err != nil {
		return err
	}
	defer data.release()
	storage, err := r.m.Storage(ctx, file, data.data, r.verify)
	if err != nil {
		return err
	}
	dense := int64(len(storage)) // what copies may take before they count as expanded
	for _, name := range names {
		b, err := r.weight(name, data, storage, &dense)
		if err != nil {
			return fmt.Errorf("weight %q: %w", name, err)
		}
		r.into[name] = b
	}
	return nil
}

// weight returns a weight as a dense tensor. Its file does not say its dtype.
func (r *weightReader) weight(name string, data *mapping, storage []byte, dense *int64) (Buffer, error) {
	d := r.dtypes[name]
	if !d.Valid() {
		return nil, fmt.Errorf("%w: the package does not tell it", ir.ErrDType)
	}
	w := r.m.Weights[name]
	dims := make([]int, len(w.Shape))
	for i, n := range w.Shape {
		dims[i] = int(n)
	}
	shape, err := ir.NewShape(d, dims)
	if err != nil {
		return nil, err
	}
	if err := inStorage(w, shape, int64(len(storage))); err != nil {
		return nil, err
	}
	size := int64(shape.Bytes())
	if rowMajor(w.Shape, w.Strides) {
		at := w.Offset * int64(d.Size())
		data.retain()
		return hostmem.Wrap(shape, cpu(), storage[at:at+size], func() { data.release() })
	}
	free := min(size, *dense)
	*dense -= free
	if r.room -= size - free; r.room < 0 {
		return nil, fmt.Errorf("%w: %v in a storage of %d bytes: the expanded weights take more than the %d bytes allowed beside their storages",
			ir.ErrShape, shape, len(storage), maxExpanded)
	}
	b, err := allocator.New(shape, cpu())
	if err != nil {
		return nil, err
	}
	gather(b.Data(), storage, w, d.Size())
	return b, nil
}

// inStorage checks that a weight lies inside its storage of size bytes. Every weight
// begins inside it, or at its end if it has no elements.
func inStorage(w pt2.StoredWeight, s ir.Shape, size int64) error {
	n := size / int64(s.DType().Size())
	outside := func() error {
		return fmt.Errorf("%w: %v with strides %v at %d in a storage of %d bytes", ir.ErrShape, s, w.Strides, w.Offset, size)
	}
	if s.Numel() == 0 {
		if w.Offset < 0 || w.Offset > n {
			return outside()
		}
		return nil
	}
	last := w.Offset
	if last < 0 || last >= n {
		return outside()
	}
	for d, stride := range w.Strides {
		if stride < 0 || stride > 0 && w.Shape[d]-1 > (n-1-last)/stride {
			return outside()
		}
		last += (w.Shape[d] - 1) * stride
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
