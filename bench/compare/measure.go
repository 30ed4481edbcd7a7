package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/bench/limit"
	"github.com/loris-ml/loris/bench/workloads"
)

// The most memory, as a multiple of torch.compile's.
const mustMemory, aimMemory = 1.1, 1.0

// measurement is the state of one run of the command.
type measurement struct {
	settings
	folder   string
	progress io.Writer

	limits       []string
	rows, memory []row
	wrong        []error // peers that ended, or disagreed
}

// measure runs all workloads with a number of threads.
func (m *measurement) measure(ctx context.Context, all []*peer, threads int) error {
	var children []child
	defer func() {
		for _, c := range children {
			c.Stop()
		}
	}()
	for _, p := range all {
		if p.line == nil {
			continue
		}
		c, err := p.start(ctx, m.device, threads, process.Environment(threads, m.keepPages))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.line, p.missing = nil, err.Error()
			continue
		}
		children = append(children, c)
	}
	machine := m.machine(children, threads)
	gpu := m.device != loris.CPU
	for _, w := range m.workloads {
		if w.GPU && !gpu {
			continue
		}
		if err := m.workload(ctx, w.On(gpu), children, threads, machine); err != nil {
			return err
		}
	}
	return nil
}

// machine returns what the device can do: 0 where no peer tells it.
func (m *measurement) machine(children []child, threads int) limit.Machine {
	if m.device == loris.CPU {
		machine := limit.Measure(threads, m.vectors)
		m.limits = append(m.limits, machine.String())
		fmt.Fprintln(m.progress, "measured", machine)
		return machine
	}
	for _, c := range children {
		machine, err := c.limits(threads)
		if err == nil {
			m.limits = append(m.limits, fmt.Sprintf("%v: by %s, products %.0f GFLOP/s, copies %.0f GB/s", m.device, c.Name, machine.FLOPS/1e9, machine.Stream/1e9))
			return machine
		}
		if !errors.Is(err, process.ErrNone) {
			m.wrong = append(m.wrong, err)
		}
	}
	return limit.Machine{Threads: threads}
}

// runner is Loris or a peer with an open workload.
type runner struct {
	name  string
	turn  func(context.Context, time.Duration) (int64, error)
	times []int64
	spent time.Duration

	peer   bool // not Loris
	failed bool // it ended, or reported an error, in a turn
}

// workload runs one workload in Loris and in all children that have it.
func (m *measurement) workload(ctx context.Context, w *workloads.Workload, children []child, threads int, machine limit.Machine) (err error) {
	fmt.Fprintf(m.progress, "%s, %d threads:", w.Name, threads)
	o, err := openLoris(ctx, w, m.device, threads)
	if err != nil {
		return fmt.Errorf("%s in Loris: %w", w.Name, err)
	}
	defer func() { err = errors.Join(err, o.close(ctx)) }()
	r := row{Name: w.Name, Threads: threads, Must: w.Must, Aim: w.Aim, Unit: "ns", Peers: map[string]float64{}, Tolerance: w.Tolerance}
	runners := []*runner{{name: "loris", turn: o.turn}}
	var open []child
	for _, c := range children {
		if c.Ended() || !w.For(c.Name) {
			continue
		}
		d, err := m.open(ctx, w, c, o.results)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, process.ErrNone):
		case err != nil:
			m.wrong = append(m.wrong, fmt.Errorf("%s, %d threads: %w", w.Name, threads, err))
		default:
			r.Difference = max(r.Difference, d)
			open = append(open, c)
			runners = append(runners, &runner{name: c.Name, peer: true, turn: func(_ context.Context, d time.Duration) (int64, error) {
				return c.turn(d, w.Batch(m.device != loris.CPU))
			}})
			fmt.Fprintf(m.progress, " %s", c.Name)
		}
	}
	fmt.Fprintln(m.progress)
	if err := m.turns(ctx, runners); err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	for _, one := range runners {
		if !one.failed {
			r.add(one.name, float64(median(one.times))/float64(w.Ops), w.Against(one.name))
		}
	}
	if least := machine.Seconds(w.FLOP, w.Bytes) * 1e9; least > 0 {
		r.Limit = r.Loris / least
	}
	m.rows = append(m.rows, r)
	if w.Memory && m.device == loris.CPU {
		if err := m.peaks(ctx, w, o, open, threads); err != nil {
			return err
		}
	}
	for _, c := range children {
		if !c.Ended() {
			if _, err := c.Ask("close"); err != nil {
				m.wrong = append(m.wrong, err)
			}
		}
	}
	return nil
}

