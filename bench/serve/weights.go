package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/serve/client"
)

// disturbance are the flags of swap and reload: the same load by turns without and with something that
// is done to the model meanwhile.
type disturbance struct {
	config
	protocol string
	workers  int
	rounds   int
	turn     time.Duration
	every    time.Duration
}

func (d *disturbance) parse(name string, args []string, every time.Duration) error {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	d.config.flags(f)
	f.StringVar(&d.protocol, "protocol", "http", "http or grpc")
	f.IntVar(&d.workers, "concurrency", 16, "workers of the closed loop")
	f.IntVar(&d.rounds, "rounds", 4, "turns without and with")
	f.DurationVar(&d.turn, "time", 3*time.Second, "how long each turn takes")
	f.DurationVar(&d.every, "every", every, "time from one change to the next")
	return f.Parse(args)
}

// startUpdatable serves the MLP by itself, with leave to change its weights and to load it anew.
func (d *disturbance) startUpdatable(ctx context.Context) (*process.Server, *client.Client, *model, error) {
	m, err := openModel(d.models, "mlp")
	if err != nil {
		return nil, nil, nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, nil, err
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	c, call, err := infers(d.protocol+"://"+host, m)
	if err != nil {
		return nil, nil, nil, err
	}
	line := []string{d.loris, "serve", "mlp=" + m.file, "--http", host, "--log-level", "warn", "--allow-weight-update", "--allow", "weights,model-repository"}
	s, err := process.StartServer(ctx, "loris", d.work, line, os.Environ(), func(ctx context.Context) error { return call(ctx, 0) })
	return s, c, m, err
}

// swap uploads sets of weights and activates them under load. Every answer must be, bit by bit, that of
// the set that it names.
func swap(ctx context.Context, args []string) (err error) {
	d := &disturbance{}
	if err := d.parse("swap", args, 50*time.Millisecond); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	defer d.clean()
	s, c, m, err := d.startUpdatable(ctx)
	if err != nil {
		return err
	}
	defer s.Kill()
	var files [2][]byte
	var right sync.Map // of string to []byte: what a set answers
	for i := range files {
		if files[i], err = os.ReadFile(filepath.Join(d.models, fmt.Sprintf("mlp.weights-%d.safetensors", i+1))); err != nil {
			return err
		}
		name := fmt.Sprintf("set-%d", i)
		if _, err := c.UpdateWeights(ctx, "mlp", name, bytes.NewReader(files[i])); err != nil {
			return err
		}
		r, err := c.Infer(ctx, &client.Request{Model: "mlp", Inputs: m.inputs})
		if err != nil {
			return err
		}
		right.Store(name, bytes.Clone(r.Outputs[0].Data))
	}
	if a, _ := right.Load("set-0"); bytes.Equal(a.([]byte), must(&right, "set-1")) {
		return errors.New("the two sets give the same answer: nothing could be torn")
	}
	var torn atomic.Int64
	call := func(ctx context.Context, _ int) error {
		r, err := c.Infer(ctx, &client.Request{Model: "mlp", Inputs: m.inputs})
		if err != nil {
			return err
		}
		defer r.Release()
		name, _ := r.Parameters["weight_version"].(string)
		if want, ok := right.Load(name); !ok || !bytes.Equal(want.([]byte), r.Outputs[0].Data) {
			torn.Add(1)
		}
		return nil
	}
	n, last, before := 0, "set-1", "set-0"
	var update, exchange time.Duration
	err = d.turns(ctx, call, func(ctx context.Context) error {
		if n++; n%2 == 0 { // back to the set that was active before
			last, before = before, last
			return c.ActivateWeights(ctx, "mlp", last)
		}
		kind := n / 2 % 2
		name := fmt.Sprintf("set-%d-%d", kind, n)
		right.Store(name, must(&right, fmt.Sprintf("set-%d", kind)))
		u, err := c.UpdateWeights(ctx, "mlp", name, bytes.NewReader(files[kind]))
		if err == nil {
			update, exchange, last, before = u.Update, u.Swap, name, last
		}
		return err
	})
	fmt.Printf("%d changes; the last update took %v, and its swap %v; %d answers were torn\n", n, update, exchange, torn.Load())
	if torn.Load() > 0 {
		err = errors.Join(err, fmt.Errorf("%d answers were not those of the set that they name", torn.Load()))
	}
	return errors.Join(err, terminate(ctx, s))
}

// must returns what a set answers, which is there.
func must(m *sync.Map, name string) []byte {
	v, _ := m.Load(name)
	return v.([]byte)
}

// reload loads the model anew under load.
func reload(ctx context.Context, args []string) (err error) {
	d := &disturbance{}
	if err := d.parse("reload", args, 500*time.Millisecond); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	defer d.clean()
	s, c, m, err := d.startUpdatable(ctx)
	if err != nil {
		return err
	}
	defer s.Kill()
	n, most := 0, time.Duration(0)
	call := func(ctx context.Context, _ int) error {
		r, err := c.Infer(ctx, &client.Request{Model: "mlp", Inputs: m.inputs})
		if err != nil {
			return err
		}
		defer r.Release()
		return m.check(&r.Outputs[0])
	}
	err = d.turns(ctx, call, func(ctx context.Context) error {
		n++
		begin := time.Now()
		err := c.Load(ctx, "mlp")
		most = max(most, time.Since(begin))
		return err
	})
	fmt.Printf("%d loads, of which the longest took %v\n", n, most.Round(time.Millisecond))
	return errors.Join(err, terminate(ctx, s))
}

// terminate ends a server, which must end well.
func terminate(ctx context.Context, s *process.Server) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 40*time.Second)
	defer cancel()
	return s.Terminate(end)
}

// turns loads the server without and with changes, by turns, and prints both. A request or a change
// that fails is an error.
func (d *disturbance) turns(ctx context.Context, call caller, change func(context.Context) error) error {
	var rates, p99s [2][]float64
	failed := 0
	var errs []error
	for range d.rounds {
		for with := range 2 {
			changing, stop := context.WithTimeout(ctx, d.turn)
			var wg sync.WaitGroup
			if with == 1 {
				wg.Go(func() { errs = append(errs, d.changes(ctx, changing, change)) })
			}
			m := closedLoop(ctx, call, d.workers, d.turn)
			stop()
			wg.Wait()
			failed += m.Failed
			errs = append(errs, m.err)
			rates[with], p99s[with] = append(rates[with], m.Rate), append(p99s[with], float64(m.P99))
		}
	}
	var ratios, ratios99 []float64 // of neighbours: a machine that others use changes as time goes on
	for i := range rates[0] {
		ratios = append(ratios, rates[1][i]/rates[0][i])
		ratios99 = append(ratios99, p99s[1][i]/p99s[0][i])
	}
	var rate, p99 [2]float64
	for with, text := range []string{"without", "with"} {
		rate[with], p99[with] = median(rates[with]), median(p99s[with])
		fmt.Printf("%-8s %7.0f requests/s, p99 %s\n", text, rate[with], short(int64(p99[with])))
	}
	fmt.Printf("throughput %.3f, p99 %.2f of those without; %d requests failed\n", median(ratios), median(ratios99), failed)
	return errors.Join(errs...)
}

// changes changes the model until the time is over.
func (d *disturbance) changes(ctx, until context.Context, change func(context.Context) error) error {
	for tick := time.NewTicker(d.every); ; {
		select {
		case <-until.Done():
			tick.Stop()
			return nil
		case <-tick.C:
			if err := change(ctx); err != nil {
				tick.Stop()
				return err
			}
		}
	}
}
