// Package tensors holds the named arrays that commands read, make up, print and
// write: host memory, little endian and row-major.
package tensors

import (
	"fmt"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	Shape ir.Shape
	Data  []byte // little endian, row-major, Shape.Bytes() long
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
		if t.Shape, t.Data, err = tensorfile.Read(f, info.Name); err != nil {
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
		var ok bool
		if list[i], ok = tensorfile.Tensor(t.Name, t.Shape, t.Data); !ok {
			return fmt.Errorf("%s: tensor %q: %w: files have no %v", path, t.Name, ir.ErrDType, t.Shape.DType())
		}
	}
	if err := safetensors.WriteFile(path, list, metadata); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
