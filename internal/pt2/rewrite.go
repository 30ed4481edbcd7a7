package pt2

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Value is a constant's new value: dense, row-major and little endian.
type Value struct {
	Shape ir.Shape
	Data  []byte
}

// Rewrite writes the package again, as aoti.Rewrite says.
func (m *Model) Rewrite(w io.Writer, values map[string]Value, partial bool) error {
	edits, file, err := m.weightEdits(values, partial)
	if err != nil {
		return fmt.Errorf("pt2: %s: model %q: %w", m.p.Path, m.Name, err)
	}
	changed := m.files[file]
	if err := changed.verify(); err != nil { // its new checksum must not hide damage
		return locate(err, m.p.Path, "")
	}
	s, err := m.Open(file)
	if err != nil {
		return err
	}
	defer s.Close()
	content := &edited{s, edits}
	switch m.p.Kind {
	case KindLibrary:
		if file != m.LibraryFile {
			return fmt.Errorf("pt2: %s: the weights of a bare library lie in %s, which has no archive around it", m.p.Path, file)
		}
		_, err := io.Copy(w, io.NewSectionReader(content, 0, s.Size))
		return err
	case KindFolder:
		return fmt.Errorf("pt2: %s: only archives and libraries can be written again, not folders", m.p.Path)
	}
	return m.p.copyArchive(w, changed.name, content, s.Size)
}

// weightEdits returns the changes to the file that holds the weights.
func (m *Model) weightEdits(values map[string]Value, partial bool) ([]Edit, string, error) {
	spec, err := m.Spec()
	if err != nil {
		return nil, "", err
	}
	lib, err := m.Library()
	if err != nil {
		return nil, "", err
	}
	file, base := m.LibraryFile, lib.Weights.Offset
	switch {
	case len(m.Weights) > 0:
		return nil, "", errors.New("its weights lie in files that PyTorch saved one by one")
	case lib.Weights.Kind == WeightsOutside && m.BlobFile != "":
		file, base = m.BlobFile, 0
	case lib.Weights.Kind != WeightsInside && lib.Weights.Kind != WeightsAppended:
		return nil, "", errors.New("it has no weights in its package")
	}
	places, err := placeConstants(spec.Constants, lib.Weights.Size)
	if err != nil {
		return nil, "", err
	}
	var edits []Edit
	used := map[string]bool{}
	for i := range spec.Constants {
		c := &spec.Constants[i]
		name, v, ok := lookup(values, c)
		if !ok {
			if !partial && !exempt(c) {
				return nil, "", fmt.Errorf("constant %q has no new value", cmp.Or(c.OriginalName, c.Name))
			}
			continue
		}
		used[name] = true
		more, err := c.edits(v, base+places[i])
		if err != nil {
			return nil, "", err
		}
		edits = append(edits, more...)
	}
	for name := range values {
		if !used[name] {
			return nil, "", fmt.Errorf("there is no constant %q (PyTorch writes those of up to eight elements into the code as numbers, and leaves out those that are not used)", name)
		}
	}
	slices.SortFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Offset, b.Offset) })
	return edits, file, nil
}

func lookup(values map[string]Value, c *ConstantSpec) (string, Value, bool) {
	for _, name := range []string{c.Name, c.OriginalName} {
		if v, ok := values[name]; ok && name != "" {
			return name, v, true
		}
	}
	return "", Value{}, false
}

// exempt reports whether full updates may leave a constant out.
func exempt(c *ConstantSpec) bool {
	return c.FromFolded || c.Type == backend.ConstantBuffer || c.Type == backend.ConstantTensor ||
		strings.HasPrefix(c.Name, "_tensor_constant") || slices.Contains(c.Sizes, 0)
}

// placeConstants returns where in the weights each constant begins; folded ones
// have no place. Each is padded to a multiple that depends on the device, so that
// one is taken which makes the sum right.
func placeConstants(cs []ConstantSpec, total int64) ([]int64, error) {
	for _, align := range []int64{64, 1} {
		places := make([]int64, len(cs))
		at := int64(0)
		for i := range cs {
			places[i] = at
			if n := cs[i].Bytes; !cs[i].FromFolded && n >= 0 && n <= total {
				at += (n + align - 1) / align * align
			} else if !cs[i].FromFolded {
				at = total + 1
			}
			if at > total {
				break
			}
		}
		if at == total {
			return places, nil
		}
	}
	return nil, fmt.Errorf("its constants don't add up to the %d bytes of weights", total)
}

