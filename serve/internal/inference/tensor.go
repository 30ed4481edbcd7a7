// Package inference holds what all protocols of the server share: requests,
// responses, errors, and the service that answers them. It knows nothing of HTTP,
// gRPC or files.
package inference

import "github.com/loris-ml/loris/internal/ir"

// Datatype is the protocol's name of an element type, such as "FP32".
type Datatype string

// The datatypes of the Open Inference Protocol, with BF16 as Triton has it.
const (
	Bool   Datatype = "BOOL"
	Uint8  Datatype = "UINT8"
	Uint16 Datatype = "UINT16"
	Uint32 Datatype = "UINT32"
	Uint64 Datatype = "UINT64"
	Int8   Datatype = "INT8"
	Int16  Datatype = "INT16"
	Int32  Datatype = "INT32"
	Int64  Datatype = "INT64"
	FP16   Datatype = "FP16"
	BF16   Datatype = "BF16"
	FP32   Datatype = "FP32"
	FP64   Datatype = "FP64"
	Bytes  Datatype = "BYTES"
)

var sizes = map[Datatype]int{
	Bool: 1, Uint8: 1, Int8: 1, Uint16: 2, Int16: 2, FP16: 2, BF16: 2, Uint32: 4, Int32: 4, FP32: 4, Uint64: 8, Int64: 8, FP64: 8,
}

var ofDType = map[ir.DType]Datatype{
	ir.Bool: Bool, ir.U8: Uint8, ir.I8: Int8, ir.I16: Int16, ir.I32: Int32, ir.I64: Int64, ir.F16: FP16, ir.BF16: BF16, ir.F32: FP32, ir.F64: FP64,
}

// Valid reports whether the protocol has the datatype.
func (d Datatype) Valid() bool { return sizes[d] > 0 || d == Bytes }

// Size returns the bytes of an element; 0 for BYTES, whose elements differ, and for
// names that are no datatype.
func (d Datatype) Size() int { return sizes[d] }

// DType returns the dtype of models with that datatype; ir.Invalid where they have
// none: UINT16, UINT32, UINT64 and BYTES.
func (d Datatype) DType() ir.DType {
	switch d {
	case FP32: // most requests
		return ir.F32
	case Int64:
		return ir.I64
	}
	for t, name := range ofDType {
		if name == d {
			return t
		}
	}
	return ir.Invalid
}

// DatatypeOf returns the datatype of a dtype; empty where the protocol has none
// (complex numbers and 8-bit floats).
func DatatypeOf(t ir.DType) Datatype { return ofDType[t] }

// Parameters are the named options of a request, a tensor or an answer. A value is a
// bool, int64, uint64 (what int64 does not hold), float64 or string.
type Parameters map[string]any

// SharedMemoryRegion is the parameter of a tensor that is in shared memory.
const SharedMemoryRegion = "shared_memory_region"

// Shared reports whether the parameters are those of a tensor in shared memory, whose
// bytes no message has.
func (p Parameters) Shared() bool {
	_, shared := p[SharedMemoryRegion]
	return shared
}

// Tensor is an input or an output.
type Tensor struct {
	Name     string
	Datatype Datatype
	Shape    []int64
	// Data holds the elements: dense, row-major, little-endian, BOOL as one byte, an
	// element of BYTES as its length in 4 bytes and the bytes. Those of a request
	// are read only until its Infer returns; some models write into their inputs, and
	// so into them.
	Data       []byte
	Parameters Parameters
}

// NumElements returns the product of a shape; false if a dimension is negative or the
// product does not fit.
func NumElements(shape []int64) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d > 0 && n > (1<<62)/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}
