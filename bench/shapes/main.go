// Command shapes measures what a new size costs: programs are recorded and compiled for the first
// time, then with sizes that differ from those before, then again with sizes that are known.
//
//	go run ./bench/shapes
//	go run ./bench/shapes --run gru --cpuprofile cpu.out
//
// A line is one program. Its times are the least of what the host does before the device can begin,
// recording and MarkStep (or Call of a compiled function) together: "process" is the first time that a
// process runs the program, machine code and all, "session" the first in a session that knows nothing
// while the process has the machine code, "new size" for sizes that the session has not seen, "known"
// for those that it has. "compile" is the part of each in which the executor makes a computation of a
// recorded graph; the rest is recording, hashing and scheduling. The last column is a new size for 100
// nodes.
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
	"os/exec"
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
	once       string // the program that this process is to run once for another one
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
	f.StringVar(&s.once, "once", "", "run the `program` once and print its times: what this command has further processes do")
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
	if s.once != "" {
		return printOnce(ctx, w, s.once)
	}
	selected := slices.DeleteFunc(slices.Clone(programs), func(p program) bool { return !s.match.MatchString(p.name) })
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(selected) > 0 {
		fmt.Fprintln(tab, "program\tnodes\tprocess\tcompile\tsession\tcompile\tnew size\tcompile\tknown\tof process\tcompile\tof session\tcompile\tnew size/100 nodes\t")
	}
	for _, p := range selected {
		m, err := measure(ctx, p, s)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(tab, "%s\t%d\t%v\t%v\t%v\t%v\t%v\t%v\t%v\t%s\t%s\t%s\t%s\t%v\t\n", p.name, m.nodes,
			round(m.process.host), round(m.process.compile), round(m.session.host), round(m.session.compile), round(m.fresh.host), round(m.fresh.compile), round(m.known.host),
			percent(m.fresh.host, m.process.host), percent(m.fresh.compile, m.process.compile), percent(m.fresh.host, m.session.host), percent(m.fresh.compile, m.session.compile),
			round(m.fresh.host*100/time.Duration(m.nodes)))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if s.match.MatchString("decode") {
		return decode(ctx, w, s.tokens, s.cpuprofile)
	}
	return nil
}

func percent(x, of time.Duration) string { return fmt.Sprintf("%.1f %%", 100*float64(x)/float64(of)) }

func round(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

// times are those of one run on the host: all, and the part in which a computation is made.
type times struct{ host, compile time.Duration }

// least returns the least of each part.
func least(all []times) times {
	out := all[0]
	for _, t := range all {
		out.host, out.compile = min(out.host, t.host), min(out.compile, t.compile)
	}
	return out
}

// costs are the times of a program.
type costs struct {
	nodes                          int
	process, session, fresh, known times
}

// processes is how many processes run a program for its first time.
const processes = 3

// measure takes the first times from processes and from sessions of their own, one for each size, and
// the others from one session.
func measure(ctx context.Context, p program, s settings) (c costs, err error) {
	var process, session []times
	for range processes {
		t, err := inProcess(ctx, p)
		if err != nil {
			return c, err
		}
		process = append(process, t)
	}
	for i := range s.sizes {
		_, t, err := inSession(ctx, p, []int{i})
		if err != nil {
			return c, err
		}
		if i > 0 { // the first makes the machine code
			session = append(session, t...)
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
	return costs{nodes, least(process), least(session), least(t[1:s.sizes]), least(t[s.sizes:])}, nil
}

// inProcess runs a program for the first time of a process.
func inProcess(ctx context.Context, p program) (t times, err error) {
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	out, err := exec.CommandContext(ctx, self, "--once", p.name).Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &t.host, &t.compile)
	}
	if err != nil {
		return t, fmt.Errorf("in a process of its own: %w", err)
	}
	return t, nil
}

// printOnce runs the program of a name once, and prints its times in nanoseconds.
func printOnce(ctx context.Context, w io.Writer, name string) error {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	if i < 0 {
		return fmt.Errorf("there is no program %q", name)
	}
	_, t, err := inSession(ctx, programs[i], []int{0})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, int64(t[0].host), int64(t[0].compile))
	return err
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
func inSession(ctx context.Context, p program, sizes []int) (nodes int, all []times, err error) {
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
		before, start := s.Report().Compiles, time.Now()
		if err := step(ctx, in); err != nil {
			return 0, nil, err
		}
		t := times{host: time.Since(start)}
		r := s.Report()
		for _, c := range r.Recent[len(r.Recent)-int(r.Compiles-before):] {
			t.compile += c.Time
		}
		all = append(all, t)
		if err := s.WaitDeviceOps(ctx); err != nil {
			return 0, nil, err
		}
	}
	for _, c := range s.Report().Recent {
		nodes = max(nodes, c.Nodes)
	}
	return nodes, all, nil
}
