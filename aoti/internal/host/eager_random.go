//go:build linux && cgo

package host

/*
#include "tensor.h"
*/
import "C"

import (
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// randomKernels are the ops that draw numbers.
var randomKernels = map[string]eagerFunc{
	"rand":       func(v values) ([]*tensor, error) { return drawn(v, nil, uniform01) },
	"randn":      func(v values) ([]*tensor, error) { return drawn(v, nil, normal01) },
	"rand_like":  func(v values) ([]*tensor, error) { return drawnLike(v, uniform01) },
	"randn_like": func(v values) ([]*tensor, error) { return drawnLike(v, normal01) },
	"randint": func(v values) ([]*tensor, error) {
		if out, ok := v["out"].(*tensor); ok {
			v["dtype"] = dtypeOf(out)
		}
		fn, err := integers(v)
		if err != nil {
			return nil, err
		}
		if !v.has("dtype") {
			v["dtype"] = ir.I64
		}
		return drawn(v, nil, fn)
	},
	"randint_like": func(v values) ([]*tensor, error) {
		fn, err := integers(v)
		if err != nil {
			return nil, err
		}
		return drawnLike(v, fn)
	},
	"randperm": func(v values) ([]*tensor, error) {
		n := v.int("n", 0)
		if n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("%w: randperm of %d", ir.ErrArg, n)
		}
		a := array[int64]{make([]int64, n), []int{n}}
		for i := range a.data {
			a.data[i] = int64(i)
		}
		rng.mu.Lock()
		for i := range max(n-1, 0) {
			k := i + int(rng.uint32()%uint32(n-i))
			a.data[i], a.data[k] = a.data[k], a.data[i]
		}
		rng.mu.Unlock()
		return one(save(a, v.dtype(ir.I64)))
	},
	"uniform_": func(v values) ([]*tensor, error) {
		from, to := v.float("from", 0), v.float("to", 1)
		return drawnLike(v, draw{floats: func(x []float64, wide bool) { rng.uniforms(x, from, to, wide) }})
	},
	"normal_": func(v values) ([]*tensor, error) {
		mean, std := v.float("mean", 0), v.float("std", 1)
		return drawnLike(v, draw{floats: func(x []float64, wide bool) { rng.normals(x, mean, std, wide) }})
	},
	"exponential": func(v values) ([]*tensor, error) {
		rate := v.float("lambd", 1)
		return drawnLike(v, draw{floats: func(x []float64, _ bool) {
			for i := range x {
				x[i] = -math.Log1p(-rng.double()) / rate
			}
		}})
	},
	"bernoulli_":     bernoulli,
	"native_dropout": dropout,
}

// draw fills numbers, by one of the two; wide says that they are for float64.
type draw struct {
	floats func(x []float64, wide bool)
	ints   func(x []int64)
}

var (
	uniform01 = draw{floats: func(x []float64, wide bool) { rng.uniforms(x, 0, 1, wide) }}
	normal01  = draw{floats: func(x []float64, wide bool) { rng.normals(x, 0, 1, wide) }}
)

func integers(v values) (draw, error) {
	low, high := int64(v.int("low", 0)), int64(v.int("high", 0))
	if low >= high {
		return draw{}, fmt.Errorf("%w: integers from %d to below %d", ir.ErrArg, low, high)
	}
	span := uint64(high) - uint64(low)
	return draw{ints: func(x []int64) {
		for i := range x {
			x[i] = rng.int(low, span)
		}
	}}, nil
}

// drawn makes a tensor of the given or v's size and fills it.
func drawn(v values, strides []int64, fn draw) ([]*tensor, error) {
	size := v.ints("size")
	dims := make([]int, len(size))
	for i, n := range size {
		dims[i] = int(n)
	}
	s, err := ir.NewShape(v.dtype(ir.F32), dims)
	if err != nil {
		return nil, err
	}
	t, err := newStrided(s, strides)
	if err != nil {
		return nil, err
	}
	return all(fillMemory(t, fn), t)
}

// drawnLike makes a tensor of the size and strides of self and fills it.
func drawnLike(v values, fn draw) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	v = values{"size": sizesOf(t), "dtype": v.dtype(dtypeOf(t))}
	return drawn(v, denseLike(t), fn)
}

