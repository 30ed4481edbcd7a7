package safetensors

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"unicode/utf8"
)

// Info describes a tensor: of a file that is read, or one that will be written.
type Info struct {
	Name   string
	DType  DType
	Shape  []int64 // empty for a scalar; not to be modified
	Offset int64   // position of the data in the file; a writer sets it
	Size   int64   // of the data, in bytes; a writer sets it
	Shard  string  // name of the file, of a model in several; a writer of one file ignores it
}

// header is what the header of one file says.
type header struct {
	tensors  []Info         // in the order of their data
	index    map[string]int // into tensors, by name
	metadata map[string]string
	end      int64 // of the file
}

// minEntry is the length of the shortest description of a tensor.
const minEntry = len(`"":{"dtype":"U8","shape":[],"data_offsets":[0,0]}`)

// readHeader reads the length and the header from r. Size is that of the file, or -1 if it is not
// known. Memory grows with what r holds, not with what it promises.
func readHeader(r io.Reader, size int64) (*header, error) {
	if 0 <= size && size < lengthSize {
		return nil, &FormatError{0, fmt.Sprintf("%d bytes are too few for the length of the header", size)}
	}
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, short(err, lengthSize, 0)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, wrongFile(length, fmt.Sprintf("a header of %d bytes, more than %d", n, maxHeader))
	}
	dataStart := lengthSize + int64(n)
	var text strings.Builder
	if size >= 0 {
		if dataStart > size {
			return nil, wrongFile(length, fmt.Sprintf("a header of %d bytes in a file of %d", n, size))
		}
		text.Grow(int(n))
	}
	if _, err := io.CopyN(&text, r, int64(n)); err != nil {
		return nil, short(err, int64(n), lengthSize)
	}
	h := &header{}
	if err := h.parse(text.String(), size); err != nil {
		return nil, err
	}
	return h, nil
}

// short is the error of a read of n bytes at off that ended early with err.
func short(err error, n, off int64) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("safetensors: %d bytes at %d: %w", n, off, err)
}

// parse reads the text of the header of a file of the given size.
func (h *header) parse(text string, size int64) error {
	s := &scanner{data: text, base: lengthSize}
	if err := s.checkUTF8(); err != nil {
		return err
	}
	if text == "" || text[0] != '{' {
		return s.unexpected("'{'")
	}
	// Tables of the right size from the start take half the memory of those that grow.
	n := min(strings.Count(text, `"data_offsets"`), len(text)/minEntry, maxEntries)
	h.tensors = make([]Info, 0, n)
	h.index = make(map[string]int, n)
	ranges := make([]int32, 0, n) // positions of data_offsets, for errors
	var shapes arena
	hasMetadata := false
	err := s.object(func(name string, pos int) error {
		if name == metadataName {
			if hasMetadata {
				return s.fail(pos, "%.80q appears twice", name)
			}
			hasMetadata = true
			return h.parseMetadata(s)
		}
		if _, dup := h.index[name]; dup {
			return s.fail(pos, "%.80q appears twice", name)
		}
		if len(h.tensors) == maxEntries {
			return s.fail(pos, "more than %d tensors", maxEntries)
		}
		h.index[name] = len(h.tensors) // until they are sorted
		t, at, err := s.tensor(name, pos, &shapes)
		h.tensors, ranges = append(h.tensors, t), append(ranges, int32(at))
		return err
	})
	if err != nil {
		return err
	}
	if s.peek(); s.pos < len(text) {
		return s.unexpected("the end of the header")
	}
	return h.order(s, ranges, size)
}

func (h *header) parseMetadata(s *scanner) error {
	if s.peek() == 'n' { // null is as good as absent
		return s.skip()
	}
	h.metadata = make(map[string]string)
	return s.object(func(key string, pos int) error {
		if _, dup := h.metadata[key]; dup {
			return s.fail(pos, "%.80q appears twice", key)
		}
		if len(h.metadata) == maxEntries {
			return s.fail(pos, "more than %d entries of metadata", maxEntries)
		}
		value, err := s.str()
		h.metadata[key] = value
		return err
	})
}

// arena hands out small slices of large ones.
type arena struct{ free []int64 }

func (a *arena) clone(list []int64) []int64 {
	if len(list) == 0 {
		return nil
	}
	if len(a.free) < len(list) {
		a.free = make([]int64, max(len(list), 512))
	}
	out := a.free[:len(list):len(list)]
	a.free = a.free[len(list):]
	copy(out, list)
	return out
}

