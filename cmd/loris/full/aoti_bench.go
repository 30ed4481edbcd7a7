package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/progress"
)

// benchResult is what --json prints; times are in microseconds.
type benchResult struct {
	Package  string       `json:"package"`
	Model    string       `json:"model"`
	Load     float64      `json:"load_us"`      // until the model can run
	FirstRun float64      `json:"first_run_us"` // with what is done once
	Levels   []benchLevel `json:"levels"`
}

// benchLevel is one concurrency.
type benchLevel struct {
	Concurrency int     `json:"concurrency"`
	Runs        int     `json:"runs"`
	Seconds     float64 `json:"seconds"`
	Throughput  float64 `json:"runs_per_second"`
	Mean        float64 `json:"mean_us"`
	Min         float64 `json:"min_us"`
	P50         float64 `json:"p50_us"`
	P90         float64 `json:"p90_us"`
	P99         float64 `json:"p99_us"`
	Max         float64 `json:"max_us"`
}

// benchFlags are the flags of bench.
type benchFlags struct {
	loadFlags
	levels   []int
	duration time.Duration
	json     bool
}

func newBench() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench PACKAGE",
		Short: "Measure latency and throughput of a compiled model",
		Long: `Measure latency and throughput of a compiled model: for each number of
--concurrency, as many goroutines run it over and over for --duration, each writing
into outputs of its own. There are as many instances as the largest number asks
for, unless --instances says otherwise. Inputs that --in does not give are made up.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: packageArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(f.levels) == 0 || slices.Min(f.levels) < 1 {
				return command.Usagef("--concurrency is %v: it takes numbers from 1", f.levels)
			}
			if f.duration <= 0 {
				return command.Usagef("--duration is %v: it must be positive", f.duration)
			}
			f.random = true
			if !c.Flags().Changed("instances") {
				f.instances = slices.Max(f.levels)
			}
			if f.instances < 1 {
				return command.Usagef("--instances is %d: it takes at least one", f.instances)
			}
			r, err := f.bench(c, args[0])
			if err != nil {
				return err
			}
			if f.json {
				return command.PrintJSON(c.OutOrStdout(), r)
			}
			return r.print(c.OutOrStdout())
		},
	}
	f.add(c, "make up the inputs that are missing (always on)")
	c.Flags().IntVar(&f.instances, "instances", 0, "instances of the model; by default the largest concurrency")
	c.Flags().IntSliceVar(&f.levels, "concurrency", []int{1, 2, 4}, "numbers of goroutines")
	c.Flags().DurationVar(&f.duration, "duration", 3*time.Second, "time for each number")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return c
}

func (f *benchFlags) bench(c *cobra.Command, path string) (res *benchResult, err error) {
	ctx := c.Context()
	start := time.Now()
	r, err := f.load(ctx, path, f.instances)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	res = &benchResult{Package: path, Model: r.Name(), Load: micros(time.Since(start))}
	in, err := f.inputs(r, path)
	if err != nil {
		return nil, err
	}
	defer release(in)
	start = time.Now()
	outs, err := r.Run(ctx, in...)
	if err != nil {
		return nil, err
	}
	res.FirstRun = micros(time.Since(start))
	release(outs)
	var bar *progress.Bar
	if errOut := c.ErrOrStderr(); !f.json && progress.OnTerminal(errOut) {
		bar = progress.New(errOut, len(f.levels)*benchTicks)
	}
	for i, n := range f.levels {
		l, err := f.level(ctx, r, in, n, func(part float64) {
			if bar != nil {
				bar.Set(fmt.Sprintf("%d at once", n), i*benchTicks+int(part*benchTicks))
			}
		})
		if err != nil {
			return nil, err
		}
		res.Levels = append(res.Levels, l)
	}
	if bar != nil {
		bar.Clear()
	}
	return res, nil
}

// benchTicks are the steps of the bar for each level.
const benchTicks = 20

// level runs the model from n goroutines at once. Each first runs it alone, to
// have outputs to write into.
func (f *benchFlags) level(ctx context.Context, r *aoti.Runner, in []aoti.Buffer, n int, progress func(float64)) (benchLevel, error) {
	outs := make([][]aoti.Buffer, n)
	defer func() {
		for _, o := range outs {
			release(o)
		}
	}()
	for i := range outs {
		var err error
		if outs[i], err = r.Run(ctx, in...); err != nil {
			return benchLevel{}, err
		}
	}
	times := make([][]time.Duration, n)
	callers, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	end := start.Add(f.duration)
	for i := range n {
		callers.Go(func() error {
			for last := time.Now(); last.Before(end); {
				if err := r.RunInto(ctx, in, outs[i]); err != nil {
					return err
				}
				now := time.Now()
				times[i] = append(times[i], now.Sub(last))
				last = now
			}
			return nil
		})
	}
	done := make(chan error, 1)
	go func() { done <- callers.Wait() }()
	err := watch(done, start, f.duration, progress)
	took := time.Since(start)
	if err != nil {
		return benchLevel{}, err
	}
	return summarize(n, took, slices.Concat(times...)), nil
}

// watch reports how far it is until there is an error, or nil, in done, which it returns.
func watch(done <-chan error, start time.Time, whole time.Duration, progress func(float64)) error {
	tick := time.NewTicker(whole / benchTicks)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case now := <-tick.C:
			progress(min(float64(now.Sub(start))/float64(whole), 0.99))
		}
	}
}

func summarize(n int, took time.Duration, times []time.Duration) benchLevel {
	l := benchLevel{Concurrency: n, Runs: len(times), Seconds: took.Seconds(), Throughput: float64(len(times)) / took.Seconds()}
	if len(times) == 0 {
		return l
	}
	slices.Sort(times)
	var sum time.Duration
	for _, t := range times {
		sum += t
	}
	at := func(q float64) float64 { return micros(times[int(math.Ceil(q*float64(len(times))))-1]) }
	l.Mean = micros(sum) / float64(len(times))
	l.Min, l.P50, l.P90, l.P99, l.Max = micros(times[0]), at(0.5), at(0.9), at(0.99), at(1)
	return l
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func (r *benchResult) print(w io.Writer) error {
	fmt.Fprintf(w, "%s, model %s: loaded in %.2f ms, first run %.2f ms\n", r.Package, r.Model, r.Load/1e3, r.FirstRun/1e3)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "at once\truns\truns/s\tmean µs\tmin\tp50\tp90\tp99\tmax\t")
	for _, l := range r.Levels {
		fmt.Fprintf(t, "%d\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n",
			l.Concurrency, l.Runs, l.Throughput, l.Mean, l.Min, l.P50, l.P90, l.P99, l.Max)
	}
	return t.Flush()
}
