package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/loris-ml/loris/internal/atomicfile"
)

// Tensor is a tensor to write.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // empty for a scalar
	Data  []byte  // little-endian, row-major
}

// Write writes a file of the tensors, ordered as the reference implementation
// orders them, by dtype and then by name, so that the data of each is aligned
// to its element size and equal contents make equal files. Metadata, its keys
// sorted, is left out if nil.
//
// All arguments are checked before anything is written. Errors wrap
// ErrInvalidTensor with the tensor's name, or are w's.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	infos, data, err := describe(tensors)
	if err != nil {
		return err
	}
	return writeAll(w, infos, metadata, data)
}

// WriteFile writes a file of the tensors at path, as Write does. It appears there whole or not at
// all: another file in the same directory is written, synced to disk and renamed. A symbolic
// link is followed, a device or a FIFO is written to, and other hard links of the file keep
// what they have.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	infos, data, err := describe(tensors)
	if err != nil {
		return err
	}
	return WriteFileFrom(path, infos, metadata, data)
}

// A Source writes the data of a tensor to w: Size bytes, little-endian and row-major.
type Source func(t Info, w io.Writer) error

// WriteFileFrom is WriteFile for tensors that are not in memory. It calls data for each tensor, in
// the order of the file. The names, dtypes and shapes are checked before; Offset and Size need not
// be set. Errors of data are returned wrapped with the tensor's name.
func WriteFileFrom(path string, tensors []Info, metadata map[string]string, data Source) error {
	return atomicfile.Write(path, func(w io.Writer) error { return writeAll(w, tensors, metadata, data) })
}

// describe returns the descriptions of tensors in memory, and the source of their data.
func describe(tensors []Tensor) ([]Info, Source, error) {
	infos := make([]Info, len(tensors))
	all := make(map[string][]byte, len(tensors))
	for i, t := range tensors {
		infos[i] = Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
		all[t.Name] = t.Data
		if size, err := byteSize(t.DType, t.Shape); err == nil && size != int64(len(t.Data)) {
			return nil, nil, invalid(t.Name, "%d bytes of data for %d of %s%d", len(t.Data), size, t.DType, t.Shape)
		}
	}
	return infos, func(t Info, w io.Writer) error {
		_, err := w.Write(all[t.Name])
		return err
	}, nil
}

// writeAll writes a file whose data comes from a source.
func writeAll(w io.Writer, tensors []Info, metadata map[string]string, data Source) error {
	fw, err := NewWriter(w, tensors, metadata)
	if err != nil {
		return err
	}
	for {
		t, err := fw.Next()
		if err == io.EOF {
			return fw.Close()
		}
		if err != nil {
			return err
		}
		if err := data(t, fw); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
}

// Writer writes a file to a stream, tensor by tensor. NewWriter, which is told of all tensors
// before, writes the header; then Next says whose data comes, and Write writes it:
//
//	for {
//		t, err := w.Next()
//		if err == io.EOF {
//			break
//		}
//		…
//		w.Write(data) // t.Size bytes, at once or in parts
//	}
//	err := w.Close()
//
// One goroutine uses it.
type Writer struct {
	w       *bufio.Writer
	tensors []Info
	next    int   // the tensor that Next returns
	left    int64 // bytes of the tensor before it
	err     error
}

// NewWriter checks the names, dtypes and shapes of the tensors, orders them as Write does and
// writes the header. Offset and Size need not be set. Errors wrap ErrInvalidTensor with the
// tensor's name, or are w's.
func NewWriter(w io.Writer, tensors []Info, metadata map[string]string) (*Writer, error) {
	sorted, err := arrange(tensors, metadata)
	if err != nil {
		return nil, err
	}
	text := makeHeader(sorted, metadata)
	if len(text) > maxHeader {
		return nil, fmt.Errorf("safetensors: %w: a header of %d bytes, more than %d", ErrInvalidTensor, len(text), maxHeader)
	}
	for i := range sorted {
		sorted[i].Offset += lengthSize + int64(len(text))
	}
	bw := bufio.NewWriterSize(w, 64<<10)
	var length [lengthSize]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
	bw.Write(length[:]) // the writer keeps its first error for what follows
	if _, err := bw.Write(text); err != nil {
		return nil, fmt.Errorf("safetensors: writing: %w", err)
	}
	return &Writer{w: bw, tensors: sorted}, nil
}

// Next goes to the following tensor and describes it. After the last it returns io.EOF. If data of
// the tensor before is missing, it returns an error wrapping ErrInvalidTensor.
func (w *Writer) Next() (Info, error) {
	if w.err == nil && w.left > 0 {
		t := w.tensors[w.next-1]
		w.err = invalid(t.Name, "%d of its %d bytes were not written", w.left, t.Size)
	}
	if w.err != nil {
		return Info{}, w.err
	}
	if w.next == len(w.tensors) {
		return Info{}, io.EOF
	}
	t := w.tensors[w.next]
	w.next++
	w.left = t.Size
	return t, nil
}

// Write writes data of the tensor that Next returned. More than its size is an error wrapping
// ErrInvalidTensor, of which nothing is written.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.next == 0 {
		return 0, errors.New("safetensors: Write before Next")
	}
	if int64(len(p)) > w.left {
		t := w.tensors[w.next-1]
		w.err = invalid(t.Name, "%d bytes are more than the %d that are left of %d", len(p), w.left, t.Size)
		return 0, w.err
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)
	if err != nil {
		w.err = fmt.Errorf("safetensors: writing: %w", err)
	}
	return n, w.err
}

