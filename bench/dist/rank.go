package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	_ "github.com/loris-ml/loris/dist/mpi"
)

// sizes are those of the all-reduces in bytes.
var sizes = []int{8, 1 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20}

// runsOf is how often something of so many bytes is run before it is measured, and then measured.
func runsOf(bytes int) (warm, n int) {
	switch {
	case bytes <= 1<<10:
		return 300, 2000
	case bytes <= 1<<20:
		return 20, 100
	}
	return 3, 8
}

// forms are how many all-reduces a step has.
var forms = []struct {
	name  string
	chain int
}{{"step", 1}, {"chain", 20}}

// runRank is the main function of a rank of Loris.
func runRank(ctx context.Context, s settings, w io.Writer) error {
	opts := []dist.Option{dist.WithLimit(time.Minute)}
	if s.library {
		opts = append(opts, dist.WithLibrarySums())
	}
	g, err := dist.Init(ctx, opts...)
	if err != nil {
		return err
	}
	session, err := g.Session(loris.WithThreads(s.threads))
	if err != nil {
		return err
	}
	if g.Rank() > 0 {
		w = io.Discard
	}
	if s.trains {
		err = training(ctx, g, session, w)
	} else {
		err = reducing(ctx, g, session, w)
	}
	if err != nil {
		return err
	}
	if s.report && g.Rank() == 0 {
		fmt.Fprint(os.Stderr, session.Report())
	}
	return g.Close(ctx)
}

// reducing measures steps with one all-reduce and with a chain of them, and an agreement without a step.
func reducing(ctx context.Context, g *dist.Group, s *loris.Session, w io.Writer) error {
	for _, bytes := range sizes {
		warm, n := runsOf(bytes)
		v := loris.NewVariable(s.With().Zeros(bytes / 4))
		for _, f := range forms {
			form, chain := f.name, f.chain
			step := func() error {
				err := s.Step(ctx, func() error {
					x := v.Value()
					for range chain {
						x = g.AllReduce(x, dist.Sum)
					}
					v.Assign(x)
					return nil
				})
				if err != nil {
					return err
				}
				return s.WaitDeviceOps(ctx)
			}
			if bytes > 1<<20 && chain > 1 {
				continue // the step's own part is lost in such times
			}
			err := measure(w, fmt.Sprintf("all_reduce/%d", bytes), form, warm/chain+1, n/chain+1, float64(chain), step)
			if err != nil {
				return err
			}
		}
	}
	warm, n := runsOf(8)
	return measure(w, "all_reduce/0", "agreement", warm, n, 1, func() error { return g.Wait(ctx) })
}

// measure runs something and prints the median and the least time of a part of a run.
func measure(w io.Writer, what, form string, warm, n int, parts float64, run func() error) error {
	for range warm {
		if err := run(); err != nil {
			return err
		}
	}
	ts := make([]float64, n)
	for i := range ts {
		begun := time.Now()
		if err := run(); err != nil {
			return err
		}
		ts[i] = float64(time.Since(begun).Nanoseconds()) / 1e3 / parts
	}
	slices.Sort(ts)
	_, err := fmt.Fprintf(w, "result %s %s %.3f %.3f\n", what, form, ts[n/2], ts[0])
	return err
}
