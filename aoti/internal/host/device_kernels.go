//go:build linux && cgo

package host

/*
#include "device.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/ir"
)

// forDevices reports whether models for devices other than the CPU may call a function: one
// for CUDA or for all.
func forDevices(symbol string) bool { return !strings.HasPrefix(symbol, shimPrefix+"cpu_") }

func deviceResize(p *streamContext, c call) error {
	return p.resize(c.tensor(0), c.ints(1), memoryFormat(c, 3))
}

func deviceResizeAs(p *streamContext, c call) error {
	return p.resize(c.tensor(0), slices.Clone(sizesOf(c.tensor(1))), memoryFormat(c, 2))
}

func deviceSet(p *streamContext, c call) error {
	return p.guarded(func() C.lori_error { return C.lori_tensor_assign(c.tensor(0), c.tensor(1)) })
}

// deviceProgram runs an op's Program on the device.
func deviceProgram(fn decomposeFunc) deviceFunc {
	return func(p *streamContext, c call) error {
		return c.evaluate(fn, func(r *decomposition) ([]*tensor, error) {
			outs, err := p.run(r, r.into...)
			r.into = nil // the device wrote them
			return outs, err
		})
	}
}

// deliverAll copies results into the tensors of the caller that they are for, and hands the
// others out as new handles, where the decomposition says; what is not among them is undefined. It
// takes outs over.
func (c call) deliverAll(r *decomposition, outs []*tensor) error {
	for i, to := range r.into {
		if to == nil {
			continue
		}
		if err := copyTensor(to, outs[i]); err != nil {
			return errors.Join(err, discard(outs))
		}
	}
	byResult := outs
	if r.places != nil {
		byResult = make([]*tensor, slices.Max(append([]int{-1}, r.places...))+1)
		for i, t := range outs {
			byResult[r.places[i]] = t
		}
	}
	result, number := 0, 0
	for i, p := range c.sig.params {
		switch p.kind {
		case kindOut:
			var t *tensor
			if result < len(byResult) {
				t, byResult[result] = byResult[result], nil
			}
			if result++; c.args[i] == 0 {
				if t != nil {
					release(t)
				}
				continue
			}
			if t == nil {
				var err error
				if t, err = newUndefined(); err != nil {
					return err
				}
			}
			c.give(i, t)
		case kindOutInt:
			if number < len(r.numbers) && c.args[i] != 0 {
				*(*int64)(c.pointer(i)) = r.numbers[number]
			}
			number++
		}
	}
	for _, t := range byResult {
		if t != nil {
			release(t)
		}
	}
	return nil
}

// read copies i64 numbers of the device, for which it waits.
func (p *streamContext) read(t *tensor) ([]int64, error) {
	h, err := p.made(func() *tensor { return C.lori_device_host(t) })
	if err != nil {
		return nil, err
	}
	defer release(h)
	return slices.Clone(elements[int64](h)), nil
}

// resize is resizeTensor on the device: memory that is too small is replaced.
func (p *streamContext) resize(t *tensor, sizes []int64, format int32) error {
	strides, err := resizedStrides(sizes, format)
	if err != nil {
		return err
	}
	last := int64(0)
	for i, n := range sizes {
		if n < 0 {
			return fmt.Errorf("%w: size %d", ir.ErrShape, n)
		}
		last += (n - 1) * strides[i]
	}
	need := (int64(t.offset) + last + 1) * int64(dtypeSize(int32(t.dtype)))
	if slices.Contains(sizes, 0) || need <= int64(t.storage.nbytes) {
		at := func(a []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(a))) }
		return p.guarded(func() C.lori_error { return C.lori_tensor_resize(t, C.int64_t(len(sizes)), at(sizes), at(strides)) })
	}
	s, err := ir.NewShape(dtypeOf(t), intsOf(sizes))
	if err != nil {
		return err
	}
	grown, err := p.empty(s, strides)
	if err != nil {
		return err
	}
	defer release(grown)
	had := t.storage.nbytes - t.offset*C.int64_t(dtypeSize(int32(t.dtype)))
	if had > 0 {
		err = p.guarded(func() C.lori_error {
			return C.lori_device_move(C.lori_tensor_data(grown), true, C.lori_tensor_data(t), true, had)
		})
	}
	if err != nil {
		return err
	}
	return p.guarded(func() C.lori_error { return C.lori_tensor_assign(t, grown) })
}

// reshape is a view if one can say it, else of a copy.
func (p *streamContext) reshape(c call) error {
	t := c.tensor(0)
	sizes, err := fillIn(c.ints(1), int64(t.numel))
	if err != nil {
		return err
	}
	if strides, ok := reshapedStrides(t, sizes); ok {
		v, err := viewOf(t, sizes, strides, 0, int32(t.dtype))
		if err == nil {
			c.give(3, v)
		}
		return err
	}
	s, err := shapeOf(t)
	if err != nil {
		return fmt.Errorf("%w: %w", backend.ErrUnsupported, err)
	}
	dense, err := p.empty(s, rowMajor(int64s(s.Dims())))
	if err != nil {
		return err
	}
	defer release(dense)
	if err := p.copied(dense, t); err != nil {
		return err
	}
	v, err := viewOf(dense, sizes, rowMajor(sizes), 0, int32(t.dtype))
	if err == nil {
		c.give(3, v)
	}
	return err
}

// reshapedStrides returns the strides of a view of t with other sizes, if there is
// one.
func reshapedStrides(t *tensor, sizes []int64) ([]int64, bool) {
	if t.numel == 0 {
		return rowMajor(sizes), true
	}
	from, strides := sizesOf(t), stridesOf(t)
	out := make([]int64, len(sizes))
	d := len(sizes) - 1
	for i := len(from) - 1; i >= 0; {
		// A run of dimensions that lie in a row in memory.
		n, step := from[i], strides[i]
		next := step * n
		for i--; i >= 0 && (from[i] == 1 || strides[i] == next || n == 1); i-- {
			if n == 1 {
				step = strides[i]
			}
			if from[i] != 1 {
				n *= from[i]
				next = step * n
			}
		}
		for n > 1 || d >= 0 && sizes[d] == 1 {
			if d < 0 || n%sizes[d] != 0 {
				return nil, false
			}
			out[d] = step
			step *= sizes[d]
			n /= sizes[d]
			d--
		}
	}
	for ; d >= 0; d-- { // those left over are of size 1
		out[d] = 1
	}
	return out, true
}

// nonzero lists where a tensor is not zero. How many there are is read back.
func (p *streamContext) nonzero(c call) error {
	t := c.tensor(0)
	if dtypeOf(t).IsComplex() || t.numel == 0 {
		return errNoDecomposition
	}
	n := int(t.numel)
	outs, err := p.run(&decomposition{what: []byte("nonzero"), in: []*tensor{t}, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		count := do(b, "count_nonzero", in[0], nil)
		rows := b.Call1(lookup("nonzero_static"), []any{in[0]}, ir.A("size", n), ir.A("fill_value", 0))
		return []ir.Value{count, b.Transpose(rows, 0, 1)}
	}})
	if err != nil {
		return err
	}
	defer func() { _ = discard(outs) }()
	count, err := p.read(outs[0])
	if err != nil {
		return err
	}
	// As PyTorch's, its columns lie in a row each.
	out, err := p.empty(ir.MakeShape(ir.I64, int(count[0]), int(t.ndim)), []int64{1, max(count[0], 1)})
	if err != nil {
		return err
	}
	for d := range int64(t.ndim) {
		to, e := viewOf(out, []int64{count[0]}, []int64{1}, d*max(count[0], 1), int32(out.dtype))
		if e != nil || count[0] == 0 {
			if err = e; e == nil {
				release(to)
			}
			break
		}
		from, e := viewOf(outs[1], []int64{count[0]}, []int64{1}, d*int64(n), int32(out.dtype))
		if e == nil {
			e = copyTensor(to, from)
			release(from)
		}
		release(to)
		if err = e; err != nil {
			break
		}
	}
	if err != nil {
		release(out)
		return err
	}
	c.give(1, out)
	return nil
}

// maskedSelect returns the elements where the mask holds. How many there are is
// read back.
func (p *streamContext) maskedSelect(c call) error {
	x, m := c.tensor(0), c.tensor(1)
	outs, err := p.run(&decomposition{what: []byte("masked_select"), in: []*tensor{x, m}, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		dims := b.Call1(aten.LogicalAnd, []any{in[0], in[1]}).Shape().Dims()
		mask, all := b.Expand(in[1], dims...), b.Expand(in[0], dims...)
		return []ir.Value{do(b, "count_nonzero", mask, nil), do(b, "masked_scatter_backward", all, mask, []int{product(dims)})}
	}})
	if err != nil {
		return err
	}
	defer func() { _ = discard(outs) }()
	count, err := p.read(outs[0])
	if err != nil {
		return err
	}
	return p.giveFront(c, 2, outs[1], count[0])
}

// giveFront hands out a copy of the first n elements of a vector.
func (p *streamContext) giveFront(c call, ret int, from *tensor, n int64) error {
	part, err := viewOf(from, []int64{n}, []int64{1}, 0, int32(from.dtype))
	if err != nil {
		return err
	}
	defer release(part)
	out, err := p.empty(ir.MakeShape(dtypeOf(from), int(n)), []int64{1})
	if err != nil {
		return err
	}
	if err := copyTensor(out, part); err != nil {
		release(out)
		return err
	}
	c.give(ret, out)
	return nil
}

// repeatInterleave names each position as often as it is to be repeated. The sum is
// read back unless it is given.
func (p *streamContext) repeatInterleave(c call) error {
	t := c.tensor(0)
	if t.ndim != 1 || t.numel == 0 {
		return errNoDecomposition
	}
	n, given := c.optInt(1)
	if !given {
		outs, err := p.run(&decomposition{what: []byte("sum"), in: []*tensor{t}, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{b.Sum(b.Cast(in[0], ir.I64), []int{0}, false)}
		}})
		if err != nil {
			return err
		}
		sum, err := p.read(outs[0])
		if _ = discard(outs); err != nil {
			return err
		}
		n = int(sum[0])
	}
	if n < 0 {
		return fmt.Errorf("%w: %d repeats", ir.ErrArg, n)
	}
	outs, err := p.run(&decomposition{what: fmt.Append(nil, "repeat_interleave ", n), in: []*tensor{t}, build: func(b *ir.Builder, in []ir.Value) []ir.Value {
		ends := b.Cumsum(b.Cast(in[0], ir.I64), 0)
		return []ir.Value{b.Cast(behind(b, ends, b.Iota(n, ir.I64)), in[0].DType())}
	}})
	if err != nil {
		return err
	}
	c.give(2, outs[0])
	return nil
}
