package safetensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/memlimit"
)

// File is an opened model: a file, or an index of several, its shards. Its methods may be called
// from many goroutines at once if the underlying reader's ReadAt may, as an *os.File's.
type File struct {
	header
	sources map[string]source // by Info.Shard
}

// source is where the data of one file is.
type source struct {
	r      io.ReaderAt
	memory []byte    // of the whole file, if it was given
	closer io.Closer // nil for one that is the caller's
}

// Open opens the model at path and reads its headers: a safetensors file, or, if the name ends in
// ".json", the index of one in several files, such as model.safetensors.index.json. The error is a
// *FormatError for a malformed file, wrapped with the path.
func Open(path string) (*File, error) {
	if strings.HasSuffix(path, ".json") {
		return openIndex(path)
	}
	f, err := openFile(path, "")
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openFile opens one file and names it shard.
func openFile(path, shard string) (*File, error) {
	osFile, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := readFile(osFile)
	if err != nil {
		osFile.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range f.tensors {
		f.tensors[i].Shard = shard
	}
	f.sources = map[string]source{shard: {r: osFile, closer: osFile}}
	return f, nil
}

func readFile(osFile *os.File) (*File, error) {
	info, err := osFile.Stat()
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("safetensors: not a regular file; NewReader reads from a stream")
	}
	return Read(osFile, info.Size())
}

// Read reads the header of the file of the given size that r holds. It returns a *FormatError for a
// malformed file and wraps r's errors.
func Read(r io.ReaderAt, size int64) (*File, error) {
	h, err := readHeader(io.NewSectionReader(r, 0, size), size)
	if err != nil {
		return nil, err
	}
	return &File{*h, map[string]source{"": {r: r}}}, nil
}

// Parse reads the header of a file that is in memory, for example one that the caller has mapped.
// Bytes of its tensors is a part of b, not a copy. It returns a *FormatError for a malformed file.
func Parse(b []byte) (*File, error) {
	f, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	f.sources[""] = source{r: bytes.NewReader(b), memory: b}
	return f, nil
}

// Close closes the files that Open opened; for a File from Read or Parse it does nothing.
func (f *File) Close() error {
	var errs []error
	for _, s := range f.sources {
		if s.closer != nil {
			errs = append(errs, s.closer.Close())
		}
	}
	return errors.Join(errs...)
}

// Metadata returns the free-form entries of the header, nil without any. Of several files it has
// the entries of all; where they differ, those of the first.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensors describes all tensors in the order of their data, those of a model in several files file
// by file.
func (f *File) Tensors() []Info { return slices.Clone(f.tensors) }

// Lookup describes the named tensor.
func (f *File) Lookup(name string) (Info, bool) { return f.lookup(name) }

// find describes the named tensor and says where its data is.
func (f *File) find(name string) (Info, source, error) {
	t, ok := f.lookup(name)
	if !ok {
		return Info{}, source{}, fmt.Errorf("safetensors: tensor %q: %w", name, ErrNotFound)
	}
	return t, f.sources[t.Shard], nil
}

// Bytes reads the data of the named tensor. It returns ErrNotFound, wrapped with the name, an
// *ir.OutOfMemory for more than the process may have, or the reader's error.
func (f *File) Bytes(name string) ([]byte, error) {
	t, s, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if s.memory != nil {
		return s.memory[t.Offset : t.Offset+t.Size : t.Offset+t.Size], nil
	}
	if err := memlimit.Check(t.Size, 0); err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	data := make([]byte, t.Size)
	return data, readData(s.r, t, data)
}

// ReadInto reads the data of the named tensor into dst, which has its size. It returns the errors
// of Bytes, and ErrInvalidTensor for a dst of another size.
func (f *File) ReadInto(name string, dst []byte) error {
	t, s, err := f.find(name)
	if err != nil {
		return err
	}
	if int64(len(dst)) != t.Size {
		return fmt.Errorf("safetensors: tensor %q: %w: %d bytes into a buffer of %d", name, ErrInvalidTensor, t.Size, len(dst))
	}
	return readData(s.r, t, dst)
}

// Section returns a reader of the data of the named tensor, for parts of tensors and for those too
// large to read at once. It returns ErrNotFound.
func (f *File) Section(name string) (*io.SectionReader, error) {
	t, s, err := f.find(name)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(s.r, t.Offset, t.Size), nil
}

// readData fills dst with the data of t.
func readData(r io.ReaderAt, t Info, dst []byte) error {
	n, err := r.ReadAt(dst, t.Offset)
	if n == len(dst) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("tensor %q: %w", t.Name, short(err, t.Size, t.Offset))
}
