//go:build linux && cgo

package host

/*
#include "trampolines.h"
*/
import "C"

import (
	"fmt"
	"math"
	"sync"
)

// trampoline is what one of the C functions lori_call_N stands for.
type trampoline struct {
	shim *shimOp
	refs int // of BoundShims; 0 for a trampoline that is free
}

var trampolines = struct {
	sync.RWMutex
	all [C.LORI_TRAMPOLINES]trampoline // guarded by the mutex
}{}

// BoundShims are the custom functions that one library calls.
type BoundShims struct {
	// Names are the functions of this process that take the place of those that the
	// library calls.
	Names map[string]string
	held  []int
}

// BindShims gives those of the functions that were registered by RegisterShim to
// a library, which keeps them until Close.
func BindShims(functions []string) (*BoundShims, error) {
	b := &BoundShims{Names: map[string]string{}}
	trampolines.Lock()
	defer trampolines.Unlock()
	for _, name := range functions {
		s := customShim(name)
		if s == nil {
			continue
		}
		at := trampolineFor(s)
		if at < 0 {
			b.release()
			return nil, fmt.Errorf("bind %s: %w", name, ErrTrampolines)
		}
		trampolines.all[at].shim = s
		trampolines.all[at].refs++
		b.held = append(b.held, at)
		b.Names[name] = fmt.Sprintf("lori_call_%d", at)
	}
	return b, nil
}

// trampolineFor returns the trampoline of a function, a free one if it has none, or -1; trampolines
// is locked.
func trampolineFor(s *shimOp) int {
	free := -1
	for i := range trampolines.all {
		if trampolines.all[i].shim == s {
			return i
		}
		if free < 0 && trampolines.all[i].refs == 0 {
			free = i
		}
	}
	return free
}

// Close gives the functions up; the library must be closed. Calling it again
// does nothing.
func (b *BoundShims) Close() {
	trampolines.Lock()
	defer trampolines.Unlock()
	b.release()
}

// release is Close with the lock held.
func (b *BoundShims) release() {
	for _, at := range b.held {
		if trampolines.all[at].refs--; trampolines.all[at].refs == 0 {
			trampolines.all[at].shim = nil
		}
	}
	b.held = nil
}

//export loriGoTrampoline
func loriGoTrampoline(at C.int32_t, frame *C.lori_frame) (code C.lori_error) {
	trampolines.RLock()
	s := trampolines.all[at].shim
	trampolines.RUnlock()
	if s == nil {
		return failWith("custom op", errUnimplemented)
	}
	defer func() {
		if r := recover(); r != nil {
			code = failWith(s.name, recovered(r))
		}
	}()
	if bool(C.lori_pending()) && C.lori_take_pending() != C.LORI_OK {
		return C.LORI_FAIL
	}
	if err := s.call(frame); err != nil {
		return failWith(s.name, err)
	}
	return C.LORI_OK
}

// call finds the arguments where the calling convention has put them, and calls
// the op.
func (s *shimOp) call(frame *C.lori_frame) error {
	words := make([]int64, len(s.params))
	ints, floats, stack := 0, 0, 0
	for i, p := range s.params {
		switch {
		case p.kind == kindFloat && floats < len(frame.floats):
			words[i] = int64(frame.floats[floats])
			floats++
		case p.kind != kindFloat && ints < len(frame.ints):
			words[i] = int64(frame.ints[ints])
			ints++
		case stack < len(frame.stack):
			words[i] = int64(frame.stack[stack])
			stack++
		default:
			return fmt.Errorf("%w: it has too many arguments", errUnimplemented)
		}
		words[i] = widened(words[i], s.types[i])
	}
	return callEager(func(v values) ([]*tensor, error) { return s.run(v) })(call{&s.signature, words})
}

// run calls the op and checks how many results it has.
func (s *shimOp) run(v values) ([]*tensor, error) {
	outs, err := runCustom(s.op, v)
	if err != nil {
		return nil, err
	}
	want := 0
	for _, p := range s.params {
		if p.kind == kindOut {
			want++
		}
	}
	if len(outs) != want {
		return all(fmt.Errorf("the op returned %d results, not %d", len(outs), want), outs...)
	}
	return outs, nil
}

// widened is a word in which an argument of a type was passed: what lies beyond a
// narrow one is not specified, and a float's becomes that of a double.
func widened(w int64, ctype string) int64 {
	switch ctype {
	case "bool":
		return w & 0xff
	case "int32_t", "int":
		return int64(int32(w))
	case "uint32_t":
		return int64(uint32(w))
	case "float":
		return int64(math.Float64bits(float64(math.Float32frombits(uint32(w)))))
	}
	return w
}
