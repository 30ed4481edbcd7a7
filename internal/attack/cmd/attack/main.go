// Attack tries to break Loris: it feeds readers with hostile files, fails every call that can fail,
// runs everything at once, and the same things very many times, and kills processes and starts them again. It prints counts, and exits with 1 if
// anything fell.
//
//	go run ./internal/attack/cmd/attack files -time 1m
//	go run ./internal/attack/cmd/attack chaos -time 1m
//	go run ./internal/attack/cmd/attack restarts -time 1m
//	go run ./internal/attack/cmd/attack failures
//	go run ./internal/attack/cmd/attack flat
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/attack/chaos"
	"github.com/loris-ml/loris/internal/attack/failures"
	"github.com/loris-ml/loris/internal/attack/failures/filecalls"
	"github.com/loris-ml/loris/internal/attack/flat"
	"github.com/loris-ml/loris/internal/attack/hostile"
)

// command does what the first argument says.
type command func(ctx context.Context, args []string) error

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	commands := map[string]command{"files": files, "worker": worker, "chaos": runChaos, "failures": runFailures, "flat": runFlat}
	maps.Copy(commands, systemCommands())
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: attack files|chaos|restarts|failures|flat [flags]; run it in the root of the repository")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(1)
	}
}

// files feeds the readers.
func files(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("files", flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "seed of the inputs")
	limit := flags.Duration("time", time.Minute, "for all targets together")
	count := flags.Uint64("count", 0, "inputs of each target; 0 is as many as the time allows")
	only := flags.String("only", "", "the targets, separated by commas; all if empty")
	flags.Parse(args)
	targets, err := hostile.Targets(os.DirFS("."))
	if err != nil {
		return err
	}
	if *only != "" {
		names := strings.Split(*only, ",")
		targets = slices.DeleteFunc(targets, func(t hostile.Target) bool { return !slices.Contains(names, t.Name) })
	}
	if len(targets) == 0 {
		return errors.New("no such target")
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	o := hostile.Options{Seed: *seed, Time: *limit / time.Duration(len(targets)), Count: *count, Report: os.Stderr,
		Command: func(ctx context.Context, target string, a hostile.Args) *exec.Cmd {
			return exec.CommandContext(ctx, exe, append([]string{"worker", "-target", target}, a.Strings()...)...)
		}}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "target\tinputs\taccepted\trefused\tcrashes\thangs\tgreedy\twrong\t")
	var faults int64
	for _, t := range targets {
		c, err := t.Drive(ctx, o)
		if err != nil {
			return err
		}
		faults += c.Faults()
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", t.Name, c.Inputs, c.Accepted, c.Refused, c.Crashes, c.Hangs, c.Greedy, c.Wrong)
	}
	table.Flush()
	if faults > 0 {
		return fmt.Errorf("%d faults", faults)
	}
	return nil
}

// runChaos runs everything at once.
func runChaos(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("chaos", flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "seed of what each goroutine does")
	limit := flags.Duration("time", time.Minute, "how long")
	goroutines := flags.Int("goroutines", 4, "of each kind of worker")
	only := flags.String("only", "", "kinds of worker, separated by commas, of "+strings.Join(chaos.Kinds, ", ")+"; all if empty")
	flags.Parse(args)
	o := chaos.Options{Seed: *seed, Time: *limit, Goroutines: *goroutines}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	for _, kind := range o.Only {
		if !slices.Contains(chaos.Kinds, kind) {
			return fmt.Errorf("no kind of worker %q", kind)
		}
	}
	var c chaos.Counts
	err := chaos.Run(ctx, o, &c)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range c.Rows() {
		fmt.Fprintf(table, "%s\t%d\t\n", row.What, row.Count)
	}
	table.Flush()
	return err
}

// runFailures has every call of the backend fail, and then every call of the system on files.
func runFailures(ctx context.Context, _ []string) error {
	if err := filecalls.Prepare(); err != nil {
		return err
	}
	in, err := failures.Install(cpu.Device)
	if err != nil {
		return err
	}
	rows, err := failures.Run(ctx, in)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "program\tfailure\tcalls\tvalues kept\tvalues lost, and said so")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%v\t%d\t%d\t%d\n", r.Program, r.Kind, r.Failures, r.Kept, r.Lost)
	}
	table.Flush()
	if err != nil {
		return err
	}
	return runFileFailures(ctx)
}

// runFileFailures has every call of the system on files fail, where the system can be asked for that.
func runFileFailures(ctx context.Context) error {
	in, err := filecalls.Install()
	if errors.Is(err, filecalls.ErrUnsupported) {
		fmt.Println(err)
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := failures.RunFiles(ctx, in, os.DirFS("."))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "program\tcalls\terrors\tfiles as before\tas after\tdone without")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", r.Program, r.Failures, r.Errors, r.Before, r.After, r.Harmless)
	}
	table.Flush()
	return err
}

// runFlat does the same things very many times.
func runFlat(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("flat", flag.ExitOnError)
	o := flat.Options{Package: "aoti/testdata/bounds.pt2"}
	flags.IntVar(&o.Graphs, "graphs", 20_000, "graphs to compile")
	flags.IntVar(&o.Steps, "steps", 200_000, "steps to take")
	flags.IntVar(&o.Loads, "loads", 5_000, "packages to load")
	flags.Parse(args)
	rows, err := flat.Run(ctx, o)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "what\ttimes\tobjects\tgoroutines\tbytes of tensors\topen files\tmappings")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d", r.What, r.Times)
		b, a := r.Before, r.After
		for _, c := range [][2]int64{{b.Objects, a.Objects}, {b.Goroutines, a.Goroutines}, {b.Tensors, a.Tensors}, {b.Files, a.Files}, {b.Mappings, a.Mappings}} {
			fmt.Fprintf(table, "\t%d → %d", c[0], c[1])
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	return err
}

// worker reads the inputs of one target, for files.
func worker(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("worker", flag.ExitOnError)
	name := flags.String("target", "", "the target")
	seed := flags.Uint64("seed", 1, "seed of the inputs")
	from := flags.Uint64("from", 0, "the first input")
	count := flags.Uint64("count", 0, "how many; 0 is all")
	limit := flags.Duration("time", time.Minute, "for all")
	dir := flags.String("dir", "", "for files")
	flags.Parse(args)
	debug.SetMemoryLimit(1 << 30)
	targets, err := hostile.Targets(os.DirFS("."))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(targets, func(t hostile.Target) bool { return t.Name == *name })
	if i < 0 {
		return fmt.Errorf("no target %q", *name)
	}
	return targets[i].Work(*dir, os.NewFile(3, "progress"), os.Stdout, *seed, *from, *count, time.Now().Add(*limit))
}
