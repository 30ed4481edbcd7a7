// Command aoti times packages that PyTorch's AOTInductor made: in Loris, in
// PyTorch's C++ runner and in its Python loader. All run on this machine, with
// the same threads and inputs, in turns of a fraction of a second, so that what
// the machine does besides touches each alike.
//
//	go run ./bench/aoti --python .venv/bin/python models/*.pt2
//
// Each package P.pt2 has its inputs beside it: P.safetensors with in0, in1, …, and
// PyTorch's outputs out0, out1, …, which Loris and the Python loader must come near; the
// command fails in the end if they do not. The figures are the medians over the turns
// of the median run of each.
//
// With --device cuda:0 the packages are for GPUs, as bench/gpu/export.py makes them; it
// takes a build with -tags cuda. All systems start runs without waiting, and are waited
// for after each --batch of them, ten by default. The C++ runner may be missing there.
//
// With --export the packages are written here, by package aoti/export, of the programs that programs.go lists,
// and hold Loris's own results beside them; there is a table for each --python:
//
//	go run ./bench/aoti --export --threads 2 --python .venv/bin/python [--inductor]
//
// With --swap 2s there are no peers: goroutines run each package for that long while
// another replaces all its constants and swaps them in, and each result must be that of
// one complete set.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris/bench/internal/tool"
	"github.com/loris-ml/loris/internal/ir"
)

// settings are the flags and arguments.
type settings struct {
	pythons  []string
	threads  []int
	rounds   int
	turn     time.Duration
	json     bool
	device   ir.Device
	batch    int
	swap     time.Duration
	packages []string
	// export says that packages are written of programs, those whose names match only, into a folder
	// that stays if it is named; inductor that PyTorch's compiler makes some of the same.
	export   bool
	inductor bool
	only     string
	folder   string
}

// The most time, as a multiple of that of PyTorch's runner, and how many runs are
// waited for together, on a GPU.
const mustGPU, aheadGPU = 1.05, 10

// onGPU reports whether a device is none of the CPU.
func onGPU(d ir.Device) bool { return d.Type.String() != "cpu" }

func (s *settings) gpu() bool { return onGPU(s.device) }

// row is one package run with one number of threads. Times are nanoseconds.
type row struct {
	Name    string  `json:"name"`
	Threads int     `json:"threads"`
	Loris   int64   `json:"loris"`
	CPP     int64   `json:"torch_cpp"`
	Python  int64   `json:"torch_python"`
	Ratio   float64 `json:"ratio_cpp"`
	ToPy    float64 `json:"ratio_python"`
	Load    int64   `json:"loris_load"`
	CPPLoad int64   `json:"torch_cpp_load"`
	Batch   int     `json:"batch"`
	Must    float64 `json:"must"` // of the ratio to PyTorch's runner; 0 for none
	// Difference is the largest of an element of Loris's outputs and PyTorch's, relative
	// to the largest element, and PyDifference that of the Python loader's.
	Difference   float64 `json:"difference"`
	PyDifference float64 `json:"difference_python"`
}

func main() {
	tool.Main("aoti", parse, func(ctx context.Context, s settings) error { return run(ctx, os.Stdout, s) })
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("aoti", flag.ContinueOnError)
	f.Func("python", "Python with the torch to compare with (default python3); with --export there may be several", func(path string) error {
		s.pythons = append(s.pythons, path)
		return nil
	})
	f.BoolVar(&s.export, "export", false, "write packages of programs with package aoti/export and run these")
	f.BoolVar(&s.inductor, "inductor", false, "with --export: compile the same models with Inductor, half a minute each")
	f.StringVar(&s.only, "only", "", "with --export: regular expression of the programs' names")
	f.StringVar(&s.folder, "folder", "", "with --export: where the packages are made and stay")
	tool.Threads(f, &s.threads)
	f.IntVar(&s.rounds, "rounds", 7, "turns that each takes")
	f.DurationVar(&s.turn, "turn", 300*time.Millisecond, "length of a turn")
	f.DurationVar(&s.swap, "swap", 0, "swap constants under load for so long, without peers")
	device := f.String("device", "cpu", "where the packages run: cpu, cuda or cuda:N")
	f.IntVar(&s.batch, "batch", 0, "runs that are waited for together (default 1, on a GPU 10)")
	f.BoolVar(&s.json, "json", false, "print a list of rows as JSON")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.packages = f.Args()
	if len(s.pythons) == 0 {
		s.pythons = []string{"python3"}
	}
	switch {
	case s.export && (len(s.packages) > 0 || s.swap > 0 || len(s.threads) != 1):
		return s, errors.New("--export makes its own packages, and takes one number of threads and no --swap")
	case !s.export && (s.inductor || s.only != "" || s.folder != "" || len(s.pythons) > 1):
		return s, errors.New("--inductor, --only, --folder and several of --python are for --export")
	case !s.export && len(s.packages) == 0:
		return s, errors.New("no packages are given: scripts/aoti_fixtures.py makes some")
	}
	if s.rounds < 1 || s.turn <= 0 || s.batch < 0 || s.swap < 0 {
		return s, errors.New("--rounds and --turn must be positive, --batch and --swap not negative")
	}
	var err error
	s.device, err = ir.ParseDevice(*device)
	if s.batch == 0 {
		s.batch = 1
		if err == nil && s.gpu() {
			s.batch = aheadGPU
		}
	}
	return s, err
}

