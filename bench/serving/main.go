// Command serving measures how long requests to a model take while it is trained in the same
// process: servers are forks of the session that trains. It compares with the same requests beside
// nothing, and beside as much training of another model in a session of its own, which is the equal
// load. Each request also checks that it has seen the values of one step.
//
//	go run ./bench/serving --time 10s
//
// It fails if a request is torn, fails or panics, or if servers compile more than their own graph.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// settings are the flags.
type settings struct {
	long    time.Duration
	servers int
	rate    float64
	record  bool
}

func main() {
	var c settings
	flag.DurationVar(&c.long, "time", 5*time.Second, "how long each measurement takes")
	flag.IntVar(&c.servers, "servers", 1, "forks that serve")
	flag.Float64Var(&c.rate, "rate", 100, "requests a second of each fork")
	flag.BoolVar(&c.record, "record", false, "record each request instead of calling a compiled function")
	flag.Parse()
	if err := run(context.Background(), c); err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(1)
	}
}

// ways are the ways to train.
var ways = []string{"MarkStep", "Step", "Compile"}

func run(ctx context.Context, c settings) error {
	fmt.Printf("%-42s %9s %9s %9s %9s %9s %7s\n", "", "requests", "p50", "p99", "max", "steps/s", "ratio")
	m, err := newModel(ctx)
	if err != nil {
		return err
	}
	alone, err := c.measure(ctx, m, nil)
	if err != nil {
		return err
	}
	alone.print("alone", 0)
	for _, way := range ways {
		other, err := newModel(ctx)
		if err != nil {
			return err
		}
		load, err := c.measure(ctx, m, other.trainer(way))
		if err := errors.Join(err, other.s.Close(ctx)); err != nil {
			return err
		}
		load.print("another model is trained by "+way, 0)
		own, err := c.measure(ctx, m, m.trainer(way))
		if err != nil {
			return err
		}
		own.print("this model is trained by "+way, float64(own.quantile(0.99))/float64(load.quantile(0.99)))
	}
	return m.s.Close(ctx)
}

// model is a perceptron of many layers, and two counters that each step increases.
type model struct {
	s            *loris.Session
	net          *nn.Sequential
	x, y         *loris.Tensor
	low, high    *loris.Variable
	forward      *loris.Function // of one input: the output, and how far the counters are apart
	recorded, in *optim.Optimizer
}

func newModel(ctx context.Context) (*model, error) {
	s, err := loris.New()
	if err != nil {
		return nil, err
	}
	in := s.With()
	m := &model{s: s, x: in.Randn(32, 64), y: in.Randn(32, 64), low: loris.NewVariable(in.Zeros(1)), high: loris.NewVariable(in.Zeros(1))}
	var layers []nn.Layer
	for range 20 {
		layers = append(layers, nn.NewLinear(64, 64, nn.With(in)), nn.Func(nn.ReLU))
	}
	m.net = nn.NewSequential(layers...)
	m.recorded = optim.NewAdam(m.net.Params(), 1e-3)
	m.in = optim.NewAdam(m.net.Params(), 1e-3, optim.Captured())
	m.forward = loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { return m.outputs(in[0].Session(), in[0]) })
	return m, s.MarkStep(ctx)
}

// outputs records what a request asks for.
func (m *model) outputs(s *loris.Session, x *loris.Tensor) []*loris.Tensor {
	return []*loris.Tensor{m.net.Forward(x), m.high.ValueIn(s).Sub(m.low.ValueIn(s))}
}

// record records a training step.
func (m *model) record(opt *optim.Optimizer, x, y *loris.Tensor) {
	m.low.Assign(m.low.Value().Add(1))
	opt.Minimize(m.net.Forward(x).MseLoss(y))
	m.high.Assign(m.high.Value().Add(1))
}

