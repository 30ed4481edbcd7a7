package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

// The most time that a run may take, as a multiple of Inductor's package in the same runner, and
// where pointwise ops and reductions dominate.
const mustExported, mustPointwise = 1.1, 0.8

// measured is how an exported program does in one version of PyTorch. Differences from what Loris
// computes are in units in the last place of the largest element.
type measured struct {
	*exported
	host, cpp, python          int64 // nanoseconds a run
	inductor                   int64 // nanoseconds a run of Inductor's package in the C++ runner; 0 without one
	hostOff, cppOff, pythonOff float64
	lorisErr, cppErr           float64 // beside the same in f64, what Loris computes and the package in the C++ runner
}

// runExported writes the programs and prints a table for each PyTorch.
func runExported(ctx context.Context, w io.Writer, s settings) error {
	folder := s.folder
	if folder == "" {
		made, err := os.MkdirTemp("", "bench-aoti")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		folder = made
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var wrong []error
	for _, python := range s.pythons {
		t, err := findTorch(ctx, python, folder, s.device)
		if err != nil {
			return err
		}
		version, _, _ := strings.Cut(t.version, "+")
		all, err := exportAll(ctx, folder, s.only, version, s.device.Type.String())
		if err != nil {
			wrong = append(wrong, err)
		}
		if s.inductor {
			if err := t.compile(ctx, folder, all); err != nil {
				return err
			}
		}
		var rows []*measured
		for _, e := range all {
			m, err := t.measure(ctx, e, s)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s in PyTorch %s: %w", e.name, t.version, err))
			}
			if m != nil {
				rows = append(rows, m)
			}
		}
		if err := exportedTable(w, t, s.threads[0], rows); err != nil {
			return err
		}
	}
	return errors.Join(wrong...)
}

// compiled returns where Inductor's package of a program is.
func (e *exported) compiled() string { return strings.TrimSuffix(e.path, ".pt2") + ".inductor.pt2" }

// measure runs a package in all runners by turns, and Inductor's package of the same model where there is one.
func (t *torch) measure(ctx context.Context, e *exported, s settings) (m *measured, err error) {
	x, err := readExample(beside(e.path))
	if err != nil {
		return nil, err
	}
	o, err := openLoris(ctx, e.path, x.in, s.threads[0], s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	m = &measured{exported: e, cppErr: math.NaN()}
	own := make([][]byte, len(x.out))
	for i := range own {
		own[i] = x.out[i].data
	}
	m.lorisErr = unitsErred(own, x.out, e.exact)
	results, err := o.results(ctx)
	if err == nil {
		m.hostOff, err = unitsOff(results, x.out)
	}
	wrong := []error{err}
	runners, into := []turner{o}, []*int64{&m.host}
	for _, one := range []struct {
		name, path string
		line       []string
		time       *int64
		off, err   *float64
	}{
		{"the C++ runner", e.path, t.cpp, &m.cpp, &m.cppOff, &m.cppErr}, {"the Python loader", e.path, t.py, &m.python, &m.pythonOff, nil},
		{"Inductor's package", e.compiled(), t.cpp, &m.inductor, nil, nil},
	} {
		if _, err := os.Stat(one.path); err != nil {
			continue
		}
		p, err := t.start(ctx, one.line, one.path, s.threads[0], s.batch, x.in)
		if err == nil {
			defer p.stop()
			runners, into = append(runners, p), append(into, one.time)
			if one.off != nil {
				var got [][]byte
				if got, err = p.results(t.folder, x.out); err == nil {
					*one.off, err = unitsOff(got, x.out)
				}
				if err == nil && one.err != nil {
					*one.err = unitsErred(got, x.out, e.exact)
				}
			}
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", one.name, err))
		}
	}
	times, err := turns(ctx, runners, s)
	if err != nil {
		return m, errors.Join(append(wrong, err)...)
	}
	for i, list := range times {
		*into[i] = median(list)
	}
	return m, errors.Join(wrong...)
}

// unitsOff is difference in units in the last place of the largest element.
func unitsOff(got [][]byte, want []stored) (float64, error) {
	if _, err := difference(got, want); err != nil {
		return 0, err
	}
	worst := 0.0
	for i, w := range want {
		if d := w.shape.DType(); d.IsFloat() {
			worst = max(worst, distance(d, got[i], w.data)/epsilon(d))
		}
	}
	return worst, nil
}

// epsilon is the distance from 1 to the next number of a floating dtype.
func epsilon(d ir.DType) float64 {
	e := 1.0
	for elements.Float(d, elements.AppendFloat(nil, d, 1+e/2), 0) > 1 {
		e /= 2
	}
	return e
}

// compile makes Inductor's packages of programs, but of those that were made before.
func (t *torch) compile(ctx context.Context, folder string, all []*exported) error {
	script := filepath.Join(folder, "inductor.py")
	if err := os.WriteFile(script, peerInductor, 0o600); err != nil {
		return err
	}
	args := []string{script}
	for _, e := range all {
		args = append(args, strings.TrimSuffix(e.path, ".pt2"))
	}
	out, err := command(ctx, t.py[0], args...)
	if err != nil {
		return fmt.Errorf("compile the models with Inductor: %w", err)
	}
	_, err = io.WriteString(os.Stderr, out)
	return err
}

func exportedTable(w io.Writer, t *torch, threads int, rows []*measured) error {
	fmt.Fprintf(w, "PyTorch %s, %d threads; medians of runs. \"off\" is the largest difference from what Loris computes, in units in the last place of the largest element, \"err\" the same from what f64 gives.\n", t.version, threads)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "program\texport\tweights alone\tweights\tbeyond\toff, Loris\toff, C++\toff, Python\terr, Loris\terr, C++\tLoris\ttorch C++\ttorch Python\tInductor, C++\tratio\tmust\t")
	for _, m := range rows {
		must := mustExported
		if m.pointwise {
			must = mustPointwise
		}
		r := row{CPP: m.inductor, Ratio: ratio(m.cpp, m.inductor), Must: must}
		fmt.Fprintf(tw, "%s\t%v\t%v\t%.1f MB\t%.1f KB\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%v\t%v\t%v\t%s\t%s\t%s\t\n", m.name, m.took.Round(time.Millisecond/10), m.copying.Round(time.Millisecond/10),
			float64(m.weights)/1e6, float64(m.beyond)/1e3, m.hostOff, m.cppOff, m.pythonOff, m.lorisErr, m.cppErr, short(m.host), short(m.cpp), short(m.python),
			known(m.inductor, short(m.inductor)), known(m.inductor, fmt.Sprintf("%.2f", r.Ratio)), r.verdict())
	}
	return tw.Flush()
}
