package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// caller sends one request of worker number i, and returns an error if the answer is not the right one.
type caller func(ctx context.Context, i int) error

// measured is what a load found. Times are nanoseconds.
type measured struct {
	Requests int     `json:"requests"` // answered rightly
	Failed   int     `json:"failed"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"requests_per_second"`
	P50      int64   `json:"p50_ns"`
	P90      int64   `json:"p90_ns"`
	P99      int64   `json:"p99_ns"`
	Max      int64   `json:"max_ns"`

	err error // the first failure
}

// times are those of one worker.
type times struct {
	all    []time.Duration
	failed int
	err    error
}

func (t *times) add(d time.Duration, err error) {
	if err != nil {
		t.failed++
		if t.err == nil {
			t.err = err
		}
		return
	}
	t.all = append(t.all, d)
}

func summary(workers []times, took time.Duration) *measured {
	var all []time.Duration
	m := &measured{Seconds: took.Seconds()}
	for i := range workers {
		all = append(all, workers[i].all...)
		m.Failed += workers[i].failed
		if m.err == nil {
			m.err = workers[i].err
		}
	}
	m.Requests = len(all)
	m.Rate = float64(len(all)) / m.Seconds
	if len(all) > 0 {
		slices.Sort(all)
		at := func(q float64) int64 { return int64(all[min(int(q*float64(len(all))), len(all)-1)]) }
		m.P50, m.P90, m.P99, m.Max = at(0.5), at(0.9), at(0.99), at(1)
	}
	return m
}

// closedLoop has workers send one request after another for a time.
func closedLoop(ctx context.Context, call caller, workers int, d time.Duration) *measured {
	all := make([]times, workers)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			for ctx.Err() == nil {
				t := time.Now()
				if t.Sub(begin) >= d {
					return
				}
				err := call(ctx, i)
				all[i].add(time.Since(t), err)
			}
		})
	}
	wg.Wait()
	return summary(all, time.Since(begin))
}

var errBehind = errors.New("more requests were due than the generator has workers")

// openWorkers bounds the requests in flight of an open loop.
const openWorkers = 512

// openLoop sends requests at a rate whether or not those before are answered. A request's time counts
// from when it was due, so that a server that stalls pays for all that were due meanwhile.
func openLoop(ctx context.Context, call caller, rate float64, d time.Duration) *measured {
	all := make([]times, openWorkers+1)
	due := make(chan time.Time, openWorkers)
	var wg sync.WaitGroup
	for i := range openWorkers {
		wg.Go(func() {
			for t := range due {
				err := call(ctx, i)
				all[i].add(time.Since(t), err)
			}
		})
	}
	begin := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		t := begin.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if t.Sub(begin) >= d {
			break
		}
		time.Sleep(time.Until(t))
		select {
		case due <- t:
		default:
			all[openWorkers].add(0, errBehind)
		}
	}
	close(due)
	wg.Wait()
	return summary(all, time.Since(begin))
}
