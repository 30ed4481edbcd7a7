//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"unsafe"

	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
)

// row returns row i of the stage's lengths and displacements, which have one for each rank.
func (s *stage) row(i, ranks int) []int32 { return s.counts[i*ranks : (i+1)*ranks] }

func address(x []int32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(x))) }

// beginExchange begins to send parts[r] to rank r, but for this rank's own, and to receive as many bytes
// as that has from each: those of rank r at r times stride.
func (e *engine) beginExchange(s *stage, parts [][]byte, stride int) error {
	sent, from, got, to := s.row(0, e.size), s.row(1, e.size), s.row(2, e.size), s.row(3, e.size)
	mine, at := len(parts[e.rank]), 0
	for r, p := range parts {
		sent[r], from[r], got[r], to[r] = 0, int32(at), 0, int32(r*stride)
		if r != e.rank {
			sent[r], got[r] = int32(len(p)), int32(mine)
			at += copy(s.send[at:], p)
		}
	}
	return e.begin(s, "MPI_Ialltoallv", s.from(), address(sent), address(from), e.lib.bytes, s.to(), address(got), address(to), e.lib.bytes, e.comm)
}

// received sets the parts but this rank's own to what an exchange has brought.
func (e *engine) received(s *stage, parts [][]byte, stride int) {
	mine := len(parts[e.rank])
	for r := range parts {
		if r != e.rank {
			parts[r] = s.recv[r*stride:][:mine]
		}
	}
}

// shares cuts bytes into a part for each rank; stride is the length of all but the last ones.
func (e *engine) shares(parts [][]byte, b []byte) (stride int) {
	stride = (len(b) + e.size*dist.Alignment - 1) / (e.size * dist.Alignment) * dist.Alignment
	for r := range parts {
		parts[r] = b[min(r*stride, len(b)):min((r+1)*stride, len(b))]
	}
	return stride
}

// AllReduce implements dist.Reducer: ranks exchange the parts of a piece, join their own, and gather
// those, while the parts of the next piece are under way.
func (e *engine) AllReduce(ctx context.Context, out, in []byte, join dist.Joiner) error {
	if e.lane != nil {
		return e.allReduceNear(ctx, out, in, join)
	}
	type piece struct {
		s      *stage
		parts  [][]byte
		stride int
	}
	begin := func(at int) (p piece, err error) {
		if p.s, err = e.stage(); err != nil {
			return p, err
		}
		p.parts = make([][]byte, e.size)
		p.stride = e.shares(p.parts, in[at:min(at+stageBytes, len(in))])
		return p, e.beginExchange(p.s, p.parts, p.stride)
	}
	next, err := begin(0)
	for at := 0; err == nil && at < len(in); at += stageBytes {
		p, dst := next, out[at:min(at+stageBytes, len(in))]
		if at+stageBytes < len(in) {
			if next, err = begin(at + stageBytes); err != nil {
				return err
			}
		}
		if err = e.finish(ctx, p.s); err == nil {
			err = e.gatherJoined(ctx, p.s, dst, p.parts, p.stride, join)
		}
	}
	return err
}

// gatherJoined joins this rank's part of a piece, whose parts the exchange of s has brought, and writes
// those of all ranks to dst.
func (e *engine) gatherJoined(ctx context.Context, s *stage, dst []byte, parts [][]byte, stride int, join dist.Joiner) error {
	e.received(s, parts, stride)
	lengths, to := s.row(0, e.size), s.row(1, e.size)
	for r := range parts {
		at := min(r*stride, len(dst))
		lengths[r], to[r] = int32(min(stride, len(dst)-at)), int32(at)
	}
	if n := len(parts[e.rank]); n > 0 {
		join(s.send[to[e.rank]:][:n], parts, e.rank)
	}
	if err := e.begin(s, "MPI_Iallgatherv", e.lib.inPlace, 0, e.lib.bytes, s.from(), address(lengths), address(to), e.lib.bytes, e.comm); err != nil {
		return err
	}
	if err := e.finish(ctx, s); err != nil {
		return err
	}
	copy(dst, s.send)
	e.done(s)
	return nil
}

// ReduceScatter implements dist.Reducer.
func (e *engine) ReduceScatter(ctx context.Context, out, in []byte, join dist.Joiner) error {
	if e.lane != nil {
		return e.reduceScatterNear(ctx, out, in, join)
	}
	most := max(stageBytes/e.size/dist.Alignment, 1) * dist.Alignment
	parts := make([][]byte, e.size)
	return e.pieces(ctx, len(out), most, func(s *stage, at, n int) error {
		for r := range parts {
			parts[r] = in[r*len(out)+at:][:n]
		}
		if err := e.beginExchange(s, parts, most); err != nil {
			return err
		}
		if err := e.finish(ctx, s); err != nil {
			return err
		}
		e.received(s, parts, most)
		join(out[at:at+n], parts, e.rank)
		return nil
	})
}

// Sum implements dist.Summer by the library's own all-reduce.
func (e *engine) Sum(ctx context.Context, out, in []byte, d ir.DType) error {
	kind := e.lib.float
	if d == ir.F64 {
		kind = e.lib.double
	}
	return e.pieces(ctx, len(in), stageBytes, func(s *stage, at, n int) error {
		copy(s.send, in[at:at+n])
		if err := e.start(ctx, s, "MPI_Iallreduce", s.from(), s.to(), uintptr(n/d.Size()), kind, e.lib.sum, e.comm); err != nil {
			return err
		}
		copy(out[at:at+n], s.recv)
		return nil
	})
}
