package local_test

import (
	"context"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/internal/disttest"
	"github.com/loris-ml/loris/dist/local"
	"github.com/loris-ml/loris/internal/ref"
)

// TestCollectives has every collective on every dtype, on both backends and on numbers of ranks that are no
// powers of two, too.
func TestCollectives(t *testing.T) {
	for _, x := range []struct {
		ranks  int
		device loris.Device
	}{{1, loris.CPU}, {2, loris.CPU}, {3, loris.CPU}, {5, loris.CPU}, {3, ref.Device}} {
		err := local.Run(t.Context(), x.ranks, func(ctx context.Context, g *dist.Group) error {
			s, err := g.Session(loris.WithDevice(x.device))
			if err != nil {
				return err
			}
			defer s.Close(context.Background())
			return disttest.Collectives(ctx, g, s)
		})
		if err != nil {
			t.Errorf("%d ranks on %v: %.2000v", x.ranks, x.device, err)
		}
	}
}
