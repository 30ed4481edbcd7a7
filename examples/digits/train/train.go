// Package train is a complete training program as a library: a multilayer
// perceptron that learns the handwritten digits of package digits, with dropout,
// Adam and a cosine schedule, that can be interrupted and resumed.
//
// Whatever the number of epochs, four graphs are compiled: the initial values,
// the training step, the training step of the last, smaller batch of an epoch,
// and the evaluation. All other syncs find theirs in the cache, since neither
// the learning rate nor the seed of the dropout is part of a graph.
package train

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// Config says what is trained and how. Files of weights keep it, but for the
// device.
type Config struct {
	Epochs  int          `json:"epochs"`  // in all, those before a resumption included
	Batch   int          `json:"batch"`   // images of a step
	LR      float64      `json:"lr"`      // at the start; it goes to 0 along half a cosine
	Seed    uint64       `json:"seed"`    // of weights, order and dropout
	Hidden  []int        `json:"hidden"`  // sizes of the hidden layers
	Dropout float64      `json:"dropout"` // probability, after each hidden layer
	Device  loris.Device `json:"-"`       // the zero Device is cpu:0
	// DiskCache is the directory where compiled graphs are kept; empty is none.
	DiskCache string `json:"-"`
	// World, unless nil, is the group of the ranks that train together: each step's images are cut into
	// its shards, and weights and measures are equal on all ranks.
	World *dist.Group `json:"-"`
}

// Defaults returns settings that reach 98 to 99 % on the test images.
func Defaults() Config {
	return Config{Epochs: 40, Batch: 64, LR: 0.01, Seed: 1, Hidden: []int{128, 64}, Dropout: 0.3}
}

// check returns an error that names the first setting that cannot be.
func (c *Config) check() error {
	switch {
	case c.Epochs < 1:
		return fmt.Errorf("the number of epochs is %d, must be at least 1", c.Epochs)
	case c.Batch < 1:
		return fmt.Errorf("the batch size is %d, must be at least 1", c.Batch)
	case !(c.LR > 0):
		return fmt.Errorf("the learning rate is %v, must be positive", c.LR)
	case !(c.Dropout >= 0 && c.Dropout < 1):
		return fmt.Errorf("the dropout is %v, must be from 0 to below 1", c.Dropout)
	case slices.ContainsFunc(c.Hidden, func(n int) bool { return n < 1 }):
		return fmt.Errorf("the hidden layers are %v, each must have at least 1 unit", c.Hidden)
	}
	return nil
}

// splitSeed divides the images, the same for every run, so that accuracies can
// be compared.
const splitSeed = 42

// Data returns the training and the test images.
func Data() (train, test *digits.Dataset, err error) {
	all, err := digits.Load()
	if err != nil {
		return nil, nil, err
	}
	train, test = all.Split(splitSeed)
	return train, test, nil
}

// Model returns a perceptron from the pixels over the hidden layers to a logit
// for each digit, its variables made by m. Their names are those of
// torch.nn.Sequential(Linear, ReLU, …, Linear), since dropout is one layer with
// the activation.
func Model(m loris.Maker, hidden []int, dropout float64) *nn.Sequential {
	var layers []nn.Layer
	in := digits.Features
	for _, n := range hidden {
		layers = append(layers, nn.NewLinear(in, n, nn.With(m)), newActivation(dropout))
		in = n
	}
	return nn.NewSequential(append(layers, nn.NewLinear(in, digits.Classes, nn.With(m)))...)
}

// activation is ReLU followed by dropout, unless that is nil.
type activation struct {
	nn.Base
	drop *nn.Dropout
}

func newActivation(dropout float64) *activation {
	a := &activation{}
	if dropout > 0 {
		a.drop = nn.NewDropout(dropout)
		a.Add("drop", a.drop)
	}
	return a
}

// Forward applies both; dropout in training only.
func (a *activation) Forward(x *loris.Tensor) *loris.Tensor {
	if x = nn.ReLU(x); a.drop != nil {
		x = a.drop.Forward(x)
	}
	return x
}

// Trainer trains one model. One goroutine uses it.
type Trainer struct {
	// Progress, unless nil, is called after each training step with the number
	// of the step within its epoch, from 1, and how many there are.
	Progress func(step, steps int)

	cfg         Config
	session     *loris.Session
	model       *nn.Sequential
	opt         *optim.Optimizer
	train, test *digits.Dataset
	x, y        *loris.Tensor // the test images, on the device
}

// cachedNumbers is how many numbers stay on the device: Adam's constants. The
// others, such as the rate, are new in each step, and no use to keep.
const cachedNumbers = 16

