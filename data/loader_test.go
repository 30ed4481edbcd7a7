package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loris-ml/loris"
)

// numbers is a dataset of its indices.
func numbers(n int) Dataset[int] {
	return Func(n, func(_ context.Context, i int, _ *rand.Rand) (int, error) { return i, nil })
}

// noisy adds random numbers to indices, and takes its time now and then.
func noisy(n int) Dataset[[2]uint64] {
	return Augment(numbers(n), func(r *rand.Rand, i int) ([2]uint64, error) {
		if i%5 == 0 {
			runtime.Gosched()
		}
		return [2]uint64{uint64(i), r.Uint64()}, nil
	})
}

// take reads n batches, the ends of epochs as nil.
func take[T any](t *testing.T, l *Loader[T, []T], n int) [][]T {
	t.Helper()
	var all [][]T
	for range n {
		b, err := l.Next(t.Context())
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		opts []Option
		want string // two epochs
	}{
		{"in order", 5, nil, "[[0 1] [2 3] [4] [] [0 1] [2 3] [4] []]"},
		{"in order, whole batches", 5, []Option{DropLast()}, "[[0 1] [2 3] [] [0 1] [2 3] []]"},
		{"one batch", 2, nil, "[[0 1] [] [0 1] []]"},
		{"less than a batch", 1, []Option{DropLast()}, "[[] []]"},
		{"nothing", 0, nil, "[[] []]"},
		{"shuffled", 5, []Option{Shuffle(3)}, fmt.Sprint(append(pairs(Permutation(5, 3)), pairs(Permutation(5, 4))...))},
		{"rank 0 of 2", 5, []Option{Shard(0, 2)}, "[[0 2] [4] [] [0 2] [4] []]"},
		{"rank 1 of 2 repeats the first", 5, []Option{Shard(1, 2)}, "[[1 3] [0] [] [1 3] [0] []]"},
		{"rank 1 of 2, whole batches", 5, []Option{Shard(1, 2), DropLast()}, "[[1 3] [] [1 3] []]"},
		{"more ranks than samples", 2, []Option{Shard(4, 5)}, "[[0] [] [0] []]"},
	} {
		l := NewLoader(numbers(c.n), 2, Collect[int], c.opts...)
		got := fmt.Sprint(take(t, l, 2*(l.Batches()+1)))
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		l.Close()
	}
}

func pairs(order []int) (batches [][]int) {
	for b := range slices.Chunk(order, 2) {
		batches = append(batches, b)
	}
	return append(batches, nil)
}

// What comes does not depend on the number of goroutines, nor on how far they are ahead.
func TestGoroutinesDoNotMatter(t *testing.T) {
	var want [][][2]uint64
	for _, workers := range []int{1, 2, 7} {
		for _, prefetch := range []int{0, 1, 3, 50} {
			l := NewLoader(noisy(23), 3, Collect, Shuffle(9), Workers(workers), Prefetch(prefetch))
			got := take(t, l, 3*(l.Batches()+1))
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d goroutines, %d ahead: other batches", workers, prefetch)
			}
			l.Close()
		}
	}
	seen := map[uint64]bool{}
	for _, b := range want {
		for _, s := range b {
			seen[s[1]] = true
		}
	}
	if len(seen) != 3*23 {
		t.Errorf("%d random numbers of %d", len(seen), 3*23)
	}
}

