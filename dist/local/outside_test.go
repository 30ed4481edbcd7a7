package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
)

// TestTwoGroups has each rank of six in a row and in a column of a grid, and in a group within its row: one
// step has collectives of all of them.
func TestTwoGroups(t *testing.T) {
	err := run(t, 6, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
		r := g.Rank()
		row, err := g.Split(ctx, r/3, r) // 0 1 2, 3 4 5
		if err != nil {
			return err
		}
		col, err := g.Split(ctx, r%3, -r) // 3 0, 4 1, 5 2
		if err != nil {
			return err
		}
		nested, err := row.Split(ctx, min(row.Rank(), 1), 0) // 0, 1 2, 3, 4 5
		if err != nil {
			return err
		}
		x := m.Full(float64(r), 2)
		inRow, inCol := row.AllReduce(x, dist.Sum), col.AllGather(x, 0)
		inNested := nested.AllReduce(col.Broadcast(x, 0).Add(inRow), dist.Max)
		all := g.AllReduce(inNested, dist.Sum)
		first := r / 3 * 3
		want := []float32{float32(3*first + 3), float32(r%3 + 3), float32(r % 3), 0}
		for k := range 6 { // what each rank has in its nested group, of which 1 and 2 of a row are one
			last := []int{0, 2, 2}[k%3]
			want[3] += float32(last+3) + float32(3*(k/3*3)+3) // the broadcast is of the column's second row, ranks 3 to 5
		}
		for i, x := range []*loris.Tensor{inRow.Narrow(0, 0, 1), inCol.Narrow(0, 0, 1), inCol.Narrow(0, 2, 1), all.Narrow(0, 0, 1)} {
			v, err := x.Float32s(ctx)
			if err != nil {
				return err
			}
			if v[0] != want[i] {
				return fmt.Errorf("rank %d: value %d is %v, want %v", r, i, v[0], want[i])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestInBodies has collectives in functions that are compiled and replayed, and where they cannot be: in what
// is computed again for a gradient, and in loops, whose errors say so.
func TestInBodies(t *testing.T) {
	err := run(t, 3, func(ctx context.Context, g *dist.Group, m loris.Maker, s *loris.Session) error {
		w := loris.NewVariable(m.Ones(4))
		step := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
			y := in[0].Mul(w.Value())
			loss := g.AllReduce(y, dist.Sum).Sum()
			grad := loris.Grad(loss, w)[0]
			w.Assign(w.Value().Sub(grad.Mul(0.5)))
			return []*loris.Tensor{loss}
		})
		for k := range 3 {
			out, err := step.Call(ctx, m.Full(float64(g.Rank()), 4))
			if err != nil {
				return err
			}
			if _, err := out[0].Item(ctx); err != nil {
				return fmt.Errorf("call %d: %w", k, err)
			}
		}
		v, err := w.Value().Float32s(ctx)
		if err != nil {
			return err
		}
		if want := 1 - 4.5*float32(g.Rank()); v[0] != want { // all ranks' losses have rank's operand: 3 times
			return fmt.Errorf("the weight of rank %d is %v, want %v", g.Rank(), v[0], want)
		}
		x := m.Ones(2, 4)
		for name, f := range map[string]func(){
			"Scan": func() {
				loris.Scan(func(carry, x []*loris.Tensor) (next, results []*loris.Tensor) {
					return []*loris.Tensor{g.AllReduce(carry[0].Add(x[0]), dist.Sum)}, nil
				}, []*loris.Tensor{m.Zeros(4)}, []*loris.Tensor{x})
			},
			"Checkpoint": func() {
				loris.Checkpoint(func(in ...*loris.Tensor) []*loris.Tensor {
					return []*loris.Tensor{g.AllReduce(in[0], dist.Sum)}
				}, x)
			},
		} {
			err := loris.Try(f)
			if e := (*loris.OpError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "all_reduce") {
				return fmt.Errorf("in %s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRefusedDTypes has reductions of what has no order or no sum.
func TestRefusedDTypes(t *testing.T) {
	err := run(t, 2, func(ctx context.Context, g *dist.Group, m loris.Maker, _ *loris.Session) error {
		x := m.Ones(4)
		for _, d := range []loris.DType{loris.Bool, loris.C64, loris.C128, loris.F8E4M3FN} {
			for _, how := range []dist.Reduction{dist.Sum, dist.Max, dist.Mean} {
				for name, f := range map[string]func(){
					"all_reduce":     func() { g.AllReduce(x.Cast(d), how) },
					"reduce_scatter": func() { g.ReduceScatter(x.Cast(d), how, 0) },
				} {
					err := loris.Try(f)
					if e := (*loris.OpError)(nil); !errors.As(err, &e) || !errors.Is(err, loris.ErrDType) || !strings.Contains(err.Error(), name) {
						return fmt.Errorf("%s of %v, %s: %v", name, d, how, err)
					}
				}
			}
		}
		for name, f := range map[string]func(){
			"median":         func() { g.AllReduce(x, "median") },
			"i64":            func() { g.AllReduce(x.Cast(loris.I64), dist.Mean) },
			"dimension":      func() { g.AllGather(x, 3) },
			"all_gather":     func() { g.AllGather(m.Zeros(), 0) },
			"reduce_scatter": func() { g.ReduceScatter(m.Ones(5), dist.Sum, 0) },
			"all_to_all":     func() { g.AllToAll(m.Ones(3, 2), 0) },
			"rank 2":         func() { g.Broadcast(x, 2) },
			"rank -1":        func() { g.Send(x, -1, 0) },
		} {
			err := loris.Try(f)
			if e := (*loris.OpError)(nil); !errors.As(err, &e) {
				return fmt.Errorf("%s: %v", name, err)
			}
			if g.Rank() == 0 {
				t.Logf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
