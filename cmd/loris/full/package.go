package main

import (
	"context"
	"errors"
	"io"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/export"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/examples/digits/train"
	"github.com/loris-ml/loris/internal/atomicfile"
)

// packageDigits writes the network of a file of digits' weights as a package for any number of images.
func packageDigits(ctx context.Context, weights, path string) (err error) {
	s, err := loris.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	net, err := train.LoadModel(ctx, weights, s.With())
	if err != nil {
		return err
	}
	o := export.Options{
		Module:        net,
		DynamicShapes: []map[int]export.Dim{{0: {Name: "images", Min: 1, Max: digits.Size}}},
	}
	forward := func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{net.Forward(in[0])} }
	in := []*loris.Tensor{s.With().Zeros(digits.Size, digits.Features)}
	return atomicfile.Write(path, func(w io.Writer) error { return export.Function(ctx, w, forward, in, o) })
}
