// Package pb reads and writes the protocol buffers of ONNX: models and tensors. The reader is for
// files from anywhere: lengths are held to what is there, messages nest to a bounded depth, and
// fields that it does not know are passed over. What it returns refers to the bytes that it read.
package pb

import (
	"encoding/binary"
	"fmt"
	"math"
)

// maxDepth bounds how deep messages nest: a graph within an attribute of a node is three levels.
const maxDepth = 96

// The wire types of the encoding.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// Error says where in a file a message is damaged.
type Error struct {
	// Offset is where the field begins, in bytes from the start of the file.
	Offset int
	// Message names the message that has the field.
	Message string
	// Reason is what is wrong.
	Reason string
}

// Error names the place and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("byte %d, in %s: %s", e.Offset, e.Message, e.Reason)
}

// reader goes through the fields of one message.
type reader struct {
	b       []byte
	pos     int
	base    int // the offset of b in the file
	depth   int
	message string
}

// field is one field as it stands on the wire.
type field struct {
	number int
	wire   int
	value  uint64 // of a varint or a fixed number
	bytes  []byte // of a length-delimited field
	base   int    // where bytes begin in the file
	offset int    // where the field begins in the file
}

func (r *reader) fail(at int, format string, args ...any) error {
	return &Error{Offset: r.base + at, Message: r.message, Reason: fmt.Sprintf(format, args...)}
}

// varint reads one number; false where the bytes end first or it has more than 64 bits.
func varint(b []byte) (v uint64, n int, ok bool) {
	v, n = binary.Uvarint(b)
	return v, n, n > 0
}

// next returns the next field, and false at the end of the message.
func (r *reader) next() (f field, more bool, err error) {
	if r.pos >= len(r.b) {
		return field{}, false, nil
	}
	start := r.pos
	tag, n, ok := varint(r.b[r.pos:])
	if !ok {
		return field{}, false, r.fail(start, "the tag of a field is cut off or too long")
	}
	r.pos += n
	f = field{wire: int(tag & 7), offset: r.base + start}
	if number := tag >> 3; number == 0 || number > 1<<29-1 {
		return field{}, false, r.fail(start, "%d is no number of a field", number)
	}
	f.number = int(tag >> 3)
	left := len(r.b) - r.pos
	switch f.wire {
	case wireVarint:
		if f.value, n, ok = varint(r.b[r.pos:]); !ok {
			return field{}, false, r.fail(start, "field %d is a number that is cut off or too long", f.number)
		}
		r.pos += n
	case wire64:
		if left < 8 {
			return field{}, false, r.fail(start, "field %d is cut off", f.number)
		}
		f.value = binary.LittleEndian.Uint64(r.b[r.pos:])
		r.pos += 8
	case wire32:
		if left < 4 {
			return field{}, false, r.fail(start, "field %d is cut off", f.number)
		}
		f.value = uint64(binary.LittleEndian.Uint32(r.b[r.pos:]))
		r.pos += 4
	case wireBytes:
		size, n, ok := varint(r.b[r.pos:])
		if !ok || size > uint64(left-n) {
			return field{}, false, r.fail(start, "field %d says it has %d bytes, %d are left", f.number, size, max(left-n, 0))
		}
		r.pos += n
		f.bytes, f.base = r.b[r.pos:r.pos+int(size)], r.base+r.pos
		r.pos += int(size)
	default:
		return field{}, false, r.fail(start, "field %d has wire type %d, which ONNX does not use", f.number, f.wire)
	}
	return f, true, nil
}

// each calls fn for every field of the message.
func (r *reader) each(fn func(f field) error) error {
	for {
		f, more, err := r.next()
		if err != nil || !more {
			return err
		}
		if err := fn(f); err != nil {
			return err
		}
	}
}

// within returns the reader of a message that a field holds.
func (r *reader) within(f field, message string) (*reader, error) {
	if f.wire != wireBytes {
		return nil, r.fail(f.offset-r.base, "field %d has wire type %d, a message is expected", f.number, f.wire)
	}
	if r.depth+1 > maxDepth {
		return nil, r.fail(f.offset-r.base, "messages nest deeper than %d", maxDepth)
	}
	return &reader{b: f.bytes, base: f.base, depth: r.depth + 1, message: message}, nil
}

// text returns the bytes of a string field.
func (r *reader) text(f field, dst *string) error {
	if f.wire != wireBytes {
		return r.fail(f.offset-r.base, "field %d has wire type %d, a string is expected", f.number, f.wire)
	}
	*dst = string(f.bytes)
	return nil
}

func (r *reader) texts(f field, dst *[]string) error {
	var s string
	if err := r.text(f, &s); err != nil {
		return err
	}
	*dst = append(*dst, s)
	return nil
}

func (r *reader) raw(f field, dst *[]byte) error {
	if f.wire != wireBytes {
		return r.fail(f.offset-r.base, "field %d has wire type %d, bytes are expected", f.number, f.wire)
	}
	*dst = f.bytes
	return nil
}

func (r *reader) int(f field, dst *int64) error {
	if f.wire != wireVarint {
		return r.fail(f.offset-r.base, "field %d has wire type %d, a number is expected", f.number, f.wire)
	}
	*dst = int64(f.value)
	return nil
}

// ints appends a repeated number, packed or not.
func (r *reader) ints(f field, dst *[]int64) error {
	if f.wire != wireBytes {
		var v int64
		if err := r.int(f, &v); err != nil {
			return err
		}
		*dst = append(*dst, v)
		return nil
	}
	for b := f.bytes; len(b) > 0; {
		v, n, ok := varint(b)
		if !ok {
			return r.fail(f.offset-r.base, "a list of numbers in field %d is cut off", f.number)
		}
		*dst = append(*dst, int64(v))
		b = b[n:]
	}
	return nil
}

// floats appends a repeated float, packed or not.
func (r *reader) floats(f field, dst *[]float32) error {
	switch {
	case f.wire == wire32:
		*dst = append(*dst, math.Float32frombits(uint32(f.value)))
	case f.wire == wireBytes && len(f.bytes)%4 == 0:
		for b := f.bytes; len(b) > 0; b = b[4:] {
			*dst = append(*dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	default:
		return r.fail(f.offset-r.base, "field %d is no list of floats", f.number)
	}
	return nil
}

// doubles appends a repeated double, packed or not.
func (r *reader) doubles(f field, dst *[]float64) error {
	switch {
	case f.wire == wire64:
		*dst = append(*dst, math.Float64frombits(f.value))
	case f.wire == wireBytes && len(f.bytes)%8 == 0:
		for b := f.bytes; len(b) > 0; b = b[8:] {
			*dst = append(*dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	default:
		return r.fail(f.offset-r.base, "field %d is no list of doubles", f.number)
	}
	return nil
}
