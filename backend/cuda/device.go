//go:build cuda && linux && cgo

package cuda

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
	"github.com/loris-ml/loris/internal/ir"
)

// device is a GPU in use. It is safe for concurrent use.
type device struct {
	backend *Backend
	index   int
	id      ir.Device
	gpu     *driver.Device
	ctx     *driver.Context
	props   driver.Properties
	limits  emit.Limits
	pool    *driver.MemPool

	// Transfers in both directions have streams of their own, to run beside the
	// computations. reclaim only waits, and frees what several streams used.
	up, down, reclaim *driver.Stream

	staging staging
	kernels kernelSet
	tuned   tuned

	capturer capturer

	inUse, peak atomic.Int64              // bytes of live allocations
	pinned      atomic.Int64              // bytes
	collectAt   atomic.Int64              // bytes in use from which on garbage is collected
	relief      *semaphore.Weighted       // held by the one that looks for memory
	lost        atomic.Pointer[LostError] // what the device was lost by

	models atomic.Int64 // that are open, libraries' streams included
	uses   atomic.Int64 // calls under way that may call the driver, and models

	// life is held for reading by what a memory's end does at any time, so that
	// close waits for it.
	life   sync.RWMutex
	closed bool // guarded by life

	mu      sync.Mutex
	live    map[*block]struct{}       // guarded by mu: what is allocated
	made    []*driver.Stream          // guarded by mu: all of stream's
	streams []*driver.Stream          // guarded by mu: those that nobody has
	between map[string]*driver.Stream // guarded by mu: those of transfers between ranks, by group
	events  []*driver.Event           // guarded by mu: those that nobody has
	faults  []*driver.HostMem         // guarded by mu: for reports, those that nobody has
	handle  *driver.BLASHandle        // guarded by mu; nil until it is made
	peers   map[*device]bool          // guarded by mu: whether copies can be direct
	keepers map[*model]struct{}       // guarded by mu: those that keep a workspace
	kept    int64                     // guarded by mu: the bytes of those
	closers []func() error            // guarded by mu: see atClose
}

// openDevice makes a GPU ready. What it opened is closed if it fails.
func openDevice(b *Backend, drv *driver.Driver, index int) (*device, error) {
	d := &device{
		backend: b, index: index, id: ir.Device{Type: DeviceType, Index: uint8(index)},
		live: map[*block]struct{}{}, peers: map[*device]bool{}, keepers: map[*model]struct{}{}, relief: semaphore.NewWeighted(1),
	}
	d.staging.init(d)
	d.kernels.limit = maxIdle
	if err := d.open(drv); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *device) open(drv *driver.Driver) (err error) {
	if d.gpu, err = drv.Device(d.index); err != nil {
		return err
	}
	if d.props, err = d.gpu.Properties(); err != nil {
		return err
	}
	d.limits = emit.Limits{
		Processors: d.props.SMs,
		Threads:    1 << (bits.Len(uint(min(d.props.MaxThreadsPerBlock, 1024))) - 1),
		Tensor:     d.props.Major >= 8,
	}
	d.collectAt.Store(d.props.Memory / 4 * 3)
	if d.ctx, err = d.gpu.Retain(); err != nil {
		return err
	}
	d.atClose(d.ctx.Close)
	d.atClose(d.kernels.close)
	if d.pool, err = d.ctx.NewPool(-1); err != nil {
		return err
	}
	d.atClose(d.pool.Close)
	for _, s := range []**driver.Stream{&d.up, &d.down, &d.reclaim} {
		if *s, err = d.ctx.NewStream(0); err != nil {
			return err
		}
		d.atClose((*s).Close)
	}
	d.atClose(d.freeAll)
	return nil
}

// atClose has f called when the device is given back, before those of earlier
// calls.
func (d *device) atClose(f func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closers = append(d.closers, f)
}

// rest ends the use of the device and waits for the copies that use its pinned
// memory, those of other devices too.
func (d *device) rest() {
	d.life.Lock()
	defer d.life.Unlock()
	d.closed = true
	d.staging.rest()
}

// close gives the GPU back, after rest, with all that is allocated on it. Of a lost
// device it tells no errors: every call says again that it is lost.
func (d *device) close() error {
	d.life.Lock()
	defer d.life.Unlock()
	d.closed = true
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		if err := d.closers[i](); err != nil && d.lost.Load() == nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// freeAll frees what is allocated when the device is closed.
func (d *device) freeAll() error {
	var errs []error
	for b := range d.live {
		errs = append(errs, d.reclaim.Free(b.ptr))
	}
	return errors.Join(errs...)
}

// check returns err, having kept it if the device is lost by it: all errors of
// work on the device come through it. Those of other devices pass.
func (d *device) check(err error) error {
	if err == nil || !driver.IsLost(err) || errors.As(err, new(*LostError)) {
		return err
	}
	d.lost.CompareAndSwap(nil, &LostError{Device: d.id, Err: err})
	return d.lostErr()
}

// lostErr returns a *LostError if the device is lost.
func (d *device) lostErr() error {
	if e := d.lost.Load(); e != nil {
		return e
	}
	return nil
}

// stream returns a stream that nobody else has, until putStream. What was
// enqueued in it by those who had it before may still be ahead. It must never
// capture: memory that was allocated in it may be freed in it at any time.
func (d *device) stream() (*driver.Stream, error) {
	if err := d.lostErr(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.streams); n > 0 {
		s := d.streams[n-1]
		d.streams = d.streams[:n-1]
		return s, nil
	}
	s, err := d.ctx.NewStream(0)
	if err != nil {
		return nil, d.check(err)
	}
	d.made = append(d.made, s)
	d.closers = append(d.closers, s.Close)
	return s, nil
}

// putStream gives a stream back, whether or not its work is done.
func (d *device) putStream(s *driver.Stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams = append(d.streams, s)
}

// compiler returns NVRTC.
func (d *device) compiler() (*driver.Compiler, error) { return d.backend.compiler() }

// blas returns the device's handle of cuBLASLt.
func (d *device) blas() (*driver.BLASHandle, error) {
	lt, err := d.backend.blas()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handle == nil {
		h, err := d.ctx.NewBLAS(lt)
		if err != nil {
			return nil, d.check(err)
		}
		d.handle = h
		d.closers = append(d.closers, h.Close)
	}
	return d.handle, nil
}