// tensor reads the description of a tensor and returns it with the position of its data_offsets,
// which are its Offset and Size as yet. Members that it does not know it skips, as the reference does.
func (s *scanner) tensor(name string, pos int, shapes *arena) (t Info, rangeAt int, err error) {
	t.Name = name
	shapeAt := -1
	rangeAt = -1
	err = s.object(func(key string, pos int) error {
		if key == "dtype" && t.DType != "" || key == "shape" && shapeAt >= 0 || key == "data_offsets" && rangeAt >= 0 {
			return s.fail(pos, "%.80q appears twice", key)
		}
		s.peek()
		at := s.pos
		switch key {
		case "dtype":
			text, err := s.str()
			if err != nil {
				return err
			}
			r := DType(text).rank()
			if r < 0 {
				return s.fail(at, "unknown dtype %.80q", text)
			}
			t.DType = dtypes[r].name
		case "shape":
			shapeAt = at
			dims, err := s.integers(maxRank)
			if err != nil {
				return err
			}
			t.Shape = shapes.clone(dims)
		case "data_offsets":
			rangeAt = at
			offsets, err := s.integers(2)
			if err != nil {
				return err
			}
			if len(offsets) != 2 {
				return s.fail(at, "%d numbers in data_offsets", len(offsets))
			}
			t.Offset, t.Size = offsets[0], offsets[1]
		default:
			return s.skip()
		}
		return nil
	})
	switch {
	case err != nil:
	case t.DType == "":
		err = s.fail(pos, "tensor %.80q has no dtype", name)
	case shapeAt < 0:
		err = s.fail(pos, "tensor %.80q has no shape", name)
	case rangeAt < 0:
		err = s.fail(pos, "tensor %.80q has no data_offsets", name)
	default:
		err = s.checkSize(&t, shapeAt, rangeAt)
	}
	return t, rangeAt, err
}

// checkSize holds the data_offsets of a tensor against its shape.
func (s *scanner) checkSize(t *Info, shapeAt, rangeAt int) error {
	if t.Offset > t.Size {
		return s.fail(rangeAt, "tensor %.80q ends at %d, before it begins at %d", t.Name, t.Size, t.Offset)
	}
	size, err := byteSize(t.DType, t.Shape)
	if err != nil {
		return s.fail(shapeAt, "tensor %.80q: %v", t.Name, err)
	}
	if size != t.Size-t.Offset {
		return s.fail(rangeAt, "tensor %.80q of %d bytes has room for %d", t.Name, size, t.Size-t.Offset)
	}
	return nil
}

// byOffset sorts tensors by their data, and the positions of their data_offsets with them.
type byOffset struct {
	tensors []Info
	ranges  []int32
}

func (b byOffset) Len() int { return len(b.tensors) }

func (b byOffset) Less(i, j int) bool {
	x, y := &b.tensors[i], &b.tensors[j]
	return cmp.Or(cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Size, y.Size), strings.Compare(x.Name, y.Name)) < 0
}

func (b byOffset) Swap(i, j int) {
	b.tensors[i], b.tensors[j] = b.tensors[j], b.tensors[i]
	b.ranges[i], b.ranges[j] = b.ranges[j], b.ranges[i]
}

// order sorts the tensors by their data, checks that they fill the file without holes and overlaps
// and makes Offset and Size what their names say. A negative size of the file is not known.
func (h *header) order(s *scanner, ranges []int32, size int64) error {
	if all := (byOffset{h.tensors, ranges}); !sort.IsSorted(all) {
		sort.Sort(all)
		for i := range h.tensors {
			h.index[h.tensors[i].Name] = i
		}
	}
	dataStart := lengthSize + int64(len(s.data))
	room := int64(math.MaxInt64) - dataStart
	if size >= 0 {
		room = size - dataStart
	}
	end := int64(0) // of the tensors so far
	for i := range h.tensors {
		t := &h.tensors[i]
		switch {
		case t.Offset < end:
			return s.fail(int(ranges[i]), "tensor %.80q begins at %d, inside the tensor before it, which ends at %d", t.Name, t.Offset, end)
		case t.Offset > end:
			return s.fail(int(ranges[i]), "tensor %.80q begins at %d and leaves a hole after %d", t.Name, t.Offset, end)
		case t.Size > room:
			return s.fail(int(ranges[i]), "tensor %.80q ends at %d, beyond the %d bytes of data", t.Name, t.Size, room)
		}
		end = t.Size
		t.Size -= t.Offset
		t.Offset += dataStart
	}
	h.end = dataStart + end
	if size > h.end {
		return &FormatError{h.end, fmt.Sprintf("%d bytes belong to no tensor", size-h.end)}
	}
	return nil
}

// lookup describes the named tensor.
func (h *header) lookup(name string) (Info, bool) {
	i, ok := h.index[name]
	if !ok {
		return Info{}, false
	}
	return h.tensors[i], true
}

func (s *scanner) checkUTF8() error {
	if utf8.ValidString(s.data) {
		return nil
	}
	for i, r := range s.data {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s.data[i:]); n <= 1 {
				return s.fail(i, "no UTF-8 text")
			}
		}
	}
	panic("unreachable: the text is valid after all")
}

// integers reads an array of at most limit natural numbers, no more than maxRank, which are valid
// until the next call.
func (s *scanner) integers(limit int) ([]int64, error) {
	list := s.numbers[:0]
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
