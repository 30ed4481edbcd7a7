//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"sync/atomic"

	"github.com/loris-ml/loris/dist"
)

// slotBytes is the size of the pieces in which long messages go through a lane: those of some ranks stay
// in the processor's cache. It is a multiple of dist.Alignment.
const slotBytes = 256 << 10

// slot is where a rank writes every other one of its pieces. It writes there again when it has seen that
// all others have posted the next piece: they have then read this one.
type slot struct {
	posted atomic.Uint64 // the turn whose piece is there
	joined atomic.Uint64 // the turn of which this rank's part of the result is there
	_      [112]byte     // data begins at a cache line that nobody asks
	data   [slotBytes]byte
}

// turn has all ranks exchange a piece: fill writes this rank's, and read gets those of the others, which stay
// as they are until the turn after the next.
func (e *engine) turn(ctx context.Context, fill func(own []byte), read func(r int, piece []byte)) error {
	if err := e.control.err(); err != nil {
		return err
	}
	e.control.moved()
	l := e.lane
	l.piece++
	own := l.slots[e.rank][l.piece%2]
	fill(own.data[:])
	own.posted.Store(l.piece)
	return e.others(ctx, func(s *slot) *atomic.Uint64 { return &s.posted }, read)
}

// others waits until a flag of each other rank is at this turn, and has its piece read.
func (e *engine) others(ctx context.Context, flag func(s *slot) *atomic.Uint64, read func(r int, piece []byte)) error {
	l := e.lane
	for r := range e.size {
		if r == e.rank {
			continue
		}
		s := l.slots[r][l.piece%2]
		f := flag(s)
		if f.Load() != l.piece {
			if err := e.await(ctx, 1024, func() (bool, error) { return f.Load() == l.piece, nil }); err != nil {
				return err
			}
		}
		read(r, s.data[:])
	}
	return nil
}

// allReduceNear is AllReduce through the lane: a rank posts the parts of a piece that others join, joins its
// own from where they lie, and takes the joined ones of the others.
func (e *engine) allReduceNear(ctx context.Context, out, in []byte, join dist.Joiner) error {
	parts := make([][]byte, e.size)
	for at := 0; at < len(in); at += slotBytes {
		end := min(at+slotBytes, len(in))
		stride := e.shares(parts, in[at:end])
		var own []byte
		mine := parts[e.rank]
		from := min(e.rank*stride, end-at)
		err := e.turn(ctx, func(slot []byte) {
			for r, p := range parts {
				if r != e.rank {
					copy(slot[min(r*stride, end-at):], p)
				}
			}
			own = slot[from:][:len(mine)]
		}, func(r int, piece []byte) { parts[r] = piece[from:][:len(mine)] })
		if err != nil {
			return err
		}
		if len(mine) > 0 {
			join(own, parts, e.rank)
		}
		e.lane.slots[e.rank][e.lane.piece%2].joined.Store(e.lane.piece)
		dst := out[at:end]
		copy(dst[from:], own)
		err = e.others(ctx, func(s *slot) *atomic.Uint64 { return &s.joined }, func(r int, piece []byte) {
			begin := min(r*stride, len(dst))
			copy(dst[begin:min(begin+stride, len(dst))], piece[begin:])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reduceScatterNear is ReduceScatter through the lane.
func (e *engine) reduceScatterNear(ctx context.Context, out, in []byte, join dist.Joiner) error {
	most := slotBytes / e.size / dist.Alignment * dist.Alignment
	parts := make([][]byte, e.size)
	for at := 0; at < len(out); at += most {
		n := min(most, len(out)-at)
		err := e.turn(ctx, func(own []byte) {
			for r := range parts {
				if r != e.rank {
					copy(own[r*most:], in[r*len(out)+at:][:n])
				}
			}
		}, func(r int, piece []byte) { parts[r] = piece[e.rank*most:][:n] })
		if err != nil {
			return err
		}
		parts[e.rank] = in[e.rank*len(out)+at:][:n]
		join(out[at:at+n], parts, e.rank)
	}
	return nil
}

// allGatherNear is AllGather through the lane.
func (e *engine) allGatherNear(ctx context.Context, out, in []byte) error {
	copy(out[e.rank*len(in):], in)
	for at := 0; at < len(in); at += slotBytes {
		n := min(slotBytes, len(in)-at)
		err := e.turn(ctx, func(own []byte) { copy(own, in[at:at+n]) },
			func(r int, piece []byte) { copy(out[r*len(in)+at:][:n], piece) })
		if err != nil {
			return err
		}
	}
	return nil
}

// allToAllNear is AllToAll through the lane.
func (e *engine) allToAllNear(ctx context.Context, out, in []byte) error {
	part := len(in) / e.size
	most := slotBytes / e.size
	copy(out[e.rank*part:][:part], in[e.rank*part:])
	for at := 0; at < part; at += most {
		n := min(most, part-at)
		err := e.turn(ctx, func(own []byte) {
			for r := range e.size {
				if r != e.rank {
					copy(own[r*most:], in[r*part+at:][:n])
				}
			}
		}, func(r int, piece []byte) { copy(out[r*part+at:][:n], piece[e.rank*most:]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// broadcastNear is Broadcast through the lane.
func (e *engine) broadcastNear(ctx context.Context, buf []byte, root int) error {
	for at := 0; at < len(buf); at += slotBytes {
		n := min(slotBytes, len(buf)-at)
		err := e.turn(ctx, func(own []byte) {
			if e.rank == root {
				copy(own, buf[at:at+n])
			}
		}, func(r int, piece []byte) {
			if r == root {
				copy(buf[at:at+n], piece)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
