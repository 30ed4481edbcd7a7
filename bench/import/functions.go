package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
)

//go:embed functions_peer.py
var functionsPeerPy []byte

// timing is what a function takes: the shortest run of all turns of each system, in nanoseconds.
type timing struct {
	name                               string
	compiled, recorded, eager, compile int64
	off                                float64 // of Loris's results, as in system
	why                                error   // it has no times
}

// ratio is that of Loris's compiled form to the faster of the peers.
func (t timing) ratio() float64 { return float64(t.compiled) / float64(t.best()) }

func (t timing) best() int64 {
	if t.compile > 0 {
		return min(t.eager, t.compile)
	}
	return t.eager
}

// compareFunctions times the functions of a Python file in Loris and in PyTorch.
func compareFunctions(ctx context.Context, s settings) error {
	folder, err := os.MkdirTemp("", "functions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	peers, err := startFunctionPeers(ctx, s, folder)
	for _, p := range peers {
		defer p.Stop()
	}
	if err != nil {
		return err
	}
	names, err := peers[0].Ask("list")
	if err != nil {
		return err
	}
	var all []timing
	for name := range strings.FieldsSeq(names) {
		if !s.only.MatchString(name) {
			continue
		}
		t := oneFunction(ctx, s, peers, name, filepath.Join(folder, name))
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %.2f %v\n", name, t.ratio(), t.why)
		all = append(all, t)
	}
	return reportFunctions(os.Stdout, peers[0].Version, s, all)
}

func startFunctionPeers(ctx context.Context, s settings, folder string) (peers []*process.Process, err error) {
	script := filepath.Join(folder, "peer.py")
	if err := os.WriteFile(script, functionsPeerPy, 0o600); err != nil {
		return nil, err
	}
	file, err := filepath.Abs(s.functions)
	if err != nil {
		return nil, err
	}
	modes := []string{"eager"}
	if s.compile {
		modes = append(modes, "compile")
	}
	for _, mode := range modes {
		line := []string{s.python, script, mode, strconv.Itoa(s.threads), file}
		if s.gradients {
			line = append(line, "gradients")
		}
		p, err := process.Start(ctx, mode, line, process.Environment(s.threads, s.keepPages))
		if err != nil {
			return peers, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// oneFunction times a function. The first peer writes it to files that begin with base.
func oneFunction(ctx context.Context, s settings, peers []*process.Process, name, base string) (t timing) {
	t.name = name
	defer func() {
		for _, end := range []string{".pt2", ".safetensors"} {
			if err := os.Remove(base + end); !errors.Is(err, os.ErrNotExist) {
				t.why = errors.Join(t.why, err)
			}
		}
	}()
	if _, t.why = peers[0].Ask("write " + name + " " + base); t.why != nil {
		return t
	}
	e, err := readExample(base + ".safetensors")
	if err != nil {
		t.why = err
		return t
	}
	least := map[string]*int64{"torchexport, compiled": &t.compiled, "torchexport, recorded": &t.recorded, "eager": &t.eager, "compile": &t.compile}
	all, err := openFunction(ctx, s, peers, e, name, base)
	defer func() {
		for _, x := range all {
			t.why = errors.Join(t.why, x.close())
		}
	}()
	if err != nil {
		t.why = err
		return t
	}
	for _, x := range all {
		t.off = max(t.off, x.off)
	}
	for range s.rounds {
		for _, x := range all {
			_, ns, err := x.turn(ctx, s.turn)
			if err != nil {
				t.why = fmt.Errorf("%s: %w", x.name, err)
				return t
			}
			if l := least[x.name]; *l == 0 || ns < *l {
				*l = ns
			}
		}
	}
	return t
}

func openFunction(ctx context.Context, s settings, peers []*process.Process, e *example, name, base string) (all []*system, err error) {
	for _, open := range []func(context.Context, settings, *example, string) (*system, error){openProgram, openRecorded} {
		x, err := open(ctx, s, e, base)
		if err != nil {
			return all, err
		}
		all = append(all, x)
	}
	for _, p := range peers {
		answer, err := p.Ask("open " + name + " " + base)
		if err != nil {
			return all, err
		}
		x := peerSystem(p, p.Name)
		if x.off, err = strconv.ParseFloat(answer, 64); err != nil {
			return all, fmt.Errorf("%s said %q: %w", p.Name, answer, err)
		}
		all = append(all, x)
	}
	return all, nil
}

// reportFunctions writes the functions by their ratio, the worst first, and how many are how fast.
func reportFunctions(w io.Writer, version string, s settings, all []timing) error {
	slices.SortStableFunc(all, func(a, b timing) int { return cmp.Compare(b.ratio(), a.ratio()) }) // NaN is last
	fmt.Fprintf(w, "PyTorch %s, %d threads, the least time of %d turns of %v\n", version, s.threads, s.rounds, s.turn)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ratio\tcompiled\trecorded\teager\tcompile\tfunction\toff by")
	var wrong error
	var ratios []float64
	none := 0
	for _, t := range all {
		if errors.Is(t.why, process.ErrNone) {
			none++
			continue
		}
		if t.why != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", t.name, t.why))
			continue
		}
		ratios = append(ratios, t.ratio())
		fmt.Fprintf(tw, "%.2f\t%v\t%v\t%v\t%v\t%s\t%.1e\n", t.ratio(), time.Duration(t.compiled), time.Duration(t.recorded), time.Duration(t.eager), time.Duration(t.compile), t.name, t.off)
		if !(t.off <= functionTolerance) {
			wrong = errors.Join(wrong, fmt.Errorf("%s: results are off by %v of the largest element", t.name, t.off))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if n := len(ratios); n > 0 {
		slices.Sort(ratios)
		above := func(limit float64) (count int) {
			for _, r := range ratios {
				if r > limit {
					count++
				}
			}
			return count
		}
		fmt.Fprintf(w, "%d functions, median %.2f, above 1.1 %d, above 1.5 %d\n", n, ratios[n/2], above(1.1), above(1.5))
	}
	if none > 0 {
		fmt.Fprintf(w, "%d have no gradient\n", none)
	}
	return wrong
}

// functionTolerance is how far results may be off; those of bf16 have eight bits.
const functionTolerance = 2e-2
