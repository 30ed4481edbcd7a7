package torchexport

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"
)

// stored says where the elements of a weight lie: a view of a storage, in elements.
type stored struct {
	file           string // the member of the archive that holds the storage
	dtype          ir.DType
	sizes, strides []int64
	offset         int64
}

// sameAs reports whether two weights are one, as tied ones are.
func (w *stored) sameAs(o *stored) bool {
	return w.file == o.file && w.dtype == o.dtype && w.offset == o.offset && slices.Equal(w.sizes, o.sizes) && slices.Equal(w.strides, o.strides)
}

// storedSet is the weights of one source by their names, all in one archive.
type storedSet struct {
	p       *pt2.Package
	weights map[string]*stored
	refused map[string]string // why an entry cannot be read
}

// readConfig reads the weights that a config of the archive lists; their storages are raw.
func readConfig(ctx context.Context, p *pt2.Package, config, folder string) (*storedSet, error) {
	set := &storedSet{p: p, weights: map[string]*stored{}, refused: map[string]string{}}
	if !p.Has(config) {
		return set, nil
	}
	text, err := p.Text(ctx, config)
	if err != nil {
		return nil, err
	}
	var c jsonWeights
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, &pt2.FormatError{Path: p.Path, Member: config, Problem: "not the JSON that it should be", Err: err}
	}
	for name, e := range c.Config {
		w, err := weightOf(&e.Meta)
		switch {
		case e.UsePickle:
			set.refused[name] = "a pickled object of another class than a tensor"
			continue
		case err != nil:
			return nil, &pt2.FormatError{Path: p.Path, Member: config, Problem: fmt.Sprintf("weight %q", name), Err: err}
		}
		w.file = path.Join(folder, path.Base(e.PathName))
		set.weights[name] = w
	}
	return set, nil
}

// weightOf reads the metadata of a tensor whose sizes are numbers.
func weightOf(m *jsonTensorMeta) (*stored, error) {
	d, err := dtypeOf(m.DType)
	if err != nil {
		return nil, err
	}
	if m.Layout != stridedLayout {
		return nil, fmt.Errorf("%w: layout %d is not supported, only strided tensors are", ir.ErrArg, m.Layout)
	}
	w := &stored{dtype: d}
	if w.sizes, err = fixedInts(m.Sizes); err != nil {
		return nil, err
	}
	if w.strides, err = fixedInts(m.Strides); err != nil {
		return nil, err
	}
	offset, err := fixedInts([]union{m.StorageOffset})
	if err != nil {
		return nil, err
	}
	w.offset = offset[0]
	return w, nil
}