// Close writes what is buffered and checks that all tensors were written. It does not close the
// writer below.
func (w *Writer) Close() error {
	if t, err := w.Next(); err == nil {
		w.err = invalid(t.Name, "its data was not written")
	}
	if w.err != nil {
		return w.err
	}
	if w.err = w.w.Flush(); w.err != nil {
		w.err = fmt.Errorf("safetensors: writing: %w", w.err)
	}
	return w.err
}

func invalid(name, format string, args ...any) error {
	return fmt.Errorf("safetensors: tensor %q: %w: %s", name, ErrInvalidTensor, fmt.Sprintf(format, args...))
}

// arrange checks tensors and metadata, and returns the tensors in the order of the file. Offset and
// Size are set; offsets count from the end of the header.
func arrange(tensors []Info, metadata map[string]string) ([]Info, error) {
	if n := max(len(tensors), len(metadata)); n > maxEntries {
		return nil, fmt.Errorf("safetensors: %w: %d tensors or entries of metadata, more than %d", ErrInvalidTensor, n, maxEntries)
	}
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.DType.rank(), a.DType.rank()), cmp.Compare(a.Name, b.Name))
	})
	seen := make(map[string]bool, len(sorted))
	end := int64(0)
	for i := range sorted {
		t := &sorted[i]
		if err := t.check(); err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, invalid(t.Name, "the name appears twice")
		}
		seen[t.Name] = true
		if t.Offset = end; end+t.Size < 0 {
			return nil, invalid(t.Name, "the file becomes too large")
		}
		end += t.Size
	}
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("safetensors: metadata %q: %w: no UTF-8 text", k, ErrInvalidTensor)
		}
	}
	return sorted, nil
}

// check checks a tensor that will be written and sets its Size.
func (t *Info) check() (err error) {
	switch {
	case t.DType.Bits() == 0:
		return invalid(t.Name, "the format has no dtype %q", t.DType)
	case t.Name == metadataName:
		return invalid(t.Name, "the name is reserved")
	case !utf8.ValidString(t.Name):
		return invalid(t.Name, "the name is no UTF-8 text")
	case len(t.Shape) > maxRank:
		return invalid(t.Name, "%d dimensions", len(t.Shape))
	}
	for _, dim := range t.Shape {
		if dim < 0 {
			return invalid(t.Name, "a negative dimension in %d", t.Shape)
		}
	}
	if t.Size, err = byteSize(t.DType, t.Shape); err != nil {
		return invalid(t.Name, "shape %d: %v", t.Shape, err)
	}
	return nil
}

// makeHeader returns the header, padded with spaces to a multiple of 8 bytes.
func makeHeader(tensors []Info, metadata map[string]string) []byte {
	h := []byte{'{'}
	if metadata != nil {
		h = appendString(h, metadataName)
		h = append(h, ":{"...)
		for i, k := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				h = append(h, ',')
			}
			h = appendString(h, k)
			h = append(h, ':')
			h = appendString(h, metadata[k])
		}
		h = append(h, '}')
	}
	for _, t := range tensors {
		if len(h) > 1 {
			h = append(h, ',')
		}
		h = appendString(h, t.Name)
		h = append(h, `:{"dtype":`...)
		h = appendString(h, string(t.DType))
		h = append(h, `,"shape":`...)
		h = appendIntegers(h, t.Shape)
		h = append(h, `,"data_offsets":`...)
		h = appendIntegers(h, []int64{t.Offset, t.Offset + t.Size})
		h = append(h, '}')
	}
	h = append(h, '}')
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	return h
}

func appendIntegers(dst []byte, list []int64) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, v, 10)
	}
	return append(dst, ']')
}

// appendString appends s as a JSON string with no more escapes than JSON asks
// for, which is what the reference writes.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			if c < ' ' {
				dst = fmt.Appendf(dst, `\u%04x`, c)
			} else {
				dst = append(dst, c)
			}
		}
	}
	return append(dst, '"')
}
