package repository

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
)

const program = "program @p {\n  %x = parameter \"x\" : f32[4,2]\n  %0 = mul(%x, 2)\n  return %0\n}\n"

// twoModels are a and b, of which one fits into the budget: b, which was loaded last.
func twoModels(t *testing.T, wait time.Duration) *Repository {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"a", "b"} {
		files[name] = filepath.Join(t.TempDir(), name+".lir")
		if err := os.WriteFile(files[name], []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Options{Files: files, MemoryBudget: int64(len(program)), LoadWait: wait})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(t.Context()); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
	})
	return r
}

// A version with requests is not closed under them: others wait for its memory as long as they may.
func TestBudgetWaitsForRequests(t *testing.T) {
	r := twoModels(t, 20*time.Millisecond)
	busy, err := r.find(t.Context(), "b", "")
	if err != nil {
		t.Fatal(err)
	}
	var e *inference.Error
	if _, err := r.find(t.Context(), "a", ""); !errors.As(err, &e) || e.Kind != inference.Unavailable || e.RetryAfter == 0 {
		t.Fatal(err)
	}
	if v, err := r.find(t.Context(), "b", ""); err != nil || v != busy {
		t.Errorf("b is another one: %v", err)
	} else {
		v.leave()
	}
	busy.leave()
	r.options.LoadWait = time.Minute
	v, err := r.find(t.Context(), "a", "")
	for errors.As(err, &e) && e.Kind == inference.Unavailable { // the load that began with the short wait may go on
		v, err = r.find(t.Context(), "a", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	v.leave()
}

// A request waits for a load no longer than it may, and the load goes on.
func TestBudgetWaitIsBounded(t *testing.T) {
	r := twoModels(t, time.Millisecond)
	r.loads.Lock() // of another model, which takes long
	if _, err := r.find(t.Context(), "a", ""); err == nil || !strings.Contains(err.Error(), "still being loaded again after 1ms") {
		t.Error(err)
	}
	r.options.LoadWait = time.Minute
	r.loads.Unlock()
	v, err := r.find(t.Context(), "a", "")
	if err != nil {
		t.Fatal(err)
	}
	v.leave()
}
