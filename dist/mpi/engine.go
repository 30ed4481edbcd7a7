//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/loris-ml/loris/dist"
)

// stageBytes is the size of the memory through which elements go to and from MPI: it fits into a cache,
// and what is longer goes in pieces.
const stageBytes = 2 << 20

// How long a wait asks without sleeping. Libraries move the elements of a long message bit by bit while
// both ends ask, so that one that sleeps holds up the other; a rank without a processor of its own
// holds it up more by asking.
const (
	spinAlone  = time.Millisecond
	spinShared = 50 * time.Microsecond
)

// spinFor returns how long the ranks of a machine ask that have so many processors.
func spinFor(ranks, processors int) time.Duration {
	if ranks > processors {
		return spinShared
	}
	return spinAlone
}

// stage is memory of MPI, which it may have registered with a network, and cells for one call. MPI sees
// no other memory, so that nothing of Go's is used by a call that was given up.
type stage struct {
	send, recv []byte
	counts     []int32 // lengths and displacements, four for each rank
	cells      *cells
}

func (s *stage) from() uintptr { return uintptr(unsafe.Pointer(&s.send[0])) }
func (s *stage) to() uintptr   { return uintptr(unsafe.Pointer(&s.recv[0])) }

// engine is one rank of a communicator.
type engine struct {
	lib        *library
	comm       uintptr
	rank, size int
	control    *control // of the job
	alone      bool     // ranks were brought together without an mpiexec
	lane       *lane    // nil where ranks share no memory

	mu     sync.Mutex
	stages []*stage // free ones
}

// newEngine returns the engine of a communicator.
func newEngine(l *library, comm uintptr, k *control) (*engine, error) {
	c := l.cell()
	defer l.free(c)
	if err := l.call("MPI_Comm_set_errhandler", comm, l.errorsReturn); err != nil {
		return nil, err
	}
	if err := l.call("MPI_Comm_rank", comm, c.at(0)); err != nil {
		return nil, err
	}
	if err := l.call("MPI_Comm_size", comm, c.at(1)); err != nil {
		return nil, err
	}
	return &engine{lib: l, comm: comm, rank: int(int32(c.words[0])), size: int(int32(c.words[1])), control: k}, nil
}

// Rank implements dist.Engine.
func (e *engine) Rank() int { return e.rank }

// Size implements dist.Engine.
func (e *engine) Size() int { return e.size }

// stage takes memory for a call.
func (e *engine) stage() (*stage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.stages); n > 0 {
		s := e.stages[n-1]
		e.stages = e.stages[:n-1]
		return s, nil
	}
	s := &stage{cells: e.lib.cell()}
	var counts []byte
	room := stageBytes + e.size*dist.Alignment // parts of a piece begin at multiples of Alignment
	for b, n := range map[*[]byte]int{&s.send: room, &s.recv: room, &counts: 4 * 4 * e.size} {
		if err := e.lib.call("MPI_Alloc_mem", uintptr(n), e.lib.infoNull, s.cells.at(3)); err != nil {
			return nil, err
		}
		*b = unsafe.Slice(*(**byte)(unsafe.Pointer(&s.cells.words[3])), n)
	}
	s.counts = unsafe.Slice((*int32)(unsafe.Pointer(&counts[0])), len(counts)/4)
	return s, nil
}

// done gives back the memory of a call that has ended.
func (e *engine) done(s *stage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stages = append(e.stages, s)
}

// pieces runs part for pieces of at most most bytes of n. What a piece that was given up uses is never
// used again.
func (e *engine) pieces(ctx context.Context, n, most int, part func(s *stage, at, n int) error) error {
	s, err := e.stage()
	if err != nil {
		return err
	}
	for at := 0; at == 0 || at < n; at += most {
		if err := part(s, at, min(most, n-at)); err != nil {
			return err
		}
	}
	e.done(s)
	return nil
}

// start starts a call that returns a request in its last argument, and waits for it.
func (e *engine) start(ctx context.Context, s *stage, name string, args ...uintptr) error {
	if err := e.begin(s, name, args...); err != nil {
		return err
	}
	return e.finish(ctx, s)
}

// begin starts a call that returns a request in its last argument.
func (e *engine) begin(s *stage, name string, args ...uintptr) error {
	if err := e.control.err(); err != nil {
		return err
	}
	s.cells.words[0], s.cells.words[1] = 0, 0
	e.control.moved()
	return e.lib.call(name, append(args, s.cells.at(0))...)
}

// finish waits for the call that has begun with s. It asks the library again and again: so all calls get
// on.
func (e *engine) finish(ctx context.Context, s *stage) error {
	test := e.lib.calls["MPI_Test"]
	return e.await(ctx, 16, func() (bool, error) {
		rc, _, _ := purego.SyscallN(test, s.cells.at(0), s.cells.at(1), e.lib.statusIgnore)
		if int32(rc) != 0 {
			return false, e.lib.call("MPI_Test", s.cells.at(0), s.cells.at(1), e.lib.statusIgnore) // says why
		}
		return int32(s.cells.words[1]) != 0, nil
	})
}

// await asks until the answer is yes or an error. After so many questions at a time it ends with ctx, or when
// a rank has failed, and leaves the processor to others.
func (e *engine) await(ctx context.Context, atATime int, ask func() (bool, error)) error {
	var begun time.Time // of the first look at the clock
	for i := 1; ; i++ {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		if i%atATime != 0 {
			continue
		}
		if err := e.control.err(); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if begun.IsZero() {
			begun = time.Now()
		}
		if waited := time.Since(begun); waited > e.control.spin {
			nap(min(waited/16, 200*time.Microsecond))
		} else {
			runtime.Gosched()
		}
	}
}

