package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/local"
)

// TestTable reads what jobs print, beside words of their libraries, and writes the table.
func TestTable(t *testing.T) {
	m := measured{}
	for _, out := range []string{"hello\nresult all_reduce/8 step 3.5 2\nresult all_reduce/1024 step 30 20\n", "result all_reduce/8 step 2.5 1\n", "result all_reduce/8 step 9 3\n"} {
		if err := m.read("A", out); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.read("B", "result all_reduce/8 - 250 99.5\n"); err != nil {
		t.Fatal(err)
	}
	if err := m.read("B", "nothing\n"); err == nil {
		t.Error("a job without results is no error")
	}
	var got bytes.Buffer
	m.print(&got, "all_reduce", "bytes")
	want := "| bytes, µs | A, step | B |\n|---|---|---|\n| 8 | 3.50 (1.00) | 250 (99.5) |\n| 1024 | 30.0 (20.0) | |\n\n"
	if got.String() != want {
		t.Errorf("the table is\n%swant\n%s", got.String(), want)
	}
}

// TestDivided trains each network on one rank, on two that divide its batch, and the update as well: what is measured is the same
// work.
func TestDivided(t *testing.T) {
	for name, build := range nets {
		losses := func(ranks int, divided bool) float64 {
			var out float64
			err := local.Run(t.Context(), ranks, func(ctx context.Context, g *dist.Group) error {
				s, err := g.Session()
				if err != nil {
					return err
				}
				defer s.Close(context.WithoutCancel(ctx))
				n := build(s.With())
				step := trainer(ctx, g, s, n, divided)
				for range 2 {
					if err := step(); err != nil {
						return err
					}
				}
				v, err := n.loss(0, n.batch).Float32s(ctx)
				if err == nil && g.Rank() == 0 {
					out = float64(v[0])
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		one := losses(1, false)
		for _, divided := range []bool{false, true} {
			if two := losses(2, divided); math.Abs(one-two) > 1e-4*math.Abs(one) || one == 0 {
				t.Errorf("%s, update divided %v: the loss is %v on one rank and %v on two", name, divided, one, two)
			}
		}
	}
}

// TestMeasure runs something as often as it says, and divides by its parts.
func TestMeasure(t *testing.T) {
	runs := 0
	if err := measure(io.Discard, "x", "-", 3, 5, 2, func() error { runs++; return nil }); err != nil || runs != 8 {
		t.Errorf("%d runs, %v", runs, err)
	}
	if err := measure(io.Discard, "x", "-", 1, 1, 1, func() error { return loris.ErrArg }); err == nil {
		t.Error("a failure is no error")
	}
}
