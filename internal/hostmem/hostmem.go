// Package hostmem is the host memory of the backends that compute on the CPU:
// reference-counted buffers over pooled, 64-byte aligned storage of the Go
// heap, or over memory that another owner lends (Wrap).
//
// Fresh memory is expensive (the operating system maps and clears each page),
// so the storage of a released buffer is kept, by size class, for the next one
// of the class. A buffer that is dropped without Release is found by the
// garbage collector: the accounting is corrected then, and its storage is the
// collector's, never the pool's, because slices of it may still be in use.
//
// Storage is taken from the process's memory limit (package memlimit) when it is
// made and given back when the collector has found it, pooled or not.
package hostmem

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/memlimit"
)

const (
	// Align is the alignment of every buffer's storage in bytes: a cache line and
	// the widest vector register.
	Align = 64
	// DefaultPoolLimit bounds the bytes that an Allocator keeps for reuse.
	DefaultPoolLimit = 1 << 30
)

// Allocator makes the buffers of one backend. It pools their storage and counts
// the live bytes of each device. It is safe for concurrent use.
type Allocator struct {
	live [256]atomic.Int64 // bytes by Device.Index

	mu     sync.Mutex
	limit  int64
	pooled int64                // guarded by mu: bytes of all blocks in free
	free   [numClasses][]*block // guarded by mu: by size class, last freed last

	guarded bool // see Guard; set before the first buffer is made

	collections collections
	reserve     reserve

	runs    atomic.Uint64
	keeping map[weak.Pointer[Buffer]]struct{} // guarded by mu: buffers that keep something
}

// block is one piece of storage. Its cleanup is attached once and outlives the
// buffers that use the block in turn.
type block struct {
	mem     []byte // Align-aligned, of the size of its class
	class   int
	account *account
	guarded []byte // all of its pages, if it is a guarded one
}

// account is what a block's cleanup knows: how many live bytes to take back, of
// which counter, and how many of the process's limit. It is separate from the
// block, which must be unreachable for the cleanup to run.
type account struct {
	live  *atomic.Int64
	bytes int64 // 0 while the block is in the pool
	taken int64 // of memlimit
}

func (acc *account) close() {
	acc.live.Add(-acc.bytes)
	memlimit.Give(acc.taken)
}

// NewAllocator returns an Allocator that keeps at most DefaultPoolLimit bytes, and
// none where memory is short.
func NewAllocator() *Allocator {
	a := &Allocator{limit: DefaultPoolLimit}
	w := weak.Make(a)
	cancel := memlimit.OnPressure(func() {
		if a := w.Value(); a != nil {
			a.Trim()
		}
	})
	runtime.AddCleanup(a, func(cancel func()) { cancel() }, cancel)
	return a
}

// SetPoolLimit changes the bound of the bytes kept for reuse; 0 keeps none.
func (a *Allocator) SetPoolLimit(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = bytes
	if a.pooled > a.limit {
		a.trimLocked(-1)
	}
}

// BytesInUse returns the bytes of the live buffers on a device; views count
// with the buffer they look at.
func (a *Allocator) BytesInUse(d ir.Device) int64 { return a.live[d.Index].Load() }

// Guarded reports whether Guard was called.
func (a *Allocator) Guarded() bool { return a.guarded }

// PooledBytes returns the bytes kept for reuse.
func (a *Allocator) PooledBytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pooled
}

// Trim gives the storage kept for reuse to the garbage collector, and what buffers keep beside their
// contents.
func (a *Allocator) Trim() {
	a.dropKept()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trimLocked(-1)
}

// trimLocked empties the free lists but that of class keep.
func (a *Allocator) trimLocked(keep int) {
	for c := range a.free {
		if c == keep {
			continue
		}
		a.pooled -= int64(len(a.free[c])) * int64(classSize(c))
		a.free[c] = nil
	}
}

// The size classes are Align times 1, 2, 3, 4 and then four steps to each power
// of two, so that at most a fifth of a block is unused.
const numClasses = 4 * 56

// classOf returns the smallest class that holds n bytes, n > 0.
func classOf(n int) int {
	units := (n + Align - 1) / Align
	if units <= 4 {
		return units - 1
	}
	// The top three bits of units-1 choose the class within its power of two.
	shift := bits.Len(uint(units-1)) - 3
	return 4*shift + (units-1)>>shift
}

// classSize returns the bytes of a class's blocks.
func classSize(c int) int {
	if c < 4 {
		return (c + 1) * Align
	}
	shift := c/4 - 1
	return ((c%4 + 5) << shift) * Align
}

