//go:build linux && (amd64 || arm64)

package mpi

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"
)

// action is the kernel's struct sigaction, on amd64 and arm64.
type action struct {
	handler, flags, restorer, mask uintptr
}

const (
	onStack    = 0x08000000 // SA_ONSTACK
	numSignals = 64
)

// handlers are what the process does about signals.
type handlers [numSignals + 1]action

// currentHandlers returns what there is.
func currentHandlers() *handlers {
	var h handlers
	for n := range h {
		if sigaction(uintptr(n), nil, &h[n]) != nil {
			h[n] = action{} // not a signal
		}
	}
	return &h
}

// restore puts handlers back that a library has replaced. MPI libraries and UCX take SIGUSR1 and SIGHUP,
// call the handler of before, which is Go's, without what it is to get, and run on whatever stack there
// is: Go programs end by that. What had no handler before keeps its new one, on a stack of its own.
func (h *handlers) restore() error {
	var errs error
	for n, now := range currentHandlers() {
		want := h[n]
		if want.handler <= 1 {
			want = now
			want.flags |= onStack
		}
		if want == now || now.handler <= 1 {
			continue
		}
		if err := sigaction(uintptr(n), &want, nil); err != nil {
			errs = errors.Join(errs, fmt.Errorf("restore the handler of signal %d: %w", n, err))
		}
	}
	return errs
}

func sigaction(n uintptr, set, old *action) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), numSignals/8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
