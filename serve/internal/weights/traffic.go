package weights

import (
	"bytes"
	"context"
	"math"
	"sync"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Traffic says what runs meet beside the active set.
type Traffic struct {
	// Canary computes Percent of the runs in the place of the active set; empty is
	// none. Requests that were joined to a batch are one run.
	Canary  string
	Percent float64
	// Shadow computes runs a second time after they were answered, as many as it can
	// one after another, and its answers are compared with those; empty is none.
	Shadow string
}

// ShadowReport says what a shadow has shown since it was set.
type ShadowReport struct {
	Compared  uint64 // runs
	Failed    uint64 // of those, runs that the shadow returned an error for
	Different uint64 // of those, runs with an element that differs
	// MaxAbs is the largest difference of two finite floats; a NaN against a number is
	// +Inf.
	MaxAbs float64
}

// shadowTimeout bounds a run of the shadow, which nobody waits for.
const shadowTimeout = time.Minute

// shadow is the state of comparisons.
type shadow struct {
	mu     sync.Mutex
	busy   bool
	closed bool
	of     string
	report ShadowReport
	done   sync.WaitGroup
}

// SetTraffic changes the traffic. Percent is from 0 to 100; a set that is active is no
// canary and no shadow. The report of a shadow that changes begins anew.
func (s *Sets) SetTraffic(t Traffic) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.changing.Unlock()
	if !(t.Percent >= 0 && t.Percent <= 100) {
		return inference.Errorf(inference.InvalidArgument, "percent is %v, not from 0 to 100", t.Percent)
	}
	if t.Canary == "" && t.Percent != 0 {
		return inference.Errorf(inference.InvalidArgument, "percent is %v without a canary", t.Percent)
	}
	r := *s.route.Load()
	for _, name := range []string{t.Canary, t.Shadow} {
		if name == "" {
			continue
		}
		if err := s.has(name); err != nil {
			return err
		}
		if name == r.active {
			return inference.Errorf(inference.InvalidArgument, "weights %q are active", name)
		}
	}
	r.canary, r.share, r.shadow = t.Canary, t.Percent/100, t.Shadow
	s.shadow.mu.Lock()
	if s.shadow.of != t.Shadow {
		s.shadow.of, s.shadow.report = t.Shadow, ShadowReport{}
	}
	s.shadow.mu.Unlock()
	s.route.Store(&r)
	return nil
}

// Traffic returns the traffic, and what the last shadow has shown.
func (s *Sets) Traffic() (Traffic, ShadowReport) {
	r := s.route.Load()
	s.shadow.mu.Lock()
	defer s.shadow.mu.Unlock()
	return Traffic{Canary: r.canary, Percent: 100 * r.share, Shadow: r.shadow}, s.shadow.report
}

// Close waits for a comparison in flight and begins no further one. It is called
// before the container is closed.
func (s *Sets) Close() {
	s.shadow.mu.Lock()
	s.shadow.closed = true
	s.shadow.mu.Unlock()
	s.shadow.done.Wait()
}

// shade has the shadow compute a run that returned outs, unless it has one already.
// The inputs are copied, since they are the request's.
func (s *Sets) shade(name string, inputs, outs []backend.Buffer) {
	s.shadow.mu.Lock()
	if s.shadow.busy || s.shadow.closed {
		s.shadow.mu.Unlock()
		return
	}
	s.shadow.busy = true
	s.shadow.done.Add(1)
	s.shadow.mu.Unlock()
	copies := make([]backend.Buffer, len(inputs))
	var err error
	for i, in := range inputs {
		var data []byte
		if data, err = in.Bytes(context.Background()); err != nil {
			break
		}
		if copies[i], err = aoti.FromBytes(bytes.Clone(data), in.Shape().DType(), in.Shape().Dims()...); err != nil {
			break
		}
	}
	for _, b := range outs {
		b.Retain()
	}
	go func() {
		defer s.shadow.done.Done()
		defer releaseOuts(outs)
		ctx, cancel := context.WithTimeout(context.Background(), shadowTimeout)
		defer cancel()
		var differs bool
		var most float64
		if err == nil {
			var again []backend.Buffer
			if again, err = s.c.RunVersion(ctx, name, copies, nil); err == nil {
				differs, most, err = difference(ctx, outs, again)
				releaseOuts(again)
			}
		}
		s.shadow.note(name, differs, most, err)
	}()
}

// note counts a comparison.
func (s *shadow) note(name string, differs bool, most float64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if s.of != name {
		return
	}
	s.report.Compared++
	switch {
	case err != nil:
		s.report.Failed++
	case differs:
		s.report.Different++
		s.report.MaxAbs = max(s.report.MaxAbs, most)
	}
}

// difference compares the outputs of two runs.
func difference(ctx context.Context, a, b []backend.Buffer) (differs bool, most float64, err error) {
	for i := range a {
		x, err := a[i].Bytes(ctx)
		if err != nil {
			return false, 0, err
		}
		y, err := b[i].Bytes(ctx)
		if err != nil {
			return false, 0, err
		}
		if a[i].Shape() != b[i].Shape() {
			return true, math.Inf(1), nil
		}
		if bytes.Equal(x, y) {
			continue
		}
		differs = true
		if d := a[i].Shape().DType(); d.IsFloat() {
			for j := range a[i].Shape().Numel() {
				u, v := elements.Float(d, x, j), elements.Float(d, y, j)
				switch diff := math.Abs(u - v); {
				case !math.IsNaN(diff):
					most = max(most, diff)
				case !(math.IsNaN(u) && math.IsNaN(v)) && u != v:
					most = math.Inf(1)
				}
			}
		}
	}
	return differs, most, nil
}
