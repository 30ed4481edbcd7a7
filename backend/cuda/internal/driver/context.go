//go:build cuda && linux && cgo

package driver

// #include "calls.h"
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Context is the device's primary context, the one that CUDA's runtime API and
// other libraries use, too. What is made in it is to be closed before it.
type Context struct {
	dev    *Device
	drv    *Driver
	c      C.CUcontext
	closed atomic.Bool
}

// Retain makes the device's primary context, or shares it with those who did
// before. Close gives it back; with the last, CUDA frees everything in it, which
// is also how a device is used again after its context was lost.
func (g *Device) Retain() (*Context, error) {
	c := &Context{dev: g, drv: g.drv}
	if err := g.check("cuDevicePrimaryCtxRetain", C.lori_cu_context_retain(g.drv.c, g.dev, &c.c)); err != nil {
		return nil, err
	}
	return c, nil
}

// Handle returns the context as other libraries take it, its CUcontext.
func (c *Context) Handle() uintptr { return uintptr(unsafe.Pointer(c.c)) }

// Device returns the context's device.
func (c *Context) Device() *Device { return c.dev }

// Close gives the context back. Calling it again does nothing.
func (c *Context) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.check("cuDevicePrimaryCtxRelease", C.lori_cu_context_release(c.drv.c, c.dev.dev))
}

// MemInfo returns the free and the total bytes of the device. Memory that pools
// hold is not free.
func (c *Context) MemInfo() (free, total int64, err error) {
	var f, t C.size_t
	err = c.check("cuMemGetInfo", C.lori_cu_memory_info(c.drv.c, c.c, &f, &t))
	return int64(f), int64(t), err
}

// EnablePeer lets kernels and copies of this context use memory of another
// one's, except for pools, which have MemPool.AllowPeer. It may be called again.
func (c *Context) EnablePeer(peer *Context) error {
	r := C.lori_cu_context_peer(c.drv.c, c.c, peer.c)
	if r == C.LORI_ERROR_PEER_ENABLED {
		return nil
	}
	return c.check("cuCtxEnablePeerAccess", r)
}

// StreamPriorities returns the least and the greatest priority of streams; the
// greatest is the lowest number.
func (c *Context) StreamPriorities() (least, greatest int, err error) {
	var l, g C.int
	err = c.check("cuCtxGetStreamPriorityRange", C.lori_cu_context_priorities(c.drv.c, c.c, &l, &g))
	return int(l), int(g), err
}

// Err returns the error that the context is lost by, nil if it is not.
func (c *Context) Err() error {
	if _, _, err := c.MemInfo(); IsLost(err) {
		return err
	}
	return nil
}

// check returns the error of a call with the device's name.
func (c *Context) check(call string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return c.dev.check(call, r)
}