// nap sleeps in the system: time.Sleep takes a millisecond where no other goroutine runs, for the
// scheduler waits for events in whole milliseconds.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&t, nil) // one that a signal cuts short is as good
}

// AllGather implements dist.Engine.
func (e *engine) AllGather(ctx context.Context, out, in []byte) error {
	if e.lane != nil {
		if len(in) <= laneBytes {
			return e.exchange(ctx, out, in)
		}
		return e.allGatherNear(ctx, out, in)
	}
	return e.pieces(ctx, len(in), max(stageBytes/e.size, 1), func(s *stage, at, n int) error {
		copy(s.recv[e.rank*n:], in[at:at+n])
		if err := e.start(ctx, s, "MPI_Iallgather", e.lib.inPlace, 0, e.lib.bytes, s.to(), uintptr(n), e.lib.bytes, e.comm); err != nil {
			return err
		}
		for r := range e.size {
			copy(out[r*len(in)+at:][:n], s.recv[r*n:])
		}
		return nil
	})
}

// AllToAll implements dist.Engine.
func (e *engine) AllToAll(ctx context.Context, out, in []byte) error {
	if e.lane != nil {
		return e.allToAllNear(ctx, out, in)
	}
	part := len(in) / e.size
	return e.pieces(ctx, part, max(stageBytes/e.size, 1), func(s *stage, at, n int) error {
		for r := range e.size {
			copy(s.send[r*n:(r+1)*n], in[r*part+at:])
		}
		if err := e.start(ctx, s, "MPI_Ialltoall", s.from(), uintptr(n), e.lib.bytes, s.to(), uintptr(n), e.lib.bytes, e.comm); err != nil {
			return err
		}
		for r := range e.size {
			copy(out[r*part+at:][:n], s.recv[r*n:])
		}
		return nil
	})
}

// Broadcast implements dist.Engine.
func (e *engine) Broadcast(ctx context.Context, buf []byte, root int) error {
	if e.lane != nil {
		return e.broadcastNear(ctx, buf, root)
	}
	return e.pieces(ctx, len(buf), stageBytes, func(s *stage, at, n int) error {
		copy(s.send, buf[at:at+n])
		err := e.start(ctx, s, "MPI_Ibcast", s.from(), uintptr(n), e.lib.bytes, uintptr(root), e.comm)
		if err == nil {
			copy(buf[at:at+n], s.send)
		}
		return err
	})
}

// Send implements dist.Engine.
func (e *engine) Send(ctx context.Context, buf []byte, peer, tag int) error {
	return e.pieces(ctx, len(buf), stageBytes, func(s *stage, at, n int) error {
		copy(s.send, buf[at:at+n])
		return e.start(ctx, s, "MPI_Isend", s.from(), uintptr(n), e.lib.bytes, uintptr(peer), uintptr(tag), e.comm)
	})
}

// Recv implements dist.Engine.
func (e *engine) Recv(ctx context.Context, buf []byte, peer, tag int) error {
	return e.pieces(ctx, len(buf), stageBytes, func(s *stage, at, n int) error {
		err := e.start(ctx, s, "MPI_Irecv", s.to(), uintptr(n), e.lib.bytes, uintptr(peer), uintptr(tag), e.comm)
		if err == nil {
			copy(buf[at:at+n], s.recv)
		}
		return err
	})
}

// Split implements dist.Engine. The library's own call blocks; ranks that have agreed to it come soon.
func (e *engine) Split(ctx context.Context, color, key int) (dist.Engine, error) {
	mine := binary.LittleEndian.AppendUint64(nil, uint64(color))
	all := make([]byte, 8*e.size)
	if err := e.AllGather(ctx, all, mine); err != nil {
		return nil, err
	}
	first := 0 // the first rank of the color stands for it: MPI wants no negative colors
	for !bytes.Equal(all[8*first:][:8], mine) {
		first++
	}
	c := e.lib.cell()
	defer e.lib.free(c)
	if err := e.lib.call("MPI_Comm_split", e.comm, uintptr(first), uintptr(uint32(key)), c.at(0)); err != nil {
		return nil, err
	}
	child, err := newEngine(e.lib, uintptr(c.words[0]), e.control)
	if err != nil {
		return nil, err
	}
	return child, child.makeLane(ctx)
}

// Abort implements dist.Engine.
func (e *engine) Abort(cause error) { e.control.abort(cause) }

// Failed implements dist.Engine.
func (e *engine) Failed() error { return e.control.err() }

// Status implements dist.Engine.
func (e *engine) Status() string { return e.control.status() }

// Close implements dist.Engine: it is called on the engine of all ranks.
func (e *engine) Close(ctx context.Context) error {
	if err := e.AllGather(ctx, make([]byte, e.size), make([]byte, 1)); err != nil {
		return err
	}
	e.control.close()
	if err := e.lib.freeWindows(); err != nil {
		return err
	}
	return e.lib.call("MPI_Finalize")
}

// Exit ends the process through C's exit, whose handlers tell mpiexec of MPICH that this rank has not
// crashed. Nobody else wants that, and handlers of the library's have been seen to crash beside the threads
// of Go.
func (e *engine) Exit(status int) {
	if exit := e.lib.symbol("exit"); exit != 0 && !e.alone {
		purego.SyscallN(exit, uintptr(status))
	}
	os.Exit(status)
}
