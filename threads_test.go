package loris

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loris-ml/loris/internal/openmp"
	"github.com/loris-ml/loris/internal/parallel"
)

// counted makes parallel loops run on goroutines of a test, which count how many
// of them there are: asked is the most that one loop was given, most the most at
// a time.
type counted struct{ asked, now, most atomic.Int32 }

func (c *counted) begin(t *testing.T) {
	parallel.SetThreadPool(c.run)
	t.Cleanup(func() {
		if openmp.Available {
			parallel.SetThreadPool(openmp.Run)
		} else {
			parallel.SetThreadPool(nil)
		}
	})
}

func (c *counted) run(threads int, work func()) {
	raise(&c.asked, int32(threads))
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			raise(&c.most, c.now.Add(1))
			work()
			c.now.Add(-1)
		})
	}
	wg.Wait()
}

func raise(most *atomic.Int32, n int32) {
	for {
		m := most.Load()
		if n <= m || most.CompareAndSwap(m, n) {
			return
		}
	}
}

// manyKernels computes something with every kind of kernel that shares its work
// out itself, and with those whose steps are shared out.
func manyKernels(tb testing.TB, s *Session) [][]byte {
	tb.Helper()
	c := s.With()
	x, w := c.Randn(256, 192), c.Randn(192, 160)
	image, filters := c.Randn(2, 16, 24, 24), c.Randn(32, 16, 3, 3)
	heads := c.Randn(2, 4, 150, 32)
	outs := []*Tensor{
		x.MatMul(w).Add(c.Randn(160)).Gelu(), x.Reshape(16, 16, 192).MatMul(w), Conv2d(image, filters), Conv2d(c.Randn(1, 128, 8, 8), c.Randn(256, 128, 3, 3)),
		ScaledDotProductAttention(heads, heads, heads), MaxPool2d(c.Randn(8, 32, 48, 48), []int{3}), x.Exp().Sum(), x.Softmax(1).Sum(Dim(0)), x.Cumsum(0),
	}
	if err := s.Sync(tb.Context(), outs...); err != nil {
		tb.Fatal(err)
	}
	var data [][]byte
	for _, o := range outs {
		b, err := o.Bytes(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		data = append(data, b)
	}
	return data
}

// TestWithThreads counts the goroutines of loops: no session has more at a time
// than it may, and some loops have as many.
func TestWithThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var first [][]byte
	for threads, want := range map[int]int32{0: 4, 1: 0, 2: 2, 3: 3, 9: 4} {
		var c counted
		c.begin(t)
		got := manyKernels(t, newSession(t, WithThreads(threads), WithSeed(5)))
		if c.asked.Load() != want || c.most.Load() > want {
			t.Errorf("WithThreads(%d): loops on %d goroutines, at most %d at a time, want %d", threads, c.asked.Load(), c.most.Load(), want)
		}
		if first == nil {
			first = got
		}
		for i := range got {
			if !bytes.Equal(got[i], first[i]) {
				t.Errorf("WithThreads(%d): result %d has other bits", threads, i)
			}
		}
	}
}

// TestSessionsSideBySide runs sessions with bounds of their own at once: together
// they stay within the processors, and all have the same results.
func TestSessionsSideBySide(t *testing.T) {
	const procs = 3
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	var c counted
	c.begin(t)
	want := manyKernels(t, newSession(t, WithSeed(5)))
	var wg sync.WaitGroup
	for _, threads := range []int{0, 1, 2, 3, 2, 0} {
		s := newSession(t, WithSeed(5), WithThreads(threads), WithDeterministic())
		wg.Go(func() {
			for i, b := range manyKernels(t, s) {
				if !bytes.Equal(b, want[i]) {
					t.Errorf("result %d on %d goroutines has other bits", i, threads)
				}
			}
		})
	}
	wg.Wait()
	if most := c.most.Load(); most > procs {
		t.Errorf("%d goroutines on %d processors", most, procs)
	}
}
