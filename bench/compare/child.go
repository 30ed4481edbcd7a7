package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/bench/limit"
)

// child is a peer's process. Its threads are stopped unless it answers a request.
type child struct {
	*peer
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
}

// errNone is the answer of a peer that has no such thing.
var errNone = errors.New("there is none")

// start runs a peer on a device with a number of threads of the host, and waits
// until it is ready.
func (p *peer) start(ctx context.Context, d loris.Device, threads int, env []string) (*child, error) {
	args := append(p.line[1:len(p.line):len(p.line)], strconv.Itoa(threads))
	if d != loris.CPU {
		args = append(args, d.String())
	}
	c := &child{peer: p, cmd: exec.CommandContext(ctx, p.line[0], args...)}
	c.cmd.Env, c.cmd.Stderr = env, &c.stderr
	group(c.cmd)
	c.cmd.WaitDelay = time.Second
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if p.version, err = c.answer("ready"); err != nil {
		return nil, err
	}
	return c, pause(c.cmd.Process)
}

// answer reads a line that begins with a word and returns the rest.
func (c *child) answer(word string) (string, error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.stop()
		return "", fmt.Errorf("%s ended: %w, %v: %s", c.name, err, c.cmd.ProcessState, c.stderr)
	}
	line = strings.TrimSpace(line)
	first, rest, _ := strings.Cut(line, " ")
	switch first {
	case word:
		return rest, nil
	case "none":
		return "", errNone
	case "error":
		return "", fmt.Errorf("%s: %s", c.name, rest)
	}
	return "", fmt.Errorf("%s said %q", c.name, line)
}

// ask sends a request and returns the answer; the process runs meanwhile only.
func (c *child) ask(request string) (string, error) {
	if err := resume(c.cmd.Process); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c.in, request+"\n"); err != nil {
		return "", fmt.Errorf("%s: %w", c.name, err)
	}
	rest, err := c.answer("ok")
	if c.cmd.ProcessState != nil {
		return rest, err // it has ended
	}
	return rest, errors.Join(err, pause(c.cmd.Process))
}

// turn runs the open workload for a while, so many runs at a time, and returns the
// median nanoseconds of a run.
func (c *child) turn(d time.Duration, batch int) (int64, error) {
	rest, err := c.ask(fmt.Sprintf("turn %d %d", d.Milliseconds(), batch))
	if err != nil {
		return 0, err
	}
	var count, median, least int64
	if _, err := fmt.Sscan(rest, &count, &median, &least); err != nil {
		return 0, fmt.Errorf("%s said %q: %w", c.name, rest, err)
	}
	return median, nil
}

// limits asks a peer on a GPU what the GPU can do.
func (c *child) limits(threads int) (limit.Machine, error) {
	m := limit.Machine{Threads: threads}
	rest, err := c.ask("limits")
	if err != nil {
		return m, err
	}
	if _, err := fmt.Sscan(rest, &m.FLOPS, &m.Stream); err != nil {
		return m, fmt.Errorf("%s said %q: %w", c.name, rest, err)
	}
	return m, nil
}

// stop ends the process; what it says then does not matter.
func (c *child) stop() {
	if c.cmd.ProcessState != nil {
		return
	}
	c.in.Close()
	_ = resume(c.cmd.Process)
	_ = c.cmd.Wait()
}

// tail is a writer that keeps the end of its input.
type tail struct{ b []byte }

const tailBytes = 2000

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b) - tailBytes; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

// String returns the end that was kept.
func (t tail) String() string { return string(t.b) }
