// Package scalartype has the numbers that PyTorch's C functions and compiled packages have for dtypes,
// those of c10::ScalarType.
package scalartype

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
)

var codes = map[ir.DType]int32{
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

var dtypes = func() (t [64]ir.DType) {
	for d, c := range codes {
		t[c] = d
	}
	return t
}()

// DType returns the dtype that a number means, or an error wrapping ir.ErrDType for one that Loris
// lacks.
func DType(code int32) (ir.DType, error) {
	if code >= 0 && int(code) < len(dtypes) && dtypes[code] != ir.Invalid {
		return dtypes[code], nil
	}
	return ir.Invalid, fmt.Errorf("%w: no dtype has PyTorch's number %d", ir.ErrDType, code)
}

// Code is the inverse of DType.
func Code(d ir.DType) int32 { return codes[d] }
