//go:build cuda && linux && cgo

package driver

// #cgo noescape lori_cu_launch
// #cgo nocallback lori_cu_launch
// #include <stdlib.h>
// #include "calls.h"
import "C"

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Module is loaded machine code.
type Module struct {
	ctx *Context
	m   C.CUmodule
}

// LoadModule loads a cubin. An error that is ErrImage says that it is damaged or
// made for another device.
func (c *Context) LoadModule(cubin []byte) (*Module, error) {
	if err := checkELF(cubin); err != nil {
		return nil, fmt.Errorf("cuda:%d: load a module: %w", c.dev.index, err)
	}
	m := &Module{ctx: c}
	r := C.lori_cu_module_load(c.drv.c, c.c, &m.m, unsafe.Pointer(unsafe.SliceData(cubin)))
	if err := c.check("cuModuleLoadData", r); err != nil {
		return nil, err
	}
	return m, nil
}

// checkELF refuses what the driver would read beyond the end of, as it is not
// told the length.
func checkELF(b []byte) error {
	const header = 64
	if len(b) < header || !bytes.HasPrefix(b, []byte("\x7fELF\x02\x01")) {
		return fmt.Errorf("%w: it is no cubin", ErrImage)
	}
	size, le := uint64(len(b)), binary.LittleEndian
	for _, table := range []struct {
		offset, entry, n uint64
	}{
		{le.Uint64(b[32:]), uint64(le.Uint16(b[54:])), uint64(le.Uint16(b[56:]))}, // segments
		{le.Uint64(b[40:]), uint64(le.Uint16(b[58:])), uint64(le.Uint16(b[60:]))}, // sections
	} {
		if table.offset > size || table.entry*table.n > size-table.offset {
			return fmt.Errorf("%w: the cubin is cut off", ErrImage)
		}
	}
	return nil
}

// Close unloads the module; its functions are gone with it. Calling it again
// does nothing.
func (m *Module) Close() error {
	if m.m == nil {
		return nil
	}
	mod := m.m
	m.m = nil
	return m.ctx.check("cuModuleUnload", C.lori_cu_module_unload(m.ctx.drv.c, m.ctx.c, mod))
}

// Global returns the place and the size of a global variable.
func (m *Module) Global(name string) (DevicePtr, int64, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var p C.CUdeviceptr
	var n C.size_t
	r := C.lori_cu_module_global(m.ctx.drv.c, m.ctx.c, m.m, cname, &p, &n)
	if err := m.ctx.check("cuModuleGetGlobal", r); err != nil {
		return 0, 0, fmt.Errorf("variable %q: %w", name, err)
	}
	return DevicePtr(p), int64(n), nil
}

// Function is a kernel of a module. It is valid until the module is closed, and
// safe for concurrent use.
type Function struct {
	ctx  *Context
	f    C.CUfunction
	name string
}

// Function returns the kernel of a name.
func (m *Module) Function(name string) (*Function, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	f := &Function{ctx: m.ctx, name: name}
	if err := m.ctx.check("cuModuleGetFunction", C.lori_cu_module_function(m.ctx.drv.c, m.ctx.c, m.m, cname, &f.f)); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", name, err)
	}
	return f, nil
}

// Name returns the kernel's name.
func (f *Function) Name() string { return f.name }

// Attributes are what a kernel needs.
type Attributes struct {
	MaxThreads       int // per block, by its registers
	Registers        int // per thread
	Local            int // bytes of local memory per thread: spills and arrays
	Shared           int // bytes of static shared memory per block
	MaxDynamicShared int // bytes of dynamic shared memory that a launch may ask for
	Arch             int // of its machine code, such as 90
}

// Attributes returns what the kernel needs.
func (f *Function) Attributes() (Attributes, error) {
	var a Attributes
	for _, q := range []struct {
		number C.uint
		to     *int
	}{
		{C.LORI_FUNC_MAX_THREADS, &a.MaxThreads},
		{C.LORI_FUNC_REGISTERS, &a.Registers},
		{C.LORI_FUNC_LOCAL, &a.Local},
		{C.LORI_FUNC_SHARED, &a.Shared},
		{C.LORI_FUNC_MAX_DYNAMIC_SHARED, &a.MaxDynamicShared},
		{C.LORI_FUNC_BINARY_VERSION, &a.Arch},
	} {
		var v C.int
		if err := f.check("cuFuncGetAttribute", C.lori_cu_function_get(f.ctx.drv.c, f.ctx.c, f.f, q.number, &v)); err != nil {
			return a, err
		}
		*q.to = int(v)
	}
	return a, nil
}

