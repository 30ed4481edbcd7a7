package dist

import (
	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// Reduction says how a collective joins the elements of the ranks.
type Reduction string

// The reductions. f16 and bf16 are joined in f32 and rounded once; a NaN stays one.
const (
	Sum  Reduction = "sum"
	Mean Reduction = "mean"
	Max  Reduction = "max"
	Min  Reduction = "min"
)

// The methods below record ops. All ranks of the group must compute their results in the same step:
// what one reads and another does not is a *MismatchError or a *RankError of the step. Gradients are
// those of the sum of what all ranks differentiate. In a group of one rank they record nothing. Shapes,
// dtypes and ranks that do not fit, and a tensor of a session that is not of the group, panic with a
// *loris.OpError.

// record records an op on x. args are those after the first operand, without the group.
func (g *Group) record(name string, x *loris.Tensor, after *loris.Tensor, args ...any) *loris.Tensor {
	op, _ := ir.Lookup(name)
	if x == nil || (*executor.Tensor)(x).Session() == nil {
		panic(ir.NewOpError(name, ir.ErrArg, nil, "the tensor is nil or zero"))
	}
	s := (*executor.Tensor)(x).Session()
	if s.Collectives() != collective.Communicator(g.world) {
		panic(ir.NewOpError(name, ir.ErrArg, nil, "the tensor's session does not belong to the group: make it with Group.Session"))
	}
	all := append(make([]any, 0, len(args)+3), (*executor.Tensor)(x))
	all = append(append(all, args...), g.boxed)
	if after != nil {
		all = append(all, (*executor.Tensor)(after))
	}
	out := new(executor.Tensor)
	s.Call1(op, out, all, nil)
	return (*loris.Tensor)(out)
}

func (g *Group) requireRank(op string, rank int) {
	if rank < 0 || rank >= g.Size() {
		panic(ir.NewOpError(op, ir.ErrArg, nil, "rank %d is not in the group of %d", rank, g.Size()))
	}
}

// AllReduce records the reduction of x over the ranks, which all of them get, in x's shape and dtype.
// The mean is of floating tensors.
func (g *Group) AllReduce(x *loris.Tensor, r Reduction) *loris.Tensor {
	return g.allReduceAfter(x, r, nil)
}

func (g *Group) allReduceAfter(x *loris.Tensor, r Reduction, after *loris.Tensor) *loris.Tensor {
	if g.Size() == 1 {
		return x
	}
	return g.record("all_reduce", x, after, string(r))
}

// Broadcast records x of the rank root, which all ranks get. Shapes and dtypes are equal on all of them.
func (g *Group) Broadcast(x *loris.Tensor, root int) *loris.Tensor {
	g.requireRank("broadcast", root)
	if g.Size() == 1 {
		return x
	}
	return g.record("broadcast", x, nil, root)
}

// AllGather records x of all ranks, joined along dim in their order, of any dtype.
func (g *Group) AllGather(x *loris.Tensor, dim int) *loris.Tensor {
	if g.Size() == 1 {
		return x
	}
	return g.record("all_gather", x, nil, dim, g.Size())
}

// ReduceScatter records the reduction of x over the ranks, cut along dim into as many equal parts as
// there are ranks, of which each gets its own.
func (g *Group) ReduceScatter(x *loris.Tensor, r Reduction, dim int) *loris.Tensor {
	if g.Size() == 1 {
		return x
	}
	return g.record("reduce_scatter", x, nil, string(r), dim, g.Size())
}

// AllToAll records an exchange: x is cut along dim into as many equal parts as there are ranks, each
// gets its part from every rank, and they are joined along dim in the order of the ranks.
func (g *Group) AllToAll(x *loris.Tensor, dim int) *loris.Tensor {
	if g.Size() == 1 {
		return x
	}
	return g.record("all_to_all", x, nil, dim, g.Size())
}

// Send records that x is sent to a rank, which records a Recv with the same tag. It returns a token, an
// f32 scalar of 0: the gradient of the token with respect to what x was computed from receives the
// gradient of x from that rank, which has taken that of its token.
func (g *Group) Send(x *loris.Tensor, peer, tag int) *loris.Tensor {
	g.requirePeer("send", peer, tag)
	return g.record("send", x, nil, peer, tag)
}

// Recv records the tensor of the given dtype and dimensions that a rank sends with the same tag. token
// is any f32 scalar, what it depends on is computed before; the gradient with respect to it sends the
// gradient of the result to that rank.
func (g *Group) Recv(token *loris.Tensor, peer, tag int, d loris.DType, dims ...int) *loris.Tensor {
	g.requirePeer("recv", peer, tag)
	return g.record("recv", token, nil, append([]int{}, dims...), d, peer, tag)
}

func (g *Group) requirePeer(op string, peer, tag int) {
	g.requireRank(op, peer)
	if peer == g.Rank() {
		panic(ir.NewOpError(op, ir.ErrArg, nil, "rank %d is this one", peer))
	}
	if tag < 0 || tag > maxTag {
		panic(ir.NewOpError(op, ir.ErrArg, nil, "tag %d is not among 0 to %d", tag, maxTag))
	}
}

// maxTag leaves two tags of an engine for each, of the 32767 that every MPI has.
const maxTag = 1<<14 - 2

// Barrier records x, once all ranks of the group have computed theirs.
func (g *Group) Barrier(x *loris.Tensor) *loris.Tensor {
	if g.Size() == 1 {
		return x
	}
	return g.record("barrier", x, nil)
}
