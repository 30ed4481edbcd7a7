//go:build cuda && linux && cgo

package driver

// #cgo noescape lori_cu_pool_alloc
// #cgo nocallback lori_cu_pool_alloc
// #cgo noescape lori_cu_copy_in
// #cgo nocallback lori_cu_copy_in
// #cgo noescape lori_cu_copy_out
// #cgo nocallback lori_cu_copy_out
// #include "calls.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// DevicePtr is an address in the memory of a device; 0 is none. It is a number,
// which Go must not follow.
type DevicePtr uint64

// MemPool is device memory that is allocated and freed in the order of streams:
// freed memory serves the next allocation, without the system, as soon as the
// streams' order allows it. It is safe for concurrent use.
type MemPool struct {
	ctx *Context
	p   C.CUmemoryPool
}

// NewPool makes a pool on the context's device that keeps up to keep bytes of
// free memory when the device is waited for; a negative number keeps all until
// Trim. It returns an error that is ErrNotSupported where Properties.Pools is
// false.
func (c *Context) NewPool(keep int64) (*MemPool, error) {
	p := &MemPool{ctx: c}
	if err := c.check("cuMemPoolCreate", C.lori_cu_pool_create(c.drv.c, c.c, C.int(c.dev.index), &p.p)); err != nil {
		return nil, err
	}
	threshold := C.uint64_t(math.MaxUint64)
	if keep >= 0 {
		threshold = C.uint64_t(keep)
	}
	r := C.lori_cu_pool_set(c.drv.c, c.c, p.p, C.LORI_POOL_RELEASE_THRESHOLD, &threshold)
	if err := c.check("cuMemPoolSetAttribute", r); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close destroys the pool; memory that is still allocated stays until it is
// freed. Calling it again does nothing.
func (p *MemPool) Close() error {
	if p.p == nil {
		return nil
	}
	h := p.p
	p.p = nil
	return p.ctx.check("cuMemPoolDestroy", C.lori_cu_pool_destroy(p.ctx.drv.c, p.ctx.c, h))
}

// Alloc allocates n bytes, aligned to 256, for work that follows in the stream.
// Work in other streams must wait for an event in this one. Zero bytes are no
// memory, DevicePtr 0. When memory is exhausted the error is a *MemoryError.
func (p *MemPool) Alloc(s *Stream, n int64) (DevicePtr, error) {
	if n == 0 {
		return 0, nil
	}
	if n < 0 {
		return 0, fmt.Errorf("cuda:%d: %w: %d bytes", p.ctx.dev.index, ErrInvalid, n)
	}
	var out C.CUdeviceptr
	r := C.lori_cu_pool_alloc(p.ctx.drv.c, p.ctx.c, p.p, s.s, C.size_t(n), &out)
	err := p.ctx.check("cuMemAllocFromPoolAsync", r)
	if errors.Is(err, ErrOutOfMemory) {
		return 0, p.exhausted(n, err)
	}
	return DevicePtr(out), err
}

// exhausted tells what is held. Numbers that cannot be had are zero.
func (p *MemPool) exhausted(n int64, err error) error {
	e := &MemoryError{Device: p.ctx.dev.index, Wanted: n, Err: err}
	if st, err := p.Stats(); err == nil {
		e.Used, e.Reserved = st.Used, st.Reserved
	}
	if free, total, err := p.ctx.MemInfo(); err == nil {
		e.Free, e.Total = free, total
	}
	return e
}

// Free frees memory of any pool of the device when the work that is in the
// stream is done. Freeing 0 does nothing.
func (s *Stream) Free(ptr DevicePtr) error {
	if ptr == 0 {
		return nil
	}
	return s.ctx.check("cuMemFreeAsync", C.lori_cu_free(s.ctx.drv.c, s.ctx.c, C.CUdeviceptr(ptr), s.s))
}

// Trim returns free memory to the system until keep bytes are left. Memory whose
// Free is still ahead in a stream is not free.
func (p *MemPool) Trim(keep int64) error {
	return p.ctx.check("cuMemPoolTrimTo", C.lori_cu_pool_trim(p.ctx.drv.c, p.ctx.c, p.p, C.size_t(keep)))
}

// PoolStats are the bytes that a pool has.
type PoolStats struct {
	Used     int64 // by allocations that are not freed
	UsedHigh int64 // the most ever used
	Reserved int64 // taken from the system
}

// Stats returns the bytes that the pool has.
func (p *MemPool) Stats() (PoolStats, error) {
	var out PoolStats
	for _, q := range []struct {
		number C.uint
		to     *int64
	}{
		{C.LORI_POOL_USED, &out.Used},
		{C.LORI_POOL_USED_HIGH, &out.UsedHigh},
		{C.LORI_POOL_RESERVED, &out.Reserved},
	} {
		var v C.uint64_t
		if err := p.ctx.check("cuMemPoolGetAttribute", C.lori_cu_pool_get(p.ctx.drv.c, p.ctx.c, p.p, q.number, &v)); err != nil {
			return out, err
		}
		*q.to = int64(v)
	}
	return out, nil
}

// AllowPeer lets another device's kernels and copies use the pool's memory.
// Device.CanAccess says whether it can.
func (p *MemPool) AllowPeer(peer *Device) error {
	return p.ctx.check("cuMemPoolSetAccess", C.lori_cu_pool_access(p.ctx.drv.c, p.ctx.c, p.p, C.int(peer.index)))
}

// HostMem is pinned memory of the host: copies from and to it run beside other
// work.
type HostMem struct {
	ctx *Context
	p   unsafe.Pointer
	n   int
}

// NewHostMem allocates n bytes of pinned memory, which all devices can use. It
// is expensive; keep it.
func (c *Context) NewHostMem(n int) (*HostMem, error) {
	if n <= 0 {
		return nil, fmt.Errorf("cuda:%d: %w: %d bytes of pinned memory", c.dev.index, ErrInvalid, n)
	}
	h := &HostMem{ctx: c, n: n}
	if err := c.check("cuMemHostAlloc", C.lori_cu_host_alloc(c.drv.c, c.c, C.size_t(n), &h.p)); err != nil {
		return nil, fmt.Errorf("%s of pinned memory: %w", size(int64(n)), err)
	}
	return h, nil
}

// Bytes returns the memory, which is valid until Close. Copies in streams read
// and write it when their turn comes.
func (h *HostMem) Bytes() []byte { return unsafe.Slice((*byte)(h.p), h.n) }

// Close frees the memory; no copy may be under way. Calling it again does
// nothing.
func (h *HostMem) Close() error {
	if h.p == nil {
		return nil
	}
	p := h.p
	h.p, h.n = nil, 0
	return h.ctx.check("cuMemFreeHost", C.lori_cu_host_free(h.ctx.drv.c, h.ctx.c, p))
}

// CopyIn copies from the host to the device. From pinned memory, a part of
// HostMem.Bytes, it returns at once and the copy is done in the stream's turn;
// else it may wait for the work ahead in the stream, and from is read when it
// returns.
func (s *Stream) CopyIn(to DevicePtr, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	r := C.lori_cu_copy_in(s.ctx.drv.c, s.ctx.c, C.CUdeviceptr(to), unsafe.Pointer(unsafe.SliceData(from)), C.size_t(len(from)), s.s)
	return s.ctx.check("cuMemcpyHtoDAsync", r)
}

// CopyOut copies from the device to the host. To pinned memory, a part of
// HostMem.Bytes, it returns at once and the copy is done in the stream's turn;
// else it waits for the work ahead in the stream and for the copy.
func (s *Stream) CopyOut(to []byte, from DevicePtr) error {
	if len(to) == 0 {
		return nil
	}
	r := C.lori_cu_copy_out(s.ctx.drv.c, s.ctx.c, unsafe.Pointer(unsafe.SliceData(to)), C.CUdeviceptr(from), C.size_t(len(to)), s.s)
	return s.ctx.check("cuMemcpyDtoHAsync", r)
}

// Copy copies n bytes inside the device, or between devices that can access
// each other. The ranges must not overlap.
func (s *Stream) Copy(to, from DevicePtr, n int64) error {
	if n == 0 {
		return nil
	}
	r := C.lori_cu_copy(s.ctx.drv.c, s.ctx.c, C.CUdeviceptr(to), C.CUdeviceptr(from), C.size_t(n), s.s)
	return s.ctx.check("cuMemcpyDtoDAsync", r)
}

// CopyPeer copies n bytes from the memory of one context's device to that of
// another's, whether or not they can access each other.
func (s *Stream) CopyPeer(to DevicePtr, toCtx *Context, from DevicePtr, fromCtx *Context, n int64) error {
	if n == 0 {
		return nil
	}
	r := C.lori_cu_copy_peer(s.ctx.drv.c, s.ctx.c, C.CUdeviceptr(to), toCtx.c, C.CUdeviceptr(from), fromCtx.c, C.size_t(n), s.s)
	return s.ctx.check("cuMemcpyPeerAsync", r)
}

// Set sets n elements of 1, 2 or 4 bytes to the low bits of v.
func (s *Stream) Set(to DevicePtr, v uint32, elem int, n int64) error {
	if n == 0 {
		return nil
	}
	d, c, p, v32, count := s.ctx.drv.c, s.ctx.c, C.CUdeviceptr(to), C.uint32_t(v), C.size_t(n)
	switch elem {
	case 1:
		return s.ctx.check("cuMemsetD8Async", C.lori_cu_set8(d, c, p, v32, count, s.s))
	case 2:
		return s.ctx.check("cuMemsetD16Async", C.lori_cu_set16(d, c, p, v32, count, s.s))
	case 4:
		return s.ctx.check("cuMemsetD32Async", C.lori_cu_set32(d, c, p, v32, count, s.s))
	}
	return fmt.Errorf("cuda:%d: %w: set elements of %d bytes", s.ctx.dev.index, ErrInvalid, elem)
}
