package executor

import (
	"context"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// Copy makes dst a copy of src on another device. It syncs src and returns when that is
// scheduled. The copy itself waits for src in the background and takes no device lock; whoever
// reads dst gets its error.
func (s *Session) Copy(ctx context.Context, dst, src *Tensor, d ir.Device) error {
	be, err := backend.For(d)
	if err != nil {
		return fmt.Errorf("loris: copy: %w", err)
	}
	if err := s.Readable(src); err != nil {
		return err
	}
	if _, err := s.SyncTensors(ctx, []*Tensor{src}, stepConfig); err != nil {
		return err
	}
	c := s.core
	src = s.local(src)
	s.lockWith([]*Tensor{src})
	defer s.unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	from := src.data
	switch {
	case c.closed.Load():
		return ErrClosed
	case from == nil:
		return errNotSynced
	}
	to := placeholder(from.shape, d, c.nextID.Add(1), make(chan struct{}))
	from.escape()
	to.escape()
	dst.s, dst.data, dst.step = s, to, s.step
	c.live.add(s, d, dst)
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		buf, err := c.transfer(context.Background(), be, from, d)
		to.buf, to.err = buf, err
		close(to.done)
	}()
	return nil
}

// transfer copies data to another device: directly if one backend has both and can, otherwise
// by way of the host.
func (c *core) transfer(ctx context.Context, be backend.Backend, from *Data, d ir.Device) (backend.Buffer, error) {
	have, err := from.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if mb, ok := be.(backend.MemoryBackend); ok && from.device.Type == d.Type {
		buf, err := mb.Copy(ctx, have, d)
		if err != nil {
			return nil, fmt.Errorf("loris: copy of %v from %v to %v: %w", from.shape, from.device, d, err)
		}
		return buf, nil
	}
	b, err := backend.Contents(ctx, have)
	if err != nil {
		return nil, fmt.Errorf("loris: copy from %v: %w", from.device, err)
	}
	buf, err := be.Upload(ctx, from.shape, d, b)
	if err != nil {
		return nil, fmt.Errorf("loris: copy of %v to %v: %w", from.shape, d, err)
	}
	c.stats.uploaded.Add(int64(len(b)))
	return buf, nil
}
