// Command ops times every op of the table beside PyTorch: each row on its dtypes, in four sizes,
// forwards and with its gradient, and prints the rows by their ratio, worst first.
//
//	python3 -m venv .venv && .venv/bin/pip install torch numpy
//	go run ./bench/ops --python .venv/bin/python                                 # all: hours
//	go run ./bench/ops --python .venv/bin/python --dtypes f32 --only 'topk|sort' # some
//	go run ./bench/ops --python .venv/bin/python --worst 40 --json > ops.json
//	go run ./bench/ops --python .venv/bin/python --rows ops.rows --for 5m        # a part, and
//	go run ./bench/ops --python .venv/bin/python --rows ops.rows --for 5m        # the next
//
// The arguments of an op come from its schema and from recipes.go, which lists what a schema does
// not say, such as the filters of a convolution. An op that is added to the table is in it by
// itself; one that cannot be called by its schema alone is named until it has a recipe.
//
// The sizes are one that stays in the first caches, one between them and memory, one in memory, and an
// awkward one: odd dimensions, the first operand transposed, the second expanded along its rows. Two
// more are measured where they are asked for, since they take as long as two of the others:
//
//	go run ./bench/ops --python .venv/bin/python --sizes short,long
//
// In short the last dimension is, like those of images and matrices, of 5 to 7 elements, of which
// there are many; long has three lines of 300,007, one large image and one long sequence.
//
// Other operands are given by --recipe, which takes the place of the sizes for its op:
//
//	go run ./bench/ops --python .venv/bin/python --only '^mm$' --recipe 'mm:self=2048,2048 mat2=2048,2048'
//
// With --rows FILE each row is kept in FILE when it is known, and what FILE has already is not
// measured again: a run that was cut off, by --for or by a signal, goes on where it was. --again 1.5
// measures those of its rows again that are above 1.5.
//
// PyTorch is one process for each number of threads, which computes with torch.ops.aten, or with
// torch.compile of that (--compile), on the same numbers. Loris runs compiled models of the CPU
// backend. They take turns; the process is stopped while it has none. Results are held against each
// other before, and an op whose results differ is reported and has no ratio. What PyTorch returns as
// a view is copied, since a result of Loris is a tensor of its own. With the gradient a run computes
// the results and the gradients of all floating operands.
//
// Figures are the least time of a run of each, since others use the machine at times. The command
// measures how even the machine is before and after, and says when figures are not to be trusted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/loris-ml/loris/bench/internal/tool"
	"github.com/loris-ml/loris/internal/ir"
)

// settings are the flags.
type settings struct {
	python    string
	only      *regexp.Regexp
	skip      *regexp.Regexp // nil skips none
	dtypes    []ir.DType
	sizes     []size
	given     map[string]size // by op, whose recipe is given
	passes    []string
	threads   []int
	rounds    int
	turn      time.Duration
	worst     int
	keep      string        // file of rows; "" keeps none
	again     float64       // rows of the file above this ratio are measured again
	length    time.Duration // after which no other row is begun; 0 is any
	compile   bool
	keepPages bool
	json      bool
	png       string
	quiet     bool
}

func main() {
	tool.Main("ops", parse, func(ctx context.Context, s settings) error { return run(ctx, os.Stdout, os.Stderr, s) })
}

func parse(args []string) (settings, error) {
	s := settings{dtypes: ir.ComputeDTypes(), sizes: sizes[:usual], given: map[string]size{}, passes: []string{forward, gradient}, only: regexp.MustCompile("")}
	f := flag.NewFlagSet("ops", flag.ContinueOnError)
	f.StringVar(&s.python, "python", "python3", "a Python that has PyTorch and NumPy")
	f.Func("only", "regular expression of the ops", func(v string) (err error) {
		s.only, err = regexp.Compile(v)
		return err
	})
	f.Func("skip", "regular expression of ops to leave out", func(v string) (err error) {
		s.skip, err = regexp.Compile(v)
		return err
	})
	f.Func("dtypes", "dtypes with commas between them (default all)", func(v string) (err error) {
		s.dtypes, err = split(v, ir.ParseDType)
		return err
	})
	f.Func("sizes", "sizes with commas between them, also short and long (default cache,middle,memory,awkward)", func(v string) (err error) {
		s.sizes, err = split(v, sizeOf)
		return err
	})
	f.Func("recipe", "`OP:ARGUMENTS` as in recipes.go, for the one size of an op; may be given for each", func(v string) error {
		op, text, ok := strings.Cut(v, ":")
		if !ok {
			return errors.New("an op comes before the colon")
		}
		s.given[op] = givenSize(text)
		return nil
	})
	f.Func("passes", "forward, gradient or both with a comma (default both)", func(v string) (err error) {
		s.passes, err = split(v, passOf)
		return err
	})
	tool.Threads(f, &s.threads)
	f.IntVar(&s.rounds, "rounds", 3, "turns that each takes")
	f.DurationVar(&s.turn, "turn", 10*time.Millisecond, "length of a turn")
	f.IntVar(&s.worst, "worst", 0, "print so many rows only; 0 is all")
	f.StringVar(&s.keep, "rows", "", "keep rows in this `file`, and measure only those that it lacks")
	f.Float64Var(&s.again, "again", math.Inf(1), "measure rows of the file again whose ratio is above this")
	f.DurationVar(&s.length, "for", 0, "begin no row after so long; 0 is no limit")
	f.BoolVar(&s.compile, "compile", false, "run torch.compile beside eager PyTorch, and compare with the better")
	f.BoolVar(&s.keepPages, "keep-pages", false, "tell PyTorch's malloc to keep its pages")
	f.BoolVar(&s.json, "json", false, "print JSON")
	f.StringVar(&s.png, "png", "", "write a plot by category to this `file`")
	f.BoolVar(&s.quiet, "quiet", false, "say nothing of the progress")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if s.rounds < 1 || s.turn <= 0 || s.worst < 0 || s.length < 0 {
		return s, errors.New("--rounds and --turn must be positive, --worst and --for not negative")
	}
	return s, nil
}

func split[T any](text string, parse func(string) (T, error)) (list []T, err error) {
	for part := range strings.SplitSeq(text, ",") {
		v, err := parse(part)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func passOf(name string) (string, error) {
	if name != forward && name != gradient {
		return "", fmt.Errorf("there is no pass %q, only %s and %s", name, forward, gradient)
	}
	return name, nil
}

func run(ctx context.Context, w, progress io.Writer, s settings) error {
	if s.quiet {
		progress = io.Discard
	}
	folder, err := os.MkdirTemp("", "bench-ops")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	m := &measurement{settings: s, folder: folder, progress: progress}
	if s.keep != "" {
		if m.kept, err = openKept(s.keep); err != nil {
			return err
		}
		defer m.kept.file.Close()
	}
	if s.length > 0 {
		m.end = time.Now().Add(s.length)
	}
	for _, n := range s.threads {
		before := unevenness(n)
		if err := m.measure(ctx, n); err != nil {
			return fmt.Errorf("%d threads: %w", n, err)
		}
		m.noise = append(m.noise, noise{Threads: n, Before: before, After: unevenness(n)})
	}
	m.sort()
	if s.png != "" {
		if err := plotRows(s.png, m.rows); err != nil {
			return err
		}
	}
	if s.json {
		return m.writeJSON(w)
	}
	return m.report(w)
}
