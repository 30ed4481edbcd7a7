package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// row is one load on one system.
type row struct {
	Model    string `json:"model"`
	System   string `json:"system"`
	Protocol string `json:"protocol"`
	// Workers is the concurrency of a closed loop; 0 for an open one, whose requests came at Due a second.
	Workers int     `json:"concurrency,omitempty"`
	Due     float64 `json:"due_per_second,omitempty"`
	measured
}

// comparison are the flags of compare.
type comparison struct {
	config
	names, peers []string
	workers      []int
	turn         time.Duration
	json         string
}

func compare(ctx context.Context, args []string) error {
	c := &comparison{workers: []int{1, 4, 16, 64}}
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	c.config.flags(f)
	names := f.String("model", "mlp,resnet18,minilm", "models, of those in --models")
	with := f.String("systems", "loris,triton,mlserver,mosec", "systems")
	f.Func("concurrency", "workers of the closed loops (default 1,4,16,64)", func(text string) (err error) { c.workers, err = numbers(text); return err })
	f.DurationVar(&c.turn, "time", 3*time.Second, "how long each load takes")
	f.StringVar(&c.json, "json", "", "a file that the rows are appended to, one a line")
	if err := f.Parse(args); err != nil {
		return err
	}
	c.names, c.peers = strings.Split(*names, ","), strings.Split(*with, ",")
	if err := c.prepare(ctx); err != nil {
		return err
	}
	defer c.clean()
	for _, name := range c.names {
		m, err := openModel(c.models, name)
		if err != nil {
			return err
		}
		rows, err := c.model(ctx, m)
		if err := errors.Join(err, appendRows(c.json, rows)); err != nil {
			return err
		}
		printTable(os.Stdout, rows)
	}
	return nil
}

// model measures one model on all systems.
func (c *comparison) model(ctx context.Context, m *model) (rows []row, err error) {
	var started []*running
	defer func() {
		for _, r := range started {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			if r.Terminate(end) != nil { // a peer that does not end by itself is killed
				r.Kill()
			}
			cancel()
		}
	}()
	for _, s := range systems {
		if !slices.Contains(c.peers, s.name) {
			continue
		}
		begin := time.Now()
		r, err := s.start(ctx, &c.config, m)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "%s serves %s after %v\n", s.name, m.name, time.Since(begin).Round(time.Millisecond))
		started = append(started, r)
		if err := r.Pause(); err != nil {
			return nil, err
		}
	}
	for _, workers := range c.workers {
		for _, r := range started {
			more, err := c.turns(ctx, m, r, func(call caller) *measured { return closedLoop(ctx, call, workers, c.turn) })
			if err != nil {
				return nil, err
			}
			for i := range more {
				more[i].Workers = workers
			}
			rows = append(rows, more...)
		}
	}
	due := halfOfPeers(rows)
	if due == 0 {
		return rows, nil
	}
	for _, r := range started {
		more, err := c.turns(ctx, m, r, func(call caller) *measured { return openLoop(ctx, call, due, c.turn) })
		if err != nil {
			return nil, err
		}
		for i := range more {
			more[i].Due = due
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// halfOfPeers is half the highest rate of a system other than Loris; 0 without any.
func halfOfPeers(rows []row) float64 {
	best := 0.0
	for _, r := range rows {
		if r.System != "loris" {
			best = max(best, r.Rate)
		}
	}
	return best / 2
}

// turns measures each protocol of a system, the others being stopped.
func (c *comparison) turns(ctx context.Context, m *model, r *running, load func(caller) *measured) (rows []row, err error) {
	if err := r.Resume(); err != nil {
		return nil, err
	}
	for _, protocol := range r.protocols {
		closedLoop(ctx, r.calls[protocol], 1, 100*time.Millisecond) // threads and caches that have slept
		got := load(r.calls[protocol])
		if got.err != nil {
			fmt.Fprintf(os.Stderr, "%s, %s: %d of %d requests failed: %v\n", r.Name, protocol, got.Failed, got.Failed+got.Requests, got.err)
		}
		rows = append(rows, row{Model: m.name, System: r.Name, Protocol: protocol, measured: *got})
	}
	return rows, errors.Join(ctx.Err(), r.Pause())
}
