// Command import times imported models beside the same models as packages of AOTInductor in Loris's own host,
// and in onnxruntime and PyTorch:
//
//	python bench/import/models.py models
//	go run ./bench/import --python .venv/bin/python models/resnet18 models/minilm models/gpt2 models/vit_b16
//
// All run on this machine, on the same inputs and as many threads, in turns of a fraction of a second; a peer's
// process is stopped between its turns. "ms" is the median over the turns of the median run of each, "least" the
// shortest run of all turns, which other work on the machine disturbs less. Every system's outputs are held against
// those that PyTorch computed. "load" is from the file to the model, without a run.
//
// With --cpu all count the processor time of a process's threads instead: on a machine that does much
// other work that can still be compared, best with --threads 1, since idle threads that poll count.
//
// With --load it times loading alone, beside os.ReadFile of the same files, by turns in one process.
//
// With --functions it times the functions of a Python file instead, which PyTorch exports, beside PyTorch as it is and
// with --compile beside torch.compile:
//
//	go run ./bench/import --python .venv/bin/python --functions bench/import/functions.py --compile
//
// With --gradients a run of a function takes the gradients of its inputs as well, of the products of its results with
// numbers that are drawn once.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/bench/internal/tool"
)

//go:embed peer.py
var peerPy []byte

type settings struct {
	python  string
	threads int
	rounds  int
	turn    time.Duration
	load    bool
	cpu     bool
	bases   []string

	functions string         // file; "" times models
	only      *regexp.Regexp // names of functions
	compile   bool
	gradients bool
	keepPages bool
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("import", flag.ContinueOnError)
	f.StringVar(&s.python, "python", "", "Python with PyTorch and onnxruntime; without it Loris runs alone")
	f.IntVar(&s.threads, "threads", 2, "threads of every system")
	f.IntVar(&s.rounds, "rounds", 7, "turns of each system")
	f.DurationVar(&s.turn, "turn", 300*time.Millisecond, "length of a turn")
	f.BoolVar(&s.load, "load", false, "time loading beside reading the files, and nothing else")
	f.BoolVar(&s.cpu, "cpu", false, "count processor time, not time on the clock")
	f.StringVar(&s.functions, "functions", "", "time the functions of this Python file instead of models")
	s.only = regexp.MustCompile("")
	f.Func("only", "regular expression of the functions", func(v string) (err error) {
		s.only, err = regexp.Compile(v)
		return err
	})
	f.BoolVar(&s.compile, "compile", false, "run functions with torch.compile, too")
	f.BoolVar(&s.gradients, "gradients", false, "let functions take the gradients of their inputs, too")
	f.BoolVar(&s.keepPages, "keep-pages", false, "tell PyTorch's malloc to keep its pages where it runs functions")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.bases = f.Args()
	if s.functions != "" {
		if len(s.bases) > 0 || s.load || s.cpu || s.python == "" || s.threads < 1 || s.rounds < 1 {
			return s, errors.New("functions take --python, and neither models nor --load nor --cpu")
		}
		return s, nil
	}
	if s.gradients {
		return s, errors.New("--gradients are of --functions")
	}
	if len(s.bases) == 0 || s.threads < 1 || s.rounds < 1 {
		return s, errors.New("give the models, such as models/resnet18, and positive --threads and --rounds")
	}
	return s, nil
}

// clock returns the time that runs are measured by, in nanoseconds.
func (s settings) clock() (int64, error) {
	if s.cpu {
		return processorTime()
	}
	return time.Since(started).Nanoseconds(), nil
}

var started = time.Now()

func main() { tool.Main("import", parse, run) }

// system runs one model. turn returns the median and the least nanoseconds of a run.
type system struct {
	name            string
	load            time.Duration
	off             float64 // largest difference to PyTorch's outputs over the largest element
	turn            func(ctx context.Context, d time.Duration) (median, least int64, err error)
	close           func() error
	medians, leasts []int64 // of the turns
}

// runtimeName is the peer that the forms of ONNX are held against.
const runtimeName = "onnxruntime"

// tolerance is how far outputs may be off.
const tolerance = 1e-3

