// Command scale measures what more processors bring, and what sessions of many goroutines wait for.
//
//	go run ./bench/scale                                # 1 to as many threads as there are processors
//	go run ./bench/scale --threads 1,2,4 --only matmul  # beyond them, too
//	go run ./bench/scale --forks 64 --only '^$'         # the locks alone
//
// The first table runs workloads of bench/workloads on more and more threads. "linear" is the time
// that so many threads would take if each did its share, over the time that they took. The threads
// have their number times the time of a run together; the columns that follow say where it goes:
//
//   - work: units of parallel loops, and what a kernel computes on one goroutine;
//   - one thread: others have nothing to do while a kernel computes on one;
//   - late: between the beginning of a loop and the moment at which a goroutine begins;
//   - imbalance: goroutines that are done with a loop, or never came, wait for its end;
//   - outside: recording, look-ups, and whatever else is not a kernel.
//
// "slower" is the work's own growth: the time of all units over that of one thread. It is what
// threads take from each other, mostly bandwidth, and frequency. The last columns are the bytes
// that kernels read and write a second, and their part of what the machine streams with that many
// threads; it can be more than 100 % where data stay in a cache. Times are measured before anything
// is looked at.
//
// The second table is of forks of one session, each with a goroutine that records, computes and
// reads a small network, or calls a compiled function. It has each place at which goroutines waited for
// a lock, by the runtime's profiles of mutexes and of blocking, as a part of all their time.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/loris-ml/loris/bench/internal/tool"
	"github.com/loris-ml/loris/bench/workloads"
)

// settings are the flags.
type settings struct {
	threads   []int
	workloads []*workloads.Workload
	time      time.Duration
	forks     int
	procs     int
	vectors   int
	top       int
}

func main() {
	tool.Main("scale", parse, func(ctx context.Context, s settings) error {
		if err := scale(ctx, os.Stdout, s); err != nil {
			return err
		}
		return contend(ctx, os.Stdout, s)
	})
}

// usual are the workloads that run unless others are asked for.
const usual = "^(pointwise-(1|16)M|softmax|layer-norm|matmul-(256|1024|batched)|mlp-step|encoder-block|conv3x3|digits-compiled)$"

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	tool.Threads(f, &s.threads)
	s.threads = nil
	for n := range runtime.NumCPU() {
		s.threads = append(s.threads, n+1)
	}
	only := f.String("only", usual, "regular expression of the workloads to run")
	f.DurationVar(&s.time, "time", time.Second, "how long each measurement takes")
	f.IntVar(&s.forks, "forks", 64, "goroutines with a fork each; 0 leaves the locks out")
	f.IntVar(&s.procs, "procs", runtime.NumCPU(), "processors (GOMAXPROCS) that the forks have")
	f.IntVar(&s.vectors, "vectors", 1<<25, "elements of the vectors that the memory is measured with")
	f.IntVar(&s.top, "top", 8, "places to print for each way to run")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.time <= 0 || s.forks < 0 || s.procs < 1 || s.top < 1 || s.vectors < 1<<10 {
		return s, errors.New("--time, --procs and --top must be positive, --forks not negative, --vectors at least 1024")
	}
	if f.NArg() > 0 {
		return s, errors.New("there are no arguments")
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return s, err
	}
	slices.Sort(s.threads)
	s.threads = slices.Compact(s.threads)
	s.workloads = slices.DeleteFunc(workloads.All(), func(w *workloads.Workload) bool { return w.GPU || !match.MatchString(w.Name) })
	return s, nil
}
