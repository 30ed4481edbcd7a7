package failures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/internal/attack/libraries"
	"github.com/loris-ml/loris/onnx"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/tensorboard"
	"github.com/loris-ml/loris/torchexport"
)

func filePrograms(root fs.FS) []fileProgram {
	always := func(context.Context, string) (bool, error) { return true, nil }
	nothing := func(context.Context, string) error { return nil }
	programs := []fileProgram{
		{name: "a checkpoint over an older one", left: []string{"m.safetensors"},
			prepare: saveStep(1), run: saveStep(2), state: func(ctx context.Context, dir string) (bool, error) {
				step, err := loadStep(ctx, dir)
				return step == 2, err
			}},
		{name: "weights in shards over older ones", left: []string{
			"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors", "m.safetensors.index.json"},
			prepare: writeShards(1), run: writeShards(2), state: shardsState},
		{name: "a disk cache", prepare: nothing, run: compileCached, state: always},
		{name: "a disk cache with entries", prepare: compileCached, run: compileCached, state: always},
		{name: "event files of TensorBoard", prepare: nothing, run: writeEvents, state: always},
		{name: "loading a checkpoint", prepare: saveStep(1), state: always, left: []string{"m.safetensors"},
			run: func(ctx context.Context, dir string) error {
				step, err := loadStep(ctx, dir)
				if err == nil && step != 1 {
					err = fmt.Errorf("the step is %d", step)
				}
				return err
			}},
		{name: "opening shards", prepare: writeShards(1), state: always, run: func(_ context.Context, dir string) error {
			_, err := readShards(dir)
			return err
		}},
		{name: "loading an exported program", prepare: copied(root, "torchexport/testdata/data.pt2", "m.pt2"), state: always,
			run: func(ctx context.Context, dir string) error {
				return inSession(ctx, func(s *loris.Session) error {
					_, err := torchexport.Load(ctx, filepath.Join(dir, "m.pt2"), torchexport.With(s.With()))
					return err
				})
			}},
		{name: "loading a model of ONNX", prepare: copied(root, "onnx/testdata/cases/convnet/model.onnx", "m.onnx"), state: always,
			run: func(ctx context.Context, dir string) error {
				return inSession(ctx, func(s *loris.Session) error {
					_, err := onnx.Load(ctx, filepath.Join(dir, "m.onnx"), onnx.With(s.With()))
					return err
				})
			}},
	}
	if libraries.Supported {
		programs = append(programs, fileProgram{name: "loading a compiled package", state: always,
			prepare: copied(root, "aoti/testdata/bounds.pt2", "m.pt2"), run: func(ctx context.Context, dir string) error {
				r, err := aoti.Load(ctx, filepath.Join(dir, "m.pt2"))
				if err != nil {
					return err
				}
				return r.Close()
			}})
	}
	return programs
}

// inSession calls fn with a session that it closes.
func inSession(ctx context.Context, fn func(s *loris.Session) error, opts ...loris.SessionOption) (err error) {
	s, err := loris.New(opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	return fn(s)
}

// saveStep writes a checkpoint whose numbers are all the step.
func saveStep(step int64) func(context.Context, string) error {
	return func(ctx context.Context, dir string) error {
		return inSession(ctx, func(s *loris.Session) error {
			w := loris.NewVariable(s.With().Full(float64(step), 2, 3))
			c := optim.Checkpoint{Model: weight{w}, Session: s, Step: step}
			return c.Save(ctx, filepath.Join(dir, "m.safetensors"))
		})
	}
}

// loadStep reads a checkpoint of saveStep.
func loadStep(ctx context.Context, dir string) (step int64, err error) {
	err = inSession(ctx, func(s *loris.Session) error {
		w := loris.NewVariable(s.With().Full(0.0, 2, 3))
		c := optim.Checkpoint{Model: weight{w}, Session: s}
		if err := c.Load(ctx, filepath.Join(dir, "m.safetensors")); err != nil {
			return err
		}
		got, err := loris.Read[float32](ctx, w.Value())
		if err != nil {
			return err
		}
		for _, x := range got {
			if x != float32(c.Step) {
				return fmt.Errorf("the weights of step %d are %v", c.Step, got)
			}
		}
		step = c.Step
		return nil
	})
	return step, err
}

// weight is a module of one variable.
type weight struct{ w *loris.Variable }

func (m weight) Params() iter.Seq2[string, *loris.Variable] { return named(m.w) }

func (weight) Buffers() iter.Seq2[string, *loris.Variable] {
	return func(func(string, *loris.Variable) bool) {}
}

func (weight) SetTraining(bool) {}

// writeShards writes two shards, whose bytes are all x.
func writeShards(x byte) func(context.Context, string) error {
	return func(_ context.Context, dir string) error {
		var tensors []safetensors.Info
		for _, name := range []string{"a", "b"} {
			tensors = append(tensors, safetensors.Info{Name: name, DType: safetensors.U8, Shape: []int64{64}})
		}
		return safetensors.WriteShards(filepath.Join(dir, "m.safetensors"), tensors, nil, 64, func(_ safetensors.Info, w io.Writer) error {
			_, err := w.Write(bytes.Repeat([]byte{x}, 64))
			return err
		})
	}
}

// shardsState reports whether all shards are those of after. Some may be: each file is whole, the set
// of them is not.
func shardsState(_ context.Context, dir string) (after bool, err error) {
	x, err := readShards(dir)
	return x == [2]byte{2, 2}, err
}

func readShards(dir string) (x [2]byte, err error) {
	f, err := safetensors.Open(filepath.Join(dir, "m.safetensors.index.json"))
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i, name := range []string{"a", "b"} {
		b, err := f.Bytes(name)
		if err != nil {
			return x, err
		}
		if !bytes.Equal(b, bytes.Repeat(b[:1], 64)) {
			return x, fmt.Errorf("half of a shard: %v", b)
		}
		x[i] = b[0]
	}
	return x, nil
}

// compileCached computes with a disk cache, without which it computes, too.
func compileCached(ctx context.Context, dir string) error {
	return inSession(ctx, func(s *loris.Session) error {
		x := s.With().FromSlice([]float32{1, 2, 3})
		got, err := loris.Read[float32](ctx, x.Mul(2).Add(1).Sum())
		if err == nil && got[0] != 15 {
			err = fmt.Errorf("the sum is %v", got)
		}
		return err
	}, loris.WithDiskCache(filepath.Join(dir, "cache")))
}

// writeEvents writes event files, whose errors nobody may miss.
func writeEvents(_ context.Context, dir string) error {
	w, err := tensorboard.Create(filepath.Join(dir, "events"))
	if err != nil {
		return err
	}
	for i := range int64(3) {
		err = errors.Join(err, w.Scalar("loss", i, float64(i)))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	info, err := os.Stat(w.Path())
	if err == nil && info.Size() < 100 {
		err = fmt.Errorf("the file has %d bytes", info.Size())
	}
	return err
}
