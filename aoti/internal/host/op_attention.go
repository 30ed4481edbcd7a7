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
	"github.com/loris-ml/loris/internal/kernels/attention"
	"github.com/loris-ml/loris/internal/kernels/vec"
	"github.com/loris-ml/loris/internal/scalartype"
)

func flashAttentionForCPU(c call) error {
	// query key value dropout_p is_causal attn_mask scale ret0 ret1
	a := attend{q: c.tensor(0), k: c.tensor(1), v: c.tensor(2), causal: c.bool(4), mask: c.tensor(5)}
	if p := c.float(3); p != 0 {
		return fmt.Errorf("%w: dropout of %v inside attention", errUnimplemented, p)
	}
	a.scale, a.scaled = c.optFloat(6)
	if err := a.run(); err != nil {
		return err
	}
	c.give(7, a.out)
	c.give(8, a.lse)
	return nil
}

// attend is one call of scaled dot-product attention.
type attend struct {
	q, k, v, mask *tensor
	causal        bool
	scale         float64
	scaled        bool // scale was given
	out, lse      *tensor
}

func (a *attend) run() error {
	if err := sameDTypes(a.q, a.k, a.v); err != nil {
		return err
	}
	if a.q.ndim != 4 || a.k.ndim != 4 || a.v.ndim != 4 {
		return fmt.Errorf("%w: attention of %d, %d and %d dimensions", ir.ErrShape, a.q.ndim, a.k.ndim, a.v.ndim)
	}
	switch a.q.dtype {
	case C.LORI_F32:
		return attendTo[float32, float32](a, ir.F32)
	case C.LORI_F64:
		return attendTo[float64, float64](a, ir.F64)
	case C.LORI_BF16:
		return attendTo[vec.BF16, float32](a, ir.F32)
	case C.LORI_F16:
		return attendTo[vec.F16, float32](a, ir.F32)
	}
	return fmt.Errorf("%w: attention of PyTorch's %d", ir.ErrDType, a.q.dtype)
}

func operand[T any](t *tensor) attention.Tensor[T] {
	o := attention.Tensor[T]{Data: elements[T](t)}
	for i, s := range stridesOf(t) {
		o.Strides[i] = int(s)
	}
	return o
}

func attendTo[T attention.Element, A attention.Float](a *attend, sum ir.DType) error {
	qs, ks, vs := sizesOf(a.q), sizesOf(a.k), sizesOf(a.v)
	c := attention.Call[T, A]{
		Batch: int(qs[0]), Heads: int(qs[1]), KVHeads: int(ks[1]), Queries: int(qs[2]), Keys: int(ks[2]),
		Dim: int(qs[3]), ValueDim: int(vs[3]), Causal: a.causal, Scale: a.scale,
		Q: operand[T](a.q), K: operand[T](a.k), V: operand[T](a.v),
	}
	if ks[0] != qs[0] || vs[0] != qs[0] || ks[1] != vs[1] || ks[1] == 0 || qs[1]%ks[1] != 0 || ks[2] != vs[2] || ks[3] != qs[3] || vs[3] != qs[3] {
		return fmt.Errorf("%w: attention of %v, %v and %v", ir.ErrShape, qs, ks, vs)
	}
	if !a.scaled {
		c.Scale = 1 / math.Sqrt(float64(c.Dim))
	}
	free, err := bindMask(&c, a)
	if err != nil {
		return err
	}
	defer free()
	s, err := shapeOf(a.q)
	if err != nil {
		return err
	}
	if a.out, err = newStrided(s, denseLike(a.q)); err != nil {
		return err
	}
	h, l := int64(c.Heads), int64(c.Queries)
	if a.lse, err = newStrided(ir.MakeShape(sum, c.Batch, c.Heads, c.Queries), []int64{h * l, 1, h}); err != nil {
		release(a.out)
		return err
	}
	c.Out = operand[T](a.out)
	c.LogSumExp, c.LogSumExpStrides = elements[A](a.lse), [3]int{c.Heads * c.Queries, 1, c.Heads}
	c.Run()
	return nil
}

// bindMask sets the mask of a call: bools say what takes part, numbers are added.
// It may have two or four dimensions, and broadcasts.
func bindMask[T attention.Element, A attention.Float](c *attention.Call[T, A], a *attend) (free func(), err error) {
	free = func() {}
	m := a.mask
	if m == nil || m.storage == nil {
		return free, nil
	}
	sizes, strides := sizesOf(m), stridesOf(m)
	want := [4]int64{int64(c.Batch), int64(c.Heads), int64(c.Queries), int64(c.Keys)}
	var steps [4]int
	for i := range sizes {
		d := 4 - len(sizes) + i
		if d < 0 || sizes[i] != want[d] && sizes[i] != 1 {
			return free, fmt.Errorf("%w: a mask %v for scores %v", ir.ErrShape, sizes, want)
		}
		if sizes[i] != 1 {
			steps[d] = int(strides[i])
		}
	}
	if m.dtype == C.LORI_BOOL {
		c.Keep = attention.Tensor[uint8]{Data: elements[uint8](m), Strides: steps}
		return free, nil
	}
	if m.dtype != a.q.dtype {
		s, err := shapeOf(m)
		if err != nil {
			return free, err
		}
		d, err := scalartype.DType(int32(a.q.dtype))
		if err != nil {
			return free, err
		}
		same, err := newStrided(s.WithDType(d), denseLike(m))
		if err != nil {
			return free, err
		}
		free = func() { release(same) }
		if err := copyTensor(same, m); err != nil {
			free()
			return free, err
		}
		m = same
		for i, n := range sizes {
			if n != 1 {
				steps[4-len(sizes)+i] = int(stridesOf(m)[i])
			}
		}
	}
	c.Mask = attention.Tensor[T]{Data: elements[T](m), Strides: steps}
	return free, nil
}
