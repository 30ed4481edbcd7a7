// Command aoti times packages that PyTorch's AOTInductor made: in Loris, in
// PyTorch's C++ runner and in its Python loader. All run on this machine, with
// the same threads and inputs, in turns of a fraction of a second, so that what
// the machine does besides touches each alike.
//
//	go run ./bench/aoti --python .venv/bin/python models/*.pt2
//
// Each package P.pt2 has its inputs beside it: P.safetensors with in0, in1, ….
// The figures are the medians over the turns of the median run of each.
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
)

// settings are the flags and arguments.
type settings struct {
	python   string
	threads  []int
	rounds   int
	turn     time.Duration
	json     bool
	packages []string
}

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
}

func main() {
	tool.Main("aoti", parse, func(ctx context.Context, s settings) error { return run(ctx, os.Stdout, s) })
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("aoti", flag.ContinueOnError)
	f.StringVar(&s.python, "python", "python3", "Python with the torch to compare with")
	tool.Threads(f, &s.threads)
	f.IntVar(&s.rounds, "rounds", 7, "turns that each takes")
	f.DurationVar(&s.turn, "turn", 300*time.Millisecond, "length of a turn")
	f.BoolVar(&s.json, "json", false, "print a list of rows as JSON")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.packages = f.Args()
	if len(s.packages) == 0 {
		return s, errors.New("no packages are given: scripts/aoti_fixtures.py makes some")
	}
	if s.rounds < 1 || s.turn <= 0 {
		return s, errors.New("--rounds and --turn must be positive")
	}
	return s, nil
}

func run(ctx context.Context, w io.Writer, s settings) error {
	folder, err := os.MkdirTemp("", "bench-aoti")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	torch, err := findTorch(ctx, s.python, folder)
	if err != nil {
		return err
	}
	var rows []row
	for _, p := range s.packages {
		for _, n := range s.threads {
			r, err := compare(ctx, torch, p, n, s)
			if err != nil {
				return fmt.Errorf("%s with %d threads: %w", p, n, err)
			}
			rows = append(rows, r)
		}
	}
	if s.json {
		return json.NewEncoder(w).Encode(rows)
	}
	return table(w, torch.version, rows)
}

// compare runs one package in every runner by turns.
func compare(ctx context.Context, torch *torch, path string, threads int, s settings) (r row, err error) {
	inputs, err := readInputs(strings.TrimSuffix(path, filepath.Ext(path)) + ".safetensors")
	if err != nil {
		return r, err
	}
	ours, err := openLoris(ctx, path, inputs, threads)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	cpp, err := torch.start(ctx, torch.cpp, path, threads, inputs)
	if err != nil {
		return r, fmt.Errorf("the C++ runner: %w", err)
	}
	defer cpp.stop()
	py, err := torch.start(ctx, torch.py, path, threads, inputs)
	if err != nil {
		return r, fmt.Errorf("the Python loader: %w", err)
	}
	defer py.stop()
	runners := []interface {
		turn(context.Context, time.Duration) (int64, error)
	}{ours, cpp, py}
	times := make([][]int64, len(runners))
	for range s.rounds {
		for i, one := range runners {
			t, err := one.turn(ctx, s.turn)
			if err != nil {
				return r, err
			}
			times[i] = append(times[i], t)
		}
	}
	r = row{
		Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Threads: threads,
		Loris: median(times[0]), CPP: median(times[1]), Python: median(times[2]),
		Load: ours.load.Nanoseconds(), CPPLoad: cpp.load.Nanoseconds(),
	}
	r.Ratio, r.ToPy = float64(r.Loris)/float64(r.CPP), float64(r.Loris)/float64(r.Python)
	return r, nil
}

func median(t []int64) int64 {
	slices.Sort(t)
	return t[len(t)/2]
}

func table(w io.Writer, version string, rows []row) error {
	fmt.Fprintf(w, "Medians of runs; PyTorch %s.\n", version)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "package\tthreads\tLoris\ttorch C++\tratio\ttorch Python\tratio\tload Loris\tload C++\t")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%d\t%v\t%v\t%.2f\t%v\t%.2f\t%v\t%v\t\n", r.Name, r.Threads, short(r.Loris), short(r.CPP), r.Ratio,
			short(r.Python), r.ToPy, short(r.Load), short(r.CPPLoad))
	}
	return tw.Flush()
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
