package dist

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/report"
)

// meters count what the collectives of this rank cost.
type meters struct {
	base             time.Time // when the world began
	observer         atomic.Pointer[func(collective.Event)]
	agreements, time atomic.Int64

	mu  sync.Mutex
	all map[meterKey]*totals // guarded by mu
}

// meterKey is what tells collectives of a report apart.
type meterKey struct{ group, text, line string }

// totals are the counts of a row of the report, in nanoseconds.
type totals struct{ runs, bytes, time, waited, overlap atomic.Int64 }

// meter is what a Use keeps between its runs.
type meter struct {
	*totals
	meters *meters
	use    *collective.Use
	took   time.Duration // the latest run's; read once that has ended
}

// of returns the meter of a collective that is about to run with an operand of so many bytes.
func (s *meters) of(u *collective.Use, bytes int) *meter {
	m, _ := u.Meter.(*meter)
	if m == nil || m.meters != s {
		m = &meter{totals: s.totals(meterKey{u.Group, u.Text, u.Line}), meters: s, use: u}
		u.Meter = m
	}
	m.runs.Add(1)
	m.bytes.Add(int64(bytes))
	m.took = 0
	return m
}

func (s *meters) totals(k meterKey) *totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[meterKey]*totals{}
	}
	if s.all[k] == nil {
		s.all[k] = new(totals)
	}
	return s.all[k]
}

// now returns the time since base, which is one question to the system's clocks where time.Now is two.
func (s *meters) now() time.Duration { return time.Since(s.base) }

// ran notes the end of a transfer that began at a time of now.
func (m *meter) ran(begun time.Duration) {
	m.took = m.meters.now() - begun
	m.time.Add(int64(m.took))
	if fn := m.meters.observer.Load(); fn != nil {
		(*fn)(collective.Event{Group: m.use.Group, Text: m.use.Text, Line: m.use.Line, Start: m.meters.base.Add(begun), Duration: m.took})
	}
}

// waited notes how long a step stood still for a transfer that has ended.
func (m *meter) waited(d time.Duration) {
	m.totals.waited.Add(int64(d))
	m.overlap.Add(int64(max(m.took-d, 0)))
}

// agreed notes an agreement that began at a time of now and has ended.
func (s *meters) agreed(begun time.Duration) {
	d := s.now() - begun
	s.agreements.Add(1)
	s.time.Add(int64(d))
	if fn := s.observer.Load(); fn != nil {
		(*fn)(collective.Event{Group: "world", Text: "agreement", Start: s.base.Add(begun), Duration: d})
	}
}

// metered is a collective under way whose wait is metered.
type metered struct {
	*job
	meter *meter
}

// Wait implements collective.Request.
func (m *metered) Wait(ctx context.Context) error {
	begun := time.Now()
	err := m.job.Wait(ctx)
	m.meter.waited(time.Since(begun))
	return err
}

// Report implements collective.Communicator.
func (w *world) Report() ([]report.Collective, report.Agreements) {
	s := &w.meters
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []report.Collective
	for k, t := range s.all {
		out = append(out, report.Collective{
			Group: k.group, Op: k.text, Line: k.line, Runs: t.runs.Load(), Bytes: t.bytes.Load(), Time: time.Duration(t.time.Load()),
			Waited: time.Duration(t.waited.Load()), Overlap: time.Duration(t.overlap.Load()),
		})
	}
	slices.SortFunc(out, func(a, b report.Collective) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Op, b.Op))
	})
	return out, report.Agreements{Runs: s.agreements.Load(), Time: time.Duration(s.time.Load())}
}

// Observe implements collective.Communicator.
func (w *world) Observe(fn func(collective.Event)) {
	if fn == nil {
		w.meters.observer.Store(nil)
		return
	}
	w.meters.observer.Store(&fn)
}