// SetMaxDynamicShared allows launches with up to this many bytes of dynamic
// shared memory, which is necessary above 48 KiB. The device's limit is
// Properties.SharedPerBlockMax, less the kernel's static shared memory.
func (f *Function) SetMaxDynamicShared(bytes int) error {
	return f.set(C.LORI_FUNC_MAX_DYNAMIC_SHARED, bytes)
}

// SetCarveout says which part of the level-1 cache, in percent, shall be shared
// memory; -1 leaves it to the driver. It is a hint.
func (f *Function) SetCarveout(percent int) error { return f.set(C.LORI_FUNC_CARVEOUT, percent) }

func (f *Function) set(attribute C.uint, v int) error {
	return f.check("cuFuncSetAttribute", C.lori_cu_function_set(f.ctx.drv.c, f.ctx.c, f.f, attribute, C.int(v)))
}

// BlocksPerSM returns how many blocks of a size fit into a multiprocessor.
func (f *Function) BlocksPerSM(threads, dynamicShared int) (int, error) {
	var n C.int
	r := C.lori_cu_function_blocks(f.ctx.drv.c, f.ctx.c, f.f, C.int(threads), C.size_t(dynamicShared), &n)
	return int(n), f.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", r)
}

// BlockSize returns the block size, limit at most (0 for any), by which most
// threads fit into the device, and how many blocks fill it.
func (f *Function) BlockSize(dynamicShared, limit int) (threads, blocks int, err error) {
	var g, b C.int
	r := C.lori_cu_function_block_size(f.ctx.drv.c, f.ctx.c, f.f, C.size_t(dynamicShared), C.int(limit), &g, &b)
	return int(b), int(g), f.check("cuOccupancyMaxPotentialBlockSize", r)
}

// Dim is a size in x, y and z; zeros count as one.
type Dim struct{ X, Y, Z uint32 }

func (d Dim) c() [3]C.uint32_t {
	return [3]C.uint32_t{C.uint32_t(max(d.X, 1)), C.uint32_t(max(d.Y, 1)), C.uint32_t(max(d.Z, 1))}
}

// Launch says how a kernel is started.
type Launch struct {
	Grid, Block Dim
	Shared      uint32 // dynamic shared memory in bytes

	Cluster     Dim  // blocks that share their memory; the zero Dim for none
	Cooperative bool // all blocks run at once, so that they can wait for each other
	// Overlap lets the kernel begin before the one ahead of it in the stream has
	// ended; it must wait itself before it reads what that one writes.
	Overlap bool
}

// Plain reports that it is a grid of blocks and nothing else.
func (l *Launch) Plain() bool { return l.Cluster == Dim{} && !l.Cooperative && !l.Overlap }

// MaxParams is how many parameters a kernel may have.
const MaxParams = C.LORI_MAX_SLOTS

// Launch starts the kernel on a stream and returns at once. Each parameter is a
// slot of 64 bits, whatever its type: its bytes are the first ones of the slot
// (little endian), for a float32 math.Float32bits, for memory a DevicePtr. The slots may be used again
// when Launch has returned. It does not allocate.
//
// Wrong launches (a block too big, too much shared memory) are errors that are
// ErrInvalid; what goes wrong inside the kernel is an error of later calls.
func (f *Function) Launch(s *Stream, l Launch, params []uint64) error {
	if len(params) > MaxParams {
		return fmt.Errorf("kernel %q: %w: %d parameters; %d are possible", f.name, ErrInvalid, len(params), MaxParams)
	}
	how := C.lori_launch{grid: l.Grid.c(), block: l.Block.c(), shared: C.uint32_t(l.Shared)}
	if l.Cluster != (Dim{}) {
		how.cluster = l.Cluster.c()
	}
	if l.Cooperative {
		how.cooperative = 1
	}
	if l.Overlap {
		how.overlap = 1
	}
	r := C.lori_cu_launch(f.ctx.drv.c, f.ctx.c, f.f, s.s, &how,
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(params))), C.size_t(len(params)))
	if r == 0 {
		return nil
	}
	return f.check("cuLaunchKernel", r)
}

func (f *Function) check(call string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return fmt.Errorf("kernel %q: %w", f.name, f.ctx.check(call, r))
}
