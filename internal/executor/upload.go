package executor

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

// Upload makes dst a tensor of host data, which is copied to device d. It takes
// no device lock.
func (s *Session) Upload(ctx context.Context, dst *Tensor, shape ir.Shape, d ir.Device, data []byte) error {
	be, err := s.uploadTo(shape, d, data)
	if err != nil {
		return err
	}
	have, err := s.core.upload(ctx, be, shape, d, data, false)
	if err != nil {
		return err
	}
	s.adopt(dst, have)
	return nil
}

// UploadCached makes dst a tensor of host data that is likely to be uploaded again (a constant
// table, a mask). The data cache keeps the device's copy, compares contents at each hit, and
// never donates it. For a device with memory of its own it compares sha256 digests, so that
// nothing is copied back.
func (s *Session) UploadCached(ctx context.Context, dst *Tensor, shape ir.Shape, d ir.Device, data []byte) error {
	be, err := s.uploadTo(shape, d, data)
	if err != nil {
		return err
	}
	c := s.core
	var digest *[sha256.Size]byte
	if _, ok := be.(backend.MemoryBackend); ok {
		sum := sha256.Sum256(data)
		digest = &sum
	}
	key := hostKey(shape, data)
	ref, ok := c.data.Get(d, key, func(have *Data) bool {
		switch {
		case have.shape != shape:
			return false
		case digest != nil:
			return have.digest != nil && *have.digest == *digest
		}
		b, err := backend.Contents(ctx, have.buf)
		return err == nil && string(b) == string(data)
	})
	if !ok {
		fresh, err := c.upload(ctx, be, shape, d, data, true)
		if err != nil {
			return err
		}
		fresh.digest = digest
		ref = c.data.Put(d, key, fresh, int64(len(data)))
	}
	s.adopt(dst, ref.Value())
	ref.Release()
	s.lock()
	defer s.unlock()
	dst.ir = dst.data.leafFor(s.group.root(), nil) // tensors of several sessions may have this data
	return nil
}

// UploadFrom makes dst a tensor of what fill writes to the memory that it is given, which is the
// device's own where that is the host's. Errors of fill are wrapped.
func (s *Session) UploadFrom(ctx context.Context, dst *Tensor, shape ir.Shape, d ir.Device, fill func(data []byte) error) error {
	if err := s.Readable(); err != nil {
		return err
	}
	be, err := backend.For(d)
	if err != nil {
		return err
	}
	have, err := s.core.uploadFrom(ctx, be, shape, d, fill)
	if err != nil {
		return err
	}
	s.adopt(dst, have)
	return nil
}

// uploadFrom uploads what fill writes.
func (c *core) uploadFrom(ctx context.Context, be backend.Backend, shape ir.Shape, d ir.Device, fill func(data []byte) error) (*Data, error) {
	size := int64(shape.Bytes())
	var err error
	if c.cfg.MemoryLimit > 0 && !ownMemory(be) {
		err = memlimit.Check(size, c.cfg.MemoryLimit)
	}
	host, ok := be.(backend.HostBackend)
	if err == nil && !ok {
		if err = memlimit.Check(size, 0); err == nil {
			data := make([]byte, size)
			if err = fill(data); err == nil {
				return c.upload(ctx, be, shape, d, data, false)
			}
		}
	}
	var buf backend.Buffer
	if err == nil {
		buf, err = host.UploadFrom(ctx, shape, d, fill)
	}
	if err != nil {
		return nil, fmt.Errorf("loris: upload of %v to %v: %w", shape, d, err)
	}
	c.stats.uploaded.Add(size)
	return readyData(buf, DeviceDataInfo{TensorID: c.nextID.Add(1)}), nil
}

// uploadTo checks an upload and returns the device's backend.
func (s *Session) uploadTo(shape ir.Shape, d ir.Device, data []byte) (backend.Backend, error) {
	if err := s.Readable(); err != nil {
		return nil, err
	}
	if len(data) != shape.Bytes() {
		return nil, fmt.Errorf("loris: upload of %v: %w: %d bytes given, %d needed", shape, ir.ErrShape, len(data), shape.Bytes())
	}
	return backend.For(d)
}

// upload copies host data to a device.
func (c *core) upload(ctx context.Context, be backend.Backend, shape ir.Shape, d ir.Device, data []byte, readOnly bool) (*Data, error) {
	var err error
	if c.cfg.MemoryLimit > 0 && !ownMemory(be) {
		err = memlimit.Check(int64(len(data)), c.cfg.MemoryLimit)
	}
	var buf backend.Buffer
	if err == nil {
		buf, err = be.Upload(ctx, shape, d, data)
	}
	if err != nil {
		return nil, fmt.Errorf("loris: upload of %v to %v: %w", shape, d, err)
	}
	c.stats.uploaded.Add(int64(len(data)))
	return readyData(buf, DeviceDataInfo{TensorID: c.nextID.Add(1), ReadOnly: readOnly}), nil
}

// Adopt makes dst a tensor of a buffer whose contents are there, or will be in the order of its
// device's work. It takes over the caller's reference to the buffer, and drops it when the garbage
// collector finds the data unreachable. The data is never donated.
func (s *Session) Adopt(dst *Tensor, buf backend.Buffer) error {
	if err := s.Readable(); err != nil {
		return err
	}
	s.adopt(dst, readyData(buf, DeviceDataInfo{TensorID: s.core.nextID.Add(1), ReadOnly: true}))
	return nil
}

// adopt makes dst a live tensor that holds the data.
func (s *Session) adopt(dst *Tensor, d *Data) {
	d.escape()
	s.lock()
	defer s.unlock()
	dst.s, dst.data, dst.step = s, d, s.step
	s.core.live.add(s, d.device, dst)
}

// hostKey is the key of host data in the data cache.
func hostKey(shape ir.Shape, data []byte) cache.Key {
	h := ir.HashBytes(shape.Append(nil))
	d := ir.HashBytes(data)
	return cache.Key{Lo: h.Lo*31 + d.Lo, Hi: h.Hi*31 + d.Hi}
}
