package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/bench/limit"
)

// child is a system that runs.
type child struct{ *process.Process }

// start runs a system on a device with a number of threads of the host, and waits
// until it is ready.
func (s *peer) start(ctx context.Context, d loris.Device, threads int, env []string) (child, error) {
	line := append(s.line[:len(s.line):len(s.line)], strconv.Itoa(threads))
	if d != loris.CPU {
		line = append(line, d.String())
	}
	p, err := process.Start(ctx, s.name, line, env)
	if err != nil {
		return child{}, err
	}
	s.version = p.Version
	return child{p}, nil
}

// turn runs the open workload for a while, so many runs at a time, and returns the
// median nanoseconds of a run.
func (c child) turn(d time.Duration, batch int) (int64, error) {
	median, _, err := c.Turn(d, batch)
	return median, err
}

// limits asks a peer on a GPU what the GPU can do.
func (c child) limits(threads int) (limit.Machine, error) {
	m := limit.Machine{Threads: threads}
	rest, err := c.Ask("limits")
	if err != nil {
		return m, err
	}
	if _, err := fmt.Sscan(rest, &m.FLOPS, &m.Stream); err != nil {
		return m, fmt.Errorf("%s said %q: %w", c.Name, rest, err)
	}
	return m, nil
}