// take returns a block for a live buffer of n > 0 bytes. New storage is an error
// where more than limit bytes would be held, as in memlimit.Take.
func (a *Allocator) take(n int, live *atomic.Int64, limit int64) (*block, error) {
	if n > memlimit.Most {
		return nil, &ir.OutOfMemory{Wanted: int64(n), Held: memlimit.Held(), Limit: cmp.Or(limit, memlimit.Default())}
	}
	if a.guarded {
		return newGuarded(n, live, limit)
	}
	c := classOf(n)
	a.mu.Lock()
	list := a.free[c]
	var b *block
	if k := len(list) - 1; k >= 0 {
		b, list[k] = list[k], nil
		a.free[c] = list[:k]
		a.pooled -= int64(classSize(c))
	}
	a.mu.Unlock()
	if b == nil {
		if oom := memlimit.Take(int64(classSize(c)), limit); oom != nil {
			oom.Wanted = int64(n)
			return nil, oom
		}
		a.reserve.hold()
		b = newBlock(c)
		a.collections.add(int64(classSize(c)))
	}
	b.account.live, b.account.bytes = live, int64(n)
	live.Add(int64(n))
	return b, nil
}

// newBlock makes storage of a class, whose size was taken from the limit.
func newBlock(c int) *block {
	size := classSize(c)
	// What is behind the elements is of the block, too: kernels have pointers to the end of what they are done with.
	mem := uncleared(size + Align - 1)
	adviseHuge(mem)
	off := misaligned(mem)
	b := &block{mem: mem[off : off+size : off+size], class: c, account: &account{taken: int64(size)}}
	runtime.AddCleanup(b, (*account).close, b.account)
	return b
}

// misaligned returns how many bytes behind the start of memory the first is that is aligned.
func misaligned(mem []byte) int {
	return int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (Align - 1))
}

// uncleared returns memory of the Go heap with any contents. make would clear what the collector has
// found, a pass over memory that the results which are written there do not need.
func uncleared(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0) // an empty string has no address
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// give ends the use of a block: it goes to the pool, or to the collector when
// the pool is full even after the other classes have given theirs up.
func (a *Allocator) give(b *block) {
	if b.guarded != nil {
		giveGuarded(b)
		return
	}
	b.account.live.Add(-b.account.bytes)
	b.account.bytes = 0
	size := int64(classSize(b.class))
	a.mu.Lock()
	if a.pooled+size > a.limit && size <= a.limit {
		a.trimLocked(b.class)
	}
	if a.pooled+size <= a.limit {
		a.free[b.class] = append(a.free[b.class], b)
		a.pooled += size
	}
	a.mu.Unlock()
}

// Buffer is one tensor in host memory, dense and row-major, little endian. It
// implements backend.Buffer. Using one after its last reference is released
// panics.
type Buffer struct {
	refs   atomic.Int32
	shape  ir.Shape
	device ir.Device
	data   []byte
	alloc  *Allocator
	block  *block  // nil if there are no bytes, or for a view
	parent *Buffer // of a view: it holds one reference
	leak   uint64  // number in the leak record; 0 if it is not tracked

	foreign *foreign // of a wrapped buffer: who frees its memory

	met  atomic.Uint64 // the last run that read the contents
	runs atomic.Int32  // that have, up to steadyRuns
	kept atomic.Pointer[keptList]
	// given says that Bytes has given the memory out.
	given atomic.Bool
}

// foreign frees memory that is not an Allocator's, once: at the last Release,
// or when the collector finds the buffer dropped without it.
type foreign struct {
	once    sync.Once
	release func()
}

func (f *foreign) free() {
	if f.release != nil {
		f.once.Do(f.release)
	}
}

// collected is the foreign of memory that the garbage collector frees.
var collected foreign

// Wrap returns a buffer with one reference over memory that somebody else owns,
// inside the Go heap or outside of it. release is called once, on any goroutine,
// when the last reference is released; should the buffer be dropped without
// that, the garbage collector's finding calls it. It must not refer to the
// buffer; nil is for memory that the collector frees. It returns an error wrapping ir.ErrShape if data does not have the size
// of the shape; then release is not called.
func Wrap(s ir.Shape, d ir.Device, data []byte, release func()) (*Buffer, error) {
	if len(data) != s.Bytes() {
		return nil, fmt.Errorf("%w: %v has %d bytes, got %d", ir.ErrShape, s, s.Bytes(), len(data))
	}
	b := &Buffer{shape: s, device: d, data: data, foreign: &collected}
	if release != nil {
		b.foreign = &foreign{release: release}
		runtime.AddCleanup(b, (*foreign).free, b.foreign)
	}
	b.refs.Store(1)
	b.leak = trackNew(s)
	return b, nil
}

// New returns a buffer of the given shape with one reference. Its contents are
// unspecified: storage is reused without clearing. The error is an
// *ir.OutOfMemory.
func (a *Allocator) New(s ir.Shape, d ir.Device) (*Buffer, error) { return a.NewWithin(0, s, d) }

// NewWithin is New where tensors of the process may hold limit bytes; 0 stands for
// memlimit.Default.
func (a *Allocator) NewWithin(limit int64, s ir.Shape, d ir.Device) (*Buffer, error) {
	b := &Buffer{shape: s, device: d, alloc: a}
	if n := s.Bytes(); n > 0 {
		var err error
		if b.block, err = a.take(n, &a.live[d.Index], limit); err != nil {
			return nil, err
		}
		b.data = b.block.mem[:n:n]
	}
	b.refs.Store(1)
	b.leak = trackNew(s)
	return b, nil
}

