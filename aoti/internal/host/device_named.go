//go:build linux && cgo

package host

/*
#include "device.h"
*/
import "C"

import (
	"errors"
	"strings"

	"github.com/loris-ml/loris/backend"
)

// byName computes an op that a library calls by its name: on the thread's device as
// an op with a C function is, else by fn.
func byName(target string, fn eagerFunc) eagerFunc {
	p := streamContextOf(C.lori_here_token())
	if p == nil {
		return fn
	}
	_, op := opName(target)
	if customOp(target) != nil {
		op = ""
	}
	return func(v values) ([]*tensor, error) { return p.named(op, fn, v) }
}

// named computes an op of ATen's, or "" for one of the user's.
func (p *streamContext) named(op string, fn eagerFunc, v values) ([]*tensor, error) {
	if opTable[op].view {
		return fn(v)
	}
	if make := decompositionOf(op); make != nil && op != "" {
		outs, err := p.byDecomposition(op, make, v)
		if !errors.Is(err, backend.ErrUnsupported) {
			return outs, err
		}
	}
	return p.throughHost(op, fn, v)
}

// inPlace reports whether an op writes into self, by its name in ATen.
func inPlace(op string) bool { return strings.HasSuffix(op, "_") && !strings.HasSuffix(op, "__") }

func (p *streamContext) byDecomposition(op string, make decomposeFunc, v values) ([]*tensor, error) {
	r, err := make(v)
	if err != nil {
		return nil, err
	}
	into := r.into
	if self, ok := v["self"].(*tensor); ok && inPlace(op) {
		into = []*tensor{self}
	}
	return r.allResults(p.run(r, into...))
}

// throughHost calls fn with copies of the tensors on the host and brings what it
// makes to the device.
func (p *streamContext) throughHost(op string, fn eagerFunc, v values) ([]*tensor, error) {
	var s stage
	defer s.free()
	on := values{}
	for name, x := range v {
		switch x := x.(type) {
		case *tensor:
			h, err := s.host(x)
			if err != nil {
				return nil, err
			}
			on[name] = h
		case []*tensor:
			list := make([]*tensor, len(x))
			for i, t := range x {
				var err error
				if t != nil {
					if list[i], err = s.host(t); err != nil {
						return nil, err
					}
				}
			}
			on[name] = list
		default:
			on[name] = x
		}
	}
	outs, err := fn(on)
	for i, h := range outs {
		if err == nil {
			outs[i], err = toDevice(h)
		}
	}
	if self, ok := v["self"].(*tensor); ok && err == nil && inPlace(op) {
		err = copyTensor(self, on["self"].(*tensor))
	}
	return all(err, outs...)
}

// toDevice returns a copy of a result on the device, and releases the result, or
// returns what is there or nowhere already.
func toDevice(h *tensor) (*tensor, error) {
	if h == nil || h.storage == nil || onDevice(h) {
		return h, nil
	}
	t, err := made(func() *tensor { return C.lori_device_empty(C.int64_t(h.ndim), h.sizes, h.strides, h.dtype) })
	if err != nil {
		return h, err
	}
	if err := copyTensor(t, h); err != nil {
		release(t)
		return h, err
	}
	release(h)
	return t, nil
}
