// Package safetensors reads and writes the safetensors format: named tensors in
// one file, as used for the weights of models.
//
// A file is an 8-byte little-endian length, a JSON header of that many bytes,
// and the tensors' bytes, little-endian and row-major:
//
//	{"__metadata__": {"key": "text"},
//	 "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//
// Offsets count from the end of the header. The checks are those of the
// reference implementation (github.com/huggingface/safetensors): the header is
// at most 100 MB of valid JSON, the tensors cover the rest of the file without
// holes or overlaps, and the size of each is what its shape and dtype ask for.
// Beyond it, a name may appear once only, the header begins with a brace, as
// the format's description demands, and a shape has at most 64 dimensions of 63
// bits. Reading costs memory in proportion to the header; the data is read when
// asked for.
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

const (
	lengthSize   = 8           // of the length before the header
	maxHeader    = 100_000_000 // the reference implementation's bound
	maxRank      = 64          // bounds the memory that a shape takes; NumPy's bound
	metadataName = "__metadata__"
)

var (
	// ErrNotFound is returned for a tensor name that the file lacks.
	ErrNotFound = errors.New("no such tensor")

	// ErrUnsupportedDType is returned when the data of a tensor is asked for
	// or given whose dtype the format has and Loris has not, such as U16.
	ErrUnsupportedDType = errors.New("unsupported dtype")

	// ErrInvalidTensor is returned for a tensor that can't be written: a bad
	// name or shape, or data of another size than the shape's.
	ErrInvalidTensor = errors.New("invalid tensor")
)

// FormatError reports a malformed file.
type FormatError struct {
	Offset int64  // position in the file, in bytes, of what is wrong
	Reason string // what is wrong with it
}

// Error gives position and reason.
func (e *FormatError) Error() string {
	return fmt.Sprintf("safetensors: malformed file at byte %d: %s", e.Offset, e.Reason)
}

// DType is the format's name of an element type.
type DType string

// The supported dtypes. F8E4M3 is PyTorch's float8_e4m3fn.
const (
	Bool   DType = "BOOL"
	U8     DType = "U8"
	I8     DType = "I8"
	F8E5M2 DType = "F8_E5M2"
	F8E4M3 DType = "F8_E4M3"
	I16    DType = "I16"
	F16    DType = "F16"
	BF16   DType = "BF16"
	I32    DType = "I32"
	F32    DType = "F32"
	C64    DType = "C64"
	F64    DType = "F64"
	I64    DType = "I64"
)

// dtypes are all dtypes of the format in its alignment order, which is the
// reverse of the order in which tensors are written.
var dtypes = [...]struct {
	name      DType
	bits      int
	supported bool
}{
	{Bool, 8, true},
	{"F4", 4, false},
	{"F6_E2M3", 6, false},
	{"F6_E3M2", 6, false},
	{U8, 8, true},
	{I8, 8, true},
	{F8E5M2, 8, true},
	{F8E4M3, 8, true},
	{"F8_E8M0", 8, false},
	{"F8_E4M3FNUZ", 8, false},
	{"F8_E5M2FNUZ", 8, false},
	{I16, 16, true},
	{"U16", 16, false},
	{F16, 16, true},
	{BF16, 16, true},
	{I32, 32, true},
	{"U32", 32, false},
	{F32, 32, true},
	{C64, 64, true},
	{F64, 64, true},
	{I64, 64, true},
	{"U64", 64, false},
}

// rank is the position of d in the alignment order, -1 for no dtype.
func (d DType) rank() int {
	for i := range dtypes {
		if dtypes[i].name == d {
			return i
		}
	}
	return -1
}

// Bits returns the size of an element, 0 for a dtype the format does not have.
func (d DType) Bits() int {
	if r := d.rank(); r >= 0 {
		return dtypes[r].bits
	}
	return 0
}

// Supported reports whether the data of such tensors can be read and written.
func (d DType) Supported() bool {
	r := d.rank()
	return r >= 0 && dtypes[r].supported
}

var (
	errOverflow = errors.New("the number of bytes overflows")
	errPartial  = errors.New("the elements do not fill whole bytes")
)

// byteSize is the size of a tensor's data. As in the reference, dimensions
// multiply from the left, so that nothing overflows after a zero. Dimensions
// are not negative.
func byteSize(d DType, shape []int64) (int64, error) {
	total := uint64(1)
	for _, dim := range append(shape[:len(shape):len(shape)], int64(d.Bits())) {
		hi, lo := bits.Mul64(total, uint64(dim))
		if hi != 0 {
			return 0, errOverflow
		}
		total = lo
	}
	if total%8 != 0 {
		return 0, errPartial
	}
	if total/8 > math.MaxInt64 {
		return 0, errOverflow
	}
	return int64(total / 8), nil
}
