package batch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
)

// doubler doubles numbers, and writes down the batches that it ran. A run takes base and
// a time for each row; the number -1 fails.
type doubler struct {
	base, row time.Duration
	panics    bool                         // instead of failing
	cost      func(rows int) time.Duration // instead of these, if it is not nil
	mu        sync.Mutex
	batches   []int
	running   atomic.Int32
	most      atomic.Int32
}

var errRefused = errors.New("refused")

func (d *doubler) Run(_ context.Context, works ...*model.Work) (*model.Result, error) {
	if n := d.running.Add(1); n > d.most.Load() {
		d.most.Store(n)
	}
	defer d.running.Add(-1)
	rows := int64(0)
	r := &model.Result{}
	bad := false
	for _, w := range works {
		rows += w.Rows
		x := binary.LittleEndian.Uint64(w.Inputs[0].Data)
		bad = bad || x == math.MaxUint64
		r.Outputs = append(r.Outputs, []inference.Tensor{{Data: binary.LittleEndian.AppendUint64(nil, 2*x)}})
	}
	d.mu.Lock()
	d.batches = append(d.batches, int(rows))
	d.mu.Unlock()
	if r.Infer = d.base + time.Duration(rows)*d.row; d.cost != nil {
		r.Infer = d.cost(int(rows))
	}
	time.Sleep(r.Infer)
	if bad && d.panics {
		panic(errRefused)
	}
	if bad {
		return nil, errRefused
	}
	return r, nil
}

func work(x uint64, rows, width int64) *model.Work {
	return &model.Work{Rows: rows, Inputs: []inference.Tensor{{Shape: []int64{rows, width}, Data: binary.LittleEndian.AppendUint64(nil, x)}}}
}

func check(t *testing.T, x uint64, o Outcome, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%d: %v", x, err)
	} else if got := binary.LittleEndian.Uint64(o.Outputs[0].Data); got != 2*x {
		t.Errorf("%d: got the answer %d", x, got)
	}
}

// ask sends n requests at once, and returns when all have their answer.
func ask(t *testing.T, s *Scheduler, n int, request func(i int) Request) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			o, err := s.Do(t.Context(), request(i))
			check(t, uint64(i), o, err)
		})
		synctest.Wait() // they come in order
	}
	wg.Wait()
}

func TestBatches(t *testing.T) {
	one := func(i int) Request { return Request{Work: work(uint64(i), 1, 1)} }
	for _, c := range []struct {
		name    string
		config  Config
		n       int
		request func(int) Request
		want    string
	}{
		{"none", Config{}, 4, one, "[1 1 1 1]"},
		{"what waits", Config{MaxRows: 8}, 6, one, "[1 5]"},
		{"at most", Config{MaxRows: 2}, 6, one, "[1 2 2 1]"},
		{"two at once", Config{MaxRows: 4, Slots: 2}, 8, one, "[1 1 2 4]"},
		{"delay until full", Config{MaxRows: 4, Delay: time.Hour}, 8, one, "[4 4]"},
		{"delay until over", Config{MaxRows: 4, Delay: time.Second}, 6, one, "[4 2]"},
		{"preferred", Config{MaxRows: 8, Preferred: []int64{3}}, 8, one, "[1 3 3 1]"},
		{"several rows", Config{MaxRows: 5}, 4, func(i int) Request { return Request{Work: work(uint64(i), 2, 1)} }, "[2 4 2]"},
		{"other shapes", Config{MaxRows: 8}, 5, func(i int) Request { return Request{Work: work(uint64(i), 1, int64(i/3))} }, "[1 2 2]"},
		{"other shapes do not wait", Config{MaxRows: 8, Slots: 2, Delay: time.Hour}, 2, func(i int) Request {
			return Request{Work: work(uint64(i), 8-7*int64(1-i), int64(i))}
		}, "[1 8]"},
		{"more than a run has", Config{MaxRows: 2}, 2, func(i int) Request { return Request{Work: work(uint64(i), 4, 1)} }, "[4 4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &doubler{base: time.Second}
				s := New(d, c.config)
				ask(t, s, c.n, c.request)
				if c.config.Slots > 1 { // which of two that end at one moment goes on first is open
					slices.Sort(d.batches)
				}
				if got := fmt.Sprint(d.batches); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if s.free != s.config.Slots || s.waiting != 0 || s.leader != nil {
					t.Errorf("at the end: %+v", s)
				}
			})
		})
	}
}

