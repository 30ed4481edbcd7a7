package executor_test

import (
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/executor"
)

// A caller runs by itself what takes no longer than another goroutine takes to begin, and what it would
// only wait for, unless that is long or other sessions compute beside it.
func TestPrompt(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		took, pause time.Duration
		alone       bool
		prompt      bool
	}{
		{0, 0, true, false}, // before the first run
		{0, us, true, false},
		{5 * us, 0, true, true},
		{5 * us, time.Hour, true, true},
		{10 * us, 0, true, false}, // nobody knows what the caller does next
		{10 * us, 30 * us, true, true},
		{10 * us, 31 * us, true, false},
		{executor.Longest, us, true, true},
		{executor.Longest + 1, us, true, false},
		{5 * us, 0, false, true},
		{10 * us, us, false, false},
	} {
		if got := executor.Prompt(c.took, c.pause, c.alone); got != c.prompt {
			t.Errorf("after a run of %v and a pause of %v, alone %v: %v, want %v", c.took, c.pause, c.alone, got, c.prompt)
		}
	}
}

// A caller pauses until it has more scheduled, waits or reads.
func TestPause(t *testing.T) {
	s := newSession(t, executor.Config{})
	x := floats(t, s, []float32{3}, 1)
	tr := tracedDouble(t, s, x)
	for name, ask := range map[string]func() error{
		"Call":          func() error { _, err := tr.Call(ctx, []*executor.Tensor{x}, newTensor); return err },
		"MarkStep":      func() error { return s.MarkStep(ctx) },
		"WaitDeviceOps": func() error { return s.WaitDeviceOps(ctx) },
		"Fetch":         func() error { _, err := x.Fetch(ctx); return err },
		"FetchTensors":  func() error { _, err := s.FetchTensors(ctx, x); return err },
	} {
		const least = time.Millisecond
		d := s.PauseUntil(least, func() {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		})
		if d < least {
			t.Errorf("%s ends a pause of %v after %v", name, least, d)
		}
	}
	if d := s.PauseUntil(0, func() {}); d != 0 {
		t.Errorf("a pause that nothing has ended took %v", d)
	}
}
