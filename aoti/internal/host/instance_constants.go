//go:build linux && cgo

package host

/*
#include "instance.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/backend"
)

// Constants describes the constants. On a real libtorch those that are folded are
// left out: each instance folds for itself when it gets constants.
func (m *Instance) Constants() []backend.Constant {
	out := make([]backend.Constant, len(m.lib.shown))
	for i, n := range m.lib.shown {
		out[i] = m.lib.all[n].Constant
	}
	return out
}

// InitialConstants returns the values that the library came with; nil for folded
// ones and for those that it does not hold.
func (m *Instance) InitialConstants(context.Context) ([]backend.Buffer, error) {
	all, err := m.lib.takeInitial()
	if err != nil {
		return nil, err
	}
	return m.show(all), nil
}

// show returns values by index of all as they are shown to the caller.
func (m *Instance) show(all []*packed) []backend.Buffer {
	out := make([]backend.Buffer, len(m.lib.shown))
	for i, n := range m.lib.shown {
		if all[n] != nil {
			out[i] = all[n]
		}
	}
	return out
}

// PackConstant checks a value against the constant and brings it to the strides
// that the library was compiled for. A mismatch is an error wrapping ir.ErrDType
// or ir.ErrShape that names the constant.
func (m *Instance) PackConstant(ctx context.Context, i int, value backend.Buffer, cp bool) (backend.Buffer, error) {
	return m.lib.pack(ctx, &m.lib.all[m.lib.shown[i]], value, cp)
}

// PackBlob makes a value of the bytes of a constant as they lie in a blob of the
// library's weights: strided, or packed for oneDNN.
func (m *Instance) PackBlob(_ context.Context, i int, raw []byte, cp bool) (backend.Buffer, error) {
	return m.lib.packBlob(&m.lib.all[m.lib.shown[i]], raw, cp)
}

// UnpackConstant returns the dense value.
func (m *Instance) UnpackConstant(ctx context.Context, i int, value backend.Buffer, cp bool) (backend.Buffer, error) {
	p, ok := value.(*packed)
	if !ok {
		value.Retain()
		return value, nil
	}
	b, err := unpack(p, cp)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", m.lib.all[m.lib.shown[i]].Name, err)
	}
	return b, nil
}

// BindConstants gives the library a complete set. An incomplete one is only kept
// for FoldConstants, and runs fail until the next call.
func (m *Instance) BindConstants(values []backend.Buffer) error {
	if len(values) != len(m.lib.shown) {
		return fmt.Errorf("the model has %d constants, got %d", len(m.lib.shown), len(values))
	}
	all := make([]*packed, len(m.lib.all))
	complete := true
	for i, n := range m.lib.shown {
		if values[i] == nil {
			complete = false
			continue
		}
		p, ok := values[i].(*packed)
		if !ok {
			return fmt.Errorf("constant %q: a %T is no packed constant", m.lib.all[n].Name, values[i])
		}
		all[n] = p
	}
	had := m.ready
	m.ready, m.bound = false, all
	m.c.pairs = 0
	if complete {
		if err := m.fill(); err != nil {
			return err
		}
	} else if !had || m.c.model == nil {
		return nil // and otherwise the library gives up what it had
	}
	if err := m.bind(); err != nil {
		return fmt.Errorf("set the constants: %w", err)
	}
	m.ready = complete
	return nil
}

func (m *Instance) bind() error {
	if !bool(m.lib.c.tensors.own) && m.lib.foldable {
		if C.lori_instance_bind_container(m.c, m.lib.device) != C.LORI_OK {
			return m.failure(nil)
		}
		return nil
	}
	if C.lori_instance_bind(m.c) != C.LORI_OK {
		return m.failure(nil)
	}
	return nil
}

// fill makes the pairs of names and handles that the library will own.
func (m *Instance) fill() error {
	n := 0
	for i, p := range m.bound {
		if p == nil {
			continue // folded by the instance itself
		}
		t, err := m.own(i, p)
		var h C.lori_handle
		if err == nil {
			err = m.stream.await(t)
		}
		if err == nil {
			h, err = m.lib.hand(t)
		}
		if err != nil {
			m.c.pairs = C.int32_t(n)
			C.lori_instance_unpair(m.c)
			return fmt.Errorf("constant %q: %w", m.lib.all[i].Name, err)
		}
		m.pairs[n] = C.lori_pair{name: m.lib.all[i].name, handle: h}
		n++
	}
	m.c.pairs = C.int32_t(n)
	return nil
}

// own returns what the instance uses for a value: the value itself, or its own
// copy if the library may write it.
func (m *Instance) own(i int, p *packed) (*tensor, error) {
	if m.lib.all[i].readOnly {
		if !m.lib.keepNothing {
			keepWith(p.t)
		}
		return p.t, nil
	}
	if m.private[i] != nil && m.private[i].from == p {
		return m.private[i].t, nil
	}
	if err := m.stream.await(p.t); err != nil {
		return nil, err
	}
	t, err := m.stream.made(func() *tensor { return C.lori_tensor_copy(p.t) })
	if err != nil {
		return nil, err
	}
	m.dropPrivate(i)
	p.Retain()
	m.private[i] = &mutable{p, t}
	return t, nil
}

func (m *Instance) dropPrivate(i int) {
	if own := m.private[i]; own != nil {
		release(own.t)
		own.from.Release()
		m.private[i] = nil
	}
}

// hand returns a handle to t that a library may own.
func (l *Library) hand(t *tensor) (h C.lori_handle, err error) {
	if bool(l.c.tensors.own) {
		t, err := made(func() *tensor { return C.lori_tensor_alias(t) })
		return C.lori_handle(unsafe.Pointer(t)), err
	}
	err = guarded(func() C.lori_error { return C.lori_tensor_hand(l.c, t, &h) })
	return h, err
}

// FoldConstants computes the folded constants from those that were bound.
func (m *Instance) FoldConstants(context.Context) ([]backend.Buffer, error) {
	if m.bound == nil && len(m.lib.all) > 0 {
		return nil, ErrNoConstants
	}
	if !m.lib.foldable || !bool(m.lib.c.tensors.own) {
		return make([]backend.Buffer, len(m.lib.shown)), nil
	}
	for i, p := range m.bound {
		if p == nil && !m.lib.all[i].FromFolded {
			return nil, fmt.Errorf("constant %q has no value: %w", m.lib.all[i].Name, ErrNoConstants)
		}
	}
	all, err := m.lib.fold(m.bound)
	if err != nil {
		return nil, err
	}
	return m.show(all), nil
}
