package executor_test

import (
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
)

// A session's bound on processors and its wishes for the same bits and for zeros
// in the place of subnormal numbers reach the backend, those of one session not another's, and do not change the hashes of
// graphs.
func TestCompileOptions(t *testing.T) {
	f := newFake(t)
	var hash ir.Hash
	for _, c := range []struct {
		cfg  executor.Config
		want backend.CompileOptions
	}{
		{},
		{executor.Config{Threads: 3}, backend.CompileOptions{Threads: 3}},
		{executor.Config{Threads: 1, Deterministic: true}, backend.CompileOptions{Threads: 1, Deterministic: true}},
		{executor.Config{FlushDenormals: true}, backend.CompileOptions{FlushDenormals: true}},
		{executor.Config{Threads: -2}, backend.CompileOptions{}},
	} {
		c.cfg.Device = fakeDevice(0)
		s := newSession(t, c.cfg)
		x := floats(t, s, []float32{1, 2}, 2)
		sum := binaryOp(s, aten.Add, x, x)
		h, err := s.GraphHash(sum)
		if err != nil {
			t.Fatal(err)
		}
		if hash == (ir.Hash{}) {
			hash = h
		}
		if h != hash {
			t.Errorf("%+v: the graph has another hash", c.cfg)
		}
		want(t, sum, 2, 4)
		fork := s.Fork()
		want(t, binaryOp(fork, aten.Mul, x, x), 1, 4)
		f.mu.Lock()
		if len(f.options) != 2 {
			t.Errorf("%+v: %d compilations, want 2", c.cfg, len(f.options))
		}
		for _, o := range f.options {
			if o.Threads != c.want.Threads || o.Deterministic != c.want.Deterministic || o.FlushDenormals != c.want.FlushDenormals {
				t.Errorf("%+v: compiled with %+v", c.cfg, o)
			}
		}
		f.options = nil
		f.mu.Unlock()
	}
}
