package train

import (
	"context"
	"slices"
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
			var all []float32
			for _, v := range tr.model.Params() {
				x, err := v.Value().Float32s(ctx)
				if err != nil {
					return err
				}
				all = append(all, x...)
			}
			if g.Rank() > 0 {
				return nil
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
