package host

import (
	"fmt"

	"github.com/loris-ml/loris/ir"
)

// dtypeCodes are the numbers of the dtypes in artefacts, those of
// c10::ScalarType.
var dtypeCodes = map[ir.DType]int32{
	ir.U8:       0,
	ir.I8:       1,
	ir.I16:      2,
	ir.I32:      3,
	ir.I64:      4,
	ir.F16:      5,
	ir.F32:      6,
	ir.F64:      7,
	ir.C64:      9,
	ir.C128:     10,
	ir.Bool:     11,
	ir.BF16:     15,
	ir.F8E5M2:   23,
	ir.F8E4M3FN: 24,
}

var codeDTypes = func() (t [64]ir.DType) {
	for d, c := range dtypeCodes {
		t[c] = d
	}
	return t
}()

// DTypeOfCode returns the dtype that an artefact means by a number of
// c10::ScalarType, or an error wrapping ir.ErrDType for one that Loris lacks.
func DTypeOfCode(code int32) (ir.DType, error) {
	if code >= 0 && int(code) < len(codeDTypes) && codeDTypes[code] != ir.Invalid {
		return codeDTypes[code], nil
	}
	return ir.Invalid, fmt.Errorf("%w: no dtype has PyTorch's number %d", ir.ErrDType, code)
}

// CodeOfDType is the inverse of DTypeOfCode.
func CodeOfDType(d ir.DType) int32 { return dtypeCodes[d] }
