//go:build linux && (amd64 || arm64) && !noasm

package code

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Usable reports why New fails whatever the code is: the system refuses memory
// that is executable. It is nil where it does not. The system is asked once.
func Usable() error { return usable() }

var usable = sync.OnceValue(func() error {
	_, err := New(returns[:])
	return err
})

// chunkSize is what is asked of the system at once. Pages of a chunk become
// executable as they are filled, so it may be larger than what one kernel needs.
const chunkSize = 256 << 10

// chunk is one mapping. Each Func in it counts as a user, and so does arena for
// the chunk that it fills; the last one unmaps it.
type chunk struct {
	mem   []byte
	used  int
	users int // guarded by arena.mu
}

// arena is where new code goes.
var arena struct {
	mu  sync.Mutex
	now *chunk
}

// Func is code that can be called. Its memory is given back some time after the
// Func is unreachable.
type Func struct {
	entry uintptr
	text  []byte // in a chunk, which this Func keeps
}

// New copies code, which must be position independent, to executable memory. Its
// entry is its first byte, 64-byte aligned.
func New(text []byte) (*Func, error) {
	arena.mu.Lock()
	defer arena.mu.Unlock()
	c, err := room(len(text))
	if err != nil {
		return nil, err
	}
	page := unix.Getpagesize()
	start := c.used
	end := (start + len(text) + page - 1) / page * page
	area := c.mem[start:end]
	copy(area, text)
	if err := unix.Mprotect(area, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		release(c, 0)
		return nil, fmt.Errorf("%w: making memory executable: %w", ErrUnsupported, err)
	}
	publish(unsafe.Pointer(&area[0]), len(text))
	c.used = end
	c.users++
	f := &Func{entry: uintptr(unsafe.Pointer(&area[0])), text: area[:len(text):len(text)]}
	runtime.AddCleanup(f, func(c *chunk) {
		arena.mu.Lock()
		defer arena.mu.Unlock()
		release(c, 1)
	}, c)
	return f, nil
}

// room returns a chunk with n free bytes. Its free part starts on a page of its
// own, still writable.
func room(n int) (*chunk, error) {
	if c := arena.now; c != nil {
		if len(c.mem)-c.used >= n {
			return c, nil
		}
		arena.now = nil
		release(c, 1)
	}
	size := max(chunkSize, (n+chunkSize-1)/chunkSize*chunkSize)
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%w: mapping memory: %w", ErrUnsupported, err)
	}
	arena.now = &chunk{mem: mem, users: 1}
	return arena.now, nil
}

// release takes users off a chunk and unmaps one that has none left.
func release(c *chunk, users int) {
	if c.users -= users; c.users > 0 {
		return
	}
	// An unmap of a whole mapping that exists can't fail.
	_ = unix.Munmap(c.mem)
}

// Size returns the bytes of the code.
func (f *Func) Size() int { return len(f.text) }

// AppendTo appends the code to b.
func (f *Func) AppendTo(b []byte) []byte {
	b = append(b, f.text...)
	runtime.KeepAlive(f)
	return b
}

// Call runs the code with the frame's address in RDI, on arm64 in X7. The code may use all
// registers but RSP, RBP and R14, on arm64 X18 and X26 to X30, and no stack. The runtime can't stop the
// goroutine in it. Call keeps f and what the caller holds of frame alive.
func (f *Func) Call(frame unsafe.Pointer) {
	call(f.entry, frame)
	runtime.KeepAlive(f)
}

// CallFlushing is Call in which the code's floating instructions take subnormal
// numbers as zero, and give zero for them.
func (f *Func) CallFlushing(frame unsafe.Pointer) {
	callFlushing(f.entry, frame)
	runtime.KeepAlive(f)
}

// call is in assembly.
//
//go:noescape
func call(entry uintptr, frame unsafe.Pointer)

// callFlushing is in assembly.
//
//go:noescape
func callFlushing(entry uintptr, frame unsafe.Pointer)
