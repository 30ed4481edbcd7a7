package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
)

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// held is what a process has of the system, by /proc.
type held struct {
	memory      int64 // bytes that are resident
	descriptors int
	threads     int
}

func holds(pid int) (h held, err error) {
	dir := fmt.Sprintf("/proc/%d", pid)
	text, err := os.ReadFile(filepath.Join(dir, "statm"))
	if err != nil {
		return h, err
	}
	fields := bytes.Fields(text)
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return h, err
	}
	h.memory = pages * int64(os.Getpagesize())
	for name, n := range map[string]*int{"fd": &h.descriptors, "task": &h.threads} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			return h, err
		}
		*n = len(entries)
	}
	return h, nil
}

// flat returns an error if a process holds more than it did, by more than chance.
func (h held) flat(before held) error {
	const few = 8
	if h.descriptors > before.descriptors+few || h.threads > before.threads+few || h.memory > before.memory*5/4+16<<20 {
		return fmt.Errorf("the server holds %v, and held %v", h, before)
	}
	return nil
}

func (h held) String() string {
	return fmt.Sprintf("%.1f MB, %d descriptors, %d threads", float64(h.memory)/1e6, h.descriptors, h.threads)
}

// startMLP serves the MLP at a port.
func (c *config) startMLP(ctx context.Context) (*process.Server, caller, string, error) {
	m, err := openModel(c.models, "mlp")
	if err != nil {
		return nil, nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, "", err
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	_, call, err := infers("http://"+host, m)
	if err != nil {
		return nil, nil, "", err
	}
	line := []string{c.loris, "serve", "mlp=" + m.file, "--http", host, "--log-level", "warn"}
	s, err := process.StartServer(ctx, "loris", c.work, line, os.Environ(), func(ctx context.Context) error { return call(ctx, 0) })
	return s, call, host, err
}

// idle opens connections that ask once and stay, and measures what they cost and the load beside them.
func idle(ctx context.Context, args []string) error {
	c := &config{}
	f := flag.NewFlagSet("idle", flag.ContinueOnError)
	c.flags(f)
	n := f.Int("connections", 10000, "idle connections; the limit on open files must allow as many")
	turn := f.Duration("time", 3*time.Second, "how long each load takes")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	defer c.clean()
	s, call, host, err := c.startMLP(ctx)
	if err != nil {
		return err
	}
	defer s.Kill()
	step := func(text string) (held, error) {
		m := closedLoop(ctx, call, 16, *turn)
		h, err := holds(s.Pid())
		fmt.Printf("%-24s %7.0f requests/s, p99 %s; %v\n", text, m.Rate, short(m.P99), h)
		return h, errors.Join(m.err, err)
	}
	before, err := step("before")
	if err != nil {
		return err
	}
	open := make([]net.Conn, 0, *n)
	for len(open) < *n {
		conn, err := askOnce(host)
		if err != nil {
			return fmt.Errorf("connection %d: %w", len(open)+1, err)
		}
		open = append(open, conn)
	}
	opened, err := step(fmt.Sprintf("%d connections", *n))
	if err != nil {
		return err
	}
	later, err := step("the same, later")
	if err := errors.Join(err, later.flat(opened)); err != nil {
		return err
	}
	for _, conn := range open {
		if err := conn.Close(); err != nil {
			return err
		}
	}
	after, err := step("closed")
	after.memory = min(after.memory, before.memory) // the collector keeps what it may need again
	return errors.Join(err, after.flat(before), terminate(ctx, s))
}

// askOnce opens a connection and asks whether the server is live.
func askOnce(host string) (net.Conn, error) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET /v2/health/live HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return nil, err
	}
	return conn, resp.Body.Close()
}

// soak loads the server for long and prints what it holds as time goes on.
func soak(ctx context.Context, args []string) error {
	c := &config{}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	c.flags(f)
	long := f.Duration("time", time.Hour, "how long")
	steps := f.Int("steps", 12, "how often it is looked at")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	defer c.clean()
	s, call, _, err := c.startMLP(ctx)
	if err != nil {
		return err
	}
	defer s.Kill()
	var first held
	for i := range *steps {
		m := closedLoop(ctx, call, 16, *long/time.Duration(*steps))
		h, err := holds(s.Pid())
		if err := errors.Join(m.err, err); err != nil {
			return err
		}
		fmt.Printf("%2d  %7.0f requests/s, p99 %s; %v\n", i+1, m.Rate, short(m.P99), h)
		if i == 0 {
			first = h
		} else if err := h.flat(first); err != nil {
			return err
		}
	}
	return terminate(ctx, s)
}

// start measures the time from the start of the process to the first answer that is right.
func start(ctx context.Context, args []string) error {
	c := &config{}
	f := flag.NewFlagSet("start", flag.ContinueOnError)
	c.flags(f)
	n := f.Int("rounds", 10, "how often")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	defer c.clean()
	var all []float64
	for range *n {
		begin := time.Now()
		s, _, _, err := c.startMLP(ctx)
		if err != nil {
			return err
		}
		all = append(all, float64(time.Since(begin)))
		if err := terminate(ctx, s); err != nil {
			return err
		}
	}
	slices.Sort(all)
	fmt.Printf("from start to the first answer: median %s, least %s, most %s of %d\n", short(int64(median(all))), short(int64(all[0])), short(int64(all[len(all)-1])), *n)
	return nil
}
