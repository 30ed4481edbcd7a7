package nn

import (
	"context"
	"fmt"
	"maps"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
)

// Errors of Load, for errors.Is. Each is wrapped with the tensor's name.
var (
	// ErrMissing says that the file lacks a tensor of the module.
	ErrMissing = tensorfile.ErrMissing
	// ErrUnexpected says that the file has a tensor that the module lacks.
	ErrUnexpected = tensorfile.ErrUnexpected
	// ErrMismatch says that a tensor of the file has another shape or dtype.
	ErrMismatch = tensorfile.ErrMismatch
)

// named is a variable of a module with its name.
type named struct {
	name string
	v    *loris.Variable
}

// variables lists a module's parameters and buffers.
func variables(m Module) []named {
	var out []named
	for name, v := range m.Params() {
		out = append(out, named{name, v})
	}
	for name, v := range m.Buffers() {
		out = append(out, named{name, v})
	}
	return out
}

// Save writes the parameters and buffers of a module to a safetensors file, which PyTorch
// reads with safetensors.torch.load_file. It computes the pending ones in one graph and
// waits for all. Unless the metadata has the entry "format", it gets "format": "pt", which
// readers of weights require.
//
// The file at path is written whole or not at all: Save writes another file in the same
// directory, syncs it to disk and renames it. A symbolic link is followed, a device or a FIFO
// is written to, and other hard links of the file keep what they have. The session's step stays open. Save blocks
// until it is done or ctx ends.
func Save(ctx context.Context, path string, m Module, metadata map[string]string) error {
	if err := ir.CheckContext("nn.Save", ctx); err != nil {
		return err
	}
	tensors, err := fetch(ctx, variables(m))
	if err != nil {
		return fmt.Errorf("nn: save %s: %w", path, err)
	}
	meta := map[string]string{"format": "pt"}
	maps.Copy(meta, metadata)
	if err := safetensors.WriteFile(path, tensors, meta); err != nil {
		return fmt.Errorf("nn: save %s: %w", path, err)
	}
	return nil
}

// fetch waits for the variables' values.
func fetch(ctx context.Context, vars []named) ([]safetensors.Tensor, error) {
	values := make([]*loris.Tensor, len(vars))
	for i, n := range vars {
		values[i] = n.v.Value()
	}
	data, err := loris.Fetch(ctx, values...)
	if err != nil {
		return nil, err
	}
	out := make([]safetensors.Tensor, len(vars))
	for i, n := range vars {
		s := n.v.Shape()
		var ok bool
		if out[i], ok = tensorfile.Tensor(n.name, s, data[i]); !ok {
			return nil, fmt.Errorf("tensor %q: %w: files have no %v", n.name, loris.ErrDType, s.DType())
		}
	}
	return out, nil
}

// Metadata returns the metadata of a safetensors file without reading its
// tensors; nil without any.
func Metadata(path string) (map[string]string, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nn: metadata: %w", err)
	}
	return f.Metadata(), f.Close()
}
