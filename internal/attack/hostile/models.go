package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/examples/digits/train"
	"github.com/loris-ml/loris/model"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/torchexport"
)

func readExported(w *workspace, b []byte) error {
	p, err := w.file("model.pt2", b)
	if err != nil {
		return err
	}
	return inSession(func(ctx context.Context, in loris.Maker) (model.Model, error) {
		return torchexport.Load(ctx, p, torchexport.With(in))
	})
}

func readONNX(_ *workspace, b []byte) error {
	return inSession(func(_ context.Context, in loris.Maker) (model.Model, error) {
		return onnx.Decode("input", b, onnx.With(in))
	})
}

const config = `{"epochs":40,"batch":64,"lr":0.01,"seed":1,"hidden":[4,3],"dropout":0.3}`

// readConfig makes the model that the settings of an example describe, which lie in its file of weights.
func readConfig(w *workspace, b []byte) error {
	var file bytes.Buffer
	var tensors []safetensors.Tensor
	for i, shape := range [][]int64{{4, digits.Features}, {3, 4}, {digits.Classes, 3}} {
		name := fmt.Sprint(2 * i)
		tensors = append(tensors,
			safetensors.Tensor{Name: name + ".weight", DType: safetensors.F32, Shape: shape, Data: make([]byte, 4*shape[0]*shape[1])},
			safetensors.Tensor{Name: name + ".bias", DType: safetensors.F32, Shape: shape[:1], Data: make([]byte, 4*shape[0])})
	}
	if err := safetensors.Write(&file, tensors, map[string]string{"digits.config": string(b)}); err != nil {
		return err
	}
	p, err := w.file("config.safetensors", file.Bytes())
	if err != nil {
		return err
	}
	return loadInSession(func(ctx context.Context, in loris.Maker) error {
		_, err := train.LoadModel(ctx, p, in)
		return err
	})
}

// loadInSession calls fn with a session of its own.
func loadInSession(fn func(context.Context, loris.Maker) error) (err error) {
	s, err := loris.New(loris.WithMemoryLimit(memory))
	if err != nil {
		return wrong{err}
	}
	ctx := context.Background()
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	return fn(ctx, s.With())
}

// inSession loads a model in a session of its own, and records one call of it, which computes only
// what sizes depend on.
func inSession(load func(context.Context, loris.Maker) (model.Model, error)) error {
	return loadInSession(func(ctx context.Context, in loris.Maker) error {
		m, err := load(ctx, in)
		if err != nil {
			return err
		}
		inputs, err := inputsOf(m, in)
		if err != nil {
			return err
		}
		_, err = m.Call(ctx, inputs...)
		return err
	})
}

// inputsOf returns inputs that the signature allows, and refuses large ones.
func inputsOf(m model.Model, in loris.Maker) (inputs []*loris.Tensor, err error) {
	total := 0
	for _, a := range m.Signature().Inputs {
		if !a.DType.Valid() {
			a.DType = loris.F32 // the file does not tell
		}
		dims := make([]int, len(a.Dims))
		n := 1
		for i, d := range a.Dims {
			if dims[i] = d.Size; d.Size < 0 {
				dims[i] = max(d.Min, 2)
			}
			if n *= min(dims[i], 1<<20); n > 1<<20 {
				return nil, errors.New("the inputs are too large")
			}
		}
		if total += n; total > 1<<20 {
			return nil, errors.New("the inputs are too large")
		}
		err = errors.Join(err, loris.Try(func() {
			inputs = append(inputs, in.FromBytes(ones(loris.MakeShape(a.DType, dims...)), loris.MakeShape(a.DType, dims...)))
		}))
	}
	return inputs, err
}

// tree reads the files below a directory whose names end so.
func tree(root fs.FS, dir, suffix string) (files [][]byte, err error) {
	err = fs.WalkDir(root, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path.Base(p), suffix) {
			return err
		}
		b, err := fs.ReadFile(root, p)
		files = append(files, b)
		return err
	})
	return files, err
}
