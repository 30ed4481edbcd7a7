package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"
)

// Info describes a tensor of a file.
type Info struct {
	Name   string
	DType  DType
	Shape  []int64 // empty for a scalar; not to be modified
	Offset int64   // position of the data in the file
	Size   int64   // of the data, in bytes
}

// File is an opened file. Its methods may be called from many goroutines at
// once if the underlying reader's ReadAt may, as an *os.File's.
type File struct {
	r        io.ReaderAt
	closer   io.Closer
	tensors  []Info
	index    map[string]int // into tensors, by name
	metadata map[string]string
}

// Open opens the file at path and reads its header. The error is a *FormatError
// for a malformed file, wrapped with the path.
func Open(path string) (*File, error) {
	osFile, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := openFile(osFile)
	if err != nil {
		osFile.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func openFile(osFile *os.File) (*File, error) {
	info, err := osFile.Stat()
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := Read(osFile, info.Size())
	if err != nil {
		return nil, err
	}
	f.closer = osFile
	return f, nil
}

// Read reads the header of the file of the given size that r holds. It returns
// a *FormatError for a malformed file and wraps r's errors.
func Read(r io.ReaderAt, size int64) (*File, error) {
	if size < lengthSize {
		return nil, &FormatError{0, fmt.Sprintf("%d bytes are too few for the length of the header", size)}
	}
	var length [lengthSize]byte
	if err := readAt(r, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, &FormatError{0, fmt.Sprintf("a header of %d bytes, more than %d", n, maxHeader)}
	}
	if int64(n) > size-lengthSize {
		return nil, &FormatError{0, fmt.Sprintf("a header of %d bytes in a file of %d", n, size)}
	}
	header := make([]byte, n)
	if err := readAt(r, header, lengthSize); err != nil {
		return nil, err
	}
	f := &File{r: r}
	if err := f.parse(header, size-lengthSize-int64(n)); err != nil {
		return nil, err
	}
	return f, nil
}

// readAt fills dst from position off.
func readAt(r io.ReaderAt, dst []byte, off int64) error {
	n, err := r.ReadAt(dst, off)
	if n == len(dst) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("safetensors: %d bytes at %d: %w", len(dst), off, err)
}

// Close closes a file that Open opened; for one from Read it does nothing.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Metadata returns the free-form entries of the header, nil without any.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensors describes all tensors, those of unsupported dtypes too, in the order
// of their data.
func (f *File) Tensors() []Info { return slices.Clone(f.tensors) }

// Lookup describes the named tensor.
func (f *File) Lookup(name string) (Info, bool) {
	i, ok := f.index[name]
	if !ok {
		return Info{}, false
	}
	return f.tensors[i], true
}

// readable finds the named tensor and checks that its dtype is supported.
func (f *File) readable(name string) (Info, error) {
	t, ok := f.Lookup(name)
	if !ok {
		return Info{}, fmt.Errorf("safetensors: tensor %q: %w", name, ErrNotFound)
	}
	if !t.DType.Supported() {
		return Info{}, fmt.Errorf("safetensors: tensor %q: %w %s", name, ErrUnsupportedDType, t.DType)
	}
	return t, nil
}

// Bytes reads the data of the named tensor. It returns ErrNotFound or
// ErrUnsupportedDType, wrapped with the name, or the reader's error.
func (f *File) Bytes(name string) ([]byte, error) {
	t, err := f.readable(name)
	if err != nil {
		return nil, err
	}
	data := make([]byte, t.Size)
	if err := readAt(f.r, data, t.Offset); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return data, nil
}

// ReadInto reads the data of the named tensor into dst, which has its size. It
// returns the errors of Bytes, and ErrInvalidTensor for a dst of another size.
func (f *File) ReadInto(name string, dst []byte) error {
	t, err := f.readable(name)
	if err != nil {
		return err
	}
	if int64(len(dst)) != t.Size {
		return fmt.Errorf("safetensors: tensor %q: %w: %d bytes into a buffer of %d", name, ErrInvalidTensor, t.Size, len(dst))
	}
	if err := readAt(f.r, dst, t.Offset); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	return nil
}

// Section returns a reader of the data of the named tensor, for tensors too
// large to read at once. It returns ErrNotFound or ErrUnsupportedDType.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, err := f.readable(name)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f.r, t.Offset, t.Size), nil
}

// entry is a tensor of the header with the positions that errors point at.
type entry struct {
	Info       // Offset and Size as yet hold the two data_offsets
	pos    int // of the name
	dtypeP int // of the members' values
	shapeP int
	rangeP int
}

// parse fills f from the header; dataSize bytes follow it.
func (f *File) parse(header []byte, dataSize int64) error {
	s := &scanner{data: header}
	if !utf8.Valid(header) {
		for rest := header; ; {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n <= 1 {
				return s.fail(len(header)-len(rest), "the header is no UTF-8 text")
			}
			rest = rest[n:]
		}
	}
	if len(header) == 0 || header[0] != '{' {
		return s.unexpected("'{'")
	}
	var entries []entry
	f.index = map[string]int{metadataName: -1} // whose values place sets
	hasMetadata := false
	err := s.object(func(name string, pos int) error {
		if name == metadataName && !hasMetadata {
			hasMetadata = true
			return f.parseMetadata(s)
		}
		if _, dup := f.index[name]; dup {
			return s.fail(pos, "%.80q appears twice", name)
		}
		f.index[name] = len(entries)
		e, err := s.tensor(name, pos)
		entries = append(entries, e)
		return err
	})
	delete(f.index, metadataName)
	if err != nil {
		return err
	}
	if s.peek(); s.pos < len(header) {
		return s.unexpected("the end of the header")
	}
	return f.place(s, entries, dataSize)
}

func (f *File) parseMetadata(s *scanner) error {
	if s.peek() == 'n' { // null is as good as absent
		return s.skip()
	}
	f.metadata = make(map[string]string)
	return s.object(func(key string, pos int) error {
		if _, dup := f.metadata[key]; dup {
			return s.fail(pos, "%.80q appears twice", key)
		}
		value, err := s.str()
		f.metadata[key] = value
		return err
	})
}

// tensor reads the description of a tensor. Members it does not know it skips,
// as the reference does.
func (s *scanner) tensor(name string, pos int) (entry, error) {
	e := entry{pos: pos}
	e.Name = name
	seen := make(map[string]bool, 3)
	err := s.object(func(key string, pos int) (err error) {
		if seen[key] {
			return s.fail(pos, "%.80q appears twice", key)
		}
		s.peek()
		switch key {
		case "dtype":
			e.dtypeP = s.pos
			var d string
			if d, err = s.str(); err == nil && DType(d).Bits() == 0 {
				err = s.fail(e.dtypeP, "unknown dtype %.80q", d)
			}
			e.DType = DType(d)
		case "shape":
			e.shapeP = s.pos
			e.Shape, err = s.integers(maxRank)
		case "data_offsets":
			e.rangeP = s.pos
			var offsets []int64
			if offsets, err = s.integers(2); err == nil && len(offsets) != 2 {
				err = s.fail(e.rangeP, "%d numbers in data_offsets", len(offsets))
			}
			if err == nil {
				e.Offset, e.Size = offsets[0], offsets[1]
			}
		default:
			return s.skip()
		}
		seen[key] = true
		return err
	})
	if err != nil {
		return e, err
	}
	for _, key := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[key] {
			return e, s.fail(pos, "tensor %.80q has no %s", name, key)
		}
	}
	return e, nil
}

