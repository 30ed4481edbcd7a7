package hostile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Options say how Drive runs.
type Options struct {
	Seed uint64
	// Time bounds the inputs of one target, Count their number; a Count of 0 does not.
	Time  time.Duration
	Count uint64
	// Limit is what an input may take of a processor; zero stands for the function Limit of its bytes.
	Limit time.Duration
	// Command makes the command line of a worker, which calls Work. Its third file is the progress.
	Command func(ctx context.Context, target string, args Args) *exec.Cmd
	// Report gets what was wrong with which input.
	Report io.Writer
}

// Args are the arguments of a worker.
type Args struct {
	Seed, From, Count uint64
	Time              time.Duration
	Dir               string
}

// Drive feeds a target in other processes, begins a new one after each that ended or hung, and
// counts.
func (t *Target) Drive(ctx context.Context, o Options) (Counts, error) {
	var c Counts
	end := time.Now().Add(o.Time)
	for next := uint64(0); time.Now().Before(end) && (o.Count == 0 || next < o.Count); {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		args := Args{Seed: o.Seed, From: next, Time: time.Until(end)}
		if o.Count > 0 {
			args.Count = o.Count - next
		}
		reached, fault, err := t.worker(ctx, o, args, &c)
		if err != nil {
			return c, err
		}
		if !fault {
			break
		}
		next = reached + 1
	}
	return c, nil
}

// worker runs one process to its end, and returns the input at which it stopped; fault says that it
// did not stop by itself.
func (t *Target) worker(ctx context.Context, o Options, args Args, c *Counts) (reached uint64, fault bool, err error) {
	if args.Dir, err = os.MkdirTemp("", "hostile"); err != nil {
		return 0, false, err
	}
	defer os.RemoveAll(args.Dir)
	f, err := os.CreateTemp(args.Dir, "progress")
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := o.Command(running, t.Name, args)
	var stderr tail
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = o.Report, &stderr, []*os.File{f}
	if err := cmd.Start(); err != nil {
		return 0, false, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	hung := t.watch(f, cmd.Process.Pid, o, args, done, cancel)
	runErr := <-done
	number, counts, err := readProgress(f)
	if err != nil {
		return 0, false, fmt.Errorf("a worker of %s told nothing: %w\n%s", t.Name, runErr, stderr.last())
	}
	c.Accepted += counts[accepted]
	c.Refused += counts[refused]
	c.Crashes += counts[crashed]
	c.Greedy += counts[greedy]
	c.Wrong += counts[mistaken]
	for _, n := range counts {
		c.Inputs += n
	}
	if runErr == nil {
		return number, false, nil
	}
	c.Inputs++
	what := "ended the process"
	if hung {
		c.Hangs++
		what = "hung"
	} else {
		c.Crashes++
	}
	fmt.Fprintf(o.Report, "%s: input %d of seed %d %s: %v\n%s\n", t.Name, number, o.Seed, what, runErr, stderr.last())
	return number, true, ctx.Err()
}

// patience is how many times its limit an input may take while the machine does other work.
const patience = 30

// watch waits for the end of a worker, and kills it once an input takes more of the processors than
// it may, or much longer.
func (t *Target) watch(f *os.File, pid int, o Options, args Args, done chan error, kill func()) (hung bool) {
	const period = 100 * time.Millisecond
	begun, used, at, tick := time.Now(), processorTime(pid), uint64(1<<64-1), time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			done <- err
			return false
		case <-tick.C:
		}
		number, _, err := readProgress(f)
		if err != nil || number != at {
			begun, used, at = time.Now(), processorTime(pid), number
			continue
		}
		wall, limit := time.Since(begun), cmp.Or(o.Limit, Limit(len(t.Input(args.Seed, number))))
		if now := processorTime(pid); wall > patience*limit || now-used > limit || now == 0 && wall > limit {
			kill()
			return true
		}
	}
}

// processorTime returns what a process has used of the processors, 0 where the system does not tell.
func processorTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	ticks := int64(0)
	for _, i := range []int{11, 12} { // utime and stime, in hundredths of a second
		if i < len(fields) {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// Strings returns the arguments as flags of a command.
func (a Args) Strings() []string {
	return []string{
		"-seed", strconv.FormatUint(a.Seed, 10), "-from", strconv.FormatUint(a.From, 10),
		"-count", strconv.FormatUint(a.Count, 10), "-time", a.Time.String(), "-dir", a.Dir,
	}
}

// tail keeps the beginning and the end of what is written.
type tail struct{ first, rest bytes.Buffer }

const kept = 2000

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	if room := kept - t.first.Len(); room > 0 {
		k := min(room, len(b))
		t.first.Write(b[:k])
		b = b[k:]
	}
	t.rest.Write(b)
	if t.rest.Len() > 4*kept {
		t.rest.Next(t.rest.Len() - kept)
	}
	return n, nil
}

func (t *tail) last() string {
	if t.rest.Len() > kept {
		t.rest.Next(t.rest.Len() - kept)
	}
	return t.first.String() + t.rest.String()
}
