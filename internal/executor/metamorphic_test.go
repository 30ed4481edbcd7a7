package executor_test

import (
	"bytes"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/randprog"
)

var (
	metaTime = flag.Duration("metamorphic.time", 2*time.Second, "how long TestMetamorphic makes random programs")
	metaSeed = flag.Uint64("metamorphic.seed", 1, "the seed of its first program")
)

// mode is one way of running a program.
type mode struct {
	name string
	form form
	// forks runs it on so many forks of the session at once.
	forks int
	// takes says which programs the mode can express; nil: all.
	takes func(p *randprog.Program) bool
	s     *executor.Session
}

// modes returns the ways that must agree bit by bit with the first, but for what
// roughlyDifferent allows.
func modes(t *testing.T, dev string) []*mode {
	d, err := ir.ParseDevice(dev)
	if err != nil {
		t.Fatal(err)
	}
	pure := func(p *randprog.Program) bool { return !p.Has(randprog.Carry) && !p.Has(randprog.Random) }
	cfg := func(c executor.Config) *executor.Session {
		if c.Device.IsAny() {
			c.Device = d
		}
		return newSession(t, c)
	}
	ms := []*mode{
		{name: "eager", form: eager, s: cfg(executor.Config{})},
		{name: "one sync a step", s: cfg(executor.Config{})},
		{name: "cache of one", s: cfg(executor.Config{CacheBytes: -1, CacheStrong: 1})},
		{name: "tiny trim", s: cfg(executor.Config{TrimNodes: 7})},
		{name: "Step", form: scoped, s: cfg(executor.Config{})},
		{name: "traced", form: traced, takes: pure, s: cfg(executor.Config{})},
		{name: "8 forks", forks: 8, s: cfg(executor.Config{})},
	}
	if dev == "ref" { // which a queue computes as
		newQueue(t)
		ahead := executor.Config{Device: queueDevice}
		ms = append(ms,
			&mode{name: "enqueued", s: cfg(ahead)},
			&mode{name: "enqueued Step", form: scoped, s: cfg(ahead)},
			&mode{name: "4 forks, enqueued", forks: 4, s: cfg(ahead)})
	}
	return ms
}

// run returns the observations of a mode; those of forks are held equal.
func (m *mode) run(p *randprog.Program) (map[place][]byte, error) {
	if m.forks == 0 {
		return runProgram(m.s, p, m.form)
	}
	seen := make([]map[place][]byte, m.forks)
	errs := make([]error, m.forks)
	var wg sync.WaitGroup
	for i := range m.forks {
		wg.Go(func() { seen[i], errs[i] = runProgram(m.s.Fork(), p, m.form) })
	}
	wg.Wait()
	for i := range m.forks {
		if errs[i] != nil {
			return nil, fmt.Errorf("fork %d: %w", i, errs[i])
		}
		if msg := different(p, seen[i], seen[0]); msg != "" {
			return nil, fmt.Errorf("fork %d differs from fork 0: %s", i, msg)
		}
	}
	return seen[0], nil
}

// different describes the first observation that is not bit-equal.
func different(p *randprog.Program, got, want map[place][]byte) string {
	for step := range p.Steps + 1 {
		for what := -len(p.Outputs); what < max(len(p.Stmts), len(p.Vars)); what++ {
			at := place{step, what}
			g, okG := got[at]
			if w, okW := want[at]; okG != okW || !bytes.Equal(g, w) {
				return fmt.Sprintf("at %s: got %x, want %x", at.in(p), g, w)
			}
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d observations, want %d", len(got), len(want))
	}
	return ""
}

func (at place) in(p *randprog.Program) string {
	switch {
	case at.step == p.Steps:
		return fmt.Sprintf("the end, v%d", at.what)
	case at.what < 0:
		return fmt.Sprintf("step %d, output r%d", at.step, p.Outputs[-1-at.what])
	}
	return fmt.Sprintf("step %d, read of r%d by statement %d", at.step, p.Stmts[at.what].Args[0], at.what)
}

// onceWrong has the seeds of programs whose modes have differed: by a gradient
// with respect to a variable's value of the step before, and by what does not
// count: roundings of products, the sign of a NaN.
var onceWrong = []uint64{100193, 1572, 3829}

// programOf returns the program of a seed; the kinds of programs take turns.
func programOf(seed uint64) *randprog.Program {
	o := randprog.Options{Stmts: 4 + int(seed%37), Tame: seed%2 == 0}
	o.NoRandom, o.NoCarry = seed%3 == 0, seed%3 == 0
	return randprog.New(seed, o)
}

// TestMetamorphic runs random programs in ways that must agree.
func TestMetamorphic(t *testing.T) {
	for _, dev := range []string{"ref", "cpu"} {
		t.Run(dev, func(t *testing.T) { metamorphic(t, dev, *metaTime/2) })
	}
}

func metamorphic(t *testing.T, dev string, limit time.Duration) {
	ms := modes(t, dev)
	for _, seed := range onceWrong {
		agree(t, ms, seed)
	}
	start, n := time.Now(), 0
	for seed := *metaSeed; time.Since(start) < limit; seed++ {
		agree(t, ms, seed)
		n++
	}
	t.Logf("%d programs from seed %d on", n, *metaSeed)
}

// agree runs the program of a seed in all modes.
func agree(t *testing.T, ms []*mode, seed uint64) {
	t.Helper()
	p := programOf(seed)
	for _, m := range ms[1:] {
		if m.takes != nil && !m.takes(p) {
			continue
		}
		if msg := disagreement(ms[0], m, p); msg != "" {
			small := randprog.Shrink(p, 400, func(q *randprog.Program) bool { return disagreement(ms[0], m, q) != "" })
			t.Fatalf("%s, seed %d (-metamorphic.seed=%d): %s\n%s", m.name, seed, seed, disagreement(ms[0], m, small), small)
		}
	}
}

func disagreement(reference, m *mode, p *randprog.Program) string {
	want, err := reference.run(p)
	if err != nil {
		return fmt.Sprintf("%s: %v", reference.name, err)
	}
	got, err := m.run(p)
	if err != nil {
		return err.Error()
	}
	msg := different(p, got, want)
	if msg == "" || m.s.Device().Type != cpu.DeviceType {
		return msg
	}
	moved, err := reference.run(nudged(p, func(d ir.DType) float64 { return max(0x1p-22, 2*unit(d)) }))
	if err != nil {
		return fmt.Sprintf("%s, with other inputs: %v", reference.name, err)
	}
	return roughlyDifferent(p, got, want, moved)
}