// integers reads an array of at most limit natural numbers.
func (s *scanner) integers(limit int) ([]int64, error) {
	var list []int64
	err := s.array(func() error {
		s.peek()
		if len(list) == limit {
			return s.fail(s.pos, "more than %d numbers", limit)
		}
		v, err := s.integer()
		list = append(list, v)
		return err
	})
	return list, err
}

// place orders the tensors by their data and checks that they cover it.
func (f *File) place(s *scanner, entries []entry, dataSize int64) error {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	dataStart := lengthSize + int64(len(s.data))
	end := int64(0) // of the tensors so far
	f.tensors = make([]Info, 0, len(entries))
	for _, e := range entries {
		first, last := e.Offset, e.Size
		switch {
		case first > last:
			return s.fail(e.rangeP, "tensor %.80q ends at %d, before it begins at %d", e.Name, last, first)
		case first < end:
			return s.fail(e.rangeP, "tensor %.80q begins at %d, inside the tensor before it, which ends at %d", e.Name, first, end)
		case first > end:
			return s.fail(e.rangeP, "tensor %.80q begins at %d and leaves a hole after %d", e.Name, first, end)
		case last > dataSize:
			return s.fail(e.rangeP, "tensor %.80q ends at %d, beyond the %d bytes of data", e.Name, last, dataSize)
		}
		size, err := byteSize(e.DType, e.Shape)
		if err != nil {
			return s.fail(e.shapeP, "tensor %.80q: %v", e.Name, err)
		}
		if size != last-first {
			return s.fail(e.rangeP, "tensor %.80q of %d bytes has room for %d", e.Name, size, last-first)
		}
		end = last
		e.Offset, e.Size = dataStart+first, size
		f.index[e.Name] = len(f.tensors)
		f.tensors = append(f.tensors, e.Info)
	}
	if end != dataSize {
		return &FormatError{dataStart + end, fmt.Sprintf("%d bytes belong to no tensor", dataSize-end)}
	}
	return nil
}
