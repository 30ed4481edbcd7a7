package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
)

// topFlags are the flags of `top`.
type topFlags struct {
	name     string
	interval time.Duration
	count    int
}

func newTop() *cobra.Command {
	f := &topFlags{}
	c := &cobra.Command{
		Use:   "top [URL]",
		Short: "Show what a running program computes",
		Long: `Show, again and again, what a running program computes: steps and runs each second,
compilations with their reasons, where time goes, memory. The program publishes the
report of its session by expvar:

  expvar.Publish("loris", expvar.Func(func() any { return session.Report() }))
  go http.ListenAndServe("127.0.0.1:6060", nil)

as loris train digits --debug 127.0.0.1:6060 does. URL is where its variables are,
http://127.0.0.1:6060/debug/vars if it is left out.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.interval <= 0 {
				return command.Usagef("--interval must be above 0, not %v", f.interval)
			}
			url := "http://127.0.0.1:6060/debug/vars"
			if len(args) > 0 {
				url = args[0]
			}
			return f.run(c.Context(), url, c.OutOrStdout())
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.name, "name", "loris", "`name` under which the program publishes the report")
	fl.DurationVar(&f.interval, "interval", time.Second, "time from one look to the next")
	fl.IntVar(&f.count, "count", 0, "looks; 0 for no end")
	return c
}

// sample is what top shows of a report, as JSON has it.
type sample struct {
	at time.Time

	Steps, Runs, Compiles, CachedHits, DiskHits, NewSizes, CacheBytes int64
	StageTime                                                         map[string]time.Duration
	LockWaits                                                         uint64
	LockWaitTime                                                      time.Duration
	LiveTensors                                                       map[string]int
	MemoryInUse                                                       map[string]int64
	Recent                                                            []struct {
		Nodes, EmittedNodes int
		Time                time.Duration
		Why                 string
	}
	Compiling []struct {
		Nodes, Done, Total int
		Time               time.Duration
	}
	Recomputed, Trims, CarriedAcrossSteps int
	DiskError                             string
}

func (f *topFlags) run(ctx context.Context, url string, out io.Writer) error {
	terminal := out != io.Discard && term.IsTerminal(int(os.Stdout.Fd()))
	var before *sample
	for n := 1; ; n++ {
		s, err := f.look(ctx, url)
		if ctx.Err() != nil {
			return nil // an interrupt is how one leaves
		}
		if err != nil {
			return fmt.Errorf("top: %w", err)
		}
		if terminal {
			fmt.Fprint(os.Stdout, "\x1b[H\x1b[2J")
		}
		if err := s.print(out, url, before); err != nil {
			return err
		}
		if n == f.count {
			return nil
		}
		before = s
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.interval):
		}
	}
}

// mostVariables is the largest body that look reads.
const mostVariables = 64 << 20

// look fetches the variables of the program.
func (f *topFlags) look(ctx context.Context, url string) (*sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: does the program publish variables there? (loris top --help)", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	var vars map[string]json.RawMessage
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostVariables)).Decode(&vars); err != nil {
		return nil, fmt.Errorf("%s: expected the variables of expvar: %w", url, err)
	}
	raw, ok := vars[f.name]
	if !ok {
		return nil, fmt.Errorf("%s: no variable %q among %s: --name says which", url, f.name, strings.Join(slices.Sorted(maps.Keys(vars)), ", "))
	}
	s := &sample{at: time.Now()}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("%s: %q is not the report of a session: %w", url, f.name, err)
	}
	return s, nil
}

// shownCompiles is how many of the last compilations are shown.
const shownCompiles = 8

// print writes what there is, and what has come since the sample before, if there is one.
func (s *sample) print(out io.Writer, url string, before *sample) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n\n", s.at.Format(time.TimeOnly), url)
	seconds := 0.0
	if before == nil {
		before = &sample{}
	} else {
		seconds = s.at.Sub(before.at).Seconds()
	}
	fmt.Fprintln(w, "COUNTER\tTOTAL\tA SECOND")
	count := func(name string, now, then int64) {
		rate := "-"
		if seconds > 0 {
			rate = fmt.Sprintf("%.1f", float64(now-then)/seconds)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", name, now, rate)
	}
	count("steps", s.Steps, before.Steps)
	count("runs", s.Runs, before.Runs)
	count("compiles", s.Compiles, before.Compiles)
	count("of new sizes only", s.NewSizes, before.NewSizes)
	count("hits in memory", s.CachedHits, before.CachedHits)
	count("hits on disk", s.DiskHits, before.DiskHits)
	count("waits for a device", int64(s.LockWaits), int64(before.LockWaits))
	s.printStages(w, before, seconds)
	fmt.Fprintln(w, "\nDEVICE\tTENSORS\tMEMORY")
	for _, d := range slices.Sorted(maps.Keys(s.LiveTensors)) {
		fmt.Fprintf(w, "%s\t%d\t%s\n", d, s.LiveTensors[d], humanize.IBytes(uint64(max(0, s.MemoryInUse[d]))))
	}
	fmt.Fprintf(w, "cache\t\t%s\n", humanize.IBytes(uint64(max(0, s.CacheBytes))))
	s.printCompiles(w)
	return w.Flush()
}

// printStages shows where time went: in all, and as a share of the time since the sample before.
func (s *sample) printStages(w io.Writer, before *sample, seconds float64) {
	fmt.Fprintln(w, "\nSTAGE\tTOTAL\tSHARE")
	stages := slices.SortedFunc(maps.Keys(s.StageTime), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.StageTime[b], s.StageTime[a]), cmp.Compare(a, b))
	})
	for _, st := range stages {
		share := "-"
		if seconds > 0 {
			share = fmt.Sprintf("%.0f %%", 100*(s.StageTime[st]-before.StageTime[st]).Seconds()/seconds)
		}
		fmt.Fprintf(w, "%s\t%v\t%s\n", st, s.StageTime[st].Round(time.Microsecond), share)
	}
}

// printCompiles shows what is compiled, was compiled last, and what costs more than it need.
func (s *sample) printCompiles(w io.Writer) {
	fmt.Fprintln(w)
	for _, c := range s.Compiling {
		part := ""
		if c.Total > 0 {
			part = fmt.Sprintf(", %d of %d parts", c.Done, c.Total)
		}
		fmt.Fprintf(w, "compiling %d nodes for %v%s\n", c.Nodes, c.Time.Round(time.Millisecond), part)
	}
	for _, c := range s.Recent[max(0, len(s.Recent)-shownCompiles):] {
		fmt.Fprintf(w, "compiled %d nodes to %d in %v: %s\n", c.Nodes, c.EmittedNodes, c.Time.Round(time.Microsecond), c.Why)
	}
	for _, waste := range []struct {
		n    int
		what string
	}{
		{s.CarriedAcrossSteps, "values were carried across a step as graphs"},
		{s.Recomputed, "values were computed again after their step"},
		{s.Trims, "graphs were synced because they had grown too large"},
	} {
		if waste.n > 0 {
			fmt.Fprintf(w, "%d %s: the report names the lines\n", waste.n, waste.what)
		}
	}
	if s.DiskError != "" {
		fmt.Fprintf(w, "the disk cache failed: %s\n", s.DiskError)
	}
}
