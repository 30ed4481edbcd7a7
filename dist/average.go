package dist

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// WithBucketBytes sets how many bytes of gradients Average joins to one collective, about. The default
// is 4 MiB: in shared memory little less is as quick, and networks want more.
func WithBucketBytes(n int) Option { return func(w *world) { w.bucket = n } }

// Average records the means of gradients over all shards of all ranks, in their shapes and dtypes. It
// takes the gradients of each of this rank's shards, in the order of the shards; without WithShards those
// of the rank. They are added in a balanced tree over the shards, f16 and bf16 in f32, so that the means
// are the same bits on any number of ranks. The last gradients, which are computed first, are sent while
// the others are computed.
//
//	grads := world.Average(loris.Grad(loss, w...)) // data parallel training is this line
func (g *Group) Average(shards ...[]*loris.Tensor) []*loris.Tensor {
	out := g.addShards(shards)
	g.sum(out)
	g.divide(out, shards[0])
	return out
}

// divide turns sums over all shards into means, in the dtypes of the gradients.
func (g *Group) divide(sums, grads []*loris.Tensor) {
	if all := g.world.shards; all > 1 {
		for i, x := range grads {
			sums[i] = sums[i].Div(all).Cast(x.DType())
		}
	}
}

// addShards adds the gradients of this rank's shards.
func (g *Group) addShards(shards [][]*loris.Tensor) []*loris.Tensor {
	_, n, _ := g.Shards()
	if len(shards) != n {
		panic(ir.NewOpError("average", ir.ErrArg, nil, "gradients of %d shards, this rank has %d", len(shards), n))
	}
	out := make([]*loris.Tensor, len(shards[0]))
	for i := range out {
		parts := make([]*loris.Tensor, n)
		for k, grads := range shards {
			if len(grads) != len(out) || grads[i].Shape() != shards[0][i].Shape() {
				panic(ir.NewOpError("average", ir.ErrShape, nil, "the gradients of shard %d do not fit those of shard 0", k))
			}
			parts[k] = wide(grads[i])
		}
		out[i] = tree(parts)
	}
	return out
}

// Sum records the sums of tensors over the ranks of the group, joined to few collectives.
func (g *Group) Sum(ts []*loris.Tensor) []*loris.Tensor {
	out := slices.Clone(ts)
	g.sum(out)
	return out
}

// wide returns a tensor in the dtype in which it is added.
func wide(x *loris.Tensor) *loris.Tensor {
	if d := x.DType(); d == loris.F16 || d == loris.BF16 {
		return x.Cast(loris.F32)
	}
	return x
}

// tree adds neighbours, then neighbouring pairs: the order of reduceTo.
func tree(parts []*loris.Tensor) *loris.Tensor {
	for len(parts) > 1 {
		var next []*loris.Tensor
		for i := 0; i+1 < len(parts); i += 2 {
			next = append(next, parts[i].Add(parts[i+1]))
		}
		if len(parts)%2 == 1 {
			next = append(next, parts[len(parts)-1])
		}
		parts = next
	}
	return parts[0]
}

// sum replaces tensors by their sums over the ranks, in buckets from the last tensor to the first. Each
// bucket is begun after the one before, on all ranks.
func (g *Group) sum(ts []*loris.Tensor) {
	if g.Size() == 1 {
		return
	}
	g.buckets(ts, g.sumBucket)
}

// buckets calls f with runs of tensors of one dtype, from the last tensor to the first. f gets what it
// returned for the run before, the result of a collective.
func (g *Group) buckets(ts []*loris.Tensor, f func(ts []*loris.Tensor, before *loris.Tensor) *loris.Tensor) {
	var before *loris.Tensor
	for end := len(ts); end > 0; {
		from, bytes := end, 0
		for from > 0 && ts[from-1].DType() == ts[end-1].DType() && (from == end || bytes+ts[from-1].Shape().Bytes() <= g.world.bucket) {
			from--
			bytes += ts[from].Shape().Bytes()
		}
		before = f(ts[from:end], before)
		end = from
	}
}

// sumBucket sums tensors of one dtype as one. Pointwise kernels and reductions that compute them write
// into the one, products are copied to it, and kernels that use the sums read from it.
func (g *Group) sumBucket(ts []*loris.Tensor, before *loris.Tensor) *loris.Tensor {
	flat := make([]*loris.Tensor, len(ts))
	for i, x := range ts {
		flat[i] = x.Reshape(-1)
	}
	one := flat[0]
	if len(flat) > 1 {
		one = loris.Cat(slices.Clone(flat), loris.Dim(0))
	}
	one = g.allReduceAfter(one, Sum, before)
	at := 0
	for i, x := range ts {
		ts[i] = one.Narrow(0, at, x.Numel()).Reshape(x.Dims()...)
		at += x.Numel()
	}
	return one
}
