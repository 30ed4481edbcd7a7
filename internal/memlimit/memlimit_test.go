package memlimit

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func TestTakeStopsAtTheLimit(t *testing.T) {
	before := Held()
	limit := before + 1000
	if err := Take(600, limit); err != nil {
		t.Fatal(err)
	}
	err := Take(401, limit)
	if err == nil || err.Wanted != 401 || err.Held != before+600 || err.Limit != limit {
		t.Errorf("401 more of 1000 gave %+v", err)
	}
	if err := Take(400, limit); err != nil {
		t.Error(err)
	}
	Give(1000)
	var oom *ir.OutOfMemory
	if err := Check(math.MaxInt64, 0); !errors.As(err, &oom) || oom.Limit != Default() {
		t.Errorf("more than any machine has gave %v", err)
	}
	if err := Check(1, 0); err != nil || Held() != before {
		t.Errorf("a check gave %v and left %d bytes", err, Held()-before)
	}
}

// What a release function drops, and what the collector then finds, is there to be taken.
func TestTakeReclaims(t *testing.T) {
	type block struct{ mem []byte }
	kept := &block{make([]byte, 1<<16)}
	limit := Held() + 1000
	if err := Take(900, limit); err != nil {
		t.Fatal(err)
	}
	runtime.AddCleanup(kept, Give, 900)
	cancel := OnPressure(func() { kept = nil })
	if err := Take(800, limit); err != nil {
		t.Fatalf("memory that can be had again was not: %v", err)
	}
	Give(800)
	cancel()
	runtime.KeepAlive(kept)
}

func TestSizesDoNotOverflow(t *testing.T) {
	for _, c := range []struct{ got, want int64 }{
		{Sum(), 0}, {Sum(1, 2, 3), 6}, {Sum(math.MaxInt64, 1), math.MaxInt64}, {Sum(1<<62, 1<<62, 1<<62), math.MaxInt64},
		{Times(3, 4), 12}, {Times(0, math.MaxInt64), 0}, {Times(math.MaxInt64, 0), 0}, {Times(1<<40, 1<<40), math.MaxInt64},
	} {
		if c.got != c.want {
			t.Errorf("got %d, want %d", c.got, c.want)
		}
	}
}

func TestDefaultIsAFractionOfTheMachine(t *testing.T) {
	if d := Default(); d <= 0 || d > Most || d > available() {
		t.Errorf("the default is %d bytes of %d", d, available())
	}
}
