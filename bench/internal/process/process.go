// Package process runs the systems that benchmarks compare with: processes that answer requests, line by
// line, and whose threads are stopped between them.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Process is a peer's process. Its threads are stopped unless it answers a request.
type Process struct {
	Name string
	// Version is what the process said when it was ready.
	Version string

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
}

// ErrNone is the answer of a peer that has no such thing.
var ErrNone = errors.New("there is none")

// Start runs a command line and waits until its process says that it is ready. The process ends
// with ctx.
func Start(ctx context.Context, name string, line, env []string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.CommandContext(ctx, line[0], line[1:]...)}
	p.cmd.Env, p.cmd.Stderr = env, &p.stderr
	group(p.cmd)
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if p.Version, err = p.answer("ready"); err != nil {
		return nil, err
	}
	return p, pause(p.cmd.Process)
}

// Ended reports whether the process is gone.
func (p *Process) Ended() bool { return p.cmd.ProcessState != nil }

// answer reads a line that begins with a word and returns the rest.
func (p *Process) answer(word string) (string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.Stop()
		return "", fmt.Errorf("%s ended: %w, %v: %s", p.Name, err, p.cmd.ProcessState, p.stderr)
	}
	line = strings.TrimSpace(line)
	first, rest, _ := strings.Cut(line, " ")
	switch first {
	case word:
		return rest, nil
	case "none":
		return "", ErrNone
	case "error":
		return "", fmt.Errorf("%s: %s", p.Name, rest)
	}
	return "", fmt.Errorf("%s said %q", p.Name, line)
}

// Ask sends a request and returns the answer; the process runs meanwhile only.
func (p *Process) Ask(request string) (string, error) {
	if err := resume(p.cmd.Process); err != nil {
		return "", err
	}
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		return "", fmt.Errorf("%s: %w", p.Name, err)
	}
	rest, err := p.answer("ok")
	if p.Ended() {
		return rest, err
	}
	return rest, errors.Join(err, pause(p.cmd.Process))
}

// Turn runs what is open for a while, so many runs at a time, and returns the median and the least
// nanoseconds of a run.
func (p *Process) Turn(d time.Duration, batch int) (median, least int64, err error) {
	rest, err := p.Ask(fmt.Sprintf("turn %d %d", d.Milliseconds(), batch))
	if err != nil {
		return 0, 0, err
	}
	var count int64
	if _, err := fmt.Sscan(rest, &count, &median, &least); err != nil {
		return 0, 0, fmt.Errorf("%s said %q: %w", p.Name, rest, err)
	}
	return median, least, nil
}

// Stop ends the process; what it says then does not matter.
func (p *Process) Stop() {
	if p.Ended() {
		return
	}
	p.in.Close()
	_ = resume(p.cmd.Process)
	_ = p.cmd.Wait()
}

// Environment is that of a peer's process with so many threads. With keepPages glibc's malloc keeps
// the pages that it has.
func Environment(threads int, keepPages bool) []string {
	n := strconv.Itoa(threads)
	env := append(os.Environ(), "GOMAXPROCS="+n, "OMP_NUM_THREADS="+n, "MKL_NUM_THREADS="+n, "PYTHONDONTWRITEBYTECODE=1")
	if keepPages {
		env = append(env, "MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=4294967296", "MALLOC_TOP_PAD_=67108864")
	}
	return env
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
