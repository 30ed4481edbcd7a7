package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errCompile = errors.New("no such op")

// slow returns a BuildFunc that takes a second, or ends early with its context.
func (k *tracker) slow(id uint64) BuildFunc[*item] {
	return func(ctx context.Context) (*item, int64, error) {
		select {
		case <-time.After(time.Second):
			return k.make(id), 1, nil
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}

// inBubble runs f with a cache in a bubble, which also checks that the cache
// leaves no goroutine behind.
func inBubble(t *testing.T, o Options[*item], f func(t *testing.T, c *Computations[*item], k *tracker)) {
	synctest.Test(t, func(t *testing.T) {
		c, k := newTestCache(t, o)
		f(t, c, k)
	})
}

func TestSingleFlight(t *testing.T) {
	for _, o := range []Options[*item]{{}, {MaxCost: -1, Strong: -1}} {
		t.Run(fmt.Sprintf("MaxCost=%d", o.MaxCost), func(t *testing.T) {
			inBubble(t, o, func(t *testing.T, c *Computations[*item], k *tracker) {
				var wg sync.WaitGroup
				var mu sync.Mutex
				sources := map[Source]int{}
				for range 20 {
					wg.Go(func() {
						r, source, err := c.GetOrBuild(t.Context(), Key{3, 0}, k.slow(3))
						if err != nil {
							t.Error(err)
							return
						}
						checkItem(t, Key{3, 0}, r)
						mu.Lock()
						sources[source]++
						mu.Unlock()
						r.Release()
					})
				}
				wg.Wait()
				if sources[SourceBuilt] != 1 || sources[SourceShared] != 19 {
					t.Errorf("sources %v", sources)
				}
				if s := c.Stats(); s.Builds != 1 || s.Shared != 19 || s.Misses != 20 {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

// A build can land between a caller's look into the store and its joining, which
// is called directly here.
func TestJoinAfterLanding(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{})
	r, _ := mustBuild(t, c, k, Key{1, 0}, 1)
	r.Release()
	r, f, source, err := c.join(t.Context(), Key{1, 0}, k.build(1, 1))
	if r == nil || f != nil || source != SourceCache || err != nil {
		t.Fatalf("got %v, %v, %v, %v", r, f, source, err)
	}
	r.Release()
}

func TestDifferentKeysBuildAtOnce(t *testing.T) {
	inBubble(t, Options[*item]{}, func(t *testing.T, c *Computations[*item], k *tracker) {
		start := time.Now()
		var wg sync.WaitGroup
		for id := range uint64(5) {
			wg.Go(func() {
				r, _, err := c.GetOrBuild(t.Context(), Key{id, 0}, k.slow(id))
				if err != nil {
					t.Error(err)
					return
				}
				r.Release()
			})
		}
		wg.Wait()
		if d := time.Since(start); d != time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestCallerLeavesOthersStay(t *testing.T) {
	for _, leaver := range []int{0, 1} {
		t.Run(fmt.Sprint("caller ", leaver), func(t *testing.T) {
			inBubble(t, Options[*item]{}, func(t *testing.T, c *Computations[*item], k *tracker) {
				var errs [2]error
				var refs [2]*Ref[*item]
				var wg sync.WaitGroup
				for i := range errs {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if i == leaver {
						time.AfterFunc(time.Second/2, cancel)
					}
					wg.Go(func() { refs[i], _, errs[i] = c.GetOrBuild(ctx, Key{1, 0}, k.slow(1)) })
					synctest.Wait()
				}
				wg.Wait()
				if !errors.Is(errs[leaver], context.Canceled) || refs[leaver] != nil {
					t.Errorf("the leaver got %v", errs[leaver])
				}
				if errs[1-leaver] != nil {
					t.Fatalf("the other got %v", errs[1-leaver])
				}
				checkItem(t, Key{1, 0}, refs[1-leaver])
				if n := refs[1-leaver].refs.Load(); n != 2 {
					t.Errorf("%d references, want 2: the cache's and the caller's", n)
				}
				refs[1-leaver].Release()
				if s := c.Stats(); s.Builds != 1 {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestBuildKeepsContextValues(t *testing.T) {
	type ctxKey struct{}
	c, k := newTestCache(t, Options[*item]{})
	ctx := context.WithValue(t.Context(), ctxKey{}, "span")
	r, _, err := c.GetOrBuild(ctx, Key{1, 0}, func(ctx context.Context) (*item, int64, error) {
		if ctx.Value(ctxKey{}) != "span" {
			t.Error("the context has lost its value")
		}
		return k.make(1), 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
}

func TestLastToLeaveCancels(t *testing.T) {
	inBubble(t, Options[*item]{}, func(t *testing.T, c *Computations[*item], k *tracker) {
		var cause error
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := c.GetOrBuild(ctx, Key{1, 0}, func(ctx context.Context) (*item, int64, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if cause != errAbandoned {
			t.Errorf("cause %v", cause)
		}
		if s := c.Stats(); s.Failures != 1 {
			t.Errorf("stats %+v", s)
		}
		r, source := mustBuild(t, c, k, Key{1, 0}, 1)
		if source != SourceBuilt {
			t.Errorf("source %v", source)
		}
		r.Release()
	})
}

// A build that was abandoned goes on for a while. Who comes then must neither
// get its cancellation nor build beside it.
func TestLateCallerOfAbandonedBuild(t *testing.T) {
	for _, succeeds := range []bool{false, true} {
		t.Run(fmt.Sprintf("succeeds=%v", succeeds), func(t *testing.T) {
			inBubble(t, Options[*item]{}, func(t *testing.T, c *Computations[*item], k *tracker) {
				running := 0
				build := func(ctx context.Context) (*item, int64, error) {
					if running++; running > 1 {
						t.Error("two builds of one key at once")
					}
					defer func() { running-- }()
					time.Sleep(2 * time.Second) // deaf to its context
					if ctx.Err() != nil && !succeeds {
						return nil, 0, ctx.Err()
					}
					return k.make(1), 1, nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, _, err := c.GetOrBuild(ctx, Key{1, 0}, build); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v", err)
				}
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						r, source, err := c.GetOrBuild(t.Context(), Key{1, 0}, build)
						if err != nil {
							t.Error(err)
							return
						}
						if succeeds && source != SourceShared {
							t.Errorf("source %v", source)
						}
						checkItem(t, Key{1, 0}, r)
						r.Release()
					})
				}
				wg.Wait()
				want := uint64(2)
				if succeeds {
					want = 1
				}
				if s := c.Stats(); s.Builds != want {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

func TestEndedContext(t *testing.T) {
	c, k := newTestCache(t, Options[*item]{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := c.GetOrBuild(ended, Key{1, 0}, k.build(1, 1))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if made, _ := k.count(); made != 0 || c.Stats().Builds != 0 {
		t.Error("a build was begun for nobody")
	}
	r, _ := mustBuild(t, c, k, Key{1, 0}, 1)
	r.Release()
	r, source, err := c.GetOrBuild(ended, Key{1, 0}, k.build(1, 1))
	if err != nil || source != SourceCache {
		t.Fatalf("a hit costs no time, but got %v, %v", source, err)
	}
	r.Release()
}

func TestFailedBuilds(t *testing.T) {
	tests := []struct {
		name  string
		build BuildFunc[*item]
		check func(error) bool
	}{
		{"error",
			func(context.Context) (*item, int64, error) { return nil, 0, errCompile },
			func(err error) bool {
				return errors.Is(err, errCompile) && strings.Contains(err.Error(), Key{1, 0}.String())
			}},
		{"panic with a string",
			func(context.Context) (*item, int64, error) { panic("boom") },
			func(err error) bool {
				var p *PanicError
				return errors.As(err, &p) && p.Value == "boom" && p.Key == Key{1, 0} && p.Unwrap() == nil &&
					strings.Contains(err.Error(), "TestFailedBuilds")
			}},
		{"panic with an error",
			func(context.Context) (*item, int64, error) { panic(errCompile) },
			func(err error) bool {
				var p *PanicError
				return errors.As(err, &p) && errors.Is(err, errCompile)
			}},
		{"Goexit",
			func(context.Context) (*item, int64, error) { runtime.Goexit(); return nil, 0, nil },
			func(err error) bool { return errors.Is(err, errGoexit) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, Options[*item]{}, func(t *testing.T, c *Computations[*item], k *tracker) {
				var wg sync.WaitGroup
				for range 3 {
					wg.Go(func() {
						r, source, err := c.GetOrBuild(t.Context(), Key{1, 0}, func(ctx context.Context) (*item, int64, error) {
							time.Sleep(time.Second)
							return tt.build(ctx)
						})
						if r != nil || source != SourceNone || !tt.check(err) {
							t.Errorf("got %v, %v, %v", r, source, err)
						}
					})
				}
				wg.Wait()
				if s := c.Stats(); s.Builds != 1 || s.Failures != 1 || s.Live != 0 {
					t.Errorf("stats %+v", s)
				}
				// The failure is not remembered.
				r, _ := mustBuild(t, c, k, Key{1, 0}, 1)
				r.Release()
			})
		})
	}
}

func TestCloseCancelsBuilds(t *testing.T) {
	inBubble(t, Options[*item]{}, func(t *testing.T, c *Computations[*item], k *tracker) {
		var wg sync.WaitGroup
		for id := range uint64(3) {
			wg.Go(func() {
				_, _, err := c.GetOrBuild(t.Context(), Key{id, 0}, k.slow(id))
				if !errors.Is(err, ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Go(func() {
			// This one is deaf to its context, so Close has to wait for it.
			r, _, err := c.GetOrBuild(t.Context(), Key{9, 0}, func(context.Context) (*item, int64, error) {
				time.Sleep(time.Minute)
				return k.make(9), 1, nil
			})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second)
			checkItem(t, Key{9, 0}, r)
			r.Release()
		})
		synctest.Wait()
		start := time.Now()
		c.Close()
		if d := time.Since(start); d != time.Minute {
			t.Errorf("Close took %v", d)
		}
		wg.Wait()
	})
}

// A callback may use the cache.
func TestCallbacksMayUseTheCache(t *testing.T) {
	k := new(tracker)
	var c *Computations[*item]
	use := func() {
		if r, ok := c.Get(Key{1000, 0}); ok {
			r.Release()
		}
		c.Stats()
	}
	c = NewComputations(Options[*item]{
		MaxCost: 2, Strong: 1,
		OnEvict: func(Key, *item) { use() },
		Close:   func(i *item) { use(); k.close(i) },
	})
	for id := range uint64(100) {
		r, _, err := c.GetOrBuild(t.Context(), Key{id % 7, id % 7}, func(context.Context) (*item, int64, error) {
			use()
			return k.make(id), 1 + int64(id%4), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	c.Close()
	k.checkAllClosedOnce(t)
}

// Everything at once: what is held is never closed, and all is closed once.
func TestComputationsStress(t *testing.T) {
	for _, o := range []Options[*item]{
		{MaxCost: 8, Strong: 2},
		{MaxCost: 1, Strong: 1},
		{MaxCost: -1, Strong: 1},
		{MaxCost: 20, Strong: -1},
		{MaxCost: -1, Strong: -1},
	} {
		t.Run(fmt.Sprintf("MaxCost=%d,Strong=%d", o.MaxCost, o.Strong), func(t *testing.T) {
			c, k := newTestCache(t, o)
			var wg sync.WaitGroup
			for g := range uint64(8) {
				wg.Go(func() { stress(t, c, k, rand.New(rand.NewPCG(g, 7))) })
			}
			wg.Go(func() {
				for range 20 {
					c.Clear()
					runtime.Gosched()
				}
			})
			wg.Wait()
			// Close beside running users.
			for g := range uint64(4) {
				wg.Go(func() { stress(t, c, k, rand.New(rand.NewPCG(g, 8))) })
			}
			c.Close()
			wg.Wait()
		})
	}
}

func stress(t *testing.T, c *Computations[*item], k *tracker, rng *rand.Rand) {
	for range 400 {
		id := rng.Uint64N(16)
		key := Key{id, rng.Uint64N(2)}
		ctx, cancel := context.WithCancel(t.Context())
		if rng.IntN(4) == 0 {
			go cancel()
		}
		var r *Ref[*item]
		var err error
		yields := rng.IntN(3)
		if rng.IntN(2) == 0 {
			r, _ = c.Get(key)
		} else {
			r, _, err = c.GetOrBuild(ctx, key, func(ctx context.Context) (*item, int64, error) {
				for range yields {
					runtime.Gosched()
				}
				if err := ctx.Err(); err != nil {
					return nil, 0, err
				}
				return k.make(key.Lo ^ key.Hi), 1 + int64(id%3), nil
			})
		}
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if r != nil {
			checkItem(t, key, r)
			runtime.Gosched()
			checkItem(t, key, r)
			r.Release()
		}
		cancel()
	}
}
