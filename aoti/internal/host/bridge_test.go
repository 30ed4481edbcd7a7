//go:build linux && cgo

package host

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestProgramCache has callers miss one key at once: the program is built once. A failure is not kept,
// and beyond the limit the program that was used longest ago leaves.
func TestProgramCache(t *testing.T) {
	c := newProgramCache()
	var builds atomic.Int32
	build := func() (*compiled, error) { builds.Add(1); return &compiled{}, nil }
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }

	wrong := errors.New("it fails once")
	if _, err := c.get(key(0), func() (*compiled, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("got %v, want %v", err, wrong)
	}
	var all sync.WaitGroup
	got := make([]*compiled, 8)
	for i := range got {
		all.Go(func() {
			p, err := c.get(key(0), build)
			if err != nil {
				t.Error(err)
			}
			got[i] = p
		})
	}
	all.Wait()
	for _, p := range got {
		if p == nil || p != got[0] {
			t.Errorf("callers got %p and %p", p, got[0])
		}
	}
	if n := builds.Load(); n != 1 {
		t.Errorf("%d builds of one key", n)
	}
	for i := 1; i < bridgeLimit; i++ {
		_, _ = c.get(key(i), build)
	}
	_, _ = c.get(key(0), build)           // used again
	_, _ = c.get(key(bridgeLimit), build) // one has to leave
	for i, want := range []int32{0, 1} {
		builds.Store(0)
		_, _ = c.get(key(i), build)
		if n := builds.Load(); n != want {
			t.Errorf("key %d: %d builds, want %d", i, n, want)
		}
	}
}