// Requests of a higher level go first.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{base: time.Second}
		s := New(d, Config{Levels: 3, DefaultLevel: 2})
		begin := time.Now()
		var wg sync.WaitGroup
		for i, c := range []struct {
			priority int
			want     time.Duration
		}{{0, 1 * time.Second}, {3, 5 * time.Second}, {0, 3 * time.Second}, {2, 4 * time.Second}, {1, 2 * time.Second}} {
			wg.Go(func() {
				o, err := s.Do(t.Context(), Request{Work: work(uint64(i), 1, 1), Priority: c.priority})
				check(t, uint64(i), o, err)
				if took := time.Since(begin); took != c.want {
					t.Errorf("request %d of priority %d: answered after %v, want %v", i, c.priority, took, c.want)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if _, err := s.Do(t.Context(), Request{Work: work(0, 1, 1), Priority: 4}); inference.AsError(err).Kind != inference.InvalidArgument {
			t.Error(err)
		}
	})
}

// A request that the model refuses, or in whose run it panics, does not fail those that came with it.
func TestOneFailsAlone(t *testing.T) {
	for _, panics := range []bool{false, true} {
		oneFails(t, panics)
	}
}

func oneFails(t *testing.T, panics bool) {
	synctest.Test(t, func(t *testing.T) {
		d := &doubler{base: time.Second, panics: panics}
		s := New(d, Config{MaxRows: 8})
		var wg sync.WaitGroup
		for i := range 4 {
			x := uint64(i)
			if i == 2 {
				x = math.MaxUint64
			}
			wg.Go(func() {
				o, err := s.Do(t.Context(), Request{Work: work(x, 1, 1)})
				if i == 2 {
					p := new(PanicError)
					if panics && (!errors.As(err, &p) || p.Value != errRefused || !bytes.Contains(p.Stack, []byte("doubler"))) || !panics && !errors.Is(err, errRefused) {
						t.Error(err)
					}
					return
				}
				check(t, x, o, err)
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(&doubler{base: 10 * time.Second}, Config{Policies: []Policy{{MaxQueue: 2, Timeout: 5 * time.Second, Override: true}}})
		var wg sync.WaitGroup
		send := func(want inference.Kind, after time.Duration, timeout time.Duration, ctx context.Context) {
			begin := time.Now()
			wg.Go(func() {
				_, err := s.Do(ctx, Request{Work: work(1, 1, 1), Timeout: timeout})
				if want == inference.Internal && err == nil {
					return
				}
				if e := inference.AsError(err); err == nil || e.Kind != want || time.Since(begin) != after {
					t.Errorf("%v after %v; want kind %d after %v", err, time.Since(begin), want, after)
				} else if want == inference.ResourceExhausted && e.RetryAfter < time.Second {
					t.Errorf("try again after %v", e.RetryAfter)
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		send(inference.Internal, 0, 0, t.Context())
		send(inference.DeadlineExceeded, time.Second, time.Second, t.Context())
		send(inference.Canceled, 2*time.Second, time.Hour, ctx)
		send(inference.ResourceExhausted, 0, 0, t.Context())
		time.Sleep(time.Second)
		synctest.Wait()
		send(inference.DeadlineExceeded, 5*time.Second, 0, t.Context())
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if s.Waiting() != 1 {
			t.Errorf("%d wait", s.Waiting())
		}
		wg.Wait()
	})
}

// Requests that are cancelled in any stage take nobody's turn and leave no slot behind.
func TestCancelEverywhere(t *testing.T) {
	for _, c := range []Config{{}, {MaxRows: 4, Slots: 2}, {MaxRows: 8, Delay: 3 * time.Millisecond}, {MaxRows: 3, Preferred: []int64{2}, Delay: time.Millisecond, Levels: 2}} {
		synctest.Test(t, func(t *testing.T) {
			d := &doubler{base: 2 * time.Millisecond}
			s := New(d, c)
			var wg sync.WaitGroup
			for i := range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%13)*time.Millisecond)
				wg.Go(func() {
					defer cancel()
					o, err := s.Do(ctx, Request{Work: work(uint64(i), 1, 1), Priority: i % (c.Levels + 1)})
					if err == nil {
						check(t, uint64(i), o, nil)
					} else if k := inference.AsError(err).Kind; k != inference.DeadlineExceeded {
						t.Error(err)
					}
				})
				if i%5 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			wg.Wait()
			if s.free != s.config.Slots || s.waiting != 0 || s.leader != nil || d.most.Load() > int32(s.config.Slots) {
				t.Errorf("%d slots free, %d wait, leader %v, %d at once", s.free, s.waiting, s.leader, d.most.Load())
			}
		})
	}
}

// Where a run costs nothing but its rows nobody waits for others; where it costs the same
// for any number of rows, they do.
func TestWaitsWhereItPays(t *testing.T) {
	for _, c := range []struct {
		base, row time.Duration
		pays      bool
	}{{time.Second, 0, true}, {0, time.Second, false}} {
		s := New(nil, Config{MaxRows: 8, Delay: time.Second})
		for n := range 8 {
			s.fit.add(float64(n+1), c.base+time.Duration(n+1)*c.row)
		}
		s.gap = 0.01
		if got := s.pays(4); got != c.pays {
			t.Errorf("%v + n·%v: pays %v", c.base, c.row, got)
		}
	}
}

// A run has as many rows as there are, unless rows of smaller runs are known to cost less.
func TestSizes(t *testing.T) {
	flat := func(int64) float64 { return 1 }
	for _, c := range []struct {
		name   string
		perRow func(n int64) float64
		tried  []int64
		there  int64
		want   []int64 // one decision after the other, each of which is run
	}{
		{"nothing is known", flat, nil, 15, []int64{15}},
		{"one row alone is known", flat, []int64{1}, 15, []int64{15, 15}},
		{"rows cost the same", flat, []int64{1, 15}, 15, []int64{15}},
		{"larger runs are cheaper", func(n int64) float64 { return 1 + 1/float64(n) }, []int64{1, 15}, 15, []int64{15, 15}},
		{"hardly dearer", func(n int64) float64 { return 1 + float64(n)/1000 }, []int64{1, 15}, 15, []int64{15}},
		{"dearer", func(n int64) float64 { return 1 + float64(n)/10 }, []int64{1, 15}, 15, []int64{3, 5, 1, 1}},
		{"dearest are those of one and those of many", func(n int64) float64 { return 2/float64(n) + float64(n)/8 }, []int64{1, 15}, 15, []int64{15, 15}},
		{"best in the middle", func(n int64) float64 { return 1/float64(n) + float64(n)/8 }, []int64{1, 16}, 16, []int64{3, 6, 8, 3, 3}},
		{"cut evenly", func(n int64) float64 { return 1/float64(n) + float64(n)/8 }, []int64{1, 2, 4, 8, 16}, 16, []int64{6, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sizes
			run := func(n int64) {
				s.add(n, time.Duration(c.perRow(n)*float64(n)*float64(time.Second)))
			}
			for _, n := range c.tried {
				run(n)
			}
			var got []int64
			for range c.want {
				n := s.best(c.there)
				got = append(got, n)
				run(n)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// What was dear once is tried again after some time.
func TestSizesAreTriedAgain(t *testing.T) {
	var s sizes
	for n := range int64(3) {
		s.add(1<<n, time.Duration(1<<n)*time.Second)
	}
	s.add(8, 80*time.Second)
	whole := 0
	for range 2 * (tryAgain + 1) {
		n := s.best(8)
		if n == 8 {
			whole++
		}
		s.add(n, time.Duration(n)*time.Second)
	}
	if whole != 2 {
		t.Errorf("%d runs of 8 rows, want 2", whole)
	}
}

// Sixteen clients of a model whose rows cost more in large runs get runs of one; those of a model
// where each run costs the same share them.
func TestClientsShareWherePays(t *testing.T) {
	for _, c := range []struct {
		name string
		cost func(rows int) time.Duration
		most float64 // seconds for each answer
	}{
		{"dearer together", func(rows int) time.Duration {
			return time.Duration(rows) * (time.Second + time.Duration(rows)*20*time.Millisecond)
		}, 1.08},
		{"cheaper together", func(rows int) time.Duration { return time.Second + time.Duration(rows)*time.Millisecond }, 0.14},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &doubler{cost: c.cost}
				s := New(d, Config{MaxRows: 64})
				begin := time.Now()
				var wg sync.WaitGroup
				for i := range 16 {
					wg.Go(func() {
						for range 40 {
							o, err := s.Do(t.Context(), Request{Work: work(uint64(i), 1, 1)})
							check(t, uint64(i), o, err)
							time.Sleep(time.Microsecond)
						}
					})
				}
				wg.Wait()
				if each := time.Since(begin).Seconds() / (16 * 40); each > c.most {
					t.Errorf("%.3f s for each answer, want %.3f; runs of %v rows", each, c.most, d.batches)
				}
			})
		})
	}
}

func TestFit(t *testing.T) {
	var f fit
	if f.cost(3) != 0 {
		t.Error("something costs before any run")
	}
	for n := range 50 {
		rows := float64(1 + n%8)
		f.add(rows, time.Duration(rows*float64(time.Millisecond))+5*time.Millisecond)
	}
	a, b, ok := f.line()
	if !ok || math.Abs(a-0.001) > 1e-6 || math.Abs(b-0.005) > 1e-6 {
		t.Errorf("a %v, b %v", a, b)
	}
}

// TestCrowd has many ask for runs that are over before anybody else has a turn: on one processor each
// would run alone, if leaders did not let others come in first.
func TestCrowd(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct{ workers, most int }{{1, 400}, {16, 16 * 400 / 4}} {
		d := &doubler{}
		s := New(d, Config{MaxRows: 64})
		var wg sync.WaitGroup
		for i := range c.workers {
			wg.Go(func() {
				for range 400 {
					o, err := s.Do(t.Context(), Request{Work: work(uint64(i), 1, 1)})
					check(t, uint64(i), o, err)
					runtime.Gosched() // as for the answer and the next request
				}
			})
		}
		wg.Wait()
		if n := len(d.batches); n > c.most {
			t.Errorf("%d requests of %d workers took %d runs, more than %d", 400*c.workers, c.workers, n, c.most)
		}
	}
}
