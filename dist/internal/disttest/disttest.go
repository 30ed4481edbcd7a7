// Package disttest checks what groups compute, for the tests of engines.
package disttest

import (
	"context"
	"errors"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
)

// rank is one rank of a check.
type rank struct {
	ctx  context.Context
	g    *dist.Group
	m    loris.Maker
	s    *loris.Session
	errs []error
}

// dtypes are those that collectives move; numbers those that they reduce.
var (
	numbers = []loris.DType{loris.F64, loris.F32, loris.F16, loris.BF16, loris.I64, loris.I32, loris.I16, loris.I8, loris.U8}
	dtypes  = append([]loris.DType{loris.Bool, loris.C64, loris.C128, loris.F8E4M3FN, loris.F8E5M2}, numbers...)
)

// Collectives runs every collective on every dtype, on tensors of one and two dimensions, of one element
// and of none, and compares all elements. It is called by all ranks of a group, of any number.
func Collectives(ctx context.Context, g *dist.Group, s *loris.Session) error {
	r := &rank{ctx: ctx, g: g, m: s.With(), s: s}
	n := g.Size()
	for _, d := range dtypes {
		for _, dims := range [][2]int{{2 * n, 3}, {n, 2 * n}, {0, n}, {n, 0}} {
			r.moves(d, dims)
		}
	}
	for _, d := range numbers {
		for _, dims := range [][2]int{{2 * n, 3}, {0, n}} {
			r.reductions(d, dims)
		}
	}
	return errors.Join(r.errs...)
}

// at is the element of a rank at a row and a column: small, so that all dtypes have it and sums of it.
func at(d loris.DType, rank, row, col int) float64 {
	v := (5*row + 3*col + 7*rank) % 4
	if d == loris.Bool {
		return float64(v % 2)
	}
	return float64(v)
}

// matrix is a rank's operand.
func (r *rank) matrix(d loris.DType, rank int, dims [2]int) *loris.Tensor {
	v := make([]float32, 0, dims[0]*dims[1])
	for i := range dims[0] {
		for k := range dims[1] {
			v = append(v, float32(at(d, rank, i, k)))
		}
	}
	return r.m.FromSlice(v, dims[0], dims[1]).Cast(d)
}

// check compares a tensor, whose values are real, with what each of its elements is to be.
func (r *rank) check(what string, x *loris.Tensor, dims [2]int, want func(i, k int) float64) {
	what = fmt.Sprintf("%s of %v", what, x.Shape())
	if got := x.Dims(); len(got) != 2 || got[0] != dims[0] || got[1] != dims[1] {
		r.errs = append(r.errs, fmt.Errorf("%s: want %v", what, dims))
		return
	}
	if d := x.DType(); d == loris.C64 || d == loris.C128 {
		x = x.Real()
	}
	v, err := x.Cast(loris.F32).Float32s(r.ctx)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", what, err))
		return
	}
	for i, got := range v {
		if want := want(i/dims[1], i%dims[1]); float64(got) != want {
			r.errs = append(r.errs, fmt.Errorf("%s: element %d is %v, want %v", what, i, got, want))
			return
		}
	}
}

func (r *rank) moves(d loris.DType, dims [2]int) {
	g, n, me := r.g, r.g.Size(), r.g.Rank()
	x := r.matrix(d, me, dims)
	r.check("barrier", g.Barrier(x), dims, func(i, k int) float64 { return at(d, me, i, k) })
	r.check("broadcast", g.Broadcast(x, n-1), dims, func(i, k int) float64 { return at(d, n-1, i, k) })
	r.check("all_gather 0", g.AllGather(x, 0), [2]int{n * dims[0], dims[1]}, func(i, k int) float64 { return at(d, i/dims[0], i%dims[0], k) })
	r.check("all_gather -1", g.AllGather(x, -1), [2]int{dims[0], n * dims[1]}, func(i, k int) float64 { return at(d, k/dims[1], i, k%dims[1]) })
	if dims[0]%n == 0 {
		rows := dims[0] / n
		r.check("all_to_all 0", g.AllToAll(x, 0), dims, func(i, k int) float64 { return at(d, i/rows, me*rows+i%rows, k) })
	}
	if dims[1]%n == 0 {
		cols := dims[1] / n
		r.check("all_to_all 1", g.AllToAll(x, 1), dims, func(i, k int) float64 { return at(d, k/cols, i, me*cols+k%cols) })
	}
	if n > 1 { // the first and the last rank, which are no neighbours, exchange
		switch me {
		case 0:
			sent := g.Send(x, n-1, 3)
			r.check("recv", g.Recv(sent, n-1, 4, d, dims[0], dims[1]), dims, func(i, k int) float64 { return at(d, n-1, i, k) })
		case n - 1:
			got := g.Recv(r.m.Zeros(), 0, 3, d, dims[0], dims[1])
			sent := g.Send(x, 0, 4).Keep()
			r.check("recv", got, dims, func(i, k int) float64 { return at(d, 0, i, k) })
			if _, err := sent.Item(r.ctx); err != nil {
				r.errs = append(r.errs, err)
			}
		}
	}
}

func (r *rank) reductions(d loris.DType, dims [2]int) {
	g, n, me := r.g, r.g.Size(), r.g.Rank()
	x := r.matrix(d, me, dims)
	over := func(how dist.Reduction, i, k int) float64 {
		v := at(d, 0, i, k)
		for q := 1; q < n; q++ {
			switch y := at(d, q, i, k); how {
			case dist.Max:
				v = max(v, y)
			case dist.Min:
				v = min(v, y)
			default:
				v += y
			}
		}
		return v
	}
	for _, how := range []dist.Reduction{dist.Sum, dist.Max, dist.Min} {
		r.check("all_reduce "+string(how), g.AllReduce(x, how), dims, func(i, k int) float64 { return over(how, i, k) })
		if rows := dims[0] / n; dims[0]%n == 0 {
			r.check("reduce_scatter "+string(how), g.ReduceScatter(x, how, 0), [2]int{rows, dims[1]}, func(i, k int) float64 { return over(how, me*rows+i, k) })
		}
		if cols := dims[1] / n; dims[1]%n == 0 {
			r.check("reduce_scatter 1 "+string(how), g.ReduceScatter(x, how, -1), [2]int{dims[0], cols}, func(i, k int) float64 { return over(how, i, me*cols+k) })
		}
	}
	if d.IsFloat() {
		same := r.matrix(d, 1, dims) // on all ranks, so that the mean is exact
		r.check("mean", g.AllReduce(same, dist.Mean), dims, func(i, k int) float64 { return at(d, 1, i, k) })
	}
}
