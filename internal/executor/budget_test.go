package executor_test

import (
	"testing"

	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
)

// The bound of the cache counts what models hold, their kernels and constants; the report
// shows it, and nothing is left after Close.
func TestCacheCountsWhatModelsHold(t *testing.T) {
	f := newFake(t)
	f.held = 1 << 20
	s, err := executor.New(executor.Config{Device: fakeDevice(0), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for rows := 1; rows <= 30; rows++ {
		x := floats(t, s, make([]float32, rows), rows)
		want(t, binaryOp(s, aten.Add, x, x), make([]float32, rows)...)
		if n := s.Report().CacheBytes; n > 8<<20 || rows == 1 && n < 1<<20 {
			t.Fatalf("after %d graphs the cache holds %d bytes", rows, n)
		}
	}
	if n := s.Report().CacheBytes; n < 4<<20 {
		t.Errorf("the cache holds %d bytes: it is not used", n)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.Report().CacheBytes; n != 0 {
		t.Errorf("after Close the cache holds %d bytes", n)
	}
}
