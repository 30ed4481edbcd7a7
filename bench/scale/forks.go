package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris"
)

// contend prints, for each way to run, where the goroutines of forks waited.
func contend(ctx context.Context, w io.Writer, s settings) error {
	if s.forks == 0 {
		return nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(s.procs))
	for _, way := range ways {
		if err := way.report(ctx, w, s); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
	}
	return nil
}

// way is how a fork computes.
type way struct {
	name string
	// open returns what one request of a fork does.
	open func(f *loris.Session, net *network) func(ctx context.Context) error
}

// ways are the ways in which forks compute: op by op, read at once; op by op in steps, as what trains
// does; by a compiled function.
var ways = []way{
	{"recorded", func(f *loris.Session, net *network) func(context.Context) error {
		return func(ctx context.Context) error { return read(ctx, net.forward(net.input(f))) }
	}},
	{"trained", func(f *loris.Session, net *network) func(context.Context) error {
		own := loris.NewVariable(f.With().Full(0.5, hidden))
		return func(ctx context.Context) error {
			err := f.Step(ctx, func() error {
				own.Assign(own.Value().Mul(0.9).Add(net.forward(net.input(f)).Mean()))
				return nil
			})
			if err != nil {
				return err
			}
			return read(ctx, own.Value())
		}
	}},
	{"compiled", func(f *loris.Session, net *network) func(context.Context) error {
		fn := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { return []*loris.Tensor{net.forward(in[0])} })
		return func(ctx context.Context) error {
			out, err := fn.Call(ctx, net.input(f))
			if err != nil {
				return err
			}
			return read(ctx, out[0])
		}
	}},
}

func read(ctx context.Context, x *loris.Tensor) error {
	_, err := x.Float32s(ctx)
	return err
}

const (
	layers = 3
	hidden = 64
)

// network is small layers whose weights the forks share.
type network struct{ weights []*loris.Variable }

func newNetwork(s *loris.Session) *network {
	n := &network{}
	for range layers {
		n.weights = append(n.weights, loris.NewVariable(s.With().Full(0.01, hidden, hidden)))
	}
	return n
}

func (n *network) input(f *loris.Session) *loris.Tensor { return f.With().Ones(8, hidden) }

func (n *network) forward(x *loris.Tensor) *loris.Tensor {
	for _, w := range n.weights {
		x = x.MatMul(w.ValueIn(x.Session())).Relu()
	}
	return x
}

// report runs the forks and prints the table of a way.
func (w way) report(ctx context.Context, out io.Writer, s settings) (err error) {
	session, err := loris.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	net := newNetwork(session)
	if err := session.MarkStep(ctx); err != nil {
		return err
	}
	requests := make([]func(context.Context) error, s.forks)
	for i := range requests {
		requests[i] = w.open(session.Fork(), net)
		if err := requests[i](ctx); err != nil {
			return err
		}
	}
	one, err := drive(ctx, requests[:1], s.time)
	if err != nil {
		return err
	}
	before := waits()
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	begin := time.Now()
	all, err := drive(ctx, requests, s.time)
	whole := time.Since(begin) * time.Duration(s.forks)
	runtime.SetMutexProfileFraction(0)
	runtime.SetBlockProfileRate(0)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d forks on %d processors, %.0f requests/s, %.2f times those of one fork\n", w.name, s.forks, s.procs,
		float64(all)/s.time.Seconds(), float64(all)/float64(max(one, 1)))
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "profile\tof all time\twaits\ta wait\twhere")
	for i, p := range since(waits(), before) {
		if i == s.top {
			break
		}
		fmt.Fprintf(tw, "%s\t%.2f%%\t%d\t%v\t%s\n", p.profile, 100*float64(p.time)/float64(max(whole, 1)), p.count, short(p.time/time.Duration(max(p.count, 1))), p.where)
	}
	return tw.Flush()
}

// drive runs the requests over and over, each on a goroutine of its own, and returns how many were
// answered in the time.
func drive(ctx context.Context, requests []func(context.Context) error, long time.Duration) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counts, errs := make([]int, len(requests)), make([]error, len(requests))
	var wg sync.WaitGroup
	end := time.Now().Add(long)
	for i, f := range requests {
		wg.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				if errs[i] = f(ctx); errs[i] != nil {
					cancel()
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	n := 0
	for _, c := range counts {
		n += c
	}
	return n, errors.Join(errs...)
}

// place is a place at which goroutines waited.
type place struct{ profile, where string }

// waited is how often and how long.
type waited struct {
	place
	count int64
	time  time.Duration
}

// waits returns what the profiles of mutexes and of blocking have so far.
func waits() map[place]waited {
	all := map[place]waited{}
	read := func(profile string, get func([]runtime.BlockProfileRecord) (int, bool)) {
		scale := cycle(profile)
		records := make([]runtime.BlockProfileRecord, 1000)
		n, ok := get(records)
		for !ok {
			records = make([]runtime.BlockProfileRecord, 2*n)
			n, ok = get(records)
		}
		for _, r := range records[:n] {
			p := place{profile, where(r.Stack())}
			x := all[p]
			all[p] = waited{p, x.count + r.Count, x.time + time.Duration(float64(r.Cycles)*scale)}
		}
	}
	read("mutex", runtime.MutexProfile)
	read("block", runtime.BlockProfile)
	return all
}

var rate = regexp.MustCompile(`cycles/second=(\d+)`)

// cycle returns the nanoseconds of a cycle in which a profile counts.
func cycle(profile string) float64 {
	var text bytes.Buffer
	if err := pprof.Lookup(profile).WriteTo(&text, 1); err != nil {
		return 0 // cannot fail: a buffer takes everything
	}
	m := rate.FindSubmatch(text.Bytes())
	if m == nil {
		return 1 // the profile says nanoseconds where it names no rate
	}
	perSecond, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || perSecond <= 0 {
		return 1
	}
	return 1e9 / perSecond
}

// where returns the innermost functions of a stack that are of Loris: the one that waited, and the
// one that called it.
func where(stack []uintptr) string {
	var names []string
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if name, ok := strings.CutPrefix(f.Function, module); ok && len(names) < 3 {
			names = append(names, fmt.Sprintf("%s:%d", strings.TrimPrefix(name, "/"), f.Line))
		}
		if !more {
			break
		}
	}
	if len(names) == 0 {
		return "outside of Loris"
	}
	return strings.Join(names, " < ")
}

const module = "github.com/loris-ml/loris"

// since returns what was waited after a moment, longest first.
func since(now, before map[place]waited) (list []waited) {
	for p, x := range now {
		x.count -= before[p].count
		x.time -= before[p].time
		if x.count > 0 {
			list = append(list, x)
		}
	}
	slices.SortFunc(list, func(a, b waited) int { return int(min(max(b.time-a.time, -1), 1)) })
	return list
}
