//go:build linux && cgo

package host

/*
#include "instance.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
)

// collectiveArgs returns the arguments of an op of ir between the operand and the group.
type collectiveArgs func(v values, g collective.Group) ([]any, error)

// collectiveKernels are PyTorch's functional collectives, by namespace and name. They begin when they
// are called, and nobody reads their results before wait_tensor.
var collectiveKernels = func() map[string]eagerFunc {
	out := map[string]eagerFunc{"wait_tensor": waitTensors, "wait_tensors": waitTensors}
	for name, k := range map[string]struct {
		op      string
		args    collectiveArgs
		inPlace bool // there is a variant that overwrites its operand, for others one with an out
	}{
		"all_reduce":             {"all_reduce", reductionArgs, true},
		"broadcast":              {"broadcast", rootArgs, true},
		"all_gather_into_tensor": {"all_gather", sizeArgs, false},
		"reduce_scatter_tensor":  {"reduce_scatter", scatterArgs, false},
		"all_to_all_single":      {"all_to_all", splitArgs, false},
	} {
		fresh := collectiveKernel(k.op, k.args, func(values, *tensor) *tensor { return nil })
		out[name], out[name+"_coalesced"] = fresh, fresh
		if k.inPlace {
			same := collectiveKernel(k.op, k.args, func(_ values, in *tensor) *tensor { return in })
			out[name+"_"], out[name+"_coalesced_"] = same, same
		} else {
			out[name+"_out"] = collectiveKernel(k.op, k.args, func(v values, _ *tensor) *tensor { return v["out"].(*tensor) })
		}
	}
	named := make(map[string]eagerFunc, len(out))
	for name, fn := range out {
		named[collectiveSpace+"_"+name] = fn
	}
	return named
}()

// reductions are those of PyTorch that ir has.
var reductions = map[string]string{"sum": "sum", "avg": "mean", "max": "max", "min": "min"}

func reductionArgs(v values, _ collective.Group) ([]any, error) {
	name := v.text("reduce_op", "")
	if reductions[name] == "" {
		return nil, fmt.Errorf("%w: the reduction %q is none of %v", errUnimplemented, name, slices.Sorted(maps.Keys(reductions)))
	}
	return []any{reductions[name]}, nil
}

func rootArgs(v values, g collective.Group) ([]any, error) {
	root := v.int("src", 0)
	if root < 0 || root >= g.Size() {
		return nil, fmt.Errorf("%w: rank %d is not in the group of %d", ir.ErrArg, root, g.Size())
	}
	return []any{root}, nil
}

// sizeArgs cuts or joins the first dimension.
func sizeArgs(v values, g collective.Group) ([]any, error) {
	if n := v.int("group_size", g.Size()); n != g.Size() {
		return nil, fmt.Errorf("%w: the model was exported for %d ranks, the group has %d", ir.ErrArg, n, g.Size())
	}
	return []any{0, g.Size()}, nil
}

func scatterArgs(v values, g collective.Group) ([]any, error) {
	how, err := reductionArgs(v, g)
	if err != nil {
		return nil, err
	}
	size, err := sizeArgs(v, g)
	return append(how, size...), err
}

func splitArgs(v values, g collective.Group) ([]any, error) {
	for _, name := range []string{"input_split_sizes", "output_split_sizes"} {
		sizes := v.ints(name)
		if len(sizes) != 0 && len(sizes) != g.Size() {
			return nil, fmt.Errorf("%w: %s are for %d ranks, the group has %d", ir.ErrArg, name, len(sizes), g.Size())
		}
		for _, n := range sizes {
			if n != sizes[0] {
				return nil, fmt.Errorf("%w: all_to_all_single of parts that differ in size, %v: pad them", errUnimplemented, sizes)
			}
		}
	}
	return sizeArgs(v, g)
}

// operands returns the tensors of a collective or of a wait, which schemas name otherwise than
// prototypes do.
func (v values) operands() ([]*tensor, error) {
	for _, name := range []string{"inp", "input", "tensor"} {
		if t, ok := v[name].(*tensor); ok {
			return []*tensor{t}, nil
		}
	}
	for _, name := range []string{"inputs", "tensors"} {
		if ts, ok := v[name].([]*tensor); ok {
			return ts, nil
		}
	}
	return nil, fmt.Errorf("%w: no tensor", ir.ErrArg)
}

// collectiveKernel begins collectives of the operands. into returns the tensor that gets the result,
// nil for a new one.
func collectiveKernel(name string, args collectiveArgs, into func(v values, in *tensor) *tensor) eagerFunc {
	return func(v values) ([]*tensor, error) {
		m, err := runningInstance()
		if err != nil {
			return nil, err
		}
		out, err := m.beginAll(lookup(name), args, into, v)
		m.collectives.note(err)
		return out, err
	}
}

func (m *Instance) beginAll(op ir.Op, args collectiveArgs, into func(v values, in *tensor) *tensor, v values) ([]*tensor, error) {
	name := v.text("group_name", "")
	g := m.lib.groups[name]
	if g == nil {
		return nil, fmt.Errorf("%w: the model computes with the ranks of group %q; the groups that were given are %q", ir.ErrArg, name, slices.Sorted(maps.Keys(m.lib.groups)))
	}
	list, err := args(v, g)
	if err != nil {
		return nil, err
	}
	operands, err := v.operands()
	if err != nil {
		return nil, err
	}
	out := make([]*tensor, 0, len(operands))
	for _, in := range operands {
		t, err := m.begin(op, g, list, in, into(v, in))
		if err != nil {
			return all(err, out...)
		}
		out = append(out, t)
	}
	return out, nil
}

// collectives are those that the run in progress of an instance has begun.
type collectives struct {
	ctx context.Context // of the run
	err error           // the first failure
	// underway has those that nobody has waited for, by the memory of their results.
	underway map[*C.lori_storage][]*underway
}

func (c *collectives) note(err error) {
	if c.err == nil {
		c.err = err
	}
}

// underway is a collective between its begin and its wait.
type underway struct {
	request collective.Request
	in, out *tensor // dense
	into    *tensor // gets the elements of out at the end; nil where that is the result itself
}

// runningInstance returns the instance whose run has called the host on this thread.
func runningInstance() (*Instance, error) {
	if m := callingInstance(); m != nil && m.lib.groups != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%w: a collective outside of a model that was given groups", ir.ErrArg)
}

// begin begins a collective and returns a handle to its result.
func (m *Instance) begin(op ir.Op, g collective.Group, args []any, in, into *tensor) (*tensor, error) {
	s, err := shapeOf(in)
	if err != nil {
		return nil, err
	}
	c, group := g.Communicator()
	u := useOf(op, s, append(slices.Clone(args), group))
	u.Line, u.Unagreed = m.lib.model, true
	w := new(underway)
	result, err := w.place(u.Out, in, into)
	if err != nil {
		w.drop()
		return nil, err
	}
	w.request = c.Start(&u, tensorBytes(w.out), tensorBytes(w.in))
	if m.collectives.underway == nil {
		m.collectives.underway = map[*C.lori_storage][]*underway{}
	}
	m.collectives.underway[result.storage] = append(m.collectives.underway[result.storage], w)
	return result, nil
}

// useOf returns the use of a collective of an operand of shape s. What does not fit the op's row panics
// with an *ir.OpError.
func useOf(op ir.Op, s ir.Shape, args []any) collective.Use {
	in := newParams([]ir.Shape{s})
	out := ir.NewConsing(0).Call1(op, append([]any{in[0]}, args...))
	return collective.Of(graph.FromValues("collective", in, []ir.Value{out}))[0]
}

// place sets the memory of the operand and of the result, and returns a handle to the result. The
// caller drops them on an error.
func (w *underway) place(s ir.Shape, in, into *tensor) (result *tensor, err error) {
	if w.in, err = made(func() *tensor { return C.lori_dense(in) }); err != nil {
		return nil, err
	}
	alias := func(t *tensor) (*tensor, error) { return made(func() *tensor { return C.lori_tensor_alias(t) }) }
	switch {
	case into == nil:
		if into, err = newTensor(s); err != nil {
			return nil, err
		}
		w.out = into
		return alias(into)
	case into == in:
		w.out, err = alias(w.in)
	default:
		if got, err := shapeOf(into); err != nil || got != s {
			return nil, errors.Join(err, fmt.Errorf("%w: the result is %v, out is %v", ir.ErrShape, s, got))
		}
		w.out, err = newTensor(s) // the operand may be a part of out
	}
	if err == nil && w.out.storage != into.storage {
		w.into, err = alias(into)
	}
	if err != nil {
		return nil, err
	}
	return alias(into)
}

func (w *underway) drop() {
	for _, t := range []*tensor{w.in, w.out, w.into} {
		if t != nil {
			release(t)
		}
	}
}

// finish waits for the collective and frees what it holds.
func (w *underway) finish(ctx context.Context) error {
	defer w.drop()
	if err := w.request.Wait(ctx); err != nil || w.into == nil {
		return err
	}
	return copyTensor(w.into, w.out)
}

// waitTensors waits for what writes some tensors, and returns them.
func waitTensors(v values) ([]*tensor, error) {
	m, err := runningInstance()
	if err != nil {
		return nil, err
	}
	ts, err := v.operands()
	if err != nil {
		return nil, err
	}
	out := make([]*tensor, 0, len(ts))
	for _, t := range ts {
		if err := m.collectives.wait(t.storage); err != nil {
			return all(err, out...)
		}
		again, err := made(func() *tensor { return C.lori_tensor_alias(t) })
		if err != nil {
			return all(err, out...)
		}
		out = append(out, again)
	}
	return out, nil
}

// wait waits for all that writes into some memory.
func (c *collectives) wait(s *C.lori_storage) error {
	list := c.underway[s]
	delete(c.underway, s)
	var err error
	for _, w := range list {
		err = errors.Join(err, w.finish(c.ctx))
	}
	c.note(err)
	return err
}

// callInGroups runs a model that computes with other processes, with the inputs that were loaded. What
// the run has begun and not waited for ends before its memory goes. Where it fails, ranks that wait for
// this one are told.
func (m *Instance) callInGroups(ctx context.Context) error {
	c := &m.collectives
	c.ctx = ctx
	code := C.lori_instance_run(m.c)
	for s := range c.underway {
		_ = c.wait(s) // noted
	}
	err := c.err
	c.ctx, c.err = nil, nil
	switch {
	case code != C.LORI_OK:
		err = m.failure(err)
	case err != nil:
		C.lori_instance_drop(m.c)
	default:
		return nil
	}
	for _, g := range m.lib.groups {
		c, _ := g.Communicator()
		c.Fail(err)
	}
	return err
}
