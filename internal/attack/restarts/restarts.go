//go:build linux

package restarts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loris-ml/loris/internal/cache"
)

// Fault is what happens to a process.
type Fault int

const (
	None        Fault = iota // nothing
	Kill                     // it is killed
	Clock                    // the times of its files are set back and ahead, as by another process
	Jumps                    // its clock jumps back and ahead, by up to years
	Pauses                   // it is stopped and goes on later, as on a machine that sleeps
	Descriptors              // it may open few files
	Memory                   // it may have little address space
	Length                   // its files may not be long
	Full                     // the disk is full
	faults
)

// String says what happens.
func (f Fault) String() string {
	return [faults]string{"nothing", "killed", "times of files set", "clock jumps", "stopped for a time", "few descriptors", "little address space", "short files", "full disk"}[f]
}

// Options say how Run runs.
type Options struct {
	Seed uint64
	Time time.Duration
	// Dir is where files lie. If it is a small file system of its own, that is filled (Room).
	Dir  string
	Room bool
	// Package is the path of a compiled package, which is loaded where libraries can be.
	Package string
	// Command makes the command line of a child, which calls its Run.
	Command func(ctx context.Context, c Child) *exec.Cmd
}

// Row is what happened to the processes with one fault.
type Row struct {
	Fault Fault
	// Starts are processes; Killed ended by the signal, and Ended since the runtime got no memory.
	Starts, Killed, Ended int64
	Counts
}

// Run starts processes until the time is over, and returns a row for each Fault.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	rows = make([]Row, faults)
	for f := range rows {
		rows[f].Fault = Fault(f)
	}
	if !o.Room {
		rows = rows[:Full]
	}
	p := &parent{Options: o, rng: rand.New(rand.NewPCG(o.Seed, 1))}
	for end := time.Now().Add(o.Time); time.Now().Before(end); {
		f := p.rng.IntN(len(rows))
		if Fault(f) == Jumps && !clockJumps {
			continue
		}
		if err := p.start(ctx, &rows[f]); err != nil {
			return rows, fmt.Errorf("start %d of seed %d (%v): %w", p.starts, o.Seed, Fault(f), err)
		}
	}
	return rows, p.end(ctx, &rows[None])
}

// parent is what is known of the processes so far.
type parent struct {
	Options
	rng    *rand.Rand
	starts uint64
	saved  int64 // the last step whose checkpoint was said to be written
	begun  int64 // the last one that was begun
}

// life is how long a process works, and patience how much longer it may take on a busy machine.
const life, patience = 1500 * time.Millisecond, 2 * time.Minute

// start starts one process with one fault, and holds what it says against what is known.
func (p *parent) start(ctx context.Context, row *Row) error {
	p.starts++
	row.Starts++
	c := Child{Dir: p.Dir, Seed: p.Seed + p.starts<<32, Fault: row.Fault, Amount: p.rng.Uint64(), Time: life, Package: p.Package}
	limited, cancel := context.WithTimeout(ctx, life+patience)
	defer cancel()
	cmd := p.Command(limited, c)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	disturbed := make(chan error, 1)
	seed := p.rng.Uint64()
	go func() { disturbed <- p.disturb(row, cmd.Process, seed, ended) }()
	err := cmd.Wait()
	close(ended)
	if err := errors.Join(<-disturbed, ctx.Err()); err != nil {
		return err
	}
	said, parseErr := parse(stdout.String())
	switch {
	case limited.Err() != nil:
		return errors.New("it hung")
	case err == nil && parseErr == nil && !said.ended:
		return errors.New("it ended without saying so")
	case err == nil:
	case row.Fault == Kill && cmd.ProcessState.ExitCode() == -1:
		row.Killed++
	case row.Fault == Memory && noMemory(stderr.String()):
		row.Ended++
	default:
		return fmt.Errorf("%w\n%s", err, tail(stderr.String()))
	}
	row.add(said.Counts)
	if err := errors.Join(parseErr, p.compare(said)); err != nil {
		return err
	}
	return p.verify(ctx)
}

