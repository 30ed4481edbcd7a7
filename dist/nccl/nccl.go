//go:build cuda && linux && cgo

package nccl

/*
#cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"github.com/loris-ml/loris/internal/collective"
)

func init() { collective.RegisterDevices(starter{}) }

// variable names where the library is, if not where the loader looks: a file, or a folder.
const variable = "LORIS_LIBNCCL"

const libraryName = "libnccl.so.2"

// library is NCCL that has been opened. What was opened stays.
type library struct {
	path string
	c    *C.lori_nccl
}

func open() (*library, error) {
	path := os.Getenv(variable)
	if path == "" {
		path = libraryName
	} else if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, libraryName)
	}
	l := &library{path: path, c: (*C.lori_nccl)(C.calloc(1, C.sizeof_lori_nccl))}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	if why := C.lori_nccl_open(name, l.c); why != nil {
		defer C.free(unsafe.Pointer(why))
		return nil, fmt.Errorf("NCCL 2.14 or later is needed for collectives on GPUs; %s may say where it is: %s", variable, C.GoString(why))
	}
	return l, nil
}

// Error is a result of NCCL that is not success.
type Error struct {
	Call string
	Code int    // ncclResult_t
	Text string // NCCL's
}

// Error names the call and NCCL's text.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (code %d)", e.Call, e.Text, e.Code) }

func (l *library) check(call string, r C.int) error {
	if r == 0 || r == C.LORI_NCCL_IN_PROGRESS {
		return nil
	}
	return &Error{Call: call, Code: int(r), Text: C.GoString(C.lori_nccl_text(l.c, r))}
}

// starter starts the engines of groups.
type starter struct{}

// NewID implements collective.DeviceStarter.
func (starter) NewID() ([]byte, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	var id C.lori_nccl_id
	if err := l.check("ncclGetUniqueId", C.lori_nccl_unique(l.c, &id)); err != nil {
		return nil, err
	}
	return C.GoBytes(unsafe.Pointer(&id), C.LORI_NCCL_ID), nil
}

// Start implements collective.DeviceStarter. It waits for the other ranks.
func (starter) Start(given func() error, g collective.GPU, rank, size int, id []byte) (collective.DeviceEngine, error) {
	l, err := open()
	if err != nil {
		return nil, err
	}
	e := &engine{lib: l, gpu: C.lori_gpu{C.uint64_t(g.SetCurrent), C.uint64_t(g.Context)}}
	var cid C.lori_nccl_id
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&cid)), C.LORI_NCCL_ID), id)
	if err := l.check("ncclCommInitRankConfig", C.lori_nccl_init(l.c, e.gpu, &e.comm, C.int(size), &cid, C.int(rank))); err != nil {
		return nil, err
	}
	if err := e.settle(given); err != nil {
		e.Abort()
		return nil, fmt.Errorf("rank %d of %d joins %s: %w", rank, size, l.path, err)
	}
	return e, nil
}

// engine is a communicator of one rank. It implements collective.DeviceEngine.
type engine struct {
	lib *library
	gpu C.lori_gpu

	mu   sync.Mutex  // calls of a communicator come one at a time
	comm C.lori_comm // nil once it has ended
}

// errEnded is what calls of an engine return that was aborted or closed.
var errEnded = fmt.Errorf("the communicator has ended")

// Issue implements collective.DeviceEngine.
func (e *engine) Issue(given func() error, stream uintptr, ops []collective.DeviceOp) error {
	list := make([]C.lori_nccl_op, len(ops))
	for i, o := range ops {
		list[i] = C.lori_nccl_op{kind: C.int(o.Kind), peer: C.int(o.Peer), in: C.uint64_t(o.In), out: C.uint64_t(o.Out), bytes: C.size_t(o.Bytes)}
	}
	e.mu.Lock()
	err := errEnded
	if e.comm != nil {
		err = e.lib.check("nccl", C.lori_nccl_issue(e.lib.c, e.gpu, e.comm, C.uint64_t(stream), &list[0], C.int(len(list))))
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return e.settle(given)
}

// settle waits until NCCL is ready for the next call, which it makes on threads of its own.
func (e *engine) settle(given func() error) error {
	for {
		state, err := e.state()
		if err != nil || state != C.LORI_NCCL_IN_PROGRESS {
			return err
		}
		if err := given(); err != nil {
			return err
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func (e *engine) state() (C.int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.comm == nil {
		return 0, errEnded
	}
	var state C.int
	if err := e.lib.check("ncclCommGetAsyncError", C.lori_nccl_state(e.lib.c, e.comm, &state)); err != nil {
		return 0, err
	}
	return state, e.lib.check("what NCCL does beside", state)
}

// Err implements collective.DeviceEngine.
func (e *engine) Err() error {
	_, err := e.state()
	return err
}

// Abort implements collective.DeviceEngine.
func (e *engine) Abort() { _ = e.end(1) } // the error that it is aborted for says more

// Close implements collective.DeviceEngine.
func (e *engine) Close() error { return e.end(0) }

func (e *engine) end(abort C.int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.comm == nil {
		return nil
	}
	c := e.comm
	e.comm = nil
	return e.lib.check("the end of a communicator", C.lori_nccl_end(e.lib.c, e.gpu, c, abort))
}
