package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris/aoti"
)

// Embed runs the package on the sentences and returns a vector of unit length
// for each.
func Embed(ctx context.Context, path string, t Tokens) (vectors [][]float32, err error) {
	m, err := aoti.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	ids := aoti.FromSlice(t.IDs, t.Rows, t.MaxLength)
	mask := aoti.FromSlice(t.Mask, t.Rows, t.MaxLength)
	out, err := m.Run(ctx, ids, mask)
	if err != nil {
		return nil, err
	}
	defer out[0].Release()
	all, err := aoti.Float32s(out[0])
	if err != nil {
		return nil, err
	}
	if len(out) != 1 || len(all)%t.Rows != 0 {
		return nil, fmt.Errorf("%s returned %d outputs, the first of shape %v: it is not a model that embeds sentences", path, len(out), out[0].Shape())
	}
	width := len(all) / t.Rows
	for i := range t.Rows {
		vectors = append(vectors, append([]float32(nil), all[i*width:(i+1)*width]...))
	}
	return vectors, nil
}
