package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

//go:embed peer.py
var peerScript []byte

// row is one op on a dtype, in a size, forwards or with its gradient, on so many threads. Times are
// nanoseconds of a run.
type row struct {
	Op       string  `json:"op"`
	Category string  `json:"category"`
	DType    string  `json:"dtype"`
	Size     string  `json:"size"`
	Pass     string  `json:"pass"`
	Threads  int     `json:"threads"`
	Loris    int64   `json:"loris"`
	Eager    int64   `json:"eager"`
	Compile  int64   `json:"compile,omitempty"`
	Ratio    float64 `json:"ratio"`         // of Loris to the better; 0 without a peer whose results agree
	Why      string  `json:"why,omitempty"` // there is no ratio
}

func (r row) String() string {
	return fmt.Sprintf("%s %s %s %s, %d threads", r.Op, r.DType, r.Size, r.Pass, r.Threads)
}

// measurement is the state of one run of the command.
type measurement struct {
	settings
	folder   string
	progress io.Writer

	peers   map[string]*process.Process // by mode
	version string
	rows    []row
	noise   []noise
	missing []string  // ops without a case on the dtypes
	kept    *kept     // nil without a file of rows
	end     time.Time // after which no row is begun; zero is never
	cut     bool      // rows are missing, since the time was up
}

// measure runs all cases with a number of threads.
func (m *measurement) measure(ctx context.Context, threads int) error {
	script := filepath.Join(m.folder, "peer.py")
	if err := os.WriteFile(script, peerScript, 0o600); err != nil {
		return err
	}
	defer m.stopPeers()
	modes := []string{"eager"}
	if m.compile {
		modes = append(modes, "compile")
	}
	for _, sp := range ir.Ops() {
		if !m.only.MatchString(sp.Name) || m.skip != nil && m.skip.MatchString(sp.Name) {
			continue
		}
		rows, sizes := len(m.rows), m.sizes
		if s, ok := m.given[sp.Name]; ok {
			sizes = []size{s}
		}
		for _, d := range m.dtypes {
			for _, s := range sizes {
				for _, pass := range m.passes {
					if err := m.one(ctx, sp, d, s, pass, threads, modes, script); err != nil {
						return fmt.Errorf("%s %v %s %s: %w", sp.Name, d, s.name, pass, err)
					}
				}
			}
		}
		if len(m.rows) == rows && !m.cut && !slices.Contains(m.missing, sp.Name) {
			m.missing = append(m.missing, sp.Name)
		}
	}
	return nil
}

// peerOf returns the process of a mode, which a call may have ended.
func (m *measurement) peerOf(ctx context.Context, mode, script string, threads int) (*process.Process, error) {
	if p := m.peers[mode]; p != nil && !p.Ended() {
		return p, nil
	}
	p, err := process.Start(ctx, mode, []string{m.python, script, mode, strconv.Itoa(threads), m.folder}, process.Environment(threads, m.keepPages))
	if err != nil {
		return nil, err
	}
	if m.peers == nil {
		m.peers = map[string]*process.Process{}
	}
	m.peers[mode], m.version = p, p.Version
	return p, nil
}

func (m *measurement) stopPeers() {
	for _, p := range m.peers {
		p.Stop()
	}
	m.peers = nil
}

// one measures one case, if there is such a case.
func (m *measurement) one(ctx context.Context, sp *ir.Spec, d ir.DType, s size, pass string, threads int, modes []string, script string) error {
	if pass == gradient && (!d.IsFloat() || !sp.Differentiable()) {
		return nil
	}
	r := row{Op: sp.Name, Category: sp.Category.String(), DType: d.String(), Size: s.name, Pass: pass, Threads: threads}
	if m.kept != nil {
		if old, ok := m.kept.rows[r.String()]; ok && !(old.Ratio > m.again) {
			m.rows = append(m.rows, old)
			return nil
		}
	}
	if !m.end.IsZero() && time.Now().After(m.end) {
		m.cut = true
		return nil
	}
	c, roots, err := prepare(sp, d, s, pass)
	if errors.Is(err, errNoCase) {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := openLoris(ctx, roots)
	if errors.Is(err, errNoCase) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = o.close() }()
	want, err := o.results(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.Why = "Loris: " + err.Error()
		return m.add(r)
	}
	if err := c.write(m.folder); err != nil {
		return err
	}
	var open []*process.Process
	for _, mode := range modes {
		p, err := m.peerOf(ctx, mode, script, threads)
		if err != nil {
			return err
		}
		if why := m.open(p, c, o.shapes, want); why != nil {
			r.Why = why.Error()
			continue
		}
		open = append(open, p)
	}
	if err := m.turns(ctx, &r, o, open); err != nil {
		return err
	}
	for _, p := range open {
		if _, err := p.Ask("close"); err != nil {
			return err
		}
	}
	return m.add(r)
}