// edits returns the changes that give the constant, whose storage begins at an
// offset of the file, a new value.
func (c *ConstantSpec) edits(v Value, at int64) ([]Edit, error) {
	switch {
	case c.Opaque != nil:
		return nil, fmt.Errorf("constant %q is packed in a way that only oneDNN knows", c.Name)
	case c.FromFolded:
		return nil, fmt.Errorf("constant %q is computed from others", c.Name)
	case v.Shape != c.Shape || len(v.Data) != v.Shape.Bytes():
		return nil, fmt.Errorf("constant %q is %v, the new value %v", c.Name, c.Shape, v.Shape)
	case len(c.Strides) != len(c.Sizes):
		return nil, fmt.Errorf("constant %q has unknown strides", c.Name)
	}
	if len(v.Data) == 0 {
		return nil, nil
	}
	size := int64(c.Shape.DType().Size())
	dense := v.Shape.Strides()
	isDense := true
	last := c.Offset // the highest element
	for d, n := range c.Sizes {
		if c.Strides[d] < 0 || c.Offset < 0 || last > c.Bytes {
			return nil, fmt.Errorf("constant %q has impossible strides", c.Name)
		}
		isDense = isDense && (n == 1 || c.Strides[d] == int64(dense[d]))
		last += (n - 1) * min(c.Strides[d], c.Bytes)
	}
	if (last+1)*size > c.Bytes {
		return nil, fmt.Errorf("constant %q does not fit into its storage of %d bytes", c.Name, c.Bytes)
	}
	if isDense {
		return []Edit{{at + c.Offset*size, v.Data}}, nil
	}
	return c.scatter(v, at+c.Offset*size, size), nil
}

// scatter returns one change for each element of a constant that does not lie
// dense, in the order of the file.
func (c *ConstantSpec) scatter(v Value, at, size int64) []Edit {
	edits := make([]Edit, 0, v.Shape.Numel())
	index := make([]int64, len(c.Sizes))
	for i := range v.Shape.Numel() {
		pos := at
		for d, n := range index {
			pos += n * c.Strides[d] * size
		}
		edits = append(edits, Edit{pos, v.Data[int64(i)*size : int64(i+1)*size]})
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < c.Sizes[d] {
				break
			}
			index[d] = 0
		}
	}
	return edits
}

// edited is a file with changes; they are in order and don't overlap.
type edited struct {
	io.ReaderAt
	edits []Edit
}

// ReadAt reads with the changes.
func (e *edited) ReadAt(p []byte, off int64) (int, error) {
	n, err := e.ReaderAt.ReadAt(p, off)
	end := off + int64(n)
	first, _ := slices.BinarySearchFunc(e.edits, off, func(d Edit, off int64) int {
		return cmp.Compare(d.Offset+int64(len(d.Data)), off)
	})
	for _, d := range e.edits[first:] {
		if d.Offset >= end {
			break
		}
		from, to := max(d.Offset, off), min(d.Offset+int64(len(d.Data)), end)
		if from < to {
			copy(p[from-off:to-off], d.Data[from-d.Offset:])
		}
	}
	return n, err
}

// copyArchive writes the archive again with one member replaced.
func (p *Package) copyArchive(w io.Writer, name string, content io.ReaderAt, size int64) error {
	z, err := zip.NewReader(p.source, p.sourceSize)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("pt2: %s: %w", p.Path, err)
	}
	count := &counter{w: w}
	out := zip.NewWriter(count)
	full := path.Join(p.Root, name)
	var owed int64 // what the writer has yet to write after the last member
	for _, f := range z.File {
		if clean, err := cleanName(f.Name); err != nil || clean != full {
			if err := out.Copy(f); err != nil {
				return fmt.Errorf("pt2: %s: copy %s: %w", p.Path, f.Name, err)
			}
			owed = descriptor(f)
			continue
		}
		if err := replaceMember(out, count, owed, f, io.NewSectionReader(content, 0, size)); err != nil {
			return fmt.Errorf("pt2: %s: write %s: %w", p.Path, f.Name, err)
		}
	}
	return out.Close()
}

// memberAlign is what PyTorch aligns the bytes of stored members to.
const memberAlign = 64

// descriptor returns the size of the sizes and checksum that follow a member
// whose header lacks them.
func descriptor(f *zip.File) int64 {
	switch {
	case f.Flags&8 == 0:
		return 0
	case f.CompressedSize64 > 1<<32-2 || f.UncompressedSize64 > 1<<32-2:
		return 24
	}
	return 16
}

func replaceMember(out *zip.Writer, count *counter, owed int64, f *zip.File, content *io.SectionReader) error {
	if f.Method != zip.Store {
		dst, err := out.CreateHeader(&zip.FileHeader{Name: f.Name, Method: f.Method, Modified: f.Modified})
		if err != nil {
			return err
		}
		_, err = io.Copy(dst, content)
		return err
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, content); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	dst, err := out.CreateRaw(alignedHeader(f.Name, count.n+owed, content.Size(), sum.Sum32()))
	if err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(dst, content)
	return err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

// Write writes and counts.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
