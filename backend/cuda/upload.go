//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/kernels"
)

// Upload copies host data into a buffer. It returns an error wrapping ir.ErrShape
// if data does not have the size of the shape, one wrapping ir.ErrDevice for a
// device that there is not, and an *OutOfMemory where memory is short. The copy
// to the device goes on after it has returned.
func (b *Backend) Upload(ctx context.Context, s ir.Shape, d ir.Device, data []byte) (backend.Buffer, error) {
	g, err := b.of(d)
	if err != nil {
		return nil, err
	}
	if len(data) != s.Bytes() {
		return nil, fmt.Errorf("cuda: upload: %w: %v has %d bytes, got %d", ir.ErrShape, s, s.Bytes(), len(data))
	}
	m, err := g.upload(ctx, data, s.DType() == ir.Bool)
	if err != nil {
		return nil, fmt.Errorf("cuda: upload of %v to %v: %w", s, d, err)
	}
	return newBuffer(s, m, 0), nil
}

// upload copies data into new memory, bools as 0 or 1, which kernels rely on.
func (d *device) upload(ctx context.Context, data []byte, bools bool) (*memory, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	m, err := d.alloc(ctx, d.up, len(data))
	if err != nil {
		return nil, err
	}
	for off := 0; off < len(data); off += chunkBytes {
		part := data[off:min(off+chunkBytes, len(data))]
		c, err := d.staging.take(ctx, len(part))
		if err != nil {
			m.release()
			return nil, err
		}
		to := c.bytes()[:len(part)]
		if bools {
			kernels.NonZero(to, part)
		} else {
			copy(to, part)
		}
		err = d.up.CopyIn(m.ptr+driver.DevicePtr(off), to)
		at, err := d.staged(c, d.up, err)
		if err != nil {
			m.release()
			return nil, err
		}
		if off+len(part) == len(data) {
			m.markReady(at)
		}
		at.release()
	}
	return m, nil
}

// staged gives back a chunk whose copy was enqueued, unless it failed with err,
// and returns the event behind the copy.
func (d *device) staged(c *chunk, s *driver.Stream, err error) (*event, error) {
	if err != nil {
		d.staging.put(c, nil)
		return nil, d.check(err)
	}
	at, err := d.record(s)
	if err != nil {
		d.staging.drop(c)
		return nil, err
	}
	d.staging.put(c, at)
	return at, nil
}

// arriving is a piece of a download under way.
type arriving struct {
	c  *chunk
	at *event
	to []byte
}

// download copies memory to the host. It waits for its contents before it takes
// part in the stream of downloads, so that others do not wait with it.
func (d *device) download(ctx context.Context, to []byte, m *memory, off int) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := m.awaitReady(ctx, d.down); err != nil {
		return err
	}
	if err := m.fault(ctx); err != nil {
		return err
	}
	var ahead []arriving
	defer func() { // those that ctx or an error left
		for _, a := range ahead {
			d.staging.put(a.c, a.at)
			a.at.release()
		}
	}()
	for len(to) > 0 || len(ahead) > 0 {
		var c *chunk
		var err error
		switch n := min(len(to), chunkBytes); {
		case n > 0 && len(ahead) == 0:
			c, err = d.staging.take(ctx, n)
		case n > 0 && len(ahead) == 1:
			c, err = d.staging.try(n)
		}
		switch {
		case err != nil:
			return err
		case c == nil:
			if err := ahead[0].finish(ctx); err != nil {
				return err
			}
			d.staging.put(ahead[0].c, nil)
			ahead = ahead[1:]
		default:
			n := min(len(to), chunkBytes)
			at, err := d.fetch(c, n, m, off)
			if err != nil {
				return err
			}
			ahead = append(ahead, arriving{c: c, at: at, to: to[:n]})
			to, off = to[n:], off+n
		}
	}
	return nil
}

// awaitReady waits until the contents are there, unless they are made in s, which
// may be nil.
func (m *memory) awaitReady(ctx context.Context, s *driver.Stream) error {
	ready, err := m.readyAt(s)
	if ready == nil {
		return err
	}
	defer ready.release()
	return ready.wait(ctx)
}

// fetch enqueues a copy of n bytes into a chunk, which is given back if that
// fails.
func (d *device) fetch(c *chunk, n int, m *memory, off int) (*event, error) {
	if err := d.down.CopyOut(c.bytes()[:n], m.ptr+driver.DevicePtr(off)); err != nil {
		d.staging.put(c, nil)
		return nil, d.check(err)
	}
	at, err := d.record(d.down)
	if err != nil {
		d.staging.drop(c)
		return nil, err
	}
	m.use(at)
	return at, nil
}

// finish waits for the piece and hands it on.
func (a arriving) finish(ctx context.Context) error {
	if err := a.at.wait(ctx); err != nil {
		return err
	}
	copy(a.to, a.c.bytes())
	a.at.release()
	return nil
}
