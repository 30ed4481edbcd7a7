// Command dist measures what several ranks on this machine cost, beside the MPI library's own program in
// C, PyTorch's DistributedDataParallel on gloo, MLX's ring and JAX on gloo, whichever are installed:
//
//	eval "$(scripts/mpi-env.sh)"
//	go build -o bench-dist ./bench/dist && ./bench-dist --python .venv-torch/bin/python
//
// It prints two tables. One is an all-reduce (f32, sum, 2 ranks) by its size: for Loris as one step of a
// program with that collective alone (step), with recording, agreement and the wait for the result, and
// as one of a chain of collectives in a step (chain); for the others a call that blocks. The other is a
// training step that 2 ranks of 1 thread divide, and the same step on 1 rank of 2 threads. Columns that
// say "library" have sums of the MPI library's own order (dist.WithLibrarySums), and the form divided has
// optimisers whose work is divided (parallel.Optimizer). What each collective cost is printed by
//
//	mpiexec -n 2 ./bench-dist --rank --train --report
//
// Systems have their turns one after another, --rounds times, as jobs that start anew. A time is the median
// over the rounds of the median run of each, and in brackets the least run of all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/loris-ml/loris/bench/internal/tool"
	"github.com/loris-ml/loris/dist"
)

// settings are the flags.
type settings struct {
	pythons []string
	rounds  int
	only    string // a part of the names of systems
	rank    bool   // this process is a rank of a job
	threads int    // of a rank
	trains  bool   // the rank measures training steps, otherwise all-reduces
	library bool   // sums are the library's own
	report  bool   // the first rank prints what each collective cost
}

func main() { tool.Main("dist", parse, run) }

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("dist", flag.ContinueOnError)
	f.Func("python", "a `Python` with torch, mlx or jax; may be given several times", func(p string) error {
		s.pythons = append(s.pythons, p)
		return nil
	})
	f.IntVar(&s.rounds, "rounds", 3, "turns of each system")
	f.StringVar(&s.only, "only", "", "a part of the `name` of the systems that are measured")
	f.BoolVar(&s.rank, "rank", false, "be a rank of a job (for this command itself)")
	f.IntVar(&s.threads, "threads", 1, "threads of a rank")
	f.BoolVar(&s.library, "library", false, "add by the engine's own all-reduce as a rank")
	f.BoolVar(&s.report, "report", false, "print what each collective cost, as a rank, to standard error")
	f.BoolVar(&s.trains, "train", false, "measure training steps as a rank")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 || s.rounds < 1 || s.threads < 1 {
		return s, fmt.Errorf("%d arguments, %d rounds, %d threads: there are flags only, and at least one round and thread", f.NArg(), s.rounds, s.threads)
	}
	return s, nil
}

func run(ctx context.Context, s settings) error {
	if s.rank {
		err := runRank(ctx, s, os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			dist.Exit(1)
		}
		dist.Exit(0)
	}
	systems, done, err := findSystems(ctx, s, os.Stderr)
	if err != nil {
		return err
	}
	defer done()
	all := measured{}
	var failed error
	for range s.rounds {
		for _, x := range systems {
			fmt.Fprintf(os.Stderr, "%s\n", x.name)
			out, err := x.run(ctx)
			if err == nil {
				err = all.read(x.column, out)
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", x.name, err))
			}
		}
	}
	all.print(os.Stdout, "all_reduce", "bytes")
	all.print(os.Stdout, "train", "step")
	return failed
}

// measured are times in microseconds by what was measured and by the column.
type measured map[string]map[string]*times

// times are the medians of the rounds, and the least run of all.
type times struct {
	medians []float64
	least   float64
}

// read takes the lines of a job: what was measured, in which form, the median and the least time.
func (m measured) read(column, out string) error {
	found := false
	for line := range strings.Lines(out) {
		var what, form string
		var median, least float64
		if n, _ := fmt.Sscanf(line, "result %s %s %f %f", &what, &form, &median, &least); n != 4 {
			continue // a library's own words
		}
		found = true
		column := column
		if form != "-" {
			column += ", " + form
		}
		if m[what] == nil {
			m[what] = map[string]*times{}
		}
		t := m[what][column]
		if t == nil {
			t = &times{least: least}
			m[what][column] = t
		}
		t.medians = append(t.medians, median)
		t.least = min(t.least, least)
	}
	if !found {
		return fmt.Errorf("it printed no results: %q", out)
	}
	return nil
}

// print writes the table of what begins with a word. head is what its first column has.
func (m measured) print(w io.Writer, kind, head string) {
	var whats []string
	columns := map[string]bool{}
	for what, row := range m {
		if strings.HasPrefix(what, kind+"/") {
			whats = append(whats, what)
			for c := range row {
				columns[c] = true
			}
		}
	}
	if whats == nil {
		return
	}
	slices.SortFunc(whats, func(a, b string) int {
		if len(a) != len(b) && kind == "all_reduce" {
			return len(a) - len(b) // numbers
		}
		return strings.Compare(a, b)
	})
	names := slices.Sorted(maps.Keys(columns))
	fmt.Fprintf(w, "| %s, µs | %s |\n|%s\n", head, strings.Join(names, " | "), strings.Repeat("---|", len(names)+1))
	for _, what := range whats {
		fmt.Fprintf(w, "| %s |", strings.TrimPrefix(what, kind+"/"))
		for _, c := range names {
			t := m[what][c]
			if t == nil {
				fmt.Fprint(w, " |")
				continue
			}
			slices.Sort(t.medians)
			fmt.Fprintf(w, " %s (%s) |", number(t.medians[len(t.medians)/2]), number(t.least))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// number writes microseconds with three digits or all of them.
func number(us float64) string {
	switch {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
