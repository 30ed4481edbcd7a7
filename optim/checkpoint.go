package optim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strconv"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/nn"
)

// ErrCheckpoint says that a file is not a checkpoint, or that of another algorithm. Errors
// of tensors are those of nn.Load.
var ErrCheckpoint = errors.New("not the expected checkpoint")

// The entries of a file's metadata beside those of tensorfile.
const (
	metaAlgorithm = "loris.optim.algorithm"
	metaSteps     = "loris.optim.steps"
	metaLR        = "loris.optim.lr"
)

// Checkpoint is the state from which training resumes. Training from a loaded checkpoint
// computes the same bits as training without the interruption, random numbers included, on
// the same backend and machine.
//
// The file is in the safetensors format. Names of the model's variables are prefixed with
// "model.", those of the optimiser's state with "optim.".
type Checkpoint struct {
	// Model is what is trained; it is needed.
	Model nn.Module
	// Optimizer is nil if there is none.
	Optimizer *Optimizer
	// Session is the one whose random seed is kept. Nil means the session of the
	// model's variables.
	Session *loris.Session
	// Step is a number of the caller's, such as the epoch or the batch.
	Step int64
	// Metadata are further entries of the file, beside Loris's own.
	Metadata map[string]string
}

// Save writes the checkpoint as nn.Save does, atomically. Call it between steps, after
// MarkStep: it does not save how many random numbers the open step has used. It blocks
// until it is done or ctx ends.
func (c *Checkpoint) Save(ctx context.Context, path string) error {
	if err := ir.CheckContext("optim.Save", ctx); err != nil {
		return err
	}
	s, err := c.session()
	if err != nil {
		return fmt.Errorf("optim: save %s: %w", path, err)
	}
	meta := maps.Clone(c.Metadata)
	if meta == nil {
		meta = map[string]string{}
	}
	if c.Optimizer != nil {
		maps.Copy(meta, c.Optimizer.Metadata())
	}
	meta[tensorfile.MetaStep] = strconv.FormatInt(c.Step, 10)
	meta[tensorfile.MetaSeed] = strconv.FormatUint(s.Seed(), 10)
	return nn.Save(ctx, path, c.module(), meta)
}

// Load reads a checkpoint into the model, the optimiser and the session's seed, and sets
// Step and Metadata. The file must match exactly, as for nn.Load, and come from the same
// algorithm; after an error everything is unchanged. An optimiser without a schedule gets
// the file's rate. Call it between steps; it drops random initial values that were recorded
// and not computed. It blocks while reading.
func (c *Checkpoint) Load(ctx context.Context, path string) error {
	if err := ir.CheckContext("optim.Load", ctx); err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("optim: load %s: %w", path, err) }
	s, err := c.session()
	if err != nil {
		return fail(err)
	}
	meta, err := nn.Metadata(path)
	if err != nil {
		return err
	}
	step, err := number(meta, tensorfile.MetaStep, strconv.ParseInt)
	if err != nil {
		return fail(err)
	}
	seed, err := number(meta, tensorfile.MetaSeed, strconv.ParseUint)
	if err != nil {
		return fail(err)
	}
	restore, err := c.Optimizer.RestoreMetadata(meta)
	if err != nil {
		return fail(err)
	}
	if _, err := nn.Load(ctx, path, c.module()); err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return fail(err)
	}
	s.SetSeed(seed)
	for _, k := range []string{metaAlgorithm, metaSteps, metaLR, tensorfile.MetaSeed, tensorfile.MetaStep} {
		delete(meta, k)
	}
	c.Step, c.Metadata = step, meta
	return nil
}

// session returns the session whose seed is kept.
func (c *Checkpoint) session() (*loris.Session, error) {
	if c.Model == nil {
		return nil, fmt.Errorf("%w: there is no model", loris.ErrArg)
	}
	if c.Session != nil {
		return c.Session, nil
	}
	for _, v := range c.Model.Params() {
		return v.Session(), nil
	}
	return nil, fmt.Errorf("%w: the model has no parameters; set Session", loris.ErrArg)
}

// module is everything that the file holds.
func (c *Checkpoint) module() nn.Module {
	m := new(nn.Base)
	m.Add("model", c.Model)
	if c.Optimizer != nil {
		m.Add("optim", state{o: c.Optimizer})
	}
	return m
}