// fillMemory fills a tensor without gaps in the order of its memory, as PyTorch
// does.
func fillMemory(t *tensor, fn draw) error {
	n := int(t.numel)
	flat, err := viewOf(t, []int64{int64(n)}, []int64{1}, 0, int32(t.dtype))
	if err != nil {
		return err
	}
	defer release(flat)
	rng.mu.Lock()
	defer rng.mu.Unlock()
	if fn.ints != nil {
		a := array[int64]{make([]int64, n), []int{n}}
		fn.ints(a.data)
		return storeAll(flat, a)
	}
	a := array[float64]{make([]float64, n), []int{n}}
	fn.floats(a.data, t.dtype == C.LORI_F64)
	return storeAll(flat, a)
}

// storeAll copies an array to a tensor of its size.
func storeAll[T number](to *tensor, a array[T]) error {
	src, err := save(a, widest[T]())
	if err != nil {
		return err
	}
	defer release(src)
	return copyTensor(to, src)
}

// coins draws n bools that are true with probability p. The lock is the caller's.
func coins(n int, p float64) array[int64] {
	a := array[int64]{make([]int64, n), []int{n}}
	for i := range a.data {
		if rng.double() < p {
			a.data[i] = 1
		}
	}
	return a
}

// bernoulli fills self in place with ones of the probability p, a number or a
// tensor.
func bernoulli(v values) ([]*tensor, error) {
	t, err := v.tensor("self")
	if err != nil {
		return nil, err
	}
	var a array[int64]
	if pt, ok := v["p"].(*tensor); ok {
		s, err := shapeOf(t)
		if err != nil {
			return nil, err
		}
		ps, err := expanded[float64](pt, s.Dims())
		if err != nil {
			return nil, err
		}
		a = array[int64]{make([]int64, len(ps.data)), ps.dims}
		single := dtypeOf(pt) != ir.F64
		rng.mu.Lock()
		for i, p := range ps.data {
			if single && float64(rng.single()) < p || !single && rng.double() < p {
				a.data[i] = 1
			}
		}
		rng.mu.Unlock()
	} else {
		rng.mu.Lock()
		a = coins(int(t.numel), v.float("p", 0.5))
		rng.mu.Unlock()
		s, err := shapeOf(t)
		if err != nil {
			return nil, err
		}
		a.dims = s.Dims()
	}
	return nil, storeAll(t, a)
}

// dropout returns the input with a part of it zero and the rest scaled up, and
// which part was kept.
func dropout(v values) ([]*tensor, error) {
	t, err := v.tensor("input")
	if err != nil {
		return nil, err
	}
	s, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	p := v.float("p", 0.5)
	mask, err := newStrided(s.WithDType(ir.Bool), denseLike(t))
	if err != nil {
		return nil, err
	}
	out, err := cloneOf(t)
	if err != nil {
		release(mask)
		return nil, err
	}
	if p == 0 || t.numel == 0 || !v.bool("train", true) {
		return all(fill(mask, 1), out, mask)
	}
	return all(dropped(out, mask, p), out, mask)
}

func dropped(out, mask *tensor, p float64) error {
	n := int64(out.numel)
	rng.mu.Lock()
	keep := coins(int(n), 1-p)
	rng.mu.Unlock()
	flat := func(t *tensor) (*tensor, error) { return viewOf(t, []int64{n}, []int64{1}, 0, int32(t.dtype)) }
	m, err := flat(mask)
	if err != nil {
		return err
	}
	defer release(m)
	x, err := flat(out)
	if err != nil {
		return err
	}
	defer release(x)
	if err := storeAll(m, keep); err != nil {
		return err
	}
	a, err := load[float64](x)
	if err != nil {
		return err
	}
	scale := 0.0
	if p < 1 {
		scale = 1 / (1 - p)
	}
	if dtypeOf(out) != ir.F64 {
		scale = float64(float32(scale))
	}
	for i, k := range keep.data {
		a.data[i] *= float64(k) * scale
	}
	return storeAll(x, a)
}
