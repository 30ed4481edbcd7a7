package hostile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"
)

// Counts are what became of inputs.
type Counts struct {
	Inputs, Accepted, Refused int64
	// Crashes are panics and ends of the process, Hangs took longer than Limit, Greedy allocated more
	// than Budget, and Wrong had a result that nothing may have.
	Crashes, Hangs, Greedy, Wrong int64
}

// Faults returns how many inputs did what none may.
func (c Counts) Faults() int64 { return c.Crashes + c.Hangs + c.Greedy + c.Wrong }

// Limit returns the time that an input may take: 5 s a megabyte, and no less than 5 s.
func Limit(bytes int) time.Duration {
	return 5 * time.Second * time.Duration(max(1, (bytes+1<<20-1)>>20))
}

// Budget returns the bytes that a reader may allocate for an input. Programs that run have in
// addition what the limit of tensors gives them, and the buffers of a model that is reused.
func (t *Target) Budget(bytes int) uint64 {
	budget := uint64(64<<20 + 512*bytes)
	if t.Runs {
		budget += 8 * memory
	}
	return budget
}

// Input returns an input by its number, the same ones for a seed in every process.
func (t *Target) Input(seed, number uint64) []byte {
	r := rand.New(rand.NewPCG(seed, number))
	return t.Mutate(r, t.Seeds[r.IntN(len(t.Seeds))], t.Seeds[r.IntN(len(t.Seeds))])
}

// outcome is what became of one input.
type outcome int64

const (
	accepted outcome = iota
	refused
	crashed
	greedy
	mistaken
	outcomes
)

// try reads one input. why says what was wrong with it, for all but accepted and refused.
func (t *Target) try(w *workspace, b []byte) (o outcome, why string) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	defer func() {
		if p := recover(); p != nil {
			o, why = crashed, fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	err := t.read(w, b)
	metrics.Read(sample)
	used := sample[0].Value.Uint64() - before
	switch {
	case errors.As(err, new(wrong)):
		return mistaken, err.Error()
	case used > t.Budget(len(b)):
		return greedy, fmt.Sprintf("allocated %d bytes for an input of %d", used, len(b))
	case err != nil:
		return refused, ""
	}
	return accepted, ""
}

// progress is what a worker tells its parent in a file: the input that it reads now, and counts. The
// parent reads it when the worker has ended, or to see whether it goes on.
type progress struct {
	f      *os.File
	counts [outcomes]int64
}

const progressBytes = 8 * (1 + int(outcomes))

func (p *progress) write(number uint64) error {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, progressBytes), number)
	for _, n := range p.counts {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	_, err := p.f.WriteAt(b, 0)
	return err
}

func readProgress(f *os.File) (number uint64, counts [outcomes]int64, err error) {
	b := make([]byte, progressBytes)
	if _, err := f.ReadAt(b, 0); err != nil {
		return 0, counts, err
	}
	for i := range counts {
		counts[i] = int64(binary.LittleEndian.Uint64(b[8+8*i:]))
	}
	return binary.LittleEndian.Uint64(b), counts, nil
}

// Work reads inputs from the given number on until the time is over, or their count if that is not
// zero, and keeps the file up to date. Faults that do not end the process are written to report.
func (t *Target) Work(dir string, f *os.File, report io.Writer, seed, from, count uint64, end time.Time) error {
	w, err := newWorkspace(dir)
	if err != nil {
		return err
	}
	p := &progress{f: f}
	for n := from; (count == 0 || n < from+count) && time.Now().Before(end); n++ {
		if err := p.write(n); err != nil {
			return err
		}
		b := t.Input(seed, n)
		o, why := t.try(w, b)
		p.counts[o]++
		if why != "" {
			fmt.Fprintf(report, "%s: input %d of seed %d: %s\n", t.Name, n, seed, strings.TrimSpace(why))
		}
	}
	return p.write(from) // no input is being read
}
