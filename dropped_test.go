package loris

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestSessionsThatAreDropped: sessions that nobody refers to any more end their goroutines as closed
// ones do, whatever their caches keep, and one that somebody can use does not.
func TestSessionsThatAreDropped(t *testing.T) {
	dir := t.TempDir()
	use := func(opts ...SessionOption) *Variable {
		t.Helper()
		s, err := New(opts...)
		if err != nil {
			t.Fatal(err)
		}
		m := s.With()
		weights := m.Constant(make([]byte, 4*64), MakeShape(F32, 64))
		v := NewVariable(weights) // what the data cache keeps
		f := Compile(func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Mul(2.5).Add(v.Value())} })
		if _, err := f.Call(t.Context(), m.Randn(64)); err != nil {
			t.Fatal(err)
		}
		if err := s.Step(t.Context(), func() error {
			v.Assign(v.Value().Mul(0.5).Add(m.Randn(64)))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := v.ValueIn(s.Fork()).Sum().Float32s(t.Context()); err != nil {
			t.Fatal(err)
		}
		return v
	}
	used := use() // the workers of the process, too
	before := runtime.NumGoroutine()
	for range 8 {
		use()
		use(WithDiskCache(dir))
	}
	if most := runtime.NumGoroutine(); most <= before {
		t.Fatalf("%d goroutines before and %d with sessions: nothing is tested", before, most)
	}
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatalf("%d goroutines before the sessions, %d after them", before, runtime.NumGoroutine())
		}
	}
	if _, err := used.Value().Float32s(context.Background()); err != nil {
		t.Errorf("a session of which a variable is left: %v", err)
	}
}
