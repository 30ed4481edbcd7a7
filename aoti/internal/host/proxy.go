//go:build linux && cgo

package host

/*
#include "op.h"
#include "proxy.h"
#include "tensor.h"
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/cgo"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

// A proxy executor runs the ops that a library has no C function for. It knows
// them from the package: a list of calls by number, each with the op's name and
// the arguments that never change; tensors and ints come with the call.

// ProvidesOp reports whether the host can run an op by its name in PyTorch,
// "aten::bincount" or "ns::op".
func ProvidesOp(target string) bool { return externOp(target) != nil }

// SupportsExtern returns the names of the ops in a package's list of extern nodes
// that the host cannot run, each once. It returns an error wrapping ErrExtern for
// a list that makes no sense.
func SupportsExtern(nodes []byte) (missing []string, err error) {
	var doc struct {
		Nodes []externNode `json:"nodes"`
	}
	if err := json.Unmarshal(nodes, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExtern, err)
	}
	seen := map[string]bool{}
	for _, n := range doc.Nodes {
		if t := n.Node.Target; !ProvidesOp(t) && !seen[t] {
			seen[t] = true
			missing = append(missing, t)
		}
	}
	return missing, nil
}

// ErrExtern says that the list of a package's extern nodes makes no sense.
var ErrExtern = errors.New("bad list of extern nodes")

func externOp(target string) eagerFunc {
	if op := customOp(target); op != nil {
		return func(v values) ([]*tensor, error) { return runCustom(op, v) }
	}
	switch ns, op := opName(target); ns {
	case "aten", "prims":
		return eagerKernelOf(op)
	case collectiveSpace:
		return collectiveKernels[collectiveSpace+"_"+op]
	}
	return nil
}

type externNode struct {
	Name string `json:"name"`
	Node struct {
		Target string `json:"target"`
		Inputs []struct {
			Name string                     `json:"name"`
			Arg  map[string]json.RawMessage `json:"arg"`
		} `json:"inputs"`
		Outputs []map[string]json.RawMessage `json:"outputs"`
	} `json:"node"`
}

// proxyCall is one entry of the list, read.
type proxyCall struct {
	target string
	fn     eagerFunc
	args   []proxyArg
	outs   int
}

// proxyArg is an argument that never changes, or how many tensors or ints of the
// call it takes.
type proxyArg struct {
	name    string
	fixed   any
	tensors []bool // those of a list that are there; nil for none of tensors
	ints    int
	list    bool
}

type proxyExecutor struct{ calls []proxyCall }

// newProxy reads a list of nodes for a library. The handle is freed by
// freeProxy; it is 0 for an empty list.
func newProxy(nodes []json.RawMessage) (C.uintptr_t, error) {
	if len(nodes) == 0 {
		return 0, nil
	}
	p := new(proxyExecutor)
	for i, raw := range nodes {
		var n externNode
		if err := json.Unmarshal(raw, &n); err != nil {
			return 0, fmt.Errorf("%w: node %d: %w", ErrExtern, i, err)
		}
		c, err := n.read()
		if err != nil {
			return 0, fmt.Errorf("%w: node %d (%s): %w", ErrExtern, i, n.Node.Target, err)
		}
		p.calls = append(p.calls, c)
	}
	return C.uintptr_t(cgo.NewHandle(p)), nil
}

func freeProxy(h C.uintptr_t) {
	if h != 0 {
		cgo.Handle(h).Delete()
	}
}

func (n *externNode) read() (proxyCall, error) {
	c := proxyCall{target: n.Node.Target, fn: externOp(n.Node.Target)}
	if c.fn == nil {
		return c, errUnimplemented
	}
	for _, in := range n.Node.Inputs {
		a := proxyArg{name: in.Name}
		for kind, raw := range in.Arg {
			if err := a.read(kind, raw); err != nil {
				return c, fmt.Errorf("argument %q: %w", in.Name, err)
			}
		}
		c.args = append(c.args, a)
	}
	for _, out := range n.Node.Outputs {
		for kind, raw := range out {
			var list []json.RawMessage
			switch kind {
			case "as_tensor":
				c.outs++
			case "as_tensors":
				if err := json.Unmarshal(raw, &list); err != nil {
					return c, err
				}
				c.outs += len(list)
			case "as_none":
			default:
				return c, fmt.Errorf("%w: a result %s", errUnimplemented, kind)
			}
		}
	}
	return c, nil
}

// read reads one argument by the kind that the list gives it. All ints are
// dynamic: they come with the call.
func (a *proxyArg) read(kind string, raw json.RawMessage) error {
	into := func(x any) error { return json.Unmarshal(raw, x) }
	var err error
	switch kind {
	case "as_none":
	case "as_tensor":
		a.tensors = []bool{true}
	case "as_tensors":
		var list []json.RawMessage
		err = into(&list)
		a.list, a.tensors = true, make([]bool, len(list))
		for i := range list {
			a.tensors[i] = true
		}
	case "as_optional_tensor":
		var one map[string]json.RawMessage
		if err = into(&one); err == nil && one["as_tensor"] != nil {
			a.tensors = []bool{true}
		}
	case "as_optional_tensors":
		var list []map[string]json.RawMessage
		err = into(&list)
		a.list, a.tensors = true, make([]bool, len(list))
		for i, x := range list {
			a.tensors[i] = x["as_tensor"] != nil
		}
	case "as_int", "as_sym_int":
		a.ints = 1
	case "as_ints", "as_sym_ints":
		var list []json.RawMessage
		err = into(&list)
		a.list, a.ints = true, len(list)
	case "as_float", "as_sym_float":
		var x float64
		err = into(&x)
		a.fixed = x
	case "as_floats":
		var x []float64
		err = into(&x)
		a.fixed = x
	case "as_bool", "as_sym_bool":
		var x bool
		err = into(&x)
		a.fixed = map[bool]int{true: 1}[x]
	case "as_string":
		var x string
		err = into(&x)
		a.fixed = x
	case "as_scalar_type":
		var x int
		if err = into(&x); err == nil {
			a.fixed, err = exportDType(x)
		}
	case "as_device", "as_layout", "as_memory_format":
	default:
		err = fmt.Errorf("%w: an argument %s", errUnimplemented, kind)
	}
	return err
}

// exportDType returns the dtype that has a number in torch.export's schema.
func exportDType(n int) (ir.DType, error) {
	names := map[int]ir.DType{
		1: ir.U8, 2: ir.I8, 3: ir.I16, 4: ir.I32, 5: ir.I64, 6: ir.F16, 7: ir.F32, 8: ir.F64, 10: ir.C64, 11: ir.C128,
		12: ir.Bool, 13: ir.BF16,
	}
	if d := names[n]; d != ir.Invalid {
		return d, nil
	}
	return ir.Invalid, fmt.Errorf("%w: no dtype has torch.export's number %d", ir.ErrDType, n)
}

//export loriGoProxy
func loriGoProxy(h C.uintptr_t, node, nInts C.int, ints *C.int64_t, nTensors C.int, tensors **C.lori_tensor) (code C.lori_error) {
	name := "proxy executor"
	defer func() {
		if r := recover(); r != nil {
			code = failWith(name, recovered(r))
		}
	}()
	if h == 0 {
		return failWith(name, errors.New("the model was opened without its extern nodes"))
	}
	p := cgo.Handle(h).Value().(*proxyExecutor)
	if node < 0 || int(node) >= len(p.calls) {
		return failWith(name, fmt.Errorf("%w: there is no node %d", ErrExtern, node))
	}
	c := &p.calls[node]
	name = c.target
	if err := c.run(unsafe.Slice((*int64)(ints), int(nInts)), unsafe.Slice(tensors, int(nTensors))); err != nil {
		return failWith(name, err)
	}
	return C.LORI_OK
}

func (c *proxyCall) run(ints []int64, tensors []*tensor) error {
	v := values{}
	var err error
	for i := range c.args {
		if ints, tensors, err = c.args[i].bind(v, ints, tensors); err != nil {
			return err
		}
	}
	if len(ints) != 0 || len(tensors) != c.outs {
		return fmt.Errorf("%w: %d ints and %d tensors are left for %d results", ErrExtern, len(ints), len(tensors), c.outs)
	}
	outs, err := byName(c.target, c.fn)(v)
	if err != nil {
		return err
	}
	defer func() {
		for _, t := range outs {
			release(t)
		}
	}()
	if len(outs) < c.outs {
		return fmt.Errorf("%w: %d results, want %d", ErrExtern, len(outs), c.outs)
	}
	for i, to := range tensors {
		if err := guarded(func() C.lori_error { return C.lori_tensor_assign(to, outs[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// bind sets the argument and returns the ints and tensors that it leaves.
func (a *proxyArg) bind(v values, ints []int64, tensors []*tensor) ([]int64, []*tensor, error) {
	need := 0
	for _, there := range a.tensors {
		if there {
			need++
		}
	}
	if a.ints > len(ints) || need > len(tensors) {
		return nil, nil, fmt.Errorf("%w: too few ints or tensors for argument %q", ErrExtern, a.name)
	}
	switch {
	case a.fixed != nil:
		v[a.name] = a.fixed
	case a.tensors != nil && a.list:
		list := make([]*tensor, len(a.tensors))
		for i, there := range a.tensors {
			if there {
				list[i], tensors = tensors[0], tensors[1:]
			}
		}
		v[a.name] = list
		return ints, tensors, nil
	case a.tensors != nil:
		v[a.name] = tensors[0]
	case a.list:
		v[a.name] = append([]int64(nil), ints[:a.ints]...)
	case a.ints == 1:
		v[a.name] = int(ints[0])
	}
	return ints[a.ints:], tensors[need:], nil
}

// runCustom calls an op of the user's.
func runCustom(op CustomOp, v values) ([]*tensor, error) {
	args := OpArgs{}
	var lent []*hostmem.Buffer
	defer func() {
		for _, b := range lent {
			b.Release()
		}
	}()
	wrap := func(t *tensor) (backend.Buffer, error) {
		s, err := shapeOf(t)
		if err != nil {
			return nil, err
		}
		b, err := lend(t, s)
		if err == nil {
			lent = append(lent, b)
		}
		return b, err
	}
	for name, x := range v {
		switch x := x.(type) {
		case *tensor:
			b, err := wrap(x)
			if err != nil {
				return nil, fmt.Errorf("argument %q: %w", name, err)
			}
			args[name] = b
		case []*tensor:
			list := make([]backend.Buffer, len(x))
			for i, t := range x {
				if t == nil {
					continue
				}
				b, err := wrap(t)
				if err != nil {
					return nil, fmt.Errorf("argument %q: %w", name, err)
				}
				list[i] = b
			}
			args[name] = list
		default:
			args[name] = x
		}
	}
	results, err := op(args)
	if err != nil {
		return nil, err
	}
	return adopt(results)
}

// adopt copies the results of an op into tensors and releases them.
func adopt(results []backend.Buffer) ([]*tensor, error) {
	outs := make([]*tensor, len(results))
	var err error
	for i, b := range results {
		if err == nil {
			outs[i], err = fromBackend(b)
		}
		b.Release()
	}
	return all(err, outs...)
}
