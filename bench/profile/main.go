// Command profile shows where a workload of bench/workloads spends its time in the
// CPU backend: for each kernel the time, the bytes that it reads and writes, its
// arithmetic, and how near to the machine's limit it comes.
//
//	go run ./bench/profile encoder-block
//	go run ./bench/profile --threads 1 --cpuprofile cpu.out mlp-step
//	go tool pprof -tagfocus kernel=matmul cpu.out
//
// Kernels are in the order in which they run. The time of one is the median of its
// runs; the percentage is that of the least time of its arithmetic and bytes, by the
// peak of FMA and the better of a triad with plain and with streaming stores, in the
// time that it took. It can be above 100 where the data are in a cache. Samples of the CPU
// profile carry the labels kernel and line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/bench/internal/tool"
	"github.com/loris-ml/loris/bench/limit"
	"github.com/loris-ml/loris/bench/workloads"
)

// settings are the flags and the argument.
type settings struct {
	workload   *workloads.Workload
	threads    int
	runs       int
	vectors    int
	cpuprofile string
	json       bool
}

func main() {
	tool.Main("profile", parse, func(ctx context.Context, s settings) error { return run(ctx, os.Stdout, s) })
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("profile", flag.ContinueOnError)
	f.IntVar(&s.threads, "threads", runtime.GOMAXPROCS(0), "number of threads")
	f.IntVar(&s.runs, "runs", 20, "runs to observe")
	f.IntVar(&s.vectors, "vectors", 1<<25, "elements of the vectors that the memory is measured with")
	f.StringVar(&s.cpuprofile, "cpuprofile", "", "write a CPU profile to this `file`")
	f.BoolVar(&s.json, "json", false, "print the kernels as JSON")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.threads < 1 || s.runs < 1 || s.vectors < 1<<10 {
		return s, errors.New("--threads and --runs must be positive, --vectors at least 1024")
	}
	if f.NArg() != 1 {
		return s, fmt.Errorf("give one workload of %s", strings.Join(names(), ", "))
	}
	list, err := workloads.Select("^" + regexp.QuoteMeta(f.Arg(0)) + "$")
	if err != nil {
		return s, fmt.Errorf("%w: there are %s", err, strings.Join(names(), ", "))
	}
	s.workload = list[0]
	return s, nil
}

func names() (list []string) {
	for _, w := range workloads.All() {
		list = append(list, w.Name)
	}
	return list
}

// kernel is all runs of one kernel.
type kernel struct {
	Name  string  `json:"name"`
	Line  string  `json:"line"`
	Calls float64 `json:"calls"` // in a run of the workload
	Nanos int64   `json:"ns"`    // the median of a call
	Bytes int64   `json:"bytes"`
	FLOP  int64   `json:"flop"`
	Limit float64 `json:"limit"` // the least time over the time

	times []int64
}

// key tells kernels apart: a workload may run several programs.
type key struct {
	program, name, line string
	index               int
	bytes, flop         int64
}

// profile is what was observed of all runs.
type profile struct {
	kernels []*kernel
	find    map[key]*kernel
	runs    []int64 // their times
}

func run(ctx context.Context, w io.Writer, s settings) error {
	machine := limit.Measure(s.threads, s.vectors)
	runtime.GOMAXPROCS(s.threads)
	p, err := observe(ctx, s)
	if err != nil {
		return err
	}
	for _, k := range p.kernels {
		k.Nanos, k.Calls = median(k.times), float64(len(k.times))/float64(s.runs)
		k.Limit = machine.Seconds(float64(k.FLOP), float64(k.Bytes)) * 1e9 / float64(max(k.Nanos, 1))
	}
	if s.json {
		return json.NewEncoder(w).Encode(p.kernels)
	}
	fmt.Fprintf(w, "%s, %v\n", s.workload.Name, machine)
	return p.table(w)
}

// observe runs the workload, a few times without being looked at.
func observe(ctx context.Context, s settings) (_ *profile, err error) {
	be, err := backend.For(cpu.Device)
	if err != nil {
		return nil, err
	}
	b, ok := be.(*cpu.Backend)
	if !ok {
		return nil, fmt.Errorf("the backend of %v is a %T", cpu.Device, be)
	}
	session, err := loris.New(append(slices.Clone(s.workload.Session), loris.WithTrimNodes(-1), loris.WithLines(loris.LinesAlways))...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	in, err := s.workload.Open(ctx, session)
	if err != nil {
		return nil, err
	}
	for range 3 {
		if err := in.Run(ctx); err != nil {
			return nil, err
		}
	}
	if s.cpuprofile != "" {
		f, err := os.Create(s.cpuprofile)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	p := &profile{find: map[key]*kernel{}}
	b.Observe(p.add)
	defer b.Observe(nil)
	for range s.runs {
		begin := time.Now()
		if err := in.Run(ctx); err != nil {
			return nil, err
		}
		p.runs = append(p.runs, time.Since(begin).Nanoseconds())
	}
	return p, nil
}

// add notes one run of a kernel. Runs of a workload's session come one after
// another.
func (p *profile) add(s cpu.Step) {
	id := key{s.Program, s.Name, s.Line, s.Index, s.Bytes, s.FLOP}
	k := p.find[id]
	if k == nil {
		k = &kernel{Name: s.Name, Line: s.Line, Bytes: s.Bytes, FLOP: s.FLOP}
		p.find[id] = k
		p.kernels = append(p.kernels, k)
	}
	k.times = append(k.times, s.Duration.Nanoseconds())
}

func (p *profile) table(w io.Writer) error {
	whole := float64(median(p.runs))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "kernel\tline\tcalls\ttime\tshare\tbytes\tFLOP\tGB/s\tGFLOP/s\tof limit\t")
	inside := 0.0
	for _, k := range p.kernels {
		t := float64(max(k.Nanos, 1))
		inside += t * k.Calls
		fmt.Fprintf(tw, "%s\t%s\t%.3g\t%v\t%.1f%%\t%s\t%s\t%.1f\t%.1f\t%.0f%%\t\n", short(k.Name), k.Line, k.Calls, time.Duration(k.Nanos), 100*t*k.Calls/whole,
			count(k.Bytes), count(k.FLOP), float64(k.Bytes)/t, float64(k.FLOP)/t, 100*k.Limit)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "a run takes %v, %.1f%% of it outside of kernels (recording, lookup, scheduling, observing)\n", time.Duration(whole), max(0, 100*(1-inside/whole)))
	return err
}

func median(t []int64) int64 {
	t = slices.Sorted(slices.Values(t))
	return t[len(t)/2]
}

// maxName is the most characters of a kernel's name in a table.
const maxName = 56

// short joins equal neighbours in the name of a kernel and cuts it.
func short(name string) string {
	var parts []string
	ops := strings.Split(name, "+")
	for i := 0; i < len(ops); {
		n := 1
		for i+n < len(ops) && ops[i+n] == ops[i] {
			n++
		}
		if n == 1 {
			parts = append(parts, ops[i])
		} else {
			parts = append(parts, fmt.Sprintf("%s×%d", ops[i], n))
		}
		i += n
	}
	out := []rune(strings.Join(parts, "+"))
	if len(out) > maxName {
		out = append(out[:maxName-1], '…')
	}
	return string(out)
}

// count shows a number with a decimal unit.
func count(n int64) string {
	v, units := float64(n), []string{"", "k", "M", "G", "T"}
	for v >= 1000 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	return fmt.Sprintf("%.3g%s", v, units[0])
}
