package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/data"
	"github.com/loris-ml/loris/onnx"
)

// Embed runs the package, or the model of ONNX, on the tokens of sentences and their mask, and returns
// a vector of unit length for each sentence.
func Embed(ctx context.Context, path string, tokens, mask data.Array) ([][]float32, error) {
	if filepath.Ext(path) == ".onnx" {
		return embedONNX(ctx, path, tokens, mask)
	}
	return embedPackage(ctx, path, tokens, mask)
}

func embedONNX(ctx context.Context, path string, tokens, mask data.Array) ([][]float32, error) {
	m, err := onnx.Load(ctx, path)
	if err != nil {
		return nil, err
	}
	outs, err := m.Call(ctx, loris.FromBytes(tokens.Data, tokens.Shape), loris.FromBytes(mask.Data, mask.Shape))
	if err != nil {
		return nil, err
	}
	all, err := outs[0].Float32s(ctx)
	if err != nil {
		return nil, err
	}
	return rowsOf(path, all, tokens.Shape.Dim(0))
}

// rowsOf returns the vectors of the sentences, of which all has the elements.
func rowsOf(path string, all []float32, rows int) (vectors [][]float32, err error) {
	if len(all) == 0 || len(all)%rows != 0 {
		return nil, fmt.Errorf("%s returned %d numbers for %d sentences: it is not a model that embeds them", path, len(all), rows)
	}
	width := len(all) / rows
	for i := range rows {
		vectors = append(vectors, append([]float32(nil), all[i*width:(i+1)*width]...))
	}
	return vectors, nil
}

func embedPackage(ctx context.Context, path string, tokens, mask data.Array) (vectors [][]float32, err error) {
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
	defer out[0].Release()
	all, err := aoti.Float32s(out[0])
	if err != nil {
		return nil, err
	}
	return rowsOf(path, all, tokens.Shape.Dim(0))
}
