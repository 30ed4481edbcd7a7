package train

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
)

// checkShards returns an error if a step has too few images for its shards.
func (c *Config) checkShards() error {
	if c.World == nil {
		return nil
	}
	train, _, err := Data()
	if err != nil {
		return err
	}
	least := c.Batch
	if rest := train.Len() % c.Batch; rest > 0 {
		least = min(least, rest)
	}
	if _, _, all := c.World.Shards(); least < all {
		return fmt.Errorf("a batch of %d images is too small for %d shards", least, all)
	}
	return nil
}

// sharded records a step whose images are cut into the world's shards, of which this rank computes its
// own. Shards have images within one of each other, and dropout of their own, so that a step is the same
// bits on any number of ranks.
func (t *Trainer) sharded(b *digits.Dataset) result {
	first, n, all := t.cfg.World.Shards()
	images := b.Len()
	var shards [][]*loris.Tensor
	for shard := first; shard < first+n; shard++ {
		t.session.SetSeed((t.cfg.Seed*1_000_003+uint64(t.opt.Steps()))*1_000_003 + uint64(shard))
		from, to := shard*images/all, (shard+1)*images/all
		grads, r := t.gradients(b.Pixels[from*digits.Features:to*digits.Features], b.Labels[from:to])
		// The mean over shards is that over images once each shard counts by its size.
		weight := float64(r.images*all) / float64(images)
		for i, g := range grads {
			grads[i] = g.Mul(weight)
		}
		shards = append(shards, append(grads, r.loss.Mul(weight), r.right.Cast(loris.F32)))
	}
	means := t.cfg.World.Average(shards...)
	p := len(means) - 2
	t.opt.Step(means[:p])
	return result{means[p], means[p+1].Mul(all), images}
}

// AgreeOnStart returns an error on all ranks if they are not at the same step, as ranks whose folders have
// other checkpoints are.
func (t *Trainer) AgreeOnStart(ctx context.Context) error {
	g := t.cfg.World
	if g == nil {
		return nil
	}
	all, err := g.AllGather(t.session.With().FromSlice([]int64{t.opt.Steps()}, 1), 0).Int64s(ctx)
	if err != nil {
		return err
	}
	for r, steps := range all {
		if steps != all[0] {
			return fmt.Errorf("rank 0 begins after step %d and rank %d begins after step %d: the folder of the checkpoint must be one that all ranks reach", all[0], r, steps)
		}
	}
	return nil
}
