// Package tensorfile joins safetensors files with Loris's shapes and dtypes.
package tensorfile

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
)

// The entries of a checkpoint's metadata that all kinds of checkpoints have.
const (
	MetaSeed = "loris.seed" // of the session, decimal
	MetaStep = "loris.step" // the caller's number, decimal
)

// dtypes are the dtypes that both Loris and the file format have.
var dtypes = map[ir.DType]safetensors.DType{
	ir.Bool: safetensors.Bool, ir.U8: safetensors.U8, ir.I8: safetensors.I8, ir.I16: safetensors.I16,
	ir.I32: safetensors.I32, ir.I64: safetensors.I64, ir.F16: safetensors.F16, ir.BF16: safetensors.BF16,
	ir.F32: safetensors.F32, ir.F64: safetensors.F64, ir.C64: safetensors.C64,
	ir.F8E4M3FN: safetensors.F8E4M3, ir.F8E5M2: safetensors.F8E5M2,
}

// DType returns the file's name of a dtype; false if the format has none.
func DType(d ir.DType) (safetensors.DType, bool) {
	name, ok := dtypes[d]
	return name, ok
}

// Shape returns the shape of a tensor of a file. A dtype that Loris lacks is an
// error wrapping ir.ErrDType, dimensions that no tensor can have one wrapping
// ir.ErrShape.
func Shape(info safetensors.Info) (ir.Shape, error) {
	dims := make([]int, len(info.Shape))
	for i, d := range info.Shape {
		dims[i] = int(d)
	}
	for dtype, name := range dtypes {
		if name == info.DType {
			return ir.NewShape(dtype, dims)
		}
	}
	return ir.Shape{}, fmt.Errorf("%w: Loris has no %s", ir.ErrDType, info.DType)
}

// Tensor returns a tensor of a file to write: data, of the given shape, little
// endian and row-major. It returns false if the format lacks the dtype.
func Tensor(name string, s ir.Shape, data []byte) (safetensors.Tensor, bool) {
	d, ok := DType(s.DType())
	t := safetensors.Tensor{Name: name, DType: d, Data: data}
	for _, n := range s.Dims() {
		t.Shape = append(t.Shape, int64(n))
	}
	return t, ok
}

// Read reads a tensor of a file. Besides Shape's, its errors are the file's.
func Read(f *safetensors.File, name string) (ir.Shape, []byte, error) {
	info, ok := f.Lookup(name)
	if !ok {
		return ir.Shape{}, nil, fmt.Errorf("tensor %q: %w", name, safetensors.ErrNotFound)
	}
	s, err := Shape(info)
	if err != nil {
		return ir.Shape{}, nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	data, err := f.Bytes(name)
	return s, data, err
}