// Batch b of all ranks together is batch b of one process with batches as many times as large, with
// the same random numbers.
func TestRanksTogether(t *testing.T) {
	const ranks, size, n = 3, 2, 20
	one := take(t, NewLoader(noisy(n), ranks*size, Collect, Shuffle(5), DropLast()), 7)
	var parts [ranks][][][2]uint64
	for r := range ranks {
		parts[r] = take(t, NewLoader(noisy(n), size, Collect, Shuffle(5), DropLast(), Shard(r, ranks)), 7)
	}
	for b, want := range one {
		var got [][2]uint64
		for k := range size {
			for r := range ranks {
				if want != nil {
					got = append(got, parts[r][b][k])
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("batch %d: %v, want %v", b, got, want)
		}
	}
}

// A loader that resumes from any state gives what would have come.
func TestResume(t *testing.T) {
	opts := []Option{Shuffle(2), Shard(1, 2)}
	const calls = 20
	for n := range calls {
		l := NewLoader(noisy(17), 2, Collect, opts...)
		take(t, l, n)
		text, err := json.Marshal(l.State())
		if err != nil {
			t.Fatal(err)
		}
		want := take(t, l, calls-n)
		var s State
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		other := NewLoader(noisy(17), 2, Collect, opts...)
		if err := other.Resume(s); err != nil {
			t.Fatal(err)
		}
		if got := take(t, other, calls-n); !reflect.DeepEqual(got, want) {
			t.Errorf("after %d calls: %v, want %v", n, got, want)
		}
		if err := l.Resume(s); err != nil { // back in the same loader
			t.Fatal(err)
		}
		if got := take(t, l, calls-n); !reflect.DeepEqual(got, want) {
			t.Errorf("back to call %d: %v, want %v", n, got, want)
		}
	}
}

func TestResumeRefuses(t *testing.T) {
	state := func(opts ...Option) State { return NewLoader(numbers(10), 3, Collect, opts...).State() }
	with := func(set func(s *State)) State {
		s := state()
		set(&s)
		return s
	}
	l := NewLoader(numbers(10), 3, Collect)
	take(t, l, 1)
	before := l.State()
	for want, s := range map[string]State{
		"samples":         NewLoader(numbers(11), 3, Collect).State(),
		"batch size is 4": NewLoader(numbers(10), 4, Collect).State(),
		"seed is 1":       state(Seed(1)),
		"shuffle is true": state(Shuffle(0)),
		"drop last":       state(DropLast()),
		"ranks is 2":      state(Shard(0, 2)),
		"batch -1":        with(func(s *State) { s.Batch = -1 }),
		"batch 5 of 4":    with(func(s *State) { s.Batch = 5 }),
	} {
		if err := l.Resume(s); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if l.State() != before {
			t.Errorf("%s: the loader has moved to %+v", want, l.State())
		}
	}
}

func TestEpochGoesOnAfterBreak(t *testing.T) {
	l := NewLoader(numbers(10), 3, Collect)
	defer l.Close()
	var got []string
	for range 4 {
		for b, err := range l.Epoch(t.Context()) {
			got = append(got, fmt.Sprint(b, err))
			if len(got) == 2 {
				break
			}
		}
	}
	want := "[0 1 2] <nil>|[3 4 5] <nil>|[6 7 8] <nil>|[9] <nil>|"
	want += strings.Repeat("[0 1 2] <nil>|[3 4 5] <nil>|[6 7 8] <nil>|[9] <nil>|", 2)
	if strings.Join(got, "|")+"|" != want {
		t.Errorf("%v", got)
	}
}

// A failed batch is tried again by the next call, and nothing is lost.
func TestErrorsAreRetried(t *testing.T) {
	broken := errors.New("broken")
	var fail atomic.Int32
	fail.Store(3)
	ds := Func(6, func(_ context.Context, i int, _ *rand.Rand) (int, error) {
		if i == 3 && fail.Add(-1) >= 0 {
			return 0, broken
		}
		return i, nil
	})
	l := NewLoader(ds, 2, Collect, Prefetch(0))
	var got []string
	for range 6 {
		b, err := l.Next(t.Context())
		if err != nil && err != io.EOF {
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), "epoch 0, batch 1, sample 3") {
				t.Errorf("error %v", err)
			}
			got = append(got, "broken")
			continue
		}
		got = append(got, fmt.Sprint(b))
	}
	if want := []string{"[0 1]", "broken", "broken", "broken", "[2 3]", "[4 5]"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	joined := NewLoader(numbers(4), 2, func([]int) (int, error) { return 0, broken })
	for b, err := range joined.Epoch(t.Context()) {
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "epoch 0, batch 0") {
			t.Errorf("%v, %v", b, err)
		}
	}
}

func TestPanicsAndEndedGoroutines(t *testing.T) {
	mistake := &loris.OpError{Op: "test"}
	bad := func(n int) Dataset[int] {
		return Func(4, func(_ context.Context, i int, _ *rand.Rand) (int, error) {
			if i == 2 && n == 0 {
				panic(mistake)
			} else if i == 2 {
				runtime.Goexit()
			}
			return i, nil
		})
	}
	l := NewLoader(bad(0), 2, Collect, Workers(1))
	for range 2 {
		if err := loris.Try(func() { take(t, l, 2) }); err != error(mistake) {
			t.Errorf("error %v", err)
		}
	}
	l = NewLoader(bad(1), 2, Collect, Workers(1))
	take(t, l, 1)
	for range 2 {
		if _, err := l.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "ended the goroutine") {
			t.Errorf("error %v", err)
		}
	}
}

func TestContextEndsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Func(4, func(ctx context.Context, i int, _ *rand.Rand) (int, error) {
			select {
			case <-time.After(time.Hour):
				return i, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		l := NewLoader(slow, 1, Collect)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("tired"))
		defer cancel()
		if _, err := l.Next(ctx); err == nil || err.Error() != "tired" {
			t.Errorf("error %v", err)
		}
		if b, err := l.Next(t.Context()); err != nil || b[0] != 0 { // nothing is lost
			t.Errorf("%v, %v", b, err)
		}
		go func() {
			time.Sleep(time.Minute)
			l.Close()
		}()
		l.Next(t.Context()) // was made meanwhile
		if _, err := l.Next(t.Context()); err != ErrClosed {
			t.Errorf("after Close: %v", err)
		}
		if _, err := l.Next(t.Context()); err != ErrClosed {
			t.Errorf("after Close: %v", err)
		}
	}) // fails if goroutines remain
}

// Without Close, too, goroutines end when they have made what may be ahead; no more is held.
func TestPrefetchIsBounded(t *testing.T) {
	for _, c := range []struct{ workers, prefetch, samples int }{{1, 0, 2}, {1, 1, 4}, {4, 3, 8}, {2, 9, 20}} {
		synctest.Test(t, func(t *testing.T) {
			var made atomic.Int32
			ds := Func(6, func(_ context.Context, i int, _ *rand.Rand) (int, error) {
				made.Add(1)
				time.Sleep(time.Second)
				return i, nil
			})
			l := NewLoader(ds, 2, Collect, Workers(c.workers), Prefetch(c.prefetch))
			if synctest.Wait(); made.Load() != 0 {
				t.Error("something was read before the first batch")
			}
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if n := int(made.Load()); n != c.samples {
				t.Errorf("%+v: %d samples were made", c, n)
			}
		})
	}
}

// The time that a program waits is that which the goroutines don't have while it computes.
func TestStats(t *testing.T) {
	for _, c := range []struct{ read, step, waited time.Duration }{
		{10 * time.Millisecond, 30 * time.Millisecond, 10 * time.Millisecond}, // the first batch alone
		{30 * time.Millisecond, 10 * time.Millisecond, 100*30*time.Millisecond - 99*10*time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ds := Func(100, func(_ context.Context, i int, _ *rand.Rand) (int, error) {
				time.Sleep(c.read)
				return i, nil
			})
			l := NewLoader(ds, 1, Collect, Workers(1))
			for _, err := range l.Epoch(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.step)
			}
			s := l.Stats()
			if want := 99*c.step + c.waited; s.Batches != 100 || s.Waited != c.waited || s.Elapsed != want {
				t.Errorf("%+v, want %v of %v", s, c.waited, want)
			}
			if got := s.WaitShare(); got != float64(s.Waited)/float64(s.Elapsed) {
				t.Errorf("share %v", got)
			}
			time.Sleep(time.Hour) // what is ahead is made
		})
	}
	if (Stats{}).WaitShare() != 0 {
		t.Error("a share of nothing")
	}
}

func TestMisuse(t *testing.T) {
	for name, fn := range map[string]func(){
		"batches of 0":   func() { NewLoader(numbers(1), 0, Collect) },
		"rank 2 of 2":    func() { NewLoader(numbers(1), 1, Collect, Shard(2, 2)) },
		"rank -1 of 2":   func() { NewLoader(numbers(1), 1, Collect, Shard(-1, 2)) },
		"0 workers":      func() { NewLoader(numbers(1), 1, Collect, Workers(0)) },
		"prefetch of -2": func() { NewLoader(numbers(1), 1, Collect, Prefetch(-2)) },
		"index 1 of 1":   func() { Subset(numbers(1), []int{0, 1}) },
		"2 of 1":         func() { Split(numbers(1), 2, 0) },
		"2 values":       func() { Of([]float32{1, 2}, 3) },
		"is -1":          func() { Of([]float32{1, 2}, -1, -2) },
	} {
		var op *loris.OpError
		err := loris.Try(fn)
		if !errors.As(err, &op) || !strings.Contains(err.Error(), name) || !strings.Contains(op.Line, "loader_test.go") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
