package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris/cmd/loris/internal/chart"
	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/examples/digits/train"
)

// dataCommand returns a command whose subcommands are data sets.
func dataCommand(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usagef("unknown data set %q: there is digits", args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(subs...)
	return c
}

func newTrain(rest Rest) *cobra.Command {
	return dataCommand("train", "Train an example", newTrainDigits(rest))
}

// trainFlags are the flags of `train digits`.
type trainFlags struct {
	train.Config
	device, out, resume string
	cache, debug        string
	pkg                 string
	json, report        bool
	dist, autoResume    bool
	rest                Rest
}

func newTrainDigits(rest Rest) *cobra.Command {
	f := &trainFlags{Config: train.Defaults(), rest: rest}
	c := &cobra.Command{
		Use:   "digits",
		Short: "Train a perceptron on handwritten digits",
		Long: `Train a multilayer perceptron on 1,437 images of handwritten digits, test it on
360, and write to the folder of --out

  digits.safetensors      the weights, for loris predict digits or PyTorch
  checkpoint.safetensors  what --resume needs
  digits.png              the curves and the confusion matrix

With --package it also writes the trained network as a package that PyTorch runs:

    torch._inductor.aoti_load_package("digits.pt2")(images)   # float32[n, 64] -> [n, 10]

An interrupt ends the training after the present step; what is there is written.
With --resume training goes on exactly as it would have: the settings are those of
the checkpoint, and --epochs may be raised.

With --auto-resume the same command may be started again and again: it writes the
checkpoint after each epoch, and where another rank fails before it ends with status
75, and goes on from the one that it finds in --out, on any number of ranks. --out is
a folder that all ranks reach then.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fl := c.Flags()
	fl.IntVar(&f.Epochs, "epochs", f.Epochs, "times to go over the training images")
	fl.IntVar(&f.Batch, "batch", f.Batch, "images of a step")
	fl.Float64Var(&f.LR, "lr", f.LR, "learning rate at the start")
	fl.Uint64Var(&f.Seed, "seed", f.Seed, "seed of weights, order and dropout")
	fl.IntSliceVar(&f.Hidden, "hidden", f.Hidden, "sizes of the hidden layers")
	fl.Float64Var(&f.Dropout, "dropout", f.Dropout, "probability of dropout after each hidden layer")
	fl.StringVar(&f.out, "out", "digits-out", "`folder` to write to")
	fl.StringVar(&f.pkg, "package", "", "`file` for a package (.pt2) of the network that PyTorch runs")
	fl.StringVar(&f.resume, "resume", "", "checkpoint `file` to go on from")
	fl.BoolVar(&f.autoResume, "auto-resume", false, "go on from the checkpoint in --out if there is one, and keep one there")
	fl.BoolVar(&f.json, "json", false, "print an object a line")
	fl.BoolVar(&f.report, "report", false, "tell all that the executor did")
	fl.StringVar(&f.debug, "debug", "", "`address` at which to publish the report, for loris top")
	fl.BoolVar(&f.dist, "dist", false, "train on all ranks of the job that mpiexec, torchrun or loris launch has started")
	command.DeviceFlag(c, &f.device)
	cacheFlag(c, &f.cache)
	return c
}

// shards are the parts of a step of --dist, so that 1, 2, 4 and 8 ranks have the same results.
const shards = 8

// join makes the training one of all ranks of the job. The first writes and prints.
func (f *trainFlags) join(c *cobra.Command) (leave func() error, err error) {
	g, err := dist.Init(c.Context(), dist.WithShards(shards))
	if err != nil {
		return nil, err
	}
	if f.World = g; g.Rank() > 0 {
		c.SetOut(io.Discard)
	}
	return func() error { return g.Close(context.WithoutCancel(c.Context())) }, nil
}

// settings are the flags that a checkpoint decides.
var settings = []string{"batch", "lr", "seed", "hidden", "dropout"}

// takeOver puts the checkpoint's settings in place of the flags.
func (f *trainFlags) takeOver(changed func(flag string) bool) error {
	if i := slices.IndexFunc(settings, changed); i >= 0 {
		return command.Usagef("--%s is the checkpoint's and cannot be given with --resume", settings[i])
	}
	cfg, err := train.ReadConfig(f.resume)
	if err != nil {
		return err
	}
	if changed("epochs") {
		cfg.Epochs = f.Epochs
	}
	f.Config = cfg
	return nil
}

// findCheckpoint has --auto-resume go on from the checkpoint in --out, if there is one; it must be of the
// same settings.
func (f *trainFlags) findCheckpoint() error {
	if f.resume != "" {
		return command.Usagef("--resume and --auto-resume: give one of them")
	}
	path := f.checkpoint()
	cfg, err := train.ReadConfig(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if mine := f.Config; cfg.Batch != mine.Batch || cfg.LR != mine.LR || cfg.Seed != mine.Seed || cfg.Dropout != mine.Dropout || !slices.Equal(cfg.Hidden, mine.Hidden) {
		return command.Usagef("%s is of a training with other settings: give another --out, or the same --%s", path, strings.Join(settings, ", --"))
	}
	f.resume = path
	return nil
}

// checkpoint is where the checkpoint is written.
func (f *trainFlags) checkpoint() string { return filepath.Join(f.out, "checkpoint.safetensors") }

// load goes on from the checkpoint, if there is one to go on from.
func (f *trainFlags) load(ctx context.Context, t *train.Trainer) error {
	if f.resume != "" {
		if err := t.LoadCheckpoint(ctx, f.resume); err != nil {
			return err
		}
		if t.Done() >= f.Epochs && !f.autoResume {
			return fmt.Errorf("%s: all of %d epochs are done: give more by --epochs", f.resume, f.Epochs)
		}
	}
	return t.AgreeOnStart(ctx)
}

// rescue saves what a rank has when another one has failed.
func (f *trainFlags) rescue(c *cobra.Command, t *train.Trainer, failed error) error {
	if rank := (*dist.RankError)(nil); !f.autoResume || !errors.As(failed, &rank) {
		return failed
	}
	ctx := context.WithoutCancel(c.Context())
	if err := t.SaveCheckpoint(ctx, f.checkpoint()); err != nil {
		return errors.Join(failed, err)
	}
	fmt.Fprintf(c.ErrOrStderr(), "saved %s: started again, this goes on in epoch %d\n", f.checkpoint(), t.Done()+1)
	return failed
}

func (f *trainFlags) run(c *cobra.Command) (err error) {
	if f.debug != "" && f.rest.Publish == nil {
		return command.BecomeWhole(c, "--debug")
	}
	if f.pkg != "" && f.rest.Package == nil {
		return command.BecomeWhole(c, "--package")
	}
	switch {
	case f.autoResume:
		err = f.findCheckpoint()
	case f.resume != "":
		err = f.takeOver(c.Flags().Changed)
	}
	if err != nil {
		return err
	}
	if f.Config.Device, _, err = command.ParseDevice(f.device); err != nil {
		return err
	}
	if f.Config.DiskCache, err = cacheDir(f.cache); err != nil {
		return err
	}
	if f.dist {
		leave, failed := f.join(c)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, leave()) }()
	}
	start := time.Now()
	t, err := train.New(c.Context(), f.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(context.WithoutCancel(c.Context()))) }()
	if err := f.load(c.Context(), t); err != nil {
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	if f.debug != "" && (f.World == nil || f.World.Rank() == 0) {
		at, stop, err := f.rest.Publish(f.debug, t.Report)
		if err != nil {
			return err
		}
		defer func() { _ = stop() }() // what was trained counts, not who looked on
		fmt.Fprintf(c.ErrOrStderr(), "loris top http://%s/debug/vars shows what goes on\n", at)
	}
	out := newTrainOutput(c, f, t)
	r := trainRun{f: f, t: t, out: out}
	err = r.loop(c.Context())
	if err != nil && !errors.Is(err, context.Canceled) {
		return f.rescue(c, t, err)
	}
	// What is there is evaluated and saved, also after an interrupt.
	return r.finish(context.WithoutCancel(c.Context()), start, err != nil)
}

// trainRun is one run of `train digits`.
type trainRun struct {
	f     *trainFlags
	t     *train.Trainer
	out   *trainOutput
	last  train.Evaluation
	usage []train.Usage // after each epoch
	chart chart.Run
}

// first reports whether this rank writes.
func (r *trainRun) first() bool { return r.f.World == nil || r.f.World.Rank() == 0 }

func (r *trainRun) loop(ctx context.Context) error {
	r.chart.First = r.t.Done() + 1
	r.out.start()
	defer r.out.stop()
	for r.t.Done() < r.f.Epochs {
		e, err := r.t.RunEpoch(ctx)
		if err != nil {
			return err
		}
		if r.f.autoResume && r.first() {
			if err := r.t.SaveCheckpoint(ctx, r.f.checkpoint()); err != nil {
				return err
			}
		}
		u := r.t.Usage()
		r.last, r.usage = e.Test, append(r.usage, u)
		ch := &r.chart
		ch.TrainLoss, ch.TestLoss = append(ch.TrainLoss, e.TrainLoss), append(ch.TestLoss, e.Test.Loss)
		ch.TrainAccuracy, ch.TestAccuracy = append(ch.TrainAccuracy, e.TrainAccuracy), append(ch.TestAccuracy, e.Test.Accuracy)
		r.out.epoch(e, u)
	}
	return nil
}

// finish writes the files and prints the summary.
func (r *trainRun) finish(ctx context.Context, start time.Time, interrupted bool) error {
	if interrupted || r.usage == nil {
		var err error
		if r.last, err = r.t.Evaluate(ctx); err != nil {
			return err
		}
	}
	s := trainSummary{
		Event: "done", Interrupted: interrupted, Epochs: r.t.Done(), Seconds: time.Since(start).Seconds(),
		TestAccuracy: number(r.last.Accuracy), TestLoss: number(r.last.Loss), Right: r.last.Right, Images: r.last.Images,
		Weights:    filepath.Join(r.f.out, "digits.safetensors"),
		Checkpoint: r.f.checkpoint(),
		Plot:       filepath.Join(r.f.out, "digits.png"),
	}
	report := r.t.Report()
	s.Compiles, s.CachedHits, s.DiskHits = report.Compiles, report.CachedHits, report.DiskHits
	if !r.first() {
		return nil // all ranks have the same
	}
	if err := r.t.SaveWeights(ctx, s.Weights); err != nil {
		return err
	}
	if err := r.t.SaveCheckpoint(ctx, s.Checkpoint); err != nil {
		return err
	}
	r.chart.Confusion = r.last.Confusion
	if err := writeChart(s.Plot, r.chart); err != nil {
		return err
	}
	if s.Package = r.f.pkg; s.Package != "" {
		if err := r.f.rest.Package(ctx, s.Weights, s.Package); err != nil {
			return err
		}
	}
	if err := r.out.done(s, report, r.usage); err != nil {
		return err
	}
	if interrupted {
		return fmt.Errorf("%w in epoch %d: resume by --resume %s", command.ErrInterrupted, r.t.Done()+1, s.Checkpoint)
	}
	return nil
}

func writeChart(path string, run chart.Run) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := chart.Write(f, run); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Close()
}
