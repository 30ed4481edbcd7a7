package dist

import (
	"github.com/loris-ml/loris"
)

// A tensor that is divided among the ranks, whatever its shape, is flattened, padded with zeros and cut
// into equal runs, one for each rank. What computes element by element, as optimisers do, may compute on
// such parts alone.

// Part records this rank's part of a tensor: a run of its elements, in their order.
func (g *Group) Part(x *loris.Tensor) *loris.Tensor {
	rows := g.rows(x)
	return rows.Narrow(0, g.Rank(), 1).Reshape(-1)
}

// rows is a tensor cut into the parts of all ranks, [ranks, elements].
func (g *Group) rows(x *loris.Tensor) *loris.Tensor {
	n := g.Size()
	x = x.Reshape(-1)
	if over := x.Numel() % n; over != 0 {
		x = loris.ConstantPadNd(x, []int{0, n - over}, 0)
	}
	return x.Reshape(n, -1)
}

// AverageParts records this rank's parts of what Average records, which costs half of its traffic: no rank
// has the others' parts, whose memory is free as soon as they are sent. The bits are those of Average.
func (g *Group) AverageParts(shards ...[]*loris.Tensor) []*loris.Tensor {
	out := g.addShards(shards)
	if g.Size() == 1 {
		for i, x := range out {
			out[i] = x.Reshape(-1)
		}
	} else {
		g.buckets(out, g.scatterBucket)
	}
	g.divide(out, shards[0])
	return out
}

// scatterBucket replaces tensors by this rank's parts of their sums.
func (g *Group) scatterBucket(ts []*loris.Tensor, before *loris.Tensor) *loris.Tensor {
	rows := make([]*loris.Tensor, len(ts))
	for i, x := range ts {
		rows[i] = g.rows(x)
	}
	one := g.record("reduce_scatter", join(rows, 1), before, string(Sum), 0, g.Size())
	at := 0
	for i, x := range rows {
		ts[i] = one.Narrow(1, at, x.Dim(1)).Reshape(-1)
		at += x.Dim(1)
	}
	return one
}

func join(ts []*loris.Tensor, dim int) *loris.Tensor {
	if len(ts) == 1 {
		return ts[0]
	}
	return loris.Cat(ts, loris.Dim(dim))
}

// Whole records the tensors of which the ranks have parts, in the given dimensions. It is the inverse of
// Part, and its gradients are the parts of sums over the ranks.
func (g *Group) Whole(parts []*loris.Tensor, dims [][]int) []*loris.Tensor {
	out := make([]*loris.Tensor, len(parts))
	copy(out, parts)
	if g.Size() > 1 {
		g.buckets(out, g.gatherBucket)
	}
	for i, x := range out {
		n := 1
		for _, d := range dims[i] {
			n *= d
		}
		out[i] = x.Reshape(-1).Narrow(0, 0, n).Reshape(dims[i]...)
	}
	return out
}

// gatherBucket replaces parts by the rows of all ranks.
func (g *Group) gatherBucket(ts []*loris.Tensor, before *loris.Tensor) *loris.Tensor {
	flat := make([]*loris.Tensor, len(ts))
	for i, x := range ts {
		flat[i] = x.Reshape(1, -1)
	}
	one := g.record("all_gather", join(flat, 1), before, 0, g.Size())
	at := 0
	for i, x := range flat {
		ts[i] = one.Narrow(1, at, x.Dim(1))
		at += x.Dim(1)
	}
	return one
}