func run(ctx context.Context, w io.Writer, s settings) error {
	if s.swap > 0 {
		return swapAll(ctx, w, s)
	}
	if s.export {
		return runExported(ctx, w, s)
	}
	folder, err := os.MkdirTemp("", "bench-aoti")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	torch, err := findTorch(ctx, s.pythons[0], folder, s.device)
	if err != nil {
		return err
	}
	var rows []row
	var wrong []error // packages that did not run, or gave other numbers
	for _, p := range s.packages {
		for _, n := range s.threads {
			r, err := compare(ctx, torch, p, n, s)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s with %d threads: %w", p, n, err))
			}
			if r.Loris > 0 {
				rows = append(rows, r)
			}
		}
	}
	if s.json {
		err = json.NewEncoder(w).Encode(rows)
	} else {
		err = report(w, torch, s, rows)
	}
	return errors.Join(err, errors.Join(wrong...))
}

// compare runs one package in every runner by turns. The row is filled, too, where the
// error is that outputs differ, or that a peer did not start.
func compare(ctx context.Context, torch *torch, path string, threads int, s settings) (r row, err error) {
	e, err := readExample(beside(path))
	if err != nil {
		return r, err
	}
	ours, err := openLoris(ctx, path, e.in, threads, s)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	r = row{Name: name(path), Threads: threads, Batch: s.batch, Load: ours.load.Nanoseconds()}
	if s.gpu() {
		r.Must = mustGPU
	}
	wrong := []error{check(ctx, ours.results, e, &r.Difference)}
	runners := []turner{ours}
	into := []*int64{&r.Loris}
	for _, one := range []struct {
		name string
		line []string
		time *int64
	}{{"the Python loader", torch.py, &r.Python}, {"the C++ runner", torch.cpp, &r.CPP}} {
		if one.line == nil {
			continue
		}
		p, err := torch.start(ctx, one.line, path, threads, s.batch, e.in)
		if err == nil {
			defer p.stop()
			runners, into = append(runners, p), append(into, one.time)
			err = r.met(ctx, p, one.time == &r.CPP, torch.folder, e)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", one.name, err))
		}
	}
	times, err := turns(ctx, runners, s)
	if err != nil {
		return r, errors.Join(append(wrong, err)...)
	}
	for i, t := range times {
		*into[i] = median(t)
	}
	r.Ratio, r.ToPy = ratio(r.Loris, r.CPP), ratio(r.Loris, r.Python)
	return r, errors.Join(wrong...)
}

// met notes what is known of a peer that has started.
func (r *row) met(ctx context.Context, p *peer, cpp bool, folder string, e example) error {
	if cpp {
		r.CPPLoad = p.load.Nanoseconds()
		return nil
	}
	results := func(context.Context) ([][]byte, error) { return p.results(folder, e.out) }
	return check(ctx, results, e, &r.PyDifference)
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// check sets how much the results of a first run differ from what is stored.
func check(ctx context.Context, results func(context.Context) ([][]byte, error), e example, into *float64) error {
	if len(e.out) == 0 || e.random {
		return nil
	}
	got, err := results(ctx)
	if err == nil {
		*into, err = difference(got, e.out)
	}
	return err
}

// turner is what takes turns.
type turner interface {
	turn(context.Context, time.Duration) (int64, error)
}

// turns lets all take their turns, one after another, and returns the medians of each.
func turns(ctx context.Context, runners []turner, s settings) ([][]int64, error) {
	times := make([][]int64, len(runners))
	for range s.rounds {
		for i, one := range runners {
			t, err := one.turn(ctx, s.turn)
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], t)
		}
	}
	return times, nil
}

// name is what reports call a package, and beside the file of its inputs.
func name(path string) string   { return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) }
func beside(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) + ".safetensors" }

func median(t []int64) int64 {
	slices.Sort(t)
	return t[len(t)/2]
}

// report prints what was measured and how.
func report(w io.Writer, torch *torch, s settings, rows []row) error {
	fmt.Fprintf(w, "Medians of runs; PyTorch %s.\n", torch.version)
	if s.gpu() {
		fmt.Fprintf(w, "On %v. Each system starts %d runs at a time and waits for the last: Loris for its outputs, PyTorch for the device. Outputs are new in each run; PyTorch's loaders are for one caller, as those for several wait for each run.\n", s.device, s.batch)
	}
	if torch.missing != "" {
		fmt.Fprintf(w, "The C++ runner is missing: %s\n", torch.missing)
	}
	return table(w, rows)
}

func table(w io.Writer, rows []row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "package\tthreads\tLoris\ttorch C++\tratio\ttorch Python\tratio\tload Loris\tload C++\tdifference\tPython's\tmust\t")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%d\t%v\t%s\t%s\t%s\t%s\t%v\t%s\t%.1e\t%.1e\t%s\t\n", r.Name, r.Threads, short(r.Loris), known(r.CPP, short(r.CPP)), known(r.CPP, fmt.Sprintf("%.2f", r.Ratio)),
			known(r.Python, short(r.Python)), known(r.Python, fmt.Sprintf("%.2f", r.ToPy)), short(r.Load), known(r.CPP, short(r.CPPLoad)), r.Difference, r.PyDifference, r.verdict())
	}
	return tw.Flush()
}

// known is a figure, or a dash where n is 0.
func known(n int64, figure any) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(figure)
}

// verdict says whether the ratio to PyTorch's runner is what it must be: to the C++
// runner, or to the loader where that is missing.
func (r *row) verdict() string {
	against := r.Ratio
	if r.CPP == 0 {
		against = r.ToPy
	}
	switch {
	case r.Must == 0 || against == 0:
		return "-"
	case against <= r.Must:
		return fmt.Sprintf("%.2f met", r.Must)
	}
	return fmt.Sprintf("%.2f missed", r.Must)
}

// short is a time with about three digits.
func short(ns int64) time.Duration {
	d := time.Duration(ns)
	for unit := time.Duration(10); ; unit *= 10 {
		if d < 100*unit {
			return d.Round(unit / 10)
		}
	}
}
