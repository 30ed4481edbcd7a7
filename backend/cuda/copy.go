//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
)

// Copy returns a new buffer on a GPU with the contents of one on another, or the
// same one: from memory to memory where the devices can, else through pinned
// memory. Nobody waits for contents that are still computed, unless they go
// through pinned memory.
func (b *Backend) Copy(ctx context.Context, from backend.Buffer, d ir.Device) (backend.Buffer, error) {
	to, err := b.of(d)
	if err != nil {
		return nil, err
	}
	src, ok := from.(*buffer)
	if !ok || src.dev.backend != b {
		return nil, fmt.Errorf("cuda: copy: %w: a buffer on %v is none of the backend's", ir.ErrDevice, from.Device())
	}
	m, err := to.copyFrom(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("cuda: copy of %v from %v to %v: %w", src.shape, src.dev.id, d, err)
	}
	return newBuffer(src.shape, m, 0), nil
}

func (d *device) copyFrom(ctx context.Context, src *buffer) (*memory, error) {
	for _, x := range []*device{src.dev, d} {
		if err := x.enter(); err != nil {
			return nil, err
		}
		defer x.leave()
	}
	direct := src.dev == d
	if !direct {
		var err error
		if direct, err = d.reaches(src.dev); err != nil {
			return nil, err
		}
	}
	s := d.up
	if direct {
		var err error
		if s, err = d.stream(); err != nil {
			return nil, err
		}
		defer d.putStream(s)
	}
	m, err := d.alloc(ctx, s, src.shape.Bytes())
	if err != nil {
		return nil, err
	}
	if direct {
		err = d.copyDirect(s, m, src)
	} else {
		err = d.copyStaged(ctx, m, src)
	}
	if err != nil {
		m.release()
		return nil, err
	}
	m.setReports(src.mem.reported())
	return m, nil
}

// copyDirect enqueues a copy of src's contents to m.
func (d *device) copyDirect(s *driver.Stream, m *memory, src *buffer) error {
	err := src.waitReady(s)
	n := int64(src.shape.Bytes())
	switch {
	case err != nil:
	case src.dev == d:
		err = s.Copy(m.ptr, src.address(), n)
	default:
		err = s.CopyPeer(m.ptr, d.ctx, src.address(), src.dev.ctx, n)
	}
	if err != nil {
		return d.check(err)
	}
	at, err := d.record(s)
	if err != nil {
		return err
	}
	defer at.release()
	src.mem.use(at)
	m.markReady(at)
	return nil
}

// copyStaged copies src's contents to m through pinned memory: while one chunk
// goes in, the next comes out.
func (d *device) copyStaged(ctx context.Context, m *memory, src *buffer) error {
	if err := src.mem.awaitReady(ctx, src.dev.down); err != nil {
		return err
	}
	for off, n := 0, src.shape.Bytes(); off < n; off += chunkBytes {
		size := min(chunkBytes, n-off)
		c, err := src.dev.staging.take(ctx, size)
		if err != nil {
			return err
		}
		out, err := src.dev.fetch(c, size, src.mem, src.off+off)
		if err != nil {
			return err
		}
		err = out.before(d.up)
		if err == nil {
			err = d.up.CopyIn(m.ptr+driver.DevicePtr(off), c.bytes()[:size])
		}
		if err != nil {
			src.dev.staging.put(c, out)
			out.release()
			return d.check(err)
		}
		out.release()
		in, err := d.record(d.up)
		if err != nil {
			src.dev.staging.drop(c)
			return err
		}
		src.dev.staging.put(c, in)
		if off+size == n {
			m.markReady(in)
		}
		in.release()
	}
	return nil
}

// reaches reports whether the device can use the memory of another one, and lets
// it, and the other way round.
func (d *device) reaches(peer *device) (bool, error) {
	d.mu.Lock()
	can, known := d.peers[peer]
	d.mu.Unlock()
	if known {
		return can, nil
	}
	for _, x := range [][2]*device{{d, peer}, {peer, d}} {
		can, err := x[0].gpu.CanAccess(x[1].gpu)
		if err == nil && can {
			err = x[1].pool.AllowPeer(x[0].gpu)
		}
		if err != nil {
			return false, x[1].check(err)
		}
		if !can {
			d.setPeer(peer, false)
			return false, nil
		}
	}
	d.setPeer(peer, true)
	return true, nil
}

func (d *device) setPeer(peer *device, can bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[peer] = can
}
