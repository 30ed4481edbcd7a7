package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/tracefile"
	"github.com/loris-ml/loris/report"
)

var errTraced = errors.New("loris: trace: the session is being traced already")

// TraceEvents writes what all sessions of the executor do to w, from now on until stop is called.
func (s *Session) TraceEvents(w io.Writer) (stop func() error, err error) {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events.Load() != nil {
		return nil, errTraced
	}
	t := tracefile.New(w)
	c.events.Store(t)
	ranks := c.cfg.Collectives
	if ranks != nil {
		ranks.Observe(func(e collective.Event) {
			t.Add(tracefile.Event{Track: t.Track("group " + e.Group), Name: e.Text, Category: "collective", Start: e.Start, Duration: e.Duration, Detail: e.Line})
		})
	}
	return func() error {
		if c.events.CompareAndSwap(t, nil) && ranks != nil {
			ranks.Observe(nil)
		}
		if err := t.Close(); err != nil {
			return fmt.Errorf("loris: trace: %w", err)
		}
		return nil
	}, nil
}

// stage adds the time since start to that of a stage, tells observers, and returns the time.
func (s *Session) stage(st report.Stage, start time.Time) time.Time {
	now := s.core.stage(st, start)
	if t := s.core.events.Load(); t != nil {
		category := "stage"
		if st == report.StageLock || st == report.StageFetch {
			category = "wait"
		}
		t.Add(tracefile.Event{Track: s.track(t), Name: st.String(), Category: category, Start: start, Duration: now.Sub(start)})
	}
	return now
}

// track is the track of the session's goroutine.
func (s *Session) track(t *tracefile.Writer) int {
	if s.id == 0 {
		return t.Track("session")
	}
	return t.Track(fmt.Sprintf("fork %d", s.id))
}

// recorded adds the time since the step before to a trace, as that of recording, which ended at now.
func (s *Session) recorded(now time.Time) {
	t := s.core.events.Load()
	if t == nil {
		return
	}
	from := t.Begin()
	if last := s.lastStep.Load(); last != nil && last.After(from) {
		from = *last
	}
	t.Add(tracefile.Event{Track: s.track(t), Name: "record", Category: "record", Start: from, Duration: now.Sub(from)})
}

// stepEnded notes, while the executor is traced, when recording of the next step began.
func (s *Session) stepEnded() {
	if s.core.events.Load() != nil {
		now := time.Now()
		s.lastStep.Store(&now)
	}
}

// ran adds a computation to a trace.
func (c *core) ran(r *run, err error) {
	t := c.events.Load()
	if t == nil {
		return
	}
	e := tracefile.Event{Track: t.Track(r.Device.String()), Name: "run", Category: "run", Start: r.start, Duration: time.Since(r.start), Detail: r.Hash.String()}
	if err != nil {
		e.Name, e.Detail = "run (failed)", err.Error()
	}
	t.Add(e)
}

// compiling adds a compilation to a trace.
func (c *core) compiling(p *graph.Program, start time.Time) {
	if t := c.events.Load(); t != nil {
		t.Add(tracefile.Event{Track: t.Track("compiler"), Name: "compile " + p.Name, Category: "compile", Start: start,
			Duration: time.Since(start), Detail: fmt.Sprintf("%d nodes", len(p.Instrs))})
	}
}

// tracingKernels returns ctx with which a backend reports its kernels to a trace, if there is one.
func (r *run) tracingKernels(ctx context.Context) context.Context {
	t := r.c.events.Load()
	if t == nil {
		return ctx
	}
	track := t.Track(r.Device.String() + " kernels")
	return backend.WithKernels(ctx, func(name, line string, start time.Time, d time.Duration) {
		t.Add(tracefile.Event{Track: track, Name: name, Category: "kernel", Start: start, Duration: d, Detail: line})
	})
}
