// Package tensors holds the named arrays that commands read, make up, print and
// write: host memory, little endian and row-major.
package tensors

import (
	"fmt"
	"io"

	"github.com/loris-ml/loris/internal/atomicfile"
	"github.com/loris-ml/loris/internal/safetensors"
	"github.com/loris-ml/loris/ir"
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	Shape ir.Shape
	Data  []byte // little endian, row-major, Shape.Bytes() long
}

// fileDTypes are the dtypes that both Loris and the file format have.
var fileDTypes = map[ir.DType]safetensors.DType{
	ir.Bool: safetensors.Bool, ir.U8: safetensors.U8, ir.I8: safetensors.I8, ir.I16: safetensors.I16,
	ir.I32: safetensors.I32, ir.I64: safetensors.I64, ir.F16: safetensors.F16, ir.BF16: safetensors.BF16,
	ir.F32: safetensors.F32, ir.F64: safetensors.F64, ir.C64: safetensors.C64,
	ir.F8E4M3FN: safetensors.F8E4M3, ir.F8E5M2: safetensors.F8E5M2,
}

// FileShape returns the shape of a tensor of a file. A dtype that Loris lacks is
// an error wrapping safetensors.ErrUnsupportedDType, dimensions that no tensor
// can have one wrapping ir.ErrShape.
func FileShape(info safetensors.Info) (ir.Shape, error) {
	dims := make([]int, len(info.Shape))
	for i, d := range info.Shape {
		dims[i] = int(d)
	}
	for dtype, name := range fileDTypes {
		if name == info.DType {
			return ir.NewShape(dtype, dims)
		}
	}
	return ir.Shape{}, fmt.Errorf("%w %s", safetensors.ErrUnsupportedDType, info.DType)
}

// ReadFile reads all tensors of a safetensors file and its metadata.
func ReadFile(path string) (map[string]Tensor, map[string]string, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	all := map[string]Tensor{}
	for _, info := range f.Tensors() {
		t := Tensor{Name: info.Name}
		if t.Shape, err = FileShape(info); err != nil {
			return nil, nil, fmt.Errorf("%s: tensor %q: %w", path, info.Name, err)
		}
		if t.Data, err = f.Bytes(info.Name); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		all[t.Name] = t
	}
	return all, f.Metadata(), nil
}

// WriteFile writes a safetensors file, which appears complete or not at all.
func WriteFile(path string, ts []Tensor, metadata map[string]string) error {
	list := make([]safetensors.Tensor, len(ts))
	for i, t := range ts {
		dtype, ok := fileDTypes[t.Shape.DType()]
		if !ok {
			return fmt.Errorf("%s: tensor %q: %w %v", path, t.Name, safetensors.ErrUnsupportedDType, t.Shape.DType())
		}
		list[i] = safetensors.Tensor{Name: t.Name, DType: dtype, Data: t.Data}
		for _, d := range t.Shape.Dims() {
			list[i].Shape = append(list[i].Shape, int64(d))
		}
	}
	err := atomicfile.Write(path, func(w io.Writer) error { return safetensors.Write(w, list, metadata) })
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