// trainer returns a function that does one training step.
func (m *model) trainer(way string) func(context.Context) error {
	switch way {
	case "MarkStep":
		return func(ctx context.Context) error {
			m.record(m.recorded, m.x, m.y)
			return m.s.MarkStep(ctx)
		}
	case "Step":
		return func(ctx context.Context) error {
			return m.s.Step(ctx, func() error { m.record(m.recorded, m.x, m.y); return nil })
		}
	}
	step := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor { m.record(m.in, in[0], in[1]); return nil })
	return func(ctx context.Context) error {
		_, err := step.Call(ctx, m.x, m.y)
		return err
	}
}

// request computes the model's output for one input, and says whether the weights are of one step.
func (c settings) request(ctx context.Context, m *model, fork *loris.Session, input []float32) (err error) {
	failed := loris.Try(func() {
		x := fork.With().FromSlice(input, 1, len(input))
		var out []*loris.Tensor
		if c.record {
			out = m.outputs(fork, x)
			err = fork.Sync(ctx, out...)
		} else {
			out, err = m.forward.Call(ctx, x)
		}
		if err != nil {
			return
		}
		var d float64
		if d, err = out[1].Item(ctx); err == nil && d != 0 {
			err = fmt.Errorf("a request has seen counters of steps that are %v apart", d)
		}
		if _, failed := out[0].Float32s(ctx); failed != nil {
			err = failed
		}
	})
	return errors.Join(failed, err)
}

// measurement is the time of each request, and how many steps were trained a second.
type measurement struct {
	times []time.Duration
	steps float64
}

func (r *measurement) quantile(q float64) time.Duration {
	return r.times[min(int(q*float64(len(r.times))), len(r.times)-1)]
}

func (r *measurement) print(name string, ratio float64) {
	text := ""
	if ratio > 0 {
		text = fmt.Sprintf("%.2f", ratio)
	}
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	fmt.Printf("%-42s %9d %9v %9v %9v %9.0f %7s\n", name, len(r.times), round(r.quantile(0.5)), round(r.quantile(0.99)), round(r.quantile(1)), r.steps, text)
}

// measure serves for the time, beside a training unless that is nil. A request's time counts from
// when it was due, so that one that is late makes those behind it late, too.
func (c settings) measure(ctx context.Context, m *model, train func(context.Context) error) (*measurement, error) {
	if train != nil {
		if err := train(ctx); err != nil { // it compiles
			return nil, err
		}
	}
	forks := make([]*loris.Session, c.servers)
	for i := range forks {
		forks[i] = m.s.Fork()
		if err := c.request(ctx, m, forks[i], make([]float32, 64)); err != nil {
			return nil, err
		}
	}
	compiles := m.s.Report().Compiles
	var stop atomic.Bool
	var mu sync.Mutex
	var out measurement
	var errs []error
	var wg sync.WaitGroup
	for _, fork := range forks {
		wg.Go(func() {
			times, err := c.serve(ctx, m, fork)
			mu.Lock()
			defer mu.Unlock()
			out.times, errs = append(out.times, times...), append(errs, err)
		})
	}
	done := make(chan error)
	start := time.Now()
	steps := 0
	go func() {
		var err error
		for train != nil && err == nil && !stop.Load() {
			err = train(ctx)
			steps++
		}
		done <- err
	}()
	wg.Wait()
	stop.Store(true)
	errs = append(errs, <-done)
	out.steps = float64(steps) / time.Since(start).Seconds()
	slices.Sort(out.times)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// The training may compile once more: from its second step on it may overwrite old values.
	if n := m.s.Report().Compiles - compiles; n > 1 {
		return nil, fmt.Errorf("%d compilations while the model was served:\n%v", n, m.s.Report())
	}
	return &out, nil
}

// serve makes requests at the rate.
func (c settings) serve(ctx context.Context, m *model, fork *loris.Session) (times []time.Duration, err error) {
	input := make([]float32, 64)
	every := time.Duration(float64(time.Second) / c.rate)
	for due, end := time.Now(), time.Now().Add(c.long); due.Before(end); due = due.Add(every) {
		time.Sleep(time.Until(due))
		if err := c.request(ctx, m, fork, input); err != nil {
			return nil, err
		}
		times = append(times, time.Since(due))
	}
	return times, nil
}
