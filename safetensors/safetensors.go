// Package safetensors reads and writes the safetensors format: named tensors in
// one file or in several with an index, as used for the weights of models.
//
// Open reads a file, or an index and its shards, at random places, and NewReader
// one from a stream. WriteFile writes tensors that are in memory; WriteFileFrom
// and WriteShards take the data piece by piece, and NewWriter writes to a stream.
// What they write at a path appears there whole or not at all. The package deals
// with bytes; it records nothing and has no tensors.
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
// the format's description demands, a shape has at most 64 dimensions of 63
// bits, and there are at most 1,048,576 tensors and as many entries of metadata. Reading costs work and memory in proportion to the header; the data is
// read when asked for.
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
	maxEntries   = 1 << 20     // bounds the memory that tables take; tens of times what the largest models have
	metadataName = "__metadata__"
)

var (
	// ErrNotFound is returned for a tensor name that the file lacks.
	ErrNotFound = errors.New("no such tensor")

	// ErrInvalidTensor is returned for a tensor that can't be written: a bad
	// name, dtype or shape, or data of another size than the shape's.
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

// The dtypes of the format. F8E4M3 is PyTorch's float8_e4m3fn; those of less
// than 8 bits are packed.
const (
	Bool       DType = "BOOL"
	F4         DType = "F4"
	F6E2M3     DType = "F6_E2M3"
	F6E3M2     DType = "F6_E3M2"
	U8         DType = "U8"
	I8         DType = "I8"
	F8E5M2     DType = "F8_E5M2"
	F8E4M3     DType = "F8_E4M3"
	F8E8M0     DType = "F8_E8M0"
	F8E4M3FNUZ DType = "F8_E4M3FNUZ"
	F8E5M2FNUZ DType = "F8_E5M2FNUZ"
	I16        DType = "I16"
	U16        DType = "U16"
	F16        DType = "F16"
	BF16       DType = "BF16"
	I32        DType = "I32"
	U32        DType = "U32"
	F32        DType = "F32"
	C64        DType = "C64"
	F64        DType = "F64"
	I64        DType = "I64"
	U64        DType = "U64"
)

// dtypes are all dtypes of the format in its alignment order, which is the
// reverse of the order in which tensors are written.
var dtypes = [...]struct {
	name DType
	bits int
}{
	{Bool, 8}, {F4, 4}, {F6E2M3, 6}, {F6E3M2, 6}, {U8, 8}, {I8, 8}, {F8E5M2, 8}, {F8E4M3, 8}, {F8E8M0, 8},
	{F8E4M3FNUZ, 8}, {F8E5M2FNUZ, 8}, {I16, 16}, {U16, 16}, {F16, 16}, {BF16, 16}, {I32, 32}, {U32, 32},
	{F32, 32}, {C64, 64}, {F64, 64}, {I64, 64}, {U64, 64},
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
