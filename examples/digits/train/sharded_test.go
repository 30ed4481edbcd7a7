package train

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
)

// TestRanksAgree trains on 1, 2 and 4 ranks: measures and weights are the same bits, dropout included.
func TestRanksAgree(t *testing.T) {
	var want []float32
	var loss, accuracy float64
	for _, n := range []int{1, 2, 4} {
		err := local.Run(t.Context(), n, func(ctx context.Context, g *dist.Group) error {
			c := small()
			c.Epochs, c.World = 2, g
			tr, err := New(ctx, c)
			if err != nil {
				return err
			}
			defer tr.Close(context.Background())
			var e Epoch
			for range c.Epochs {
				if e, err = tr.RunEpoch(ctx); err != nil {
					return err
				}
			}
			all, err := parameters(ctx, tr)
			if err != nil || g.Rank() > 0 {
				return err
			}
			if want == nil {
				want, loss, accuracy = all, e.TrainLoss, e.Test.Accuracy
			}
			if !slices.Equal(all, want) || e.TrainLoss != loss || e.Test.Accuracy != accuracy {
				t.Errorf("%d ranks: other weights than 1, loss %v for %v, accuracy %v for %v", n, e.TrainLoss, loss, e.Test.Accuracy, accuracy)
			}
			return nil
		}, dist.WithShards(8))
		if err != nil {
			t.Fatal(err)
		}
	}
	if accuracy < 0.3 {
		t.Errorf("the accuracy is %v", accuracy)
	}
}

func parameters(ctx context.Context, tr *Trainer) ([]float32, error) {
	var all []float32
	for _, v := range tr.model.Params() {
		x, err := v.Value().Float32s(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, x...)
	}
	return all, nil
}

// TestRankIsLost has rank 1 of 4 end within the second epoch. What rank 0 saves then is a checkpoint from
// which 1, 2 and 4 ranks go on to the weights of a training that nobody left.
func TestRankIsLost(t *testing.T) {
	lost := errors.New("the machine is gone")
	path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	finish := func(n int, load bool) (out []float32) {
		err := local.Run(t.Context(), n, func(ctx context.Context, g *dist.Group) error {
			c := small()
			c.Epochs, c.World = 3, g
			tr, err := New(ctx, c)
			if err != nil {
				return err
			}
			defer tr.Close(context.Background())
			if load {
				if err := tr.LoadCheckpoint(ctx, path); err != nil {
					return err
				}
			}
			for tr.Done() < c.Epochs {
				if _, err := tr.RunEpoch(ctx); err != nil {
					return err
				}
			}
			all, err := parameters(ctx, tr)
			if err == nil && g.Rank() == 0 {
				out = all
			}
			return err
		}, dist.WithShards(8))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := finish(2, false)
	err := local.Run(t.Context(), 4, func(ctx context.Context, g *dist.Group) error {
		c := small()
		c.Epochs, c.World = 3, g
		tr, err := New(ctx, c)
		if err != nil {
			return err
		}
		defer tr.Close(context.Background())
		if _, err = tr.RunEpoch(ctx); err != nil {
			return err
		}
		var leaving error
		tr.Progress = func(step, of int) {
			if g.Rank() == 1 && step == 2 {
				panic(lost)
			}
		}
		_, leaving = tr.RunEpoch(ctx)
		if r := (*dist.RankError)(nil); !errors.As(leaving, &r) {
			t.Errorf("rank %d ends with %v", g.Rank(), leaving)
		}
		if g.Rank() == 0 {
			if steps := tr.opt.Steps(); steps <= int64(tr.StepsPerEpoch()) || steps > int64(tr.StepsPerEpoch())+2 {
				t.Errorf("%d steps of %d an epoch count as taken", steps, tr.StepsPerEpoch())
			}
			if err := tr.SaveCheckpoint(ctx, path); err != nil {
				t.Errorf("save: %v", err)
			}
		}
		return leaving
	}, dist.WithShards(8))
	if !errors.Is(err, lost) {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 4} {
		if got := finish(n, true); !slices.Equal(got, want) {
			t.Errorf("%d ranks go on to other weights", n)
		}
	}
}

// TestStartsAgree has ranks that find different checkpoints, as on machines without a common folder.
func TestStartsAgree(t *testing.T) {
	err := local.Run(t.Context(), 2, func(ctx context.Context, g *dist.Group) error {
		c := small()
		c.World = g
		tr, err := New(ctx, c)
		if err != nil {
			return err
		}
		defer tr.Close(context.Background())
		if err := tr.AgreeOnStart(ctx); err != nil {
			t.Errorf("both are at the start: %v", err)
		}
		if g.Rank() == 1 {
			path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
			other, err := New(ctx, small())
			if err != nil {
				return err
			}
			defer other.Close(context.Background())
			if _, err := other.RunEpoch(ctx); err != nil {
				return err
			}
			if err := errors.Join(other.SaveCheckpoint(ctx, path), tr.LoadCheckpoint(ctx, path)); err != nil {
				return err
			}
		}
		if err := tr.AgreeOnStart(ctx); err == nil || !strings.Contains(err.Error(), "rank 1 begins after step") {
			t.Errorf("rank %d: %v", g.Rank(), err)
		}
		return nil
	}, dist.WithShards(8))
	if err != nil {
		t.Fatal(err)
	}
}
