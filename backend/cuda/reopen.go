//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

// Reopen makes a device of the registered backend usable again that was lost; see
// Backend.Reopen.
func Reopen(ctx context.Context, index int) error {
	b, err := registered(ir.Device{Type: DeviceType, Index: uint8(index)})
	if err != nil {
		return fmt.Errorf("cuda: reopen: %w", err)
	}
	return b.Reopen(ctx, index)
}

// Reopen makes a device usable again that was lost: it gives the device's context
// back, with all that was on it, and takes a new one. What is opened or uploaded
// afterwards works; tensors from before stay errors.
//
// The models on the device must be closed before: sessions that have computed there,
// containers and packages. Otherwise the error is ErrInUse and nothing has changed. Calls that
// are under way are waited for until ctx is done. If another library of this process
// has the context, too, it stays lost, and the error is ErrLost. A device that is not
// lost is left as it is.
func (b *Backend) Reopen(ctx context.Context, index int) error {
	err := b.reopen(ctx, index)
	if err != nil {
		return fmt.Errorf("cuda: reopen cuda:%d: %w", index, err)
	}
	return nil
}

func (b *Backend) reopen(ctx context.Context, index int) error {
	d := b.opened(ir.Device{Type: DeviceType, Index: uint8(index)})
	if d == nil || d.lostErr() == nil {
		return nil
	}
	if n := d.models.Load(); n > 0 {
		return fmt.Errorf("%w: %d of them; close the sessions, containers and packages that have any", ErrInUse, n)
	}
	// Nobody begins to use a device that is lost, and who does hears of it soon.
	for d.uses.Load() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	b.mu.Lock()
	if b.devices[index] == d {
		delete(b.devices, index)
		d.rest()
		_ = d.close() // every call says again that it is lost
		for _, o := range b.devices {
			o.forgetPeer(d)
		}
	}
	b.mu.Unlock()
	_, err := b.device(index)
	if errors.Is(err, ErrLost) {
		return fmt.Errorf("%w; another library of this process holds the context", err)
	}
	return err
}

// enter begins a use of the device by calls of the driver, which leave ends. It
// returns a *LostError if the device is lost: its context may be gone by now.
func (d *device) enter() error {
	d.uses.Add(1)
	if err := d.lostErr(); err != nil {
		d.uses.Add(-1)
		return err
	}
	return nil
}

func (d *device) leave() { d.uses.Add(-1) }

// enterModel is enter for a model, or a library's stream, until leaveModel.
func (d *device) enterModel() error {
	d.models.Add(1)
	if err := d.enter(); err != nil {
		d.models.Add(-1)
		return err
	}
	return nil
}

func (d *device) leaveModel() {
	d.leave()
	d.models.Add(-1)
}

// forgetPeer forgets a device that is closed.
func (d *device) forgetPeer(peer *device) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.peers, peer)
}