// number reads a number of the metadata.
func number[T int64 | uint64](meta map[string]string, key string, parse func(string, int, int) (T, error)) (T, error) {
	text, ok := meta[key]
	if !ok {
		return 0, fmt.Errorf("%w: there is no %s", ErrCheckpoint, key)
	}
	v, err := parse(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrCheckpoint, key, err)
	}
	return v, nil
}

// state is an optimiser's state as the buffers of a module.
type state struct {
	nn.Func // has nothing of its own
	o       *Optimizer
}

// Buffers yields the state.
func (s state) Buffers() iter.Seq2[string, *loris.Variable] { return s.o.State() }

// Metadata is what the optimiser has beside the variables of State, as entries of a file's metadata: its
// algorithm, the number of steps and the rate. RestoreMetadata reads them.
func (o *Optimizer) Metadata() map[string]string {
	m := map[string]string{metaAlgorithm: o.algorithm}
	if o.stepVar == nil {
		m[metaSteps] = strconv.FormatInt(o.steps.Load(), 10)
		m[metaLR] = strconv.FormatFloat(o.lr, 'g', -1, 64)
	}
	return m
}

// RestoreMetadata checks entries that Metadata made, of the same algorithm, and that there are none for a nil
// optimiser; errors wrap ErrCheckpoint. It returns a function that takes them over, to be called once the
// variables of State have their values; of a captured optimiser it waits for them.
func (o *Optimizer) RestoreMetadata(meta map[string]string) (func(context.Context) error, error) {
	algorithm, ok := meta[metaAlgorithm]
	switch {
	case o == nil && ok:
		return nil, fmt.Errorf("%w: it has the state of %s", ErrCheckpoint, algorithm)
	case o == nil:
		return func(context.Context) error { return nil }, nil
	case algorithm != o.algorithm:
		return nil, fmt.Errorf("%w: it is of %q, the optimiser is %s", ErrCheckpoint, algorithm, o.algorithm)
	case o.stepVar != nil:
		return o.restoreCaptured, nil
	}
	steps, err := number(meta, metaSteps, strconv.ParseInt)
	if err != nil {
		return nil, err
	}
	lr, err := strconv.ParseFloat(meta[metaLR], 64)
	if err != nil || !(lr >= 0) || steps < 0 {
		return nil, fmt.Errorf("%w: %s %q and %s %q", ErrCheckpoint, metaLR, meta[metaLR], metaSteps, meta[metaSteps])
	}
	return func(context.Context) error {
		o.steps.Store(steps)
		o.lr = lr
		return nil
	}, nil
}

// restoreCaptured takes over what a captured optimiser's variables were loaded with.
func (o *Optimizer) restoreCaptured(ctx context.Context) error {
	steps, err := o.stepVar.Value().Int64s(ctx)
	if err != nil {
		return err
	}
	lr, err := o.lrVar.Value().Item(ctx)
	if err != nil {
		return err
	}
	o.steps.Store(steps[0])
	o.lr = lr
	return nil
}

// SaveState writes the optimiser's state, its number of steps and its rate to a
// safetensors file, as nn.Save. It blocks until it is done or ctx ends.
func (o *Optimizer) SaveState(ctx context.Context, path string) error {
	if err := ir.CheckContext("optim.SaveState", ctx); err != nil {
		return err
	}
	return nn.Save(ctx, path, state{o: o}, o.Metadata())
}

// LoadState reads a file of SaveState. The file must match exactly, as for nn.Load, and
// come from the same algorithm; after an error the optimiser is unchanged. Without a
// schedule it gets the file's rate. LoadState blocks while reading.
func (o *Optimizer) LoadState(ctx context.Context, path string) error {
	if err := ir.CheckContext("optim.LoadState", ctx); err != nil {
		return err
	}
	meta, err := nn.Metadata(path)
	if err != nil {
		return err
	}
	restore, err := o.RestoreMetadata(meta)
	if err != nil {
		return fmt.Errorf("optim: load %s: %w", path, err)
	}
	if _, err := nn.Load(ctx, path, state{o: o}); err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return fmt.Errorf("optim: load %s: %w", path, err)
	}
	return nil
}
