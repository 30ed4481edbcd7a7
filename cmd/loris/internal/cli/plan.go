package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/projection"
)

func newPlan() *cobra.Command {
	var ranks []int
	var w projection.Network
	var graph string
	c := &cobra.Command{
		Use:   "plan TRACE",
		Short: "Say how long a traced step would take on other numbers of ranks",
		Long: `Say how long a step would take on other numbers of ranks, from a trace of it on
any number (loris launch --trace, LORIS_TRACE): the kernels' times and when transfers
begin and are waited for are those of the trace's first rank, what transfers take is
computed for a network. Each rank is taken to compute what it does in the trace, so
that a batch grows with the ranks. docs/distributed.md has the formula.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if w.Beta <= 0 || w.Alpha < 0 {
				return command.Usagef("--alpha %v and --beta %g: a network takes some time and moves some bytes", w.Alpha, w.Beta)
			}
			for _, n := range ranks {
				if n < 1 {
					return command.Usagef("--ranks has %d: there is at least one rank", n)
				}
			}
			return plan(c, args[0], graph, ranks, w)
		},
	}
	c.Flags().IntSliceVar(&ranks, "ranks", []int{64, 128, 256, 512, 1024}, "numbers of ranks")
	c.Flags().StringVar(&graph, "graph", "", "the `hash`, or its beginning, of the graph that is the step; by default that which took longest in all")
	c.Flags().DurationVar(&w.Alpha, "alpha", 20*time.Microsecond, "time of a message without its bytes")
	c.Flags().Float64Var(&w.Beta, "beta", 12.5e9, "bytes per second to and from each rank")
	c.Flags().BoolVar(&w.Library, "library-sums", false, "sums are those of dist.WithLibrarySums")
	return c
}

func plan(c *cobra.Command, path, graph string, ranks []int, w projection.Network) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	steps, err := projection.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	i := slices.IndexFunc(steps, func(s projection.Step) bool { return strings.HasPrefix(s.Hash, graph) })
	if i < 0 {
		return fmt.Errorf("%s: of %d graphs with collectives none begins with %q", path, len(steps), graph)
	}
	s, out := steps[i], c.OutOrStdout()
	for k, other := range steps {
		if k != i {
			fmt.Fprintf(c.ErrOrStderr(), "also there: --graph %s, which ran %d times, in %v\n", other.Hash, other.Runs, round(other.Measured))
		}
	}
	fmt.Fprintf(out, "graph %s ran %d times, in %v of which %v are kernels and what is between\n\n", s.Hash, s.Runs, round(s.Measured), round(w.Project(s.Items, s.Between, 1).Compute))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ranks\tstep\ttransfers\twaited for\tof the speed without transfers\t")
	for _, n := range ranks {
		p := w.Project(s.Items, s.Between, n)
		fmt.Fprintf(t, "%d\t%v\t%v\t%v\t%.0f %%\t\n", n, round(p.Step), round(p.Transfer), round(p.Waited), 100*p.Compute.Seconds()/max(p.Step.Seconds(), 1e-12))
	}
	return t.Flush()
}

// round leaves three or four digits.
func round(d time.Duration) time.Duration {
	unit := time.Nanosecond
	for d/unit >= 10000 {
		unit *= 10
	}
	return d.Round(unit)
}
