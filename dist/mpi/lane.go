//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/loris-ml/loris/dist"
)

// lane is memory that the ranks of one machine share, through which short messages of their group go. It
// is MPI's, of MPI_Win_allocate_shared, and of its unified model: ranks write and read it as threads do. A
// message takes a third of a microsecond there, less than the three calls of the library from Go that it
// would take otherwise.
type lane struct {
	places [][2]*place // by rank
	turn   uint64      // messages so far
	slots  [][2]*slot  // by rank, for long messages
	piece  uint64      // pieces of them so far
}

// region is the memory of one rank.
type region struct {
	places [2]place
	slots  [2]slot
}

// place is where a rank writes every other one of its messages. It writes there again when it has come to
// the message after the next: all others have then come to the next one, and have read this.
type place struct {
	turn atomic.Uint64 // of the message in data
	data [laneBytes]byte
}

// laneBytes is how long messages of a lane may be; with the turn that makes 8 KiB.
const laneBytes = 8<<10 - 8

// makeLane makes the lane of a group whose ranks are all on one machine. All ranks call it, and all of them
// have one then, or none. Names of shared memory are taken away: all ranks have it.
func (e *engine) makeLane(ctx context.Context) error {
	need := uint64(e.size) * uint64(unsafe.Sizeof(region{}))
	// Libraries make files without asking for their room, and ranks that write to them end by SIGBUS.
	room, err := e.all(ctx, hasRoom("/dev/shm", need))
	if err != nil {
		return err
	}
	var l *lane
	if room {
		if l, err = e.allocateLane(); err != nil {
			l = nil // the group goes without
		}
	}
	made, err := e.all(ctx, l != nil)
	if err != nil {
		return err
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		unlinkShared(string(maps))
	}
	if made {
		e.lane = l
	}
	return nil
}

// all reports whether all ranks say yes.
func (e *engine) all(ctx context.Context, yes bool) (bool, error) {
	mine, all := []byte{0}, make([]byte, e.size)
	if yes {
		mine[0] = 1
	}
	err := e.AllGather(ctx, all, mine)
	return !bytes.Contains(all, []byte{0}), err
}

// hasRoom reports whether so many bytes are free where a folder is, or that nobody knows.
func hasRoom(dir string, bytes uint64) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) != nil || s.Bavail*uint64(s.Bsize) >= bytes
}

// allocateLane returns nil where ranks are on several machines.
func (e *engine) allocateLane() (*lane, error) {
	c := e.lib.cell()
	defer e.lib.free(c)
	if err := e.lib.call("MPI_Comm_split_type", e.comm, e.lib.typeShared, uintptr(e.rank), e.lib.infoNull, c.at(0)); err != nil {
		return nil, err
	}
	near := uintptr(c.words[0])
	if err := e.lib.call("MPI_Comm_size", near, c.at(1)); err != nil {
		return nil, err
	}
	if int(int32(c.words[1])) != e.size {
		return nil, e.lib.call("MPI_Comm_free", c.at(0))
	}
	if err := e.lib.call("MPI_Comm_set_errhandler", near, e.lib.errorsReturn); err != nil {
		return nil, err
	}
	if err := e.lib.call("MPI_Win_allocate_shared", unsafe.Sizeof(region{}), 1, e.lib.infoNull, near, c.at(1), c.at(2)); err != nil {
		return nil, err
	}
	window := uintptr(c.words[2])
	e.lib.mu.Lock()
	e.lib.windows = append(e.lib.windows, window)
	e.lib.mu.Unlock()
	l := &lane{places: make([][2]*place, e.size), slots: make([][2]*slot, e.size)}
	for r := range l.places {
		if err := e.lib.call("MPI_Win_shared_query", window, uintptr(r), c.at(1), c.at(2), c.at(3)); err != nil {
			return nil, err
		}
		if c.words[3]%dist.Alignment != 0 {
			return nil, nil
		}
		of := *(**region)(unsafe.Pointer(&c.words[3]))
		l.places[r] = [2]*place{&of.places[0], &of.places[1]}
		l.slots[r] = [2]*slot{&of.slots[0], &of.slots[1]}
	}
	for i := range 2 { // the standard promises no zeros
		l.places[e.rank][i].turn.Store(0)
		l.slots[e.rank][i].posted.Store(0)
		l.slots[e.rank][i].joined.Store(0)
	}
	return l, nil
}

// exchange is AllGather of what a place holds.
func (e *engine) exchange(ctx context.Context, out, in []byte) error {
	if err := e.control.err(); err != nil {
		return err
	}
	e.control.moved()
	l := e.lane
	l.turn++
	turn := l.turn
	mine := l.places[e.rank][turn%2]
	copy(mine.data[:], in)
	mine.turn.Store(turn)
	for r := range l.places {
		p := l.places[r][turn%2]
		if p.turn.Load() != turn {
			if err := e.await(ctx, 1024, func() (bool, error) { return p.turn.Load() == turn, nil }); err != nil {
				return err
			}
		}
		copy(out[r*len(in):][:len(in)], p.data[:])
	}
	return nil
}

// freeWindows gives lanes back, which all ranks do in the order in which they have made them.
func (l *library) freeWindows() error {
	c := l.cell()
	defer l.free(c)
	for _, w := range l.windows {
		c.words[0] = uint64(w)
		if err := l.call("MPI_Win_free", c.at(0)); err != nil {
			return err
		}
	}
	return nil
}
