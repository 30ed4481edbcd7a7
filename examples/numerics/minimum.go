package main

import (
	"context"

	"github.com/loris-ml/loris"
)

// minimum takes Newton steps, whose directions conjugate gradients find: a product with the Hessian is
// the gradient of the gradient's product with a vector, so no matrix is made.
func minimum(ctx context.Context, m loris.Maker, n int) (gradient float64, products int, err error) {
	value := func(x *loris.Tensor) *loris.Tensor {
		a, b := x.Narrow(0, 0, n-1), x.Narrow(0, 1, n-1)
		return b.Sub(a.Square()).Square().Mul(100).Add(a.Sub(1).Square()).Sum()
	}
	slope := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		g := loris.Grad(value(in[0]), in[0])[0]
		return tensors{g.Neg(), g.Abs().Amax()}
	})
	// One step of conjugate gradients: direction so far, residual, search direction.
	step := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		x, d, r, p := in[0], in[1], in[2], in[3]
		hp := loris.Grad(loris.Grad(value(x), x)[0].Mul(p).Sum(), x)[0]
		rr := r.Square().Sum()
		alpha := rr.Div(p.Mul(hp).Sum())
		next := r.Sub(hp.Mul(alpha))
		return tensors{d.Add(p.Mul(alpha)), next, next.Add(p.Mul(next.Square().Sum().Div(rr))), next.Abs().Amax()}
	})
	x := m.Full(1.2, n)
	for range 50 {
		out, err := slope.Call(ctx, x)
		if err != nil {
			return 0, 0, err
		}
		if gradient, err = out[1].Item(ctx); err != nil || gradient < 1e-10 {
			return gradient, products, err
		}
		d, r, p, left := m.Zeros(n), out[0], out[0], gradient
		for ; left > 1e-3*gradient; products++ {
			if out, err = step.Call(ctx, x, d, r, p); err != nil {
				return 0, 0, err
			}
			d, r, p = out[0], out[1], out[2]
			if left, err = out[3].Item(ctx); err != nil {
				return 0, 0, err
			}
		}
		x = x.Add(d)
	}
	return gradient, products, nil
}
