package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/data"
)

// Embed runs the package on the tokens of sentences and their mask, and returns a
// vector of unit length for each sentence.
func Embed(ctx context.Context, path string, tokens, mask data.Array) (vectors [][]float32, err error) {
	m, err := aoti.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	inputs := make([]aoti.Buffer, 2)
	for i, a := range []data.Array{tokens, mask} {
		if inputs[i], err = aoti.FromBytes(a.Data, a.Shape.DType(), a.Shape.Dims()...); err != nil {
			return nil, err
		}
	}
	out, err := m.Run(ctx, inputs...)
	if err != nil {
		return nil, err
	}
	rows := tokens.Shape.Dim(0)
	defer out[0].Release()
	all, err := aoti.Float32s(out[0])
	if err != nil {
		return nil, err
	}
	if len(out) != 1 || len(all)%rows != 0 {
		return nil, fmt.Errorf("%s returned %d outputs, the first of shape %v: it is not a model that embeds sentences", path, len(out), out[0].Shape())
	}
	width := len(all) / rows
	for i := range rows {
		vectors = append(vectors, append([]float32(nil), all[i*width:(i+1)*width]...))
	}
	return vectors, nil
}