// NewZeroed is New with all bytes zero.
func (a *Allocator) NewZeroed(s ir.Shape, d ir.Device) (*Buffer, error) {
	b, err := a.New(s, d)
	if err != nil {
		return nil, err
	}
	clear(b.data)
	return b, nil
}

// FromBytes returns a buffer with a copy of the elements. It returns an error
// wrapping ir.ErrShape if data does not have the size of the shape, and New's.
func (a *Allocator) FromBytes(s ir.Shape, d ir.Device, data []byte) (*Buffer, error) {
	if len(data) != s.Bytes() {
		return nil, fmt.Errorf("%w: %v has %d bytes, got %d", ir.ErrShape, s, s.Bytes(), len(data))
	}
	b, err := a.New(s, d)
	if err != nil {
		return nil, err
	}
	copy(b.data, data)
	return b, nil
}

// Number returns a buffer with a copy of one element, which is not counted and which the garbage collector
// frees. It returns an error wrapping ir.ErrShape if data does not have the size of the shape.
func Number(s ir.Shape, d ir.Device, data []byte) (*Buffer, error) {
	line := make([]byte, 2*Align-1) // as in newBlock
	line = line[misaligned(line):]
	return Wrap(s, d, line[:copy(line[:Align], data)], nil)
}

// View returns a buffer with another shape of the same number of bytes over the
// same storage. It holds a reference to b until it is released itself.
func (b *Buffer) View(s ir.Shape) *Buffer {
	if s.Bytes() != b.shape.Bytes() {
		panic(fmt.Sprintf("hostmem: %v is no view of %v: the sizes differ", s, b.shape))
	}
	b.Retain()
	v := &Buffer{shape: s, device: b.device, data: b.data, parent: b}
	v.refs.Store(1)
	v.leak = trackNew(s)
	return v
}

// Shape returns the dtype and dimensions.
func (b *Buffer) Shape() ir.Shape { return b.shape }

// Device returns the device that the buffer was made for.
func (b *Buffer) Device() ir.Device { return b.device }

// Bytes returns the storage itself, which is valid until the last Release; it
// does not block and never fails. Its caller may write to it from then on, between
// any two runs, so nothing is kept of the contents any more (see Steady).
func (b *Buffer) Bytes(context.Context) ([]byte, error) {
	data := b.Data()
	b.givenOut()
	return data, nil
}

// Data returns the storage: Shape().Bytes() bytes, aligned to Align. The caller
// keeps its reference to b for as long as it uses them, and changes them only
// while no one else has one.
func (b *Buffer) Data() []byte {
	b.check("used")
	return b.data
}

// Unique reports whether there is exactly one reference, so that its holder may
// overwrite the contents. It is false for views and wrapped memory.
func (b *Buffer) Unique() bool { return b.refs.Load() == 1 && b.parent == nil && b.foreign == nil }

// Retain adds a reference.
func (b *Buffer) Retain() {
	if b.refs.Add(1) <= 1 {
		b.refs.Add(-1)
		b.check("retained")
	}
}

// Release drops a reference; with the last the storage goes back to the pool.
func (b *Buffer) Release() {
	n := b.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 {
		b.refs.Add(1)
		b.check("released again")
	}
	trackRelease(b.leak)
	b.data = nil
	switch {
	case b.parent != nil:
		b.parent.Release()
	case b.foreign != nil:
		b.foreign.free()
	case b.block != nil:
		b.drop()
		b.alloc.give(b.block)
	}
	b.block, b.parent = nil, nil
}

func (b *Buffer) check(what string) {
	if b.refs.Load() <= 0 {
		panic(fmt.Sprintf("hostmem: buffer %v on %v %s after its last Release", b.shape, b.device, what))
	}
}

// Element is a type that can stand for a tensor's elements in memory. f16 and
// bf16 are uint16, bool and the 8-bit floats uint8.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Slice returns the elements of b, which stay b's storage. It panics if T does
// not have the size of b's dtype.
func Slice[T Element](b *Buffer) []T {
	var t T
	if int(unsafe.Sizeof(t)) != b.shape.DType().Size() {
		panic(fmt.Sprintf("hostmem: elements of %v are not %T", b.shape, t))
	}
	return View[T](b.Data())
}

// View returns bytes as elements of type T without copying. It panics if they
// are not aligned for T or not a whole number of elements.
func View[T Element](data []byte) []T {
	var t T
	size := int(unsafe.Sizeof(t))
	p := unsafe.SliceData(data)
	if len(data)%size != 0 || (len(data) > 0 && uintptr(unsafe.Pointer(p))%unsafe.Alignof(t) != 0) {
		panic(fmt.Sprintf("hostmem: %d bytes at %p are not a slice of %T", len(data), p, t))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(p)), len(data)/size)
}