// add notes the figure of Loris or a peer, and which of the peers that count is best.
func (r *row) add(name string, v float64, counts bool) {
	if name == "loris" {
		r.Loris = v
		return
	}
	r.Peers[name] = v
	if counts && (r.Peer == "" || v < r.Best) {
		r.Peer, r.Best = name, v
	}
	if r.Best > 0 {
		r.Ratio = r.Loris / r.Best
	}
}

// open makes a workload in a peer and returns how much its results differ from
// ours; too much is an error.
func (m *measurement) open(ctx context.Context, w *workloads.Workload, c child, want []float32) (float64, error) {
	path := filepath.Join(m.folder, "results")
	defer os.Remove(path)
	if _, err := c.Ask(fmt.Sprintf("open %s %d %s", w.Name, w.Runs, path)); err != nil {
		return 0, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	got := make([]float32, len(data)/4)
	if _, err := binary.Decode(data, binary.LittleEndian, got); err != nil {
		return 0, err
	}
	d, err := difference(got, want)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.Name, err)
	}
	if !(d <= w.Tolerance) {
		return d, fmt.Errorf("%s's results differ by %.1e of the largest, more than %.1e: it is left out", c.Name, d, w.Tolerance)
	}
	return d, nil
}

// difference is the largest of two elements, relative to the largest element; it
// is NaN if one is.
func difference(got, want []float32) (float64, error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%d results, Loris has %d", len(got), len(want))
	}
	var worst, largest float64
	for i, g := range got {
		d := math.Abs(float64(g) - float64(want[i]))
		if math.IsNaN(d) {
			return d, nil
		}
		worst, largest = max(worst, d), max(largest, math.Abs(float64(want[i])))
	}
	if worst == 0 {
		return 0, nil
	}
	return worst / largest, nil
}

// Runners whose one run is far longer than a turn take fewer of them: at least
// fewest, and no more once they have spent that many turns' time.
const fewest, patience = 3, 4

// turns lets all runners take their turns, one after another.
func (m *measurement) turns(ctx context.Context, runners []*runner) error {
	for round := range m.rounds {
		for _, r := range runners {
			if r.failed || round >= fewest && r.spent > patience*time.Duration(m.rounds)*m.turn {
				continue
			}
			begin := time.Now()
			t, err := r.turn(ctx, m.turn)
			if err != nil && (!r.peer || ctx.Err() != nil) {
				return err
			}
			if err != nil {
				m.wrong = append(m.wrong, fmt.Errorf("in its turn: %w", err))
				r.failed = true
				continue
			}
			r.spent += time.Since(begin)
			r.times = append(r.times, t)
		}
	}
	return nil
}

// peaks compares the memory of a run with that of the peers that can say it.
func (m *measurement) peaks(ctx context.Context, w *workloads.Workload, o *ours, open []child, threads int) error {
	r := row{Name: w.Name + " peak", Threads: threads, Must: mustMemory, Aim: aimMemory, Unit: "bytes", Peers: map[string]float64{}}
	n, err := o.peak(ctx)
	if err != nil {
		return fmt.Errorf("%s: the peak of memory: %w", w.Name, err)
	}
	r.Loris = float64(n)
	for _, c := range open {
		if c.Ended() {
			continue
		}
		answer, err := c.Ask("peak")
		if errors.Is(err, process.ErrNone) {
			continue
		}
		v, parseErr := strconv.ParseFloat(strings.TrimSpace(answer), 64)
		if err = errors.Join(err, parseErr); err != nil {
			m.wrong = append(m.wrong, err)
			continue
		}
		if c.Name == "compile" { // which the limit is about
			r.Peer, r.Best, r.Ratio = c.Name, v, r.Loris/v
		}
		r.Peers[c.Name] = v
	}
	m.memory = append(m.memory, r)
	return nil
}
