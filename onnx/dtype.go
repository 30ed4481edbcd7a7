package onnx

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

// elemType is an element type by its number in ONNX (TensorProto.DataType).
type elemType int

const (
	tFloat    elemType = 1
	tUint8    elemType = 2
	tInt8     elemType = 3
	tUint16   elemType = 4
	tInt16    elemType = 5
	tInt32    elemType = 6
	tInt64    elemType = 7
	tString   elemType = 8
	tBool     elemType = 9
	tFloat16  elemType = 10
	tDouble   elemType = 11
	tUint32   elemType = 12
	tUint64   elemType = 13
	tComplex  elemType = 14
	tComplex2 elemType = 15
	tBFloat16 elemType = 16
	tE4M3FN   elemType = 17
	tE4M3FNUZ elemType = 18
	tE5M2     elemType = 19
	tE5M2FNUZ elemType = 20
	tUint4    elemType = 21
	tInt4     elemType = 22
	tE2M1     elemType = 23
	tE8M0     elemType = 24
	tUint2    elemType = 25
	tInt2     elemType = 26
)

// typeInfo is what there is to know about an element type.
type typeInfo struct {
	name string
	// dtype holds the elements in Loris.
	dtype ir.DType
	// bits is the width of an element in a file.
	bits int
	// signed and narrow: an integer that Loris holds in a wider dtype is brought back to bits.
	signed, narrow bool
}

// types has a row for each element type, by number.
var types = [...]typeInfo{
	tFloat:    {"FLOAT", ir.F32, 32, true, false},
	tUint8:    {"UINT8", ir.U8, 8, false, false},
	tInt8:     {"INT8", ir.I8, 8, true, false},
	tUint16:   {"UINT16", ir.I32, 16, false, true},
	tInt16:    {"INT16", ir.I16, 16, true, false},
	tInt32:    {"INT32", ir.I32, 32, true, false},
	tInt64:    {"INT64", ir.I64, 64, true, false},
	tString:   {"STRING", ir.Invalid, 0, false, false},
	tBool:     {"BOOL", ir.Bool, 8, false, false},
	tFloat16:  {"FLOAT16", ir.F16, 16, true, false},
	tDouble:   {"DOUBLE", ir.F64, 64, true, false},
	tUint32:   {"UINT32", ir.I64, 32, false, true},
	tUint64:   {"UINT64", ir.I64, 64, false, false},
	tComplex:  {"COMPLEX64", ir.C64, 64, true, false},
	tComplex2: {"COMPLEX128", ir.C128, 128, true, false},
	tBFloat16: {"BFLOAT16", ir.BF16, 16, true, false},
	tE4M3FN:   {"FLOAT8E4M3FN", ir.F8E4M3FN, 8, true, false},
	tE4M3FNUZ: {"FLOAT8E4M3FNUZ", ir.F32, 8, true, false},
	tE5M2:     {"FLOAT8E5M2", ir.F8E5M2, 8, true, false},
	tE5M2FNUZ: {"FLOAT8E5M2FNUZ", ir.F32, 8, true, false},
	tUint4:    {"UINT4", ir.U8, 4, false, true},
	tInt4:     {"INT4", ir.I8, 4, true, true},
	tE2M1:     {"FLOAT4E2M1", ir.F32, 4, true, false},
	tE8M0:     {"FLOAT8E8M0", ir.F32, 8, false, false},
	tUint2:    {"UINT2", ir.U8, 2, false, true},
	tInt2:     {"INT2", ir.I8, 2, true, true},
}

func (e elemType) known() bool { return e > 0 && int(e) < len(types) && types[e].name != "" }

// held reports whether Loris has a dtype for the elements.
func (e elemType) held() bool { return e.known() && types[e].dtype.Valid() }

// asStored reports whether the elements lie in files as Loris has them.
func (e elemType) asStored() bool { return e.held() && types[e].bits == 8*types[e].dtype.Size() }

func (e elemType) info() typeInfo { return types[e] }

func (e elemType) dtype() ir.DType { return types[e].dtype }

func (e elemType) String() string {
	if !e.known() {
		return fmt.Sprintf("element type %d", int(e))
	}
	return types[e].name
}

// float reports whether the elements are real floating numbers.
func (e elemType) float() bool { return e.held() && e.dtype().IsFloat() }

// integer reports whether the elements are integers, bool not included.
func (e elemType) integer() bool { return e.held() && e.dtype().IsInt() }

// elemOf is the element type of a tensor that a user gives for an input of the type want: the
// type itself where the dtype is the one that holds it, otherwise the plain type of the dtype.
func elemOf(d ir.DType) elemType {
	for e := range types {
		t := types[e]
		if t.dtype != d || t.narrow || elemType(e) == tUint64 {
			continue
		}
		switch elemType(e) {
		case tE4M3FNUZ, tE5M2FNUZ, tE2M1, tE8M0:
			continue
		}
		return elemType(e)
	}
	return 0
}
