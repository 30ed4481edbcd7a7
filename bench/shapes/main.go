// Command shapes measures what a new size costs: programs are recorded and compiled for the first
// time, then with sizes that differ from those before, then again with sizes that are known.
//
//	go run ./bench/shapes
//	go run ./bench/shapes --run gru --cpuprofile cpu.out
//
// A line is one program. Its times are the least of what the host does before the device can begin,
// recording and MarkStep (or Call of a compiled function) together: "first" in a session that knows
// nothing while the process has all machine code already, "new size" for sizes that the session has
// not seen, "known" for those that it has. The last column is the new size for 100 nodes.
//
// The program decode makes tokens with a GPT: with caches of keys and values that grow by Cat, so
// that each token has sizes of its own, and with caches of a fixed size and a mask. Its times are
// medians of all tokens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/pprof"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/internal/tool"
)

// settings are the flags.
type settings struct {
	match      *regexp.Regexp
	sizes      int
	tokens     int
	cpuprofile string
}

func main() {
	tool.Main("shapes", parse, func(ctx context.Context, s settings) error { return run(ctx, os.Stdout, s) })
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("shapes", flag.ContinueOnError)
	f.IntVar(&s.sizes, "sizes", 12, "how many sizes a program has")
	f.IntVar(&s.tokens, "tokens", 1000, "how many tokens are decoded")
	match := f.String("run", "", "only programs whose names match a `pattern`")
	f.StringVar(&s.cpuprofile, "cpuprofile", "", "write a profile of the new sizes to this `file`")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.sizes < 2 || s.tokens < 2 || f.NArg() > 0 {
		return s, errors.New("--sizes and --tokens must be at least 2, and there are no arguments")
	}
	var err error
	s.match, err = regexp.Compile(*match)
	return s, err
}

func run(ctx context.Context, w io.Writer, s settings) error {
	selected := slices.DeleteFunc(slices.Clone(programs), func(p program) bool { return !s.match.MatchString(p.name) })
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(selected) > 0 {
		fmt.Fprintln(tab, "program\tnodes\tfirst\tnew size\tof first\tknown\tnew size/100 nodes\t")
	}
	for _, p := range selected {
		m, err := measure(ctx, p, s)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(tab, "%s\t%d\t%v\t%v\t%.1f %%\t%v\t%v\t\n", p.name, m.nodes, round(m.first), round(m.fresh),
			100*float64(m.fresh)/float64(m.first), round(m.known), round(m.fresh*100/time.Duration(m.nodes)))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if s.match.MatchString("decode") {
		return decode(ctx, w, s.tokens, s.cpuprofile)
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

// costs are the times of a program.
type costs struct {
	nodes               int
	first, fresh, known time.Duration
}

// measure takes the first times from sessions of their own, one for each size, and the others from
// one session.
func measure(ctx context.Context, p program, s settings) (c costs, err error) {
	var first, fresh, known []time.Duration
	for i := range s.sizes {
		_, t, err := inSession(ctx, p, []int{i})
		if err != nil {
			return c, err
		}
		if i > 0 { // the first makes the machine code
			first = append(first, t...)
		}
	}
	all := make([]int, 0, 2*s.sizes)
	for i := range 2 * s.sizes {
		all = append(all, i%s.sizes)
	}
	stop, err := profile(s.cpuprofile)
	if err != nil {
		return c, err
	}
	nodes, t, err := inSession(ctx, p, all)
	if err := errors.Join(err, stop()); err != nil {
		return c, err
	}
	fresh, known = t[1:s.sizes], t[s.sizes:]
	return costs{nodes, slices.Min(first), slices.Min(fresh), slices.Min(known)}, nil
}

func median(t []time.Duration) time.Duration {
	t = slices.Clone(t)
	slices.Sort(t)
	return t[len(t)/2]
}

func profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// inSession runs a program with the given sizes in a new session, and returns the nodes of its graph
// and the host's time for each.
func inSession(ctx context.Context, p program, sizes []int) (nodes int, times []time.Duration, err error) {
	s, err := loris.New()
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	step := p.open(s)
	for _, i := range sizes {
		in := p.input(s.With(), i)
		if err := s.Sync(ctx, in); err != nil {
			return 0, nil, err
		}
		if err := s.WaitDeviceOps(ctx); err != nil {
			return 0, nil, err
		}
		start := time.Now()
		if err := step(ctx, in); err != nil {
			return 0, nil, err
		}
		times = append(times, time.Since(start))
		if err := s.WaitDeviceOps(ctx); err != nil {
			return 0, nil, err
		}
	}
	for _, c := range s.Report().Recent {
		nodes = max(nodes, c.Nodes)
	}
	return nodes, times, nil
}