func run(ctx context.Context, s settings) error {
	if s.functions != "" {
		return compareFunctions(ctx, s)
	}
	if s.load {
		return compareLoads(ctx, s)
	}
	peers, err := startPeers(ctx, s)
	for _, p := range peers {
		defer p.Stop()
	}
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\tsystem\tms\tof AOTI\tof ORT\tleast ms\tof AOTI\tof ORT\tload ms\toff by")
	var wrong error
	for _, base := range s.bases {
		if err := one(ctx, s, peers, base, w); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", base, err))
		}
	}
	return errors.Join(w.Flush(), wrong)
}

func startPeers(ctx context.Context, s settings) (peers []*process.Process, err error) {
	if s.python == "" {
		return nil, nil
	}
	script, err := os.CreateTemp("", "peer-*.py")
	if err != nil {
		return nil, err
	}
	defer os.Remove(script.Name())
	if _, err := script.Write(peerPy); err != nil {
		return nil, err
	}
	if err := script.Close(); err != nil {
		return nil, err
	}
	for _, name := range []string{runtimeName, "torch"} {
		line := []string{s.python, script.Name(), name, strconv.Itoa(s.threads)}
		if s.cpu {
			line = append(line, "cpu")
		}
		p, err := process.Start(ctx, name, line, process.Environment(s.threads, false))
		if err != nil {
			return peers, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// one times a model in all systems and writes its rows.
func one(ctx context.Context, s settings, peers []*process.Process, base string, w *tabwriter.Writer) (err error) {
	base, err = filepath.Abs(base)
	if err != nil {
		return err
	}
	e, err := readExample(base + ".safetensors")
	if err != nil {
		return err
	}
	var all []*system
	defer func() {
		for _, x := range all {
			err = errors.Join(err, x.close())
		}
	}()
	for _, open := range []func(context.Context, settings, *example, string) (*system, error){openPackage, openProgram, openRecorded, openONNX} {
		x, err := open(ctx, s, e, base)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	for _, p := range peers {
		x, err := openPeer(p, base)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	for range s.rounds {
		for _, x := range all {
			m, least, err := x.turn(ctx, s.turn)
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			x.medians, x.leasts = append(x.medians, m), append(x.leasts, least)
		}
	}
	return rows(w, filepath.Base(base), all)
}

// rows writes what the turns of a model took, beside AOTInductor's package and onnxruntime if that ran.
func rows(w io.Writer, name string, all []*system) (err error) {
	aoti, ort := all[0], (*system)(nil)
	if i := slices.IndexFunc(all, func(x *system) bool { return strings.HasPrefix(x.name, runtimeName) }); i >= 0 {
		ort = all[i]
	}
	for _, x := range all {
		fmt.Fprintf(w, "%s\t%s", name, x.name)
		for _, figure := range []func(x *system) float64{func(x *system) float64 { return median(x.medians) }, func(x *system) float64 { return float64(slices.Min(x.leasts)) }} {
			fmt.Fprintf(w, "\t%.2f\t%.2f", figure(x)/1e6, figure(x)/figure(aoti))
			if ort == nil {
				fmt.Fprint(w, "\t-")
			} else {
				fmt.Fprintf(w, "\t%.2f", figure(x)/figure(ort))
			}
		}
		fmt.Fprintf(w, "\t%.0f\t%.1e\n", float64(x.load)/1e6, x.off)
		if !(x.off <= tolerance) {
			err = errors.Join(err, fmt.Errorf("%s is off by %v of the largest element", x.name, x.off))
		}
	}
	return err
}

func median(times []int64) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2])
}

func openPeer(p *process.Process, base string) (*system, error) {
	answer, err := p.Ask("open " + base)
	if err != nil {
		return nil, err
	}
	x := peerSystem(p, p.Name+" "+p.Version)
	var load int64
	if _, err := fmt.Sscan(answer, &load, &x.off); err != nil {
		return nil, fmt.Errorf("%s said %q: %w", p.Name, answer, err)
	}
	x.load = time.Duration(load)
	return x, nil
}

// peerSystem runs what a peer has open.
func peerSystem(p *process.Process, name string) *system {
	return &system{
		name: name, close: func() error { return nil },
		turn: func(_ context.Context, d time.Duration) (median, least int64, err error) { return p.Turn(d, 1) },
	}
}