// New returns a trainer with fresh weights, in a session of its own. Settings
// that cannot be, or a device that cannot be used, are an error.
func New(ctx context.Context, cfg Config) (*Trainer, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if err := cfg.checkShards(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t := &Trainer{cfg: cfg}
	var err error
	if t.train, t.test, err = Data(); err != nil {
		return nil, err
	}
	opts := []loris.SessionOption{loris.WithSeed(cfg.Seed), loris.WithDataCacheScalars(cachedNumbers), loris.WithFlushDenormals()}
	if !cfg.Device.IsAny() {
		opts = append(opts, loris.WithDevice(cfg.Device))
	}
	if cfg.DiskCache != "" {
		opts = append(opts, loris.WithDiskCache(cfg.DiskCache))
	}
	open := loris.New
	if cfg.World != nil {
		open = cfg.World.Session
	}
	if t.session, err = open(opts...); err != nil {
		return nil, err
	}
	m := t.session.With()
	t.model = Model(m, cfg.Hidden, cfg.Dropout)
	t.opt = optim.NewAdam(t.model.Params(), cfg.LR)
	t.opt.SetSchedule(optim.Cosine(cfg.LR, 0, cfg.Epochs*t.StepsPerEpoch()))
	t.x, t.y = m.FromSlice(t.test.Pixels, t.test.Len(), digits.Features), m.FromSlice(t.test.Labels)
	// The initial values are a graph of their own, not part of the first step's.
	if err := t.session.MarkStep(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Close frees what the session holds.
func (t *Trainer) Close(ctx context.Context) error { return t.session.Close(ctx) }

// Parameters returns the number of trainable elements.
func (t *Trainer) Parameters() int { return nn.NumParams(t.model) }

// Images returns the numbers of training and test images.
func (t *Trainer) Images() (train, test int) { return t.train.Len(), t.test.Len() }

// Report returns the session's counters.
func (t *Trainer) Report() loris.Report { return t.session.Report() }

// Usage is the memory in use on the device.
type Usage struct {
	LiveTensors int
	Bytes       int64
}

// Usage collects garbage and returns the memory that is still in use.
func (t *Trainer) Usage() Usage {
	var last Usage
	for i := range 20 {
		runtime.GC()
		r, d := t.Report(), t.session.Device().String()
		u := Usage{r.LiveTensors[d], r.MemoryInUse[d]}
		if i > 0 && u == last {
			break
		}
		// Buffers are given back by cleanups, which run soon after a collection.
		last = u
		time.Sleep(time.Millisecond)
	}
	return last
}

// StepsPerEpoch returns the number of batches, the last partial one included.
func (t *Trainer) StepsPerEpoch() int { return (t.train.Len() + t.cfg.Batch - 1) / t.cfg.Batch }

// Done returns the number of epochs that are complete.
func (t *Trainer) Done() int { return int(t.opt.Steps()) / t.StepsPerEpoch() }

// Epoch is how one epoch went.
type Epoch struct {
	Number        int     // from 1
	TrainLoss     float64 // mean over the images, while training
	TrainAccuracy float64 // from 0 to 1, while training, so with dropout
	Test          Evaluation
	LR            float64 // of its last step
	Time          time.Duration
}

// result is what a training step leaves to be read at the end of its epoch.
type result struct {
	loss, right *loris.Tensor
	images      int
}

// RunEpoch trains on all images once, or on what is left of an epoch that was
// interrupted, and evaluates. The steps are recorded one after another without
// waiting for results. If ctx ends it returns its error between two steps, and
// another call goes on there.
func (t *Trainer) RunEpoch(ctx context.Context) (Epoch, error) {
	start := time.Now()
	steps := t.StepsPerEpoch()
	e := Epoch{Number: t.Done() + 1}
	skip := int(t.opt.Steps()) % steps
	var results []result
	i := 0
	for b := range t.train.Batches(t.cfg.Batch, t.cfg.Seed, uint64(e.Number)) {
		if i++; i <= skip {
			continue
		}
		e.LR = t.opt.LR()
		r, err := t.step(ctx, b)
		if err != nil {
			return e, err
		}
		results = append(results, r)
		if t.Progress != nil {
			t.Progress(i, steps)
		}
	}
	if err := e.collect(ctx, results); err != nil {
		return e, err
	}
	var err error
	e.Test, err = t.Evaluate(ctx)
	e.Time = time.Since(start)
	return e, err
}

// step records and schedules one training step.
func (t *Trainer) step(ctx context.Context, b *digits.Dataset) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	t.model.SetTraining(true)
	var r result
	if t.cfg.World != nil {
		// One that fails is found before the next is recorded on top of it: what is left can be saved.
		if err := t.session.WaitDeviceOps(context.WithoutCancel(ctx)); err != nil {
			return r, err
		}
		r = t.sharded(b)
	} else {
		var grads []*loris.Tensor
		grads, r = t.gradients(b.Pixels, b.Labels)
		t.opt.Step(grads)
	}
	loris.Keep(r.loss, r.right)
	// A step is scheduled whole, so that what can be saved is whole, too.
	return r, t.session.MarkStep(context.WithoutCancel(ctx))
}

// gradients records the gradients of the mean loss over images, and the loss.
func (t *Trainer) gradients(pixels []float32, labels []int64) ([]*loris.Tensor, result) {
	m := t.session.With()
	x, y := m.FromSlice(pixels, len(labels), digits.Features), m.FromSlice(labels)
	logits := t.model.Forward(x)
	loss := logits.CrossEntropy(y)
	return t.opt.Grads(loss), result{loss, logits.Argmax(loris.Dim(1)).Eq(y).Sum(), len(labels)}
}

// collect reads the results of the steps.
func (e *Epoch) collect(ctx context.Context, results []result) error {
	images := 0
	for _, r := range results {
		loss, err := r.loss.Item(ctx)
		if err != nil {
			return err
		}
		right, err := r.right.Item(ctx)
		if err != nil {
			return err
		}
		e.TrainLoss += loss * float64(r.images)
		e.TrainAccuracy += right
		images += r.images
	}
	e.TrainLoss /= float64(images)
	e.TrainAccuracy /= float64(images)
	return nil
}
