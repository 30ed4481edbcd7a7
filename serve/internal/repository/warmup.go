package repository

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// warmupDir is the folder in a model's that has the data of its warm-up.
const warmupDir = "warmup"

// warmUp runs the requests of model_warmup, on as many instances as there are. They count in no
// statistics.
func warmUp(ctx context.Context, m *model.Model, c *pb.ModelConfig, dir string) error {
	for _, w := range c.ModelWarmup {
		r, err := warmupRequest(w, c, dir)
		if err != nil {
			return inference.Errorf(inference.AsError(err).Kind, "model_warmup %q: %w", w.Name, err)
		}
		var g errgroup.Group
		for range m.Container().Instances() {
			g.Go(func() error {
				for range max(w.Count, 1) {
					work, err := m.Bind(r)
					if err != nil {
						return err
					}
					result, err := m.Run(ctx, work)
					if err != nil {
						return err
					}
					result.Release()
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return inference.Errorf(inference.AsError(err).Kind, "model_warmup %q: %w", w.Name, err)
		}
	}
	return nil
}

func warmupRequest(w *pb.ModelWarmup, c *pb.ModelConfig, dir string) (*inference.Request, error) {
	if w.BatchSize > 1 && c.MaxBatchSize == 0 {
		return nil, badf("batch_size is %d, but the configuration has no max_batch_size: dims say all sizes then", w.BatchSize)
	}
	r := &inference.Request{}
	for name, in := range w.Inputs {
		t := inference.Tensor{Name: name, Datatype: datatypeOf(in.DataType)}
		if c.MaxBatchSize > 0 {
			t.Shape = append(t.Shape, int64(max(w.BatchSize, 1)))
		}
		t.Shape = append(t.Shape, in.Dims...)
		var err error
		if t.Data, err = warmupData(&t, in, dir); err != nil {
			return nil, err
		}
		r.Inputs = append(r.Inputs, t)
	}
	return r, nil
}

// warmupData returns the elements of an input; Bind compares those of a file with its shape.
func warmupData(t *inference.Tensor, in *pb.ModelWarmup_Input, dir string) ([]byte, error) {
	n, ok := inference.NumElements(t.Shape)
	if !ok || n > 1<<30 || t.Datatype.Size() == 0 {
		return nil, badf("input %q: %v%v has no elements to make up", t.Name, in.DataType, t.Shape)
	}
	switch data := in.InputDataType.(type) {
	case *pb.ModelWarmup_Input_ZeroData:
		return make([]byte, n*int64(t.Datatype.Size())), nil
	case *pb.ModelWarmup_Input_RandomData:
		b := make([]byte, n*int64(t.Datatype.Size()))
		model.Randomise(b, t.Datatype, rand.New(rand.NewPCG(1, 2)))
		return b, nil
	case *pb.ModelWarmup_Input_InputDataFile:
		if !filepath.IsLocal(data.InputDataFile) {
			return nil, badf("input %q: input_data_file %q leaves the folder %s", t.Name, data.InputDataFile, warmupDir)
		}
		return os.ReadFile(filepath.Join(dir, warmupDir, data.InputDataFile))
	}
	return nil, badf("input %q has none of zero_data, random_data or input_data_file", t.Name)
}

func datatypeOf(d pb.DataType) inference.Datatype {
	if d == pb.DataType_TYPE_STRING {
		return inference.Bytes
	}
	return inference.Datatype(d.String()[len("TYPE_"):])
}
