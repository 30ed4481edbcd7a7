//go:build linux && cgo

package host

/*
#include <stdlib.h>
#include "dispatch.h"
#include "op.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// opLibrary is what a library registers ops through, for one namespace. It is
// known to the library by an address in memory of C.
type opLibrary struct {
	ns      string
	ignored bool // its kernels are for other devices
	kernels []string
	schemas []string
}

// dispatcher are the ops that libraries brought along.
var dispatcher = struct {
	sync.RWMutex
	libraries map[unsafe.Pointer]*opLibrary
	kernels   map[string]C.lori_kernel
	schemas   map[string]*opSchema
}{libraries: map[unsafe.Pointer]*opLibrary{}, kernels: map[string]C.lori_kernel{}, schemas: map[string]*opSchema{}}

// cpuKeys are the dispatch keys whose kernels run on tensors of the CPU.
var cpuKeys = map[string]bool{"": true, "CPU": true, "CompositeExplicitAutograd": true, "CompositeImplicitAutograd": true}

// entered is what every function does that C calls: it turns errors and panics
// into a code.
func entered(name string, fn func() error) (code C.lori_error) {
	defer func() {
		if r := recover(); r != nil {
			code = failWith(name, recovered(r))
		}
	}()
	if err := fn(); err != nil {
		return failWith(name, err)
	}
	return C.LORI_OK
}

//export loriGoLibraryNew
func loriGoLibraryNew(ns, key *C.char, ret *unsafe.Pointer) C.lori_error {
	return entered("library", func() error {
		p := C.malloc(1)
		dispatcher.Lock()
		defer dispatcher.Unlock()
		dispatcher.libraries[p] = &opLibrary{ns: C.GoString(ns), ignored: !cpuKeys[C.GoString(key)]}
		storePointer(unsafe.Pointer(ret), p)
		C.lori_count_object(1)
		return nil
	})
}

// library returns a library that was made; dispatcher is locked.
func library(p unsafe.Pointer) (*opLibrary, error) {
	if l := dispatcher.libraries[p]; l != nil {
		return l, nil
	}
	return nil, errors.New("there is no such library of ops")
}

//export loriGoLibraryImpl
func loriGoLibraryImpl(p unsafe.Pointer, name *C.char, fn C.lori_kernel) C.lori_error {
	return entered("library_impl", func() error {
		dispatcher.Lock()
		defer dispatcher.Unlock()
		l, err := library(p)
		if err != nil || l.ignored {
			return err
		}
		full := qualified(l.ns, C.GoString(name))
		if _, ok := dispatcher.kernels[full]; ok {
			return fmt.Errorf("%w: %s", ErrRegistered, full)
		}
		dispatcher.kernels[full] = fn
		l.kernels = append(l.kernels, full)
		return nil
	})
}

//export loriGoLibraryDef
func loriGoLibraryDef(p unsafe.Pointer, text *C.char) C.lori_error {
	return entered("library_def", func() error {
		s, err := parseSchema(C.GoString(text))
		if err != nil {
			return err
		}
		dispatcher.Lock()
		defer dispatcher.Unlock()
		l, err := library(p)
		if err != nil {
			return err
		}
		s.name = qualified(l.ns, s.name)
		if dispatcher.schemas[s.name] != nil {
			return fmt.Errorf("%w: %s", ErrRegistered, s.name)
		}
		dispatcher.schemas[s.name] = s
		l.schemas = append(l.schemas, s.name)
		return nil
	})
}

func qualified(ns, name string) string {
	if strings.Contains(name, "::") {
		return name
	}
	return ns + "::" + name
}

//export loriGoLibraryDelete
func loriGoLibraryDelete(p unsafe.Pointer) C.lori_error {
	return entered("delete_library_object", func() error {
		dispatcher.Lock()
		defer dispatcher.Unlock()
		l, err := library(p)
		if err != nil {
			return err
		}
		for _, name := range l.kernels {
			delete(dispatcher.kernels, name)
		}
		for _, name := range l.schemas {
			delete(dispatcher.schemas, name)
		}
		delete(dispatcher.libraries, p)
		C.free(p)
		C.lori_count_object(-1)
		return nil
	})
}

//export loriGoDispatch
func loriGoDispatch(name, overload *C.char, stack *C.uint64_t) C.lori_error {
	full := C.GoString(name)
	if o := C.GoString(overload); o != "" {
		full += "." + o
	}
	return entered(full, func() error {
		dispatcher.RLock()
		kernel, schema := dispatcher.kernels[full], dispatcher.schemas[full]
		dispatcher.RUnlock()
		if kernel != nil && schema != nil {
			C.lori_kernel_call(kernel, stack, C.uint64_t(len(schema.params)), C.uint64_t(schema.returns))
			return nil
		}
		fn, s, err := dispatched(full, schema)
		if err != nil {
			return err
		}
		return s.call(unsafe.Slice((*uint64)(stack), max(len(s.params), s.returns, 1)), byName(full, fn))
	})
}

// dispatched finds an op of Go or of this host. schema is what a library says of
// it, or nil.
func dispatched(full string, schema *opSchema) (eagerFunc, *opSchema, error) {
	if op := customOp(full); op != nil {
		if schema == nil {
			schema = customSchema(full)
		}
		if schema == nil {
			return nil, nil, fmt.Errorf("%w: a call by the dispatcher needs the op's schema; register it with that", errUnimplemented)
		}
		return func(v values) ([]*tensor, error) { return runCustom(op, v) }, schema, nil
	}
	ns, op := opName(full)
	fn := externOp(full)
	if fn == nil {
		return nil, nil, fmt.Errorf("%w: there is no op %s", errUnimplemented, full)
	}
	if ns != "aten" {
		schema = nil
	}
	_, overload, _ := strings.Cut(full, ".")
	for _, name := range []string{"cpu_" + op + "_" + overload, "aten_" + op + "_" + overload, "cpu_" + op, "aten_" + op} {
		if line, ok := shimLines()["aoti_torch_"+strings.TrimSuffix(name, "_")]; ok && schema == nil {
			schema = shimSchema(&signatures[line])
		}
	}
	if schema == nil {
		if schema = irSchema(op); schema == nil {
			return nil, nil, fmt.Errorf("%w: the arguments of %s are not known", errUnimplemented, full)
		}
	}
	return fn, schema, nil
}

// shimSchema is the schema of the op behind a function of the shim.
func shimSchema(s *signature) *opSchema {
	out := &opSchema{name: s.name}
	for _, p := range s.params {
		if p.kind == kindOut || p.kind == kindOutInt {
			out.returns++
		} else {
			out.params = append(out.params, p)
		}
	}
	return out
}

// irKinds are the kinds of arguments of ir's ops that a stack of words holds.
var irKinds = map[ir.ParamKind]argKind{
	ir.KindTensor: kindTensor, ir.KindOptTensor: kindOptTensor, ir.KindInt: kindInt, ir.KindOptInt: kindOptInt,
	ir.KindFloat: kindFloat, ir.KindOptFloat: kindOptFloat, ir.KindBool: kindBool, ir.KindDType: kindBool, ir.KindOptDType: kindOptBool,
}

func irSchema(name string) *opSchema {
	op, ok := ir.Lookup(name)
	if !ok {
		return nil
	}
	out := &opSchema{name: name, returns: 1}
	for _, p := range op.Spec().Schema.Params {
		out.params = append(out.params, param{p.Name, irKinds[p.Kind]})
	}
	return out
}

// call takes the arguments over from the stack, computes, and puts the results
// there as new handles.
func (s *opSchema) call(stack []uint64, fn eagerFunc) error {
	v := values{}
	var taken []*tensor
	defer func() {
		for _, t := range taken {
			release(t)
		}
	}()
	var failed error
	for i, p := range s.params {
		x, err := s.take(p, stack[i], &taken)
		if err != nil && failed == nil {
			failed = fmt.Errorf("argument %q: %w", p.name, err)
		}
		if x != nil {
			v[p.name] = x
		}
	}
	if failed != nil {
		return failed
	}
	outs, err := fn(v)
	if err != nil {
		return err
	}
	if len(outs) > s.returns { // an overload with fewer results
		_ = discard(outs[s.returns:])
		outs = outs[:s.returns]
	}
	for i, t := range outs {
		storePointer(unsafe.Pointer(&stack[i]), unsafe.Pointer(t))
	}
	return nil
}

// discard releases results.
func discard(outs []*tensor) error {
	for _, t := range outs {
		release(t)
	}
	return nil
}

// take reads an argument, which becomes this host's; tensors go to taken.
func (s *opSchema) take(p param, word uint64, taken *[]*tensor) (any, error) {
	kind := p.kind
	switch kind {
	case kindOptTensor, kindOptInt, kindOptFloat, kindOptBool:
		if word == 0 {
			return nil, nil
		}
		at := *(**C.uint64_t)(unsafe.Pointer(&word))
		word = uint64(*at)
		C.lori_word_delete(at)
		kind = map[argKind]argKind{kindOptTensor: kindTensor, kindOptInt: kindInt, kindOptFloat: kindFloat, kindOptBool: kindBool}[kind]
	}
	switch kind {
	case kindTensor:
		t := *(**tensor)(unsafe.Pointer(&word))
		if t == nil {
			return nil, fmt.Errorf("%w: the tensor is NULL", ir.ErrArg)
		}
		*taken = append(*taken, t)
		return t, nil
	case kindInt:
		return int(int64(word)), nil
	case kindFloat:
		return math.Float64frombits(word), nil
	case kindBool:
		if strings.HasSuffix(p.name, "dtype") {
			return scalartype.DType(int32(word))
		}
		return int(int32(word)), nil
	}
	return nil, fmt.Errorf("%w: it is of a kind that cannot be passed as a word", errUnimplemented)
}
