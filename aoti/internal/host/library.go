//go:build linux && cgo

package host

/*
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/ir"
)

// Library is an opened library. It stays loaded until it is closed and every
// instance and constant of it is, too. It is safe for concurrent use.
type Library struct {
	c             *C.lori_library
	info          LibraryInfo
	device        *C.char // what containers are made for
	from          C.lori_source
	blob          []byte         // what from points to
	proxy         C.uintptr_t    // runs what the library calls by name; 0 for none
	deviceContext *deviceContext // of the device; nil for the CPU

	strides func(i int, inputs []backend.Buffer, dst []int64) []int64 // of inputs; may be nil

	groups map[string]collective.Group // of processes, by PyTorch's names; nil for none
	model  string                      // what errors about collectives have in the place of a line

	all         []constant // of the library, in its order; immutable
	keepNothing bool       // beside the constants
	rowsVary    bool       // of inputs
	shown       []int      // the indices of those that Constants tells of
	foldable    bool       // some are folded
	folds       sync.Mutex // held while constants are folded
	ownMemory   bool       // folding overwrites the memory of the library's own constants

	mu      sync.Mutex
	users   int      // guarded by mu: 1 until Close, and one for each instance and constant
	closed  bool     // guarded by mu
	initial *initial // guarded by mu: the constants it came with, nil once handed out
}

// initial is a container that holds the constants that a library came with.
type initial struct {
	lib       *Library
	container C.lori_container
	tensors   []*tensor // by index of all; nil for one that it does not hold

	mu   sync.Mutex
	refs int // guarded by mu
}

// OpenLibrary opens the library at path, which must be a copy made for this host
// (its names changed, see package pt2), or an unchanged one with
// LibraryOptions.Libtorch. The file must stay in place until Close, because
// libraries read it again. Opening a library runs its code.
func OpenLibrary(path string, o LibraryOptions) (*Library, error) {
	if o.CheckInputs && o.Libtorch != "" {
		// An unchanged library asks the environment when it first runs.
		if err := setenv("AOTI_RUNTIME_CHECK_INPUTS", "1"); err != nil {
			return nil, err
		}
	}
	torch, err := openLibtorch(o.Libtorch)
	if err != nil {
		return nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	l := &Library{users: 1}
	if o.Device != nil {
		if l.deviceContext, err = newDeviceContext(o.Device, o.Files); err != nil {
			return nil, fmt.Errorf("open the library: %w", err)
		}
	}
	err = l.at().guarded(func() C.lori_error {
		if l.c = C.lori_library_open(name, torch); l.c == nil {
			return C.LORI_FAIL
		}
		return C.LORI_OK
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the library: %w", err), l.deviceContext.close())
	}
	l.c.check_inputs = C.bool(o.CheckInputs)
	l.keepNothing, l.rowsVary = o.KeepNothing, o.RowsVary
	if l.proxy, err = newProxy(o.Externs); err != nil {
		return nil, errors.Join(fmt.Errorf("open the library: %w", err), l.Close())
	}
	l.c.proxy = l.proxy
	l.device = C.CString(l.where().String())
	l.blob, l.strides = o.Weights, o.Strides
	l.groups, l.model = o.Groups, o.Model
	l.from = C.lori_source{device: l.device}
	if err := l.learn(o); err != nil {
		return nil, errors.Join(fmt.Errorf("open the library: %w", err), l.Close())
	}
	return l, nil
}

// Info returns what the library says of itself.
func (l *Library) Info() LibraryInfo { return l.info }

// Close gives the library up. It is unloaded when the last instance and the last
// constant of it are gone, which may be now. Calling it again does nothing.
func (l *Library) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	i := l.initial
	l.initial = nil
	l.mu.Unlock()
	return errors.Join(i.release(), l.release())
}

// retain adds a user; it reports false if the library is closed already.
func (l *Library) retain() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		return false
	}
	l.users++
	return true
}

func (l *Library) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users--; l.users > 0 {
		return nil
	}
	for _, k := range l.all {
		C.free(unsafe.Pointer(k.name))
	}
	C.free(unsafe.Pointer(l.device))
	c := l.c
	err := l.at().guarded(func() C.lori_error { return C.lori_library_close(c) })
	freeProxy(l.proxy)
	return errors.Join(err, l.deviceContext.close())
}

func (i *initial) retain() {
	i.mu.Lock()
	i.refs++
	i.mu.Unlock()
}

// release drops a reference; with the last the container goes.
func (i *initial) release() error {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	i.refs--
	last := i.refs == 0
	i.mu.Unlock()
	if !last {
		return nil
	}
	for _, t := range i.tensors {
		release(t)
	}
	err := i.lib.at().guarded(func() C.lori_error { return C.lori_container_delete(i.lib.c, i.container) })
	return errors.Join(err, i.lib.release())
}

// source returns what containers are made from. The weights stay put: pin keeps
// them there for the call.
func (l *Library) source(pin pinner) C.lori_source {
	from := l.from
	if len(l.blob) > 0 {
		p := unsafe.Pointer(unsafe.SliceData(l.blob))
		pin.Pin(p)
		from.blob, from.blob_size = (*C.uint8_t)(p), C.uint64_t(len(l.blob))
	}
	return from
}

type pinner interface{ Pin(any) }

// withPinned calls fn with a pinner whose pins last as long as the call.
func withPinned(fn func(pinner) error) error {
	var p runtime.Pinner
	defer p.Unpin()
	return fn(&p)
}

// describe makes a container and returns its constants with one reference, and
// what it says.
func (l *Library) describe(read func(*C.lori_summary) error) (*initial, error) {
	if !l.retain() {
		return nil, ErrLibraryClosed
	}
	i := &initial{lib: l, refs: 1}
	var s C.lori_summary
	err := withPinned(func(pin pinner) error {
		from := l.source(pin)
		return l.at().guarded(func() C.lori_error { return C.lori_library_describe(l.c, &from, &s) })
	})
	if err != nil {
		return nil, errors.Join(err, l.release())
	}
	defer C.lori_summary_free(&s)
	i.container = s.container
	if read != nil {
		err = read(&s)
	}
	i.tensors = make([]*tensor, s.constants)
	for n, k := range unsafe.Slice(s.constant, s.constants) {
		i.tensors[n] = k.initial
	}
	for n := range i.tensors { // they are the initial's now
		unsafe.Slice(s.constant, s.constants)[n].initial = nil
	}
	if err != nil {
		return nil, errors.Join(err, i.release())
	}
	return i, nil
}

// learn fills in what the library says of itself.
func (l *Library) learn(o LibraryOptions) error {
	i, err := l.describe(func(s *C.lori_summary) error { return l.read(s, o) })
	if err != nil {
		return err
	}
	l.initial = i
	l.foldable = len(l.shown) < len(l.all)
	for _, k := range l.all {
		l.foldable = l.foldable || k.FromFolded
	}
	l.ownMemory = l.foldable && l.c.calls.create_external == nil
	return nil
}

func (l *Library) read(s *C.lori_summary, o LibraryOptions) error {
	l.info = LibraryInfo{
		Symbols: int(l.c.symbols),
		Inputs:  texts(s.input_names, s.inputs),
		Outputs: texts(s.output_names, s.outputs),
		InSpec:  C.GoString(s.in_spec),
		OutSpec: C.GoString(s.out_spec),
	}
	l.info.Generation = generation(l.info.Symbols)
	l.all = make([]constant, s.constants)
	for n, k := range unsafe.Slice(s.constant, s.constants) {
		var err error
		if l.all[n], err = newConstant(&k, o); err != nil {
			return err
		}
		if !l.all[n].FromFolded || bool(l.c.tensors.own) {
			l.shown = append(l.shown, n)
		}
	}
	return nil
}

func texts(list **C.char, n C.size_t) []string {
	out := make([]string, n)
	for i, p := range unsafe.Slice(list, n) {
		if p != nil {
			out[i] = C.GoString(p)
		}
	}
	return out
}

// libtorch are the libtorches of the process by path: once opened they stay.
var libtorch struct {
	sync.Mutex
	opened map[string]unsafe.Pointer
}

func openLibtorch(path string) (h unsafe.Pointer, err error) {
	if path == "" {
		return nil, nil
	}
	libtorch.Lock()
	defer libtorch.Unlock()
	if h := libtorch.opened[path]; h != nil {
		return h, nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open libtorch: %w", err)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	err = guarded(func() C.lori_error {
		if h = C.lori_libtorch_open(name); h == nil {
			return C.LORI_FAIL
		}
		return C.LORI_OK
	})
	if err != nil {
		return nil, fmt.Errorf("open libtorch: %w", err)
	}
	if libtorch.opened == nil {
		libtorch.opened = map[string]unsafe.Pointer{}
	}
	libtorch.opened[path] = h
	return h, nil
}

func setenv(name, value string) error {
	n, v := C.CString(name), C.CString(value)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(v))
	if _, err := C.setenv(n, v, 1); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}

// where returns the device of the library's values.
func (l *Library) where() ir.Device {
	if l.deviceContext == nil {
		return hostDevice()
	}
	return l.deviceContext.acc.Device()
}

// hostDevice returns where the values of libraries for the CPU are.
func hostDevice() ir.Device { return ir.Device{Type: ir.RegisterDeviceType("cpu")} }

var (
	_ backend.BlobModel     = (*Instance)(nil)
	_ backend.IntoModel     = (*Instance)(nil)
	_ backend.CallSpecModel = (*Instance)(nil)
)
