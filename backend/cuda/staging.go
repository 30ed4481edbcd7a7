//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"sync"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
)

// Pinned memory comes in chunks of two sizes, which are kept: to make it is
// expensive. Transfers between host and device go through them, so that the
// device copies one while the host fills or reads another.
const (
	smallBytes = 64 << 10
	chunkBytes = 4 << 20
)

// maxChunks bounds the chunks of each size.
var maxChunks = [2]int{16, 6}

// staging has the chunks of a device.
type staging struct {
	d     *device
	sizes [2]chunks
}

type chunks struct {
	free chan *chunk // those that nobody has, last given back last

	mu   sync.Mutex
	made int // guarded by mu
}

// chunk is a piece of pinned memory.
type chunk struct {
	mem  *driver.HostMem
	size int    // 0 is small
	busy *event // until which a copy uses it; nil: none does
}

func (s *staging) init(d *device) {
	s.d = d
	for i := range s.sizes {
		s.sizes[i].free = make(chan *chunk, maxChunks[i])
	}
}

func (c *chunk) bytes() []byte { return c.mem.Bytes() }

// take returns a chunk of n bytes at least that no copy uses. It waits for one
// until ctx is done. Who has one already takes a further one by try: else all
// might wait for each other.
func (s *staging) take(ctx context.Context, n int) (*chunk, error) {
	if c, err := s.try(n); c != nil || err != nil {
		return c, err
	}
	select {
	case c := <-s.sizes[sizeOf(n)].free:
		if c.busy == nil {
			return c, nil
		}
		return s.idle(c, c.busy.wait(ctx))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func sizeOf(n int) int {
	if n > smallBytes {
		return 1
	}
	return 0
}

// try is take that does not wait, but returns nil.
func (s *staging) try(n int) (*chunk, error) {
	size := sizeOf(n)
	z := &s.sizes[size]
	select {
	case c := <-z.free:
		if c.busy == nil {
			return c, nil
		}
		if ok, err := c.busy.done(); ok || err != nil {
			return s.idle(c, err)
		}
		z.free <- c // it has room for all that there are
	default:
	}
	return s.grow(size)
}

// idle returns a chunk whose copy is done; with an error it goes back.
func (s *staging) idle(c *chunk, err error) (*chunk, error) {
	if err != nil && c.busy.d != s.d && c.busy.d.lost.Load() != nil {
		s.drop(c) // a copy to another device, of which nothing is known any more
		return nil, err
	}
	if err != nil {
		s.sizes[c.size].free <- c
		return nil, err
	}
	c.busy.release()
	c.busy = nil
	return c, nil
}

// grow makes another chunk; it returns nil if there are as many as there may be,
// or if the host has no memory for more than there are.
func (s *staging) grow(size int) (*chunk, error) {
	z := &s.sizes[size]
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.made == maxChunks[size] {
		return nil, nil
	}
	mem, err := s.d.ctx.NewHostMem([2]int{smallBytes, chunkBytes}[size])
	if err != nil {
		if z.made > 0 && errors.Is(err, driver.ErrOutOfMemory) {
			return nil, nil
		}
		return nil, s.d.check(err)
	}
	s.d.atClose(mem.Close)
	s.d.pinned.Add(int64(len(mem.Bytes())))
	z.made++
	return &chunk{mem: mem, size: size}, nil
}

// put gives a chunk back that a copy uses until an event; nil says that none
// does.
func (s *staging) put(c *chunk, until *event) {
	if until != nil {
		c.busy = until.retain()
	}
	s.sizes[c.size].free <- c
}

// rest waits until no copy uses a chunk. Nobody takes one any more. A copy that
// failed, with its device, uses none either.
func (s *staging) rest() {
	for i := range s.sizes {
		for range len(s.sizes[i].free) {
			c := <-s.sizes[i].free
			if c.busy != nil {
				_ = c.busy.wait(context.Background())
				c.busy.release()
				c.busy = nil
			}
			s.sizes[i].free <- c
		}
	}
}

// drop takes a chunk out of use: nobody knows when its copy is done.
func (s *staging) drop(c *chunk) {
	z := &s.sizes[c.size]
	z.mu.Lock()
	defer z.mu.Unlock()
	z.made--
}
