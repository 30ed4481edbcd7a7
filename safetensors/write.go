package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
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
// ErrInvalidTensor or ErrUnsupportedDType with the tensor's name, or are w's.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.rank(), a.DType.rank()), cmp.Compare(a.Name, b.Name))
	})
	if err := check(sorted, metadata); err != nil {
		return err
	}
	header := makeHeader(sorted, metadata)
	if len(header) > maxHeader {
		return fmt.Errorf("safetensors: %w: a header of %d bytes, more than %d", ErrInvalidTensor, len(header), maxHeader)
	}
	bw := bufio.NewWriter(w)
	var length [lengthSize]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(header)))
	bw.Write(length[:]) // the writer keeps its first error for Flush
	bw.Write(header)
	for _, t := range sorted {
		bw.Write(t.Data)
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("safetensors: writing: %w", err)
	}
	return nil
}

func check(tensors []Tensor, metadata map[string]string) error {
	seen := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		fail := func(err error, format string, args ...any) error {
			return fmt.Errorf("safetensors: tensor %q: %w: %s", t.Name, err, fmt.Sprintf(format, args...))
		}
		switch {
		case !t.DType.Supported():
			return fail(ErrUnsupportedDType, "%q", t.DType)
		case t.Name == metadataName:
			return fail(ErrInvalidTensor, "the name is reserved")
		case !utf8.ValidString(t.Name):
			return fail(ErrInvalidTensor, "the name is no UTF-8 text")
		case seen[t.Name]:
			return fail(ErrInvalidTensor, "the name appears twice")
		case len(t.Shape) > maxRank:
			return fail(ErrInvalidTensor, "%d dimensions", len(t.Shape))
		}
		seen[t.Name] = true
		for _, dim := range t.Shape {
			if dim < 0 {
				return fail(ErrInvalidTensor, "a negative dimension in %d", t.Shape)
			}
		}
		size, err := byteSize(t.DType, t.Shape)
		if err != nil {
			return fail(ErrInvalidTensor, "shape %d: %v", t.Shape, err)
		}
		if size != int64(len(t.Data)) {
			return fail(ErrInvalidTensor, "%d bytes of data for %d of %s%d", len(t.Data), size, t.DType, t.Shape)
		}
	}
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("safetensors: metadata %q: %w: no UTF-8 text", k, ErrInvalidTensor)
		}
	}
	return nil
}

// makeHeader returns the header, padded with spaces to a multiple of 8 bytes.
func makeHeader(tensors []Tensor, metadata map[string]string) []byte {
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
	offset := int64(0)
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
		h = appendIntegers(h, []int64{offset, offset + int64(len(t.Data))})
		h = append(h, '}')
		offset += int64(len(t.Data))
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
