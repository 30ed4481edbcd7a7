//go:build cuda && linux && cgo

package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
)

// compilerOptions are those that package emit asks for.
var compilerOptions = []string{"-fmad=false", "-std=c++17"}

const (
	// maxIdle is how many kernels that no model has stay loaded.
	maxIdle = 512
	// maxCubins bounds the bytes of machine code of kernels that were unloaded, for
	// models to come.
	maxCubins = 64 << 20
)

// kernelSet has the compiled kernels of a device. Those that models have stay; of
// the others the least recently used are unloaded when there are many, and all when
// memory is short.
type kernelSet struct {
	mu      sync.Mutex
	limit   int                // of idle kernels; maxIdle but in tests
	byEntry map[string]*kernel // guarded by mu
	idle    int                // guarded by mu: how many no model has
	clock   uint64             // guarded by mu: counts releases
	cubins  map[string][]byte  // guarded by mu: of kernels that were unloaded
	bytes   int                // guarded by mu: of cubins
}

// kernel is one entry of package emit, in a module of its own.
type kernel struct {
	entry string
	refs  int           // guarded by the set's mu: how many models have it, or want it
	last  uint64        // guarded by the set's mu: when the last one let go of it
	ready chan struct{} // closed when the rest is there
	m     *driver.Module
	f     *driver.Function
	cubin []byte
	err   error
}

// kernelsOf returns the kernels of some entries, by name, for a model to have until
// release. What is not loaded comes from kept, machine code by entry, or is compiled,
// several at a time. Code that does not load is compiled anew. progress, if not nil, is told how many
// of those that this call makes are done.
func (d *device) kernelsOf(ctx context.Context, launches map[string]*emit.Launch, kept map[string][]byte, progress func(done, total int)) (_ map[string]*kernel, err error) {
	out := make(map[string]*kernel, len(launches))
	defer func() {
		if err != nil {
			d.release(out)
		}
	}()
	var work errgroup.Group
	work.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for entry, l := range launches {
		k, mine := d.kernels.find(entry)
		out[entry] = k
		if mine {
			work.Go(func() error { // an error is the kernel's: others may wait for it
				cubin := kept[entry]
				if cubin == nil {
					cubin = d.kernels.unloaded(entry)
				}
				k.err = d.makeKernel(ctx, k, l, cubin)
				d.kernels.made(k)
				if progress != nil {
					progress(int(done.Add(1)), len(launches))
				}
				return nil
			})
		}
	}
	_ = work.Wait() // its functions return none
	for entry, k := range out {
		select {
		case <-k.ready: // others may be making it
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if ctx.Err() == nil && (errors.Is(k.err, context.Canceled) || errors.Is(k.err, context.DeadlineExceeded)) {
			// Somebody else's compilation was given up.
			d.release(out)
			clear(out)
			return d.kernelsOf(ctx, launches, kept, progress)
		}
		if k.err != nil {
			return nil, fmt.Errorf("kernel %s: %w", entry, k.err)
		}
	}
	return out, nil
}

// find returns a kernel for one more model; mine says that the caller has to make it.
func (k *kernelSet) find(entry string) (found *kernel, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found = k.byEntry[entry]; found != nil {
		if found.refs == 0 {
			k.idle--
		}
		found.refs++
		return found, false
	}
	if k.byEntry == nil {
		k.byEntry = map[string]*kernel{}
	}
	found = &kernel{entry: entry, refs: 1, ready: make(chan struct{})}
	k.byEntry[entry] = found
	return found, true
}

// made ends the making of a kernel. One that failed is forgotten.
func (k *kernelSet) made(made *kernel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if made.err != nil {
		delete(k.byEntry, made.entry)
	}
	close(made.ready)
}

// unloaded returns machine code of before, or nil.
func (k *kernelSet) unloaded(entry string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cubins[entry]
}

// release ends a model's use of kernels, none of which is under way or in a graph.
// Too many that nobody uses are unloaded.
func (d *device) release(kernels map[string]*kernel) {
	k := &d.kernels
	k.mu.Lock()
	for _, x := range kernels {
		if x.refs--; x.refs == 0 && k.byEntry[x.entry] == x {
			k.idle++
			k.clock++
			x.last = k.clock
		}
	}
	gone := k.evict(k.limit)
	k.mu.Unlock()
	d.unload(gone)
}

// evict takes kernels that nobody uses out of the set until so many are left, the
// least recently used first; mu is held.
func (k *kernelSet) evict(left int) (gone []*kernel) {
	if k.idle <= left {
		return nil
	}
	var idle []*kernel
	for _, x := range k.byEntry {
		if x.refs == 0 {
			idle = append(idle, x)
		}
	}
	slices.SortFunc(idle, func(a, b *kernel) int { return cmp.Compare(a.last, b.last) })
	// Some more than there must be, not to begin again with the next model.
	gone = idle[:min(len(idle), k.idle-left+left/8)]
	k.idle -= len(gone)
	for _, x := range gone {
		delete(k.byEntry, x.entry)
		if k.bytes += len(x.cubin); k.bytes > maxCubins || k.cubins == nil {
			k.cubins, k.bytes = map[string][]byte{}, len(x.cubin)
		} else if k.cubins[x.entry] != nil {
			k.bytes -= len(x.cubin)
		}
		k.cubins[x.entry] = x.cubin
	}
	return gone
}

// unload unloads kernels that were taken out of the set.
func (d *device) unload(gone []*kernel) {
	for _, x := range gone {
		_ = d.check(x.m.Close()) // only that the device is lost, which is kept
	}
}

// unloadIdle unloads the kernels that nobody uses.
func (d *device) unloadIdle() {
	d.kernels.mu.Lock()
	gone := d.kernels.evict(0)
	d.kernels.mu.Unlock()
	d.unload(gone)
}

// close unloads all when the device is given back.
func (k *kernelSet) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, x := range k.byEntry {
		errs = append(errs, x.m.Close())
	}
	return errors.Join(errs...)
}

func (d *device) makeKernel(ctx context.Context, k *kernel, l *emit.Launch, cubin []byte) error {
	if cubin != nil {
		if err := d.load(k, l.Entry, cubin); err == nil {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := d.compiler()
	if err != nil {
		return err
	}
	cubin, _, err = c.Compile(l.Source(), l.Entry+".cu", d.props.Arch(), compilerOptions)
	if err != nil {
		return fmt.Errorf("%v: %w", d.id, err)
	}
	return d.load(k, l.Entry, cubin)
}

// load loads machine code and finds its entry.
func (d *device) load(k *kernel, entry string, cubin []byte) error {
	m, err := d.ctx.LoadModule(cubin)
	if err != nil {
		return d.check(err)
	}
	if k.f, err = m.Function(entry); err != nil {
		_ = m.Close() // the first error tells more
		return d.check(err)
	}
	k.m, k.cubin = m, cubin
	return nil
}