// noMemory reports whether the runtime of Go or of C ended a process for want of memory.
func noMemory(stderr string) bool {
	for _, s := range []string{"out of memory", "cannot allocate memory", "Cannot allocate memory", "pthread_create failed", "failed to create new OS thread", "bad_alloc", "failed to reserve"} {
		if strings.Contains(stderr, s) {
			return true
		}
	}
	return false
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// compare holds what a process has found and saved against what was saved before.
func (p *parent) compare(said report) error {
	if said.found && (said.loaded < p.saved || said.loaded > p.begun) {
		return fmt.Errorf("the checkpoint is of step %d; %d was written, %d begun", said.loaded, p.saved, p.begun)
	}
	if said.found {
		p.saved = said.loaded
	}
	p.saved, p.begun = max(p.saved, said.saved), max(p.saved, said.saved, said.begun)
	return nil
}

// enough is how large the cache becomes before it is made empty.
const enough = 4 << 20

// verify reads all entries of the cache: none may be damaged, whatever happened.
func (p *parent) verify(ctx context.Context) error {
	d, err := cache.OpenDisk(filepath.Join(p.Dir, cacheDir), cache.DiskOptions{})
	if err != nil {
		return err
	}
	r, err := d.Verify(ctx)
	if len(r.Damaged) > 0 {
		return fmt.Errorf("%d damaged entries of the cache, the first: %w", len(r.Damaged), r.Damaged[0])
	}
	if err == nil && r.Bytes > enough {
		err = d.Clear(ctx)
	}
	return err
}

// disturb does what is done to a process from outside, until it has ended.
func (p *parent) disturb(row *Row, child *os.Process, seed uint64, ended chan struct{}) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	wait := func(d time.Duration) (over bool) {
		select {
		case <-ended:
			return true
		case <-time.After(d):
			return false
		}
	}
	switch row.Fault {
	case Kill:
		if !wait(time.Duration(rng.Int64N(int64(life + life/2)))) {
			_ = child.Kill() // it may have ended meanwhile
		}
	case Clock:
		for !wait(20 * time.Millisecond) {
			row.Times += setTimes(p.Dir, rng)
		}
	case Pauses:
		for !wait(time.Duration(rng.IntN(200)) * time.Millisecond) {
			_ = child.Signal(unix.SIGSTOP)
			wait(time.Duration(rng.IntN(300)) * time.Millisecond)
			_ = child.Signal(unix.SIGCONT)
			row.Times++
		}
	case Full:
		filler := filepath.Join(p.Dir, "filler")
		if !wait(time.Duration(rng.Int64N(int64(life / 2)))) {
			if err := fill(filler, rng.Int64N(64<<10)); err != nil {
				return err
			}
		}
		<-ended
		return removed(filler)
	}
	return nil
}

// setTimes gives a file or more another time.
func setTimes(dir string, rng *rand.Rand) (n int64) {
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && rng.IntN(4) == 0 {
			times := []time.Time{time.Unix(rng.Int64N(1<<32), 0), time.Now().Add(-2 * time.Hour), time.Now().Add(2 * time.Hour)}
			t := times[rng.IntN(len(times))]
			if os.Chtimes(name, t, t) == nil {
				n++
			}
		}
		return nil
	})
	return n
}

// fill leaves so many bytes of the disk.
func fill(name string, left int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if !full(err) {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(max(0, info.Size()-left))
	}
	return err
}

func removed(name string) error {
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// end starts once more, when what was left behind is old: only what belongs there remains.
func (p *parent) end(ctx context.Context, row *Row) error {
	old := time.Now().Add(-2 * time.Hour)
	err := filepath.WalkDir(p.Dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, old, old)
	})
	if err != nil {
		return err
	}
	for before := row.Saves; row.Saves == before; { // saving removes what is old
		if err := p.start(ctx, row); err != nil {
			return fmt.Errorf("the last start: %w", err)
		}
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{cacheDir, eventsDir, checkpoint}; !slices.Equal(names, want) {
		return fmt.Errorf("at the end there are %q, want %q", names, want)
	}
	d, err := cache.OpenDisk(filepath.Join(p.Dir, cacheDir), cache.DiskOptions{})
	if err != nil {
		return err
	}
	stats, err := d.Stat()
	if err == nil && stats.Temps > 0 {
		err = fmt.Errorf("at the end the cache has %d temporary files", stats.Temps)
	}
	return err
}