func fixedInts(us []union) ([]int64, error) {
	out := make([]int64, len(us))
	for i := range us {
		if us[i].kind != "as_int" {
			return nil, fmt.Errorf("a size of the kind %q where a number should be", us[i].kind)
		}
		if err := us[i].decode(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readPickle reads the weights of a member that torch.save wrote.
func readPickle(ctx context.Context, p *pt2.Package, member string) (*storedSet, error) {
	set := &storedSet{weights: map[string]*stored{}, refused: map[string]string{}}
	s, err := p.File(member)
	if err != nil {
		return nil, err
	}
	if s.Size == 0 { // no weights at all
		return set, s.Close()
	}
	inner, err := limits.OpenArchiveReader(s, s.Size, p.Path+": "+member)
	if err != nil {
		s.Close()
		return nil, err
	}
	set.p = inner
	for _, name := range inner.Files() {
		if path.Base(name) != "data.pkl" {
			continue
		}
		text, err := inner.Text(ctx, name)
		if err != nil {
			return nil, err
		}
		return set, set.addPickled(text, path.Dir(name), inner.Path+": "+name)
	}
	return nil, &pt2.FormatError{Path: inner.Path, Problem: "no data.pkl: torch.save did not write it"}
}

// addPickled adds the tensors of a pickle whose storages lie in the folder data below dir.
func (set *storedSet) addPickled(text []byte, dir, where string) error {
	values, err := unpickle(text)
	if err != nil {
		return &pt2.FormatError{Path: where, Problem: "not a dictionary of tensors", Err: err}
	}
	for name, v := range values {
		t, ok := v.(*pickled)
		if !ok {
			set.refused[name] = describe(v)
			continue
		}
		set.weights[name] = &stored{
			file: path.Join(dir, "data", t.storage), dtype: t.dtype, sizes: t.sizes, strides: t.strides, offset: t.offset,
		}
	}
	return nil
}

// variables makes a variable of each wanted weight; tied weights share one. Each storage is read
// once.
func (set *storedSet) variables(ctx context.Context, maker loris.Maker, wanted []string) (map[string]*loris.Variable, error) {
	byFile := map[string][]string{}
	var files []string
	for _, name := range wanted {
		if why, refused := set.refused[name]; refused {
			return nil, fmt.Errorf("weight %q is %s, and only tensors are read", name, why)
		}
		w := set.weights[name]
		if w == nil {
			return nil, fmt.Errorf("the file has no values for the weight %q", name)
		}
		if byFile[w.file] == nil {
			files = append(files, w.file)
		}
		byFile[w.file] = append(byFile[w.file], name)
	}
	out := map[string]*loris.Variable{}
	var scratch []byte
	for _, file := range files {
		s, err := set.p.File(file)
		if err != nil {
			return nil, err
		}
		done, err := set.whole(ctx, s, maker, byFile[file], out)
		if err == nil && !done {
			err = set.parts(ctx, s, maker, &scratch, byFile[file], out)
		}
		s.Close()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// whole reads a storage that is one weight, as nearly all are, to where the weight stays; false if it
// is another.
func (set *storedSet) whole(ctx context.Context, s *pt2.Section, maker loris.Maker, names []string, out map[string]*loris.Variable) (bool, error) {
	w := set.weights[names[0]]
	for _, name := range names[1:] {
		if !w.sameAs(set.weights[name]) {
			return false, nil
		}
	}
	shape, dense, err := w.layout(s.Size)
	if err != nil || !dense || int64(shape.Bytes()) != s.Size {
		return false, nil
	}
	t, err := importer.Read(ctx, maker, shape, func(data []byte) error {
		got, err := s.Contents(ctx, func(int64) ([]byte, error) { return data, nil })
		if err == nil && len(data) > 0 && &got[0] != &data[0] { // the member is compressed
			copy(data, got)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("weight %q: %w", names[0], err)
	}
	v := loris.NewVariable(t)
	for _, name := range names {
		out[name] = v
	}
	return true, nil
}

// parts reads a storage and makes the variables of its parts. The storage is held in scratch.
func (set *storedSet) parts(ctx context.Context, s *pt2.Section, maker loris.Maker, scratch *[]byte, names []string, out map[string]*loris.Variable) error {
	data, err := s.Contents(ctx, func(n int64) ([]byte, error) {
		if n > int64(cap(*scratch)) {
			*scratch = make([]byte, n)
		}
		return (*scratch)[:n], nil
	})
	if err != nil {
		return err
	}
	return set.fromStorage(data, maker, names, out)
}

// fromStorage makes the variables of one storage.
func (set *storedSet) fromStorage(data []byte, maker loris.Maker, names []string, out map[string]*loris.Variable) error {
	for i, name := range names {
		w := set.weights[name]
		for _, earlier := range names[:i] {
			if w.sameAs(set.weights[earlier]) {
				out[name] = out[earlier]
			}
		}
		if out[name] != nil {
			continue
		}
		v, err := w.variable(data, maker)
		if err != nil {
			return fmt.Errorf("weight %q: %w", name, err)
		}
		out[name] = v
	}
	return nil
}

// variable uploads a view of a storage.
func (w *stored) variable(storage []byte, maker loris.Maker) (v *loris.Variable, err error) {
	shape, data, err := w.dense(storage)
	if err != nil {
		return nil, err
	}
	err = loris.Try(func() { v = loris.NewVariable(maker.FromBytes(data, shape)) })
	return v, err
}

// dense returns the elements in row-major order, in place where they are so.
func (w *stored) dense(storage []byte) (ir.Shape, []byte, error) {
	shape, dense, err := w.layout(int64(len(storage)))
	switch {
	case err != nil || shape.Numel() == 0:
		return shape, nil, err
	case dense:
		return shape, storage[w.offset*int64(w.dtype.Size()):][:shape.Bytes()], nil
	case int64(shape.Bytes()) > 16*int64(len(storage))+1<<20:
		return shape, nil, fmt.Errorf("%v of a storage of %d bytes", shape, len(storage))
	}
	return shape, w.gather(storage, shape), nil
}

// layout returns the shape, and whether its elements lie in row-major order, of a weight that does not
// reach beyond its storage of so many bytes.
func (w *stored) layout(storage int64) (shape ir.Shape, dense bool, err error) {
	dims := make([]int, len(w.sizes))
	size := int64(w.dtype.Size())
	last, dense, expect := w.offset, true, int64(1)
	if len(w.strides) != len(w.sizes) || w.offset < 0 || w.offset > storage {
		return ir.Shape{}, false, fmt.Errorf("%d sizes, %d strides, offset %d", len(w.sizes), len(w.strides), w.offset)
	}
	empty := slices.Contains(w.sizes, 0) // its strides mean nothing
	for i := len(dims) - 1; i >= 0; i-- {
		n, stride := w.sizes[i], w.strides[i]
		if empty && n >= 0 {
			dims[i] = int(min(n, 1<<40))
			continue
		}
		if n < 0 || stride < 0 || n > storage+1 && stride != 0 || stride > storage {
			return ir.Shape{}, false, fmt.Errorf("size %d and stride %d in a storage of %d bytes", n, stride, storage)
		}
		if n > 1 {
			dense = dense && stride == expect
			if stride > 0 && n-1 > (storage-last)/stride {
				return ir.Shape{}, false, fmt.Errorf("it reaches beyond its storage of %d bytes", storage)
			}
			last += (n - 1) * stride
		}
		expect *= max(n, 1)
		dims[i] = int(min(n, 1<<40))
	}
	shape, err = ir.NewShape(w.dtype, dims)
	if err == nil && shape.Numel() > 0 && last >= storage/size {
		err = fmt.Errorf("it needs %d elements of %d bytes, its storage has %d bytes", last+1, size, storage)
	}
	return shape, dense, err
}

// gather copies strided elements, which were checked to lie in the storage.
func (w *stored) gather(storage []byte, shape ir.Shape) []byte {
	out := make([]byte, 0, shape.Bytes())
	size := int64(w.dtype.Size())
	at := make([]int64, len(w.sizes))
	for {
		pos := w.offset
		for i, n := range at {
			pos += n * w.strides[i]
		}
		out = append(out, storage[pos*size:][:size]...)
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < w.sizes[i] {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return out
		}
	}
}

// wantedFrom splits names into those of the sets that have them; the first set that has one counts.
func wantedFrom(names []string, sets ...*storedSet) ([][]string, error) {
	out := make([][]string, len(sets))
	var missing []string
	for _, name := range names {
		found := slices.IndexFunc(sets, func(s *storedSet) bool { return s.weights[name] != nil || s.refused[name] != "" })
		if found < 0 {
			missing = append(missing, name)
			continue
		}
		out[found] = append(out[found], name)
	}
	if missing != nil {
		return nil, fmt.Errorf("the file has no values for %s", strings.Join(missing, ", "))
	}
	return out, nil
}
