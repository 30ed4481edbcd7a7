//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/loris-ml/loris/backend/cuda/internal/driver"
	"github.com/loris-ml/loris/backend/cuda/internal/emit"
)

// compilerOptions are those that package emit asks for.
var compilerOptions = []string{"-fmad=false", "-std=c++17"}

// kernelSet has the compiled kernels of a device. They stay until it is closed.
type kernelSet struct {
	mu      sync.Mutex
	byEntry map[string]*kernel // guarded by mu
}

// kernel is one entry of package emit, in a module of its own.
type kernel struct {
	ready chan struct{} // closed when the rest is there
	f     *driver.Function
	cubin []byte
	err   error
}

// kernelsOf returns the kernels of some entries, by name. What is not loaded comes
// from kept, machine code by entry, or is compiled, several at a time. Code that
// does not load is compiled anew.
func (d *device) kernelsOf(ctx context.Context, launches map[string]*emit.Launch, kept map[string][]byte) (map[string]*kernel, error) {
	out := make(map[string]*kernel, len(launches))
	var work sync.WaitGroup
	seats := make(chan struct{}, runtime.GOMAXPROCS(0))
	for entry, l := range launches {
		k, mine := d.kernels.find(entry)
		out[entry] = k
		if mine {
			work.Go(func() {
				seats <- struct{}{}
				k.err = d.makeKernel(ctx, k, l, kept[entry])
				d.kernels.made(entry, k)
				<-seats
			})
		}
	}
	work.Wait()
	for entry, k := range out {
		select {
		case <-k.ready: // others may be making it
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if ctx.Err() == nil && (errors.Is(k.err, context.Canceled) || errors.Is(k.err, context.DeadlineExceeded)) {
			// Somebody else's compilation was given up.
			return d.kernelsOf(ctx, launches, kept)
		}
		if k.err != nil {
			return nil, fmt.Errorf("kernel %s: %w", entry, k.err)
		}
	}
	return out, nil
}

// find returns a kernel; mine says that the caller has to make it.
func (k *kernelSet) find(entry string) (found *kernel, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found = k.byEntry[entry]; found != nil {
		return found, false
	}
	if k.byEntry == nil {
		k.byEntry = map[string]*kernel{}
	}
	found = &kernel{ready: make(chan struct{})}
	k.byEntry[entry] = found
	return found, true
}

// made ends the making of a kernel. One that failed is forgotten.
func (k *kernelSet) made(entry string, made *kernel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if made.err != nil {
		delete(k.byEntry, entry)
	}
	close(made.ready)
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
	k.cubin = cubin
	d.atClose(m.Close)
	return nil
}
