// Command compare runs the workloads of bench/workloads in Loris and in the
// systems that are installed beside it, and prints how long each takes, the
// ratio of Loris to the best of them and to what the machine can do.
//
//	python3 -m venv .venv-torch && .venv-torch/bin/pip install torch numpy
//	python3 -m venv .venv-peers && .venv-peers/bin/pip install jax 'mlx[cpu]'
//	go mod download -C bench/peers/gomlx
//	go run ./bench/compare --python .venv-torch/bin/python --python .venv-peers/bin/python
//
// The peers are PyTorch as it is (eager), with torch.compile (compile), compiled
// ahead by AOTInductor (aoti) and on its lazy device (lazy), JAX (jax), MLX (mlx)
// and GoMLX with its Go backend (gomlx, built by this command). One that is missing
// is named and left out.
//
// All run on this machine, with the same threads and the same inputs, in turns of
// a fraction of a second, so that what the machine does besides touches each alike. A
// peer is a process that lives as long as its number of threads is measured; while
// it has no turn all its threads are stopped. Before the turns the results of all are
// held against each other; a peer whose results differ counts for nothing, and
// the command fails in the end.
//
// Times are medians over the turns of the median run of each. A ratio to the limit
// is the time over the least time of the workload's arithmetic and bytes, with the
// peak of FMA and the better of a triad with plain and with streaming stores, which
// are measured first; it can be less than 1 where the data stay in a cache. What a
// workload allocates comes from the system's own allocator: with --keep-pages those
// of the peers are told to keep the pages that they have, as Loris does.
//
// With --device cuda all compute on a GPU, those that can: PyTorch and JAX. The
// limit is then what PyTorch reaches in a large product of f32 and in a copy from
// memory to memory. Build it with -tags cuda.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/internal/tool"
	"github.com/loris-ml/loris/bench/workloads"
)

// settings are the flags.
type settings struct {
	pythons   []string
	peers     []string
	workloads []*workloads.Workload
	threads   []int
	rounds    int
	turn      time.Duration
	png       string
	json      bool
	gomlx     string
	keepPages bool
	quiet     bool
	vectors   int
	device    loris.Device
}

func main() {
	tool.Main("compare", parse, func(ctx context.Context, s settings) error { return run(ctx, os.Stdout, os.Stderr, s) })
}

func parse(args []string) (settings, error) {
	var s settings
	var only, peers string
	s.device = loris.CPU
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.Func("python", "a Python that has peers; may be given again (default python3)", func(v string) error {
		s.pythons = append(s.pythons, v)
		return nil
	})
	f.StringVar(&peers, "peers", strings.Join(names(), ","), "the peers to run, if they are installed")
	f.StringVar(&only, "only", ".", "regular expression of the workloads to run")
	tool.Threads(f, &s.threads)
	f.IntVar(&s.rounds, "rounds", 7, "turns that each takes")
	f.DurationVar(&s.turn, "turn", 300*time.Millisecond, "length of a turn")
	f.StringVar(&s.png, "png", "", "write a plot to this `file`")
	f.BoolVar(&s.json, "json", false, "print a list of rows as JSON")
	f.StringVar(&s.gomlx, "gomlx", "bench/peers/gomlx", "the folder of the GoMLX peer's module")
	f.BoolVar(&s.keepPages, "keep-pages", false, "tell the peers' malloc to keep its pages")
	f.BoolVar(&s.quiet, "quiet", false, "say nothing of the progress")
	f.IntVar(&s.vectors, "vectors", 1<<25, "elements of the vectors that the memory is measured with")
	f.Func("device", "where all compute: cpu, cuda or cuda:N (default cpu)", func(v string) (err error) {
		s.device, err = loris.ParseDevice(v)
		return err
	})
	if err := f.Parse(args); err != nil {
		return s, err
	}
	for p := range strings.SplitSeq(peers, ",") {
		if p != "" && !slices.Contains(names(), p) {
			return s, fmt.Errorf("--peers: there is no %q, only %s", p, strings.Join(names(), ", "))
		}
		s.peers = append(s.peers, p)
	}
	if len(s.pythons) == 0 {
		s.pythons = []string{"python3"}
	}
	if s.rounds < 1 || s.turn <= 0 || s.vectors < 1<<10 {
		return s, errors.New("--rounds and --turn must be positive, --vectors at least 1024")
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	var err error
	s.workloads, err = workloads.Select(only)
	return s, err
}

// row is one workload with one number of threads. Times are nanoseconds of a run,
// or of an op in chains of ops; of rows of memory they are bytes.
type row struct {
	Name    string  `json:"name"`
	Threads int     `json:"threads"`
	Loris   float64 `json:"loris"`
	Best    float64 `json:"best"`  // of the peers that count; 0 if none ran
	Peer    string  `json:"peer"`  // the best
	Ratio   float64 `json:"ratio"` // of Loris to the best; 0 if none ran
	Limit   float64 `json:"limit"` // ratio of Loris to what the machine can do; 0 if that does not bound it
	Must    float64 `json:"must"`
	Aim     float64 `json:"aim"`
	Unit    string  `json:"unit"` // "ns" or "bytes"

	Peers map[string]float64 `json:"peers"`
	// Difference is the largest of an element of Loris's results and a peer's,
	// relative to the largest element, and Tolerance what it may be.
	Difference float64 `json:"difference"`
	Tolerance  float64 `json:"tolerance"`
}

func run(ctx context.Context, w, progress io.Writer, s settings) error {
	if s.quiet {
		progress = io.Discard
	}
	folder, err := os.MkdirTemp("", "bench-compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	all, err := find(ctx, s, folder)
	if err != nil {
		return err
	}
	m := &measurement{settings: s, folder: folder, progress: progress}
	for _, n := range s.threads {
		if err := m.measure(ctx, all, n); err != nil {
			return errors.Join(fmt.Errorf("%d threads: %w", n, err), errors.Join(m.wrong...))
		}
	}
	if s.json {
		err = json.NewEncoder(w).Encode(append(m.rows, m.memory...))
	} else {
		err = m.report(w, all)
	}
	if s.png != "" {
		err = errors.Join(err, plotRows(s.png, m.rows))
	}
	return errors.Join(err, errors.Join(m.wrong...))
}
