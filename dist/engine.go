package dist

import (
	"context"

	"github.com/loris-ml/loris/internal/ir"
)

// Engine moves bytes between the ranks of one group. Every rank calls the methods but Send, Recv and
// Abort in the same order with the same lengths, one at a time. They block until this rank's part is
// done and its memory is not used any more. Where ctx ends or a rank has failed they return an error
// soon, and the engine cannot be used any more.
type Engine interface {
	// Rank returns this rank, from 0, and Size how many there are.
	Rank() int
	Size() int
	// AllGather writes in of all ranks, in their order, to out, which is Size times as long.
	AllGather(ctx context.Context, out, in []byte) error
	// AllToAll sends part i of in, which has Size equal parts, to rank i, and writes what it gets from
	// rank i to part i of out.
	AllToAll(ctx context.Context, out, in []byte) error
	// Broadcast writes buf of the rank root to that of the others.
	Broadcast(ctx context.Context, buf []byte, root int) error
	// Send and Recv move buf to and from another rank. Those of equal peers and tags pair in their
	// order. Calls with other peers or tags may be under way at the same time, and collectives beside.
	Send(ctx context.Context, buf []byte, peer, tag int) error
	Recv(ctx context.Context, buf []byte, peer, tag int) error
	// Split returns the engine of the ranks that give the same color, ordered by key and then by rank.
	Split(ctx context.Context, color, key int) (Engine, error)
	// Abort makes the calls of all ranks fail, now and later, with an error that has the text of cause.
	Abort(cause error)
	// Failed returns the error that calls would fail with since a rank has failed, or nil.
	Failed() error
	// Status says what is known of where the ranks are, for errors; empty if nothing is.
	Status() string
	// Close frees what the engine holds, once all ranks have called it.
	Close(ctx context.Context) error
}

// Joiner writes the elements of all ranks, joined, to out. parts has those of each rank, in their order,
// as long as out and aligned to Alignment; they are overwritten, but for those of keep.
type Joiner func(out []byte, parts [][]byte, keep int)

// Reducer is an Engine that reduces with fewer copies than AllToAll and AllGather make. What is joined is
// the same: elements of a place, of all ranks in their order, once.
type Reducer interface {
	Engine
	// AllReduce writes in of all ranks, joined, to out.
	AllReduce(ctx context.Context, out, in []byte, join Joiner) error
	// ReduceScatter writes this rank's part of in of all ranks, joined, to out. in has Size equal parts.
	ReduceScatter(ctx context.Context, out, in []byte, join Joiner) error
}

// Summer is an Engine that adds by a library's own means, see WithLibrarySums.
type Summer interface {
	Engine
	// Sum writes the sum of in over the ranks to out, in an order of the library's choice. Elements are
	// f32 or f64.
	Sum(ctx context.Context, out, in []byte, d ir.DType) error
}