// add is told each row when it is known.
func (m *measurement) add(r row) error {
	m.rows = append(m.rows, r)
	fmt.Fprintf(m.progress, "%v: %.3g %s\n", r, r.Ratio, r.Why)
	if m.kept == nil {
		return nil
	}
	return m.kept.add(r)
}

// prepare makes a case and records it.
func prepare(sp *ir.Spec, d ir.DType, s size, pass string) (*call, []ir.Value, error) {
	c, err := newCall(sp, d, s)
	if err != nil {
		return nil, nil, err
	}
	roots, err := c.record(pass)
	return c, roots, err
}

// write leaves the call where the peer looks for it.
func (c *call) write(folder string) error {
	f, err := os.Create(filepath.Join(folder, "operands"))
	if err != nil {
		return err
	}
	defer f.Close()
	at := 0
	for _, list := range [][]*tensor{c.tensors, c.Cotangents} {
		for _, t := range list {
			t.Offset = at
			// Elements begin at multiples of 16, as PyTorch wants them aligned.
			padded := append(t.data[:len(t.data):len(t.data)], make([]byte, -len(t.data)&15)...)
			if _, err := f.Write(padded); err != nil {
				return err
			}
			at += len(padded)
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.WriteFile(filepath.Join(folder, "call.json"), text, 0o600))
}

// open makes the call in a peer and holds its results against ours.
func (m *measurement) open(p *process.Process, c *call, shapes []ir.Shape, want [][]byte) error {
	answer, err := p.Ask("open")
	if err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(m.folder, "results"))
	if err != nil {
		return err
	}
	names := strings.Fields(answer)
	for i, name := range names {
		if i == len(want) {
			break
		}
		d, err := ir.ParseDType(name)
		if err != nil {
			return err
		}
		n := len(want[i]) / shapes[i].DType().Size() * d.Size()
		if n > len(got) {
			return fmt.Errorf("PyTorch's result %d has fewer elements than %v", i, shapes[i])
		}
		// Which of equal elements an index names is not defined.
		if !unordered[c.Op] && !(i > 0 && d.IsInt()) {
			if err := agree(d, got[:n], shapes[i].DType(), want[i]); err != nil {
				return fmt.Errorf("result %d: %w", i, err)
			}
		}
		got = got[n:]
	}
	return nil
}

// tolerances are what the largest difference may be, relative to the largest element.
var tolerances = map[ir.DType]float64{ir.F64: 1e-8, ir.F32: 1e-3, ir.F16: 2e-2, ir.BF16: 6e-2, ir.C64: 1e-3, ir.C128: 1e-8}

// mostCompared is about how many elements of a result are compared.
const mostCompared = 1 << 17

// agree compares two results, in some of the elements where they are many.
func agree(gotType ir.DType, got []byte, wantType ir.DType, want []byte) error {
	n := len(got) / gotType.Size()
	if gotType.IsComplex() {
		n *= 2
	}
	var worst, largest float64
	for i := 0; i < n; i += n/mostCompared | 1 {
		g, w := elements.Number(gotType, got, i), elements.Number(wantType, want, i)
		if math.Abs(w) < math.Inf(1) {
			largest = max(largest, math.Abs(w))
		}
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if math.IsNaN(g - w) {
			return fmt.Errorf("element %d is %v, PyTorch has %v", i, w, g)
		}
		worst = max(worst, math.Abs(g-w))
	}
	if worst > largest*tolerances[wantType] {
		return fmt.Errorf("differs from PyTorch's by %.1e of the largest", worst/largest)
	}
	return nil
}

// turns lets Loris and the peers take their turns.
func (m *measurement) turns(ctx context.Context, r *row, o *ours, open []*process.Process) error {
	least := map[string]int64{}
	note := func(name string, ns int64) {
		if v, ok := least[name]; !ok || ns < v {
			least[name] = ns
		}
	}
	for range m.rounds {
		ns, err := o.turn(ctx, m.turn, r.Threads)
		if err != nil {
			return err
		}
		note("loris", ns)
		for _, p := range open {
			_, ns, err := p.Turn(m.turn, 1)
			if err != nil {
				return err
			}
			note(p.Name, ns)
		}
	}
	r.Loris, r.Eager, r.Compile = least["loris"], least["eager"], least["compile"]
	best := r.Eager
	if r.Compile > 0 && (best == 0 || r.Compile < best) {
		best = r.Compile
	}
	if best > 0 {
		r.Ratio, r.Why = float64(r.Loris)/float64(best), ""
	}
	return nil
}
