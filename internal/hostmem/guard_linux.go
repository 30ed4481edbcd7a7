package hostmem

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris/internal/memlimit"
)

const (
	// guardAlign is the alignment of guarded buffers: that of the largest element.
	guardAlign = 16
	canary     = 0xA5
)

// Guard makes further buffers end, but for less than guardAlign bytes of padding,
// at a page that must not be touched, and lie in pages of their own after another
// such page; only their elements' alignment is kept. What a kernel reads or writes
// past the end then ends the process, and what it writes before the beginning or
// into the padding makes the last Release panic. It is for tests of kernels.
func (a *Allocator) Guard() { a.guarded = true }

// newGuarded returns a block of n > 0 bytes between two guards. The error is that
// of memlimit.Take.
func newGuarded(n int, live *atomic.Int64, limit int64) (*block, error) {
	if oom := memlimit.Take(int64(n), limit); oom != nil {
		return nil, oom
	}
	page := unix.Getpagesize()
	size := (n + guardAlign - 1) &^ (guardAlign - 1)
	whole := (size + page - 1) &^ (page - 1)
	all, err := unix.Mmap(-1, 0, whole+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		err = unix.Mprotect(all[:page], unix.PROT_NONE)
	}
	if err == nil {
		err = unix.Mprotect(all[page+whole:], unix.PROT_NONE)
	}
	if err != nil {
		panic(fmt.Sprintf("hostmem: guarded memory: %v", err))
	}
	start := page + whole - size
	for i := page; i < page+whole; i++ {
		if i < start || i >= start+n {
			all[i] = canary
		}
	}
	b := &block{mem: all[start : start+n : start+n], account: &account{live: live, bytes: int64(n), taken: int64(n)}, guarded: all}
	live.Add(int64(n))
	return b, nil
}

// giveGuarded ends the use of a guarded block.
func giveGuarded(b *block) {
	page, n := unix.Getpagesize(), len(b.mem)
	inside := b.guarded[page : len(b.guarded)-page]
	size := (n + guardAlign - 1) &^ (guardAlign - 1)
	before, after := inside[:len(inside)-size], inside[len(inside)-size+n:]
	ok := bytes.Count(before, []byte{canary}) == len(before) && bytes.Count(after, []byte{canary}) == len(after)
	b.account.close()
	if err := unix.Munmap(b.guarded); err != nil {
		panic(fmt.Sprintf("hostmem: guarded memory: %v", err))
	}
	if !ok {
		panic(fmt.Sprintf("hostmem: something was written around a buffer of %d bytes", n))
	}
}
