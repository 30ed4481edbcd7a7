//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"strings"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/scalartype"
)

// values are the arguments of an op by ATen's names: *tensor, []*tensor (nil for
// those that are none), int, []int64, bool as int, float64, []float64, string
// and ir.DType. What is None is not there.
type values map[string]any

// eagerFunc computes an op. The results are new handles in the order of ATen's
// schema; the arguments stay the caller's.
type eagerFunc func(v values) ([]*tensor, error)

// tensor returns a tensor that must be there.
func (v values) tensor(name string) (*tensor, error) {
	t, ok := v[name].(*tensor)
	if !ok {
		return nil, fmt.Errorf("%w: no tensor %q", ir.ErrArg, name)
	}
	return t, nil
}

// two returns two tensors that must be there.
func (v values) two(a, b string) (x, y *tensor, err error) {
	if x, err = v.tensor(a); err == nil {
		y, err = v.tensor(b)
	}
	return x, y, err
}

// has reports whether an argument is not None.
func (v values) has(name string) bool { return v[name] != nil }

func (v values) int(name string, otherwise int) int {
	switch x := v[name].(type) {
	case int:
		return x
	case float64:
		return int(x)
	}
	return otherwise
}

func (v values) bool(name string, otherwise bool) bool {
	if x, ok := v[name].(int); ok {
		return x != 0
	}
	return otherwise
}

func (v values) float(name string, otherwise float64) float64 {
	switch x := v[name].(type) {
	case float64:
		return x
	case int:
		return float64(x)
	}
	return otherwise
}

func (v values) text(name, otherwise string) string {
	if x, ok := v[name].(string); ok {
		return x
	}
	return otherwise
}

func (v values) ints(name string) []int64 {
	x, _ := v[name].([]int64)
	return x
}

func (v values) dtype(otherwise ir.DType) ir.DType {
	if d, ok := v["dtype"].(ir.DType); ok {
		return d
	}
	return otherwise
}

// values decodes the arguments of a C function.
func (c call) values() (values, error) {
	v := values{}
	for i := 0; i < len(c.sig.params); i++ {
		p := c.sig.params[i]
		switch p.kind {
		case kindTensor, kindOptTensor:
			if t := c.tensor(i); t != nil && t.storage != nil {
				v[p.name] = t
			}
		case kindTensors, kindOptTensors:
			v[p.name] = c.tensors(i)
			i++
		case kindInt:
			v[p.name] = c.int(i)
		case kindOptInt:
			if n, ok := c.optInt(i); ok {
				v[p.name] = n
			}
		case kindInts, kindOptInts:
			if c.present(i) {
				v[p.name] = c.ints(i)
			} else if p.kind == kindInts {
				v[p.name] = []int64{}
			}
			i++
		case kindBool:
			v[p.name] = int(c.bool32(i))
			if strings.HasSuffix(p.name, "dtype") {
				d, err := c.dtype(i)
				if err != nil {
					return nil, err
				}
				v[p.name] = d
			}
		case kindOptBool:
			n, ok := c.optBool32(i)
			if ok {
				v[p.name] = int(n)
			}
			if ok && strings.HasSuffix(p.name, "dtype") {
				d, err := scalartype.DType(n)
				if err != nil {
					return nil, err
				}
				v[p.name] = d
			}
		case kindBools:
			v[p.name] = c.bools(i)
			i++
		case kindFloat:
			v[p.name] = c.float(i)
		case kindOptFloat:
			if x, ok := c.optFloat(i); ok {
				v[p.name] = x
			}
		case kindOptFloats:
			if c.present(i) {
				v[p.name] = c.floats(i)
			}
			i++
		case kindString, kindOptString:
			if s := c.text(i); s != "" {
				v[p.name] = s
			}
		}
	}
	return v, nil
}

// callEager makes a C function of an eager kernel: the results go out as new handles, or
// into the tensor that the function is given for it.
func callEager(fn eagerFunc) opFunc {
	return func(c call) error {
		v, err := c.values()
		if err != nil {
			return err
		}
		outs, err := fn(v)
		if err != nil {
			return err
		}
		return c.deliverAll(&decomposition{into: c.into()}, outs)
	}
}

// evaluateProgram makes a C function of an op that is recorded as a Program.
func evaluateProgram(fn decomposeFunc) opFunc {
	return func(c call) error { return c.evaluate(fn, (*decomposition).onHost) }
}

// evaluate computes an op that is recorded as a Program by run, and hands out the results. run may
// write those that go into tensors of the caller, and says so by clearing into.
func (c call) evaluate(fn decomposeFunc, run func(*decomposition) ([]*tensor, error)) error {
	v, err := c.values()
	if err != nil {
		return err
	}
	r, err := fn(v)
	if err != nil {
		return err
	}
	if r.into == nil {
		r.into = c.into()
	}
	outs, err := run(r)
	if err != nil {
		return err
	}
	return c.deliverAll(r, outs)
}

// into returns the tensor that a function is given for its result, nil where it makes one.
func (c call) into() []*tensor {
	if first := c.handles(0); len(first) == 1 && c.sig.params[0].kind == kindTensor && writesFirst(c.sig.name) {
		return first
	}
	return nil
}

// one makes a list of one result.
func one(t *tensor, err error) ([]*tensor, error) {
	if err != nil {
		return nil, err
	}
	return []*tensor{t}, nil
}

// all makes a list of results, or releases them if one failed.
func all(err error, ts ...*tensor) ([]*tensor, error) {
	if err == nil {
		return ts, nil
	}
	for _, t := range ts {
		if t != nil {
			release(t)
		}
	}
	return nil, err
}
