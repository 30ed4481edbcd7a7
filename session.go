package loris

import (
	"context"
	"sync"

	"github.com/loris-ml/loris/executor"
	"github.com/loris-ml/loris/ir"
)

// Session owns everything that recording and running needs: the recorder, the
// computation cache, the device lockers, the random seeds. One goroutine at a
// time calls MarkStep or Step on it; everything else is safe from any
// goroutine. Fork gives further sessions over the same caches and lockers.
//
// It is the executor's session under another name: the two convert to each
// other, as tensors and variables do.
type Session executor.Session

// Hooks override steps of a sync, for profilers and for frameworks on top. They
// are given the executor's handles.
type Hooks = executor.Hooks

// Report is what a session's executor has done so far.
type Report = executor.Report

// Hash is the 128-bit hash of a graph.
type Hash = ir.Hash

// LinePolicy says when ops note the user's source line.
type LinePolicy = ir.LinePolicy

// The policies. LinesSampled, the default, notes the line when an op arrives in
// a new place of the step and remembers it.
const (
	LinesSampled = ir.LinesSampled
	LinesOff     = ir.LinesOff
	LinesAlways  = ir.LinesAlways
)

// SessionOption sets up a Session.
type SessionOption func(*executor.Config)

// WithDevice sets the device where tensors are unless they are made elsewhere.
// The default is cpu:0.
func WithDevice(d Device) SessionOption { return func(c *executor.Config) { c.Device = d } }

// WithSeed sets the seed that the random numbers of each device begin with.
func WithSeed(seed uint64) SessionOption { return func(c *executor.Config) { c.Seed = seed } }

// WithCacheBytes bounds the computation cache by the bytes that computations
// hold; a negative bound keeps only the few of WithCacheEntries.
func WithCacheBytes(n int64) SessionOption { return func(c *executor.Config) { c.CacheBytes = n } }

// WithCacheEntries sets the size of the small cache of computations that the
// large one refused.
func WithCacheEntries(n int) SessionOption { return func(c *executor.Config) { c.CacheStrong = n } }

// WithDataCacheBytes bounds, for each device, the cache of host tensors made by
// Constant.
func WithDataCacheBytes(n int64) SessionOption {
	return func(c *executor.Config) { c.DataCacheBytes = n }
}

// WithDataCacheScalars sets how many numbers, such as learning rates, are kept on
// each device, the least recently used given up first; negative means none. The
// default is 1024.
func WithDataCacheScalars(n int) SessionOption {
	return func(c *executor.Config) { c.DataCacheScalars = n }
}

// WithTrimNodes sets the size of a graph at which it is synced without a
// MarkStep; negative means never.
func WithTrimNodes(n int) SessionOption { return func(c *executor.Config) { c.TrimNodes = n } }

// WithNoOp makes the session compile and schedule but execute nothing: reads
// fail with ErrNoExecution.
func WithNoOp() SessionOption { return func(c *executor.Config) { c.NoOp = true } }

// WithHooks overrides steps of the pipeline.
func WithHooks(h Hooks) SessionOption { return func(c *executor.Config) { c.Hooks = h } }

// WithLines sets when ops note the user's source line.
func WithLines(p LinePolicy) SessionOption { return func(c *executor.Config) { c.Lines = p } }

// WithInstances bounds the instances of one computation that may run at once.
func WithInstances(n int) SessionOption { return func(c *executor.Config) { c.Instances = n } }

// WithInFlight bounds how many steps a device that keeps the order of its work, such
// as a GPU, is given before the first of them is done, so that it need not wait for
// the host between them. The default is 3; 1 has a step wait for the one before.
// What a step fails by is known when it is done: by the readers of its results, by
// the steps that used them, and by one of the next calls of MarkStep. The CPU
// backend runs one step after another.
func WithInFlight(n int) SessionOption { return func(c *executor.Config) { c.InFlight = n } }

// WithThreads bounds how many processors the steps of a session and its forks use
// at a time on the CPU backend; 0, the default, leaves it at GOMAXPROCS, which is
// never exceeded. Sessions with different bounds may run side by side: all steps
// together use no more than GOMAXPROCS processors, and a step waits its turn
// where there are none left. Results do not depend on the bound (but see
// WithDeterministic), nor does what is compiled. Models that PyTorch compiled
// have a bound of their own, aoti.Threads.
func WithThreads(n int) SessionOption { return func(c *executor.Config) { c.Threads = n } }

// WithDeterministic makes the same program give the same bits from the same inputs
// in every run on a machine, whatever WithThreads, GOMAXPROCS and the load are.
// Without it the CPU backend keeps to that as well, but for attention with
// is_causal whose values are not finite: how far an infinity or NaN spreads to the
// queries before it then depends on the number of processors. Models that
// PyTorch compiled are not covered.
func WithDeterministic() SessionOption { return func(c *executor.Config) { c.Deterministic = true } }

// WithFlushDenormals lets computations take subnormal numbers, those of f32 below
// 1.2e-38, as zero and give zero for them. Many processors take a hundred times
// as long for an operation that meets one, and training makes them: the averages of Adam
// decay towards zero for weights without gradients, such as those of pixels that
// are always black, and stay subnormal for good. Fused kernels as machine code of
// the CPU backend make use of it; products, convolutions and what runs as Go
// keep subnormal numbers, and so do values that are only moved. XLA flushes them always,
// PyTorch with torch.set_flush_denormal.
func WithFlushDenormals() SessionOption { return func(c *executor.Config) { c.FlushDenormals = true } }

// WithDiskCache keeps compiled artefacts in a directory, made if need be, so that
// the next start of the program compiles nothing. Processes may share it. It is
// bounded to 4 GiB (see WithDiskCacheBytes); those used least recently leave.
// What is there is machine code that later processes run: the directory must
// belong to the user alone.
func WithDiskCache(dir string) SessionOption { return func(c *executor.Config) { c.DiskDir = dir } }

// WithDiskCacheBytes sets the bound of WithDiskCache; a negative one is none.
func WithDiskCacheBytes(n int64) SessionOption { return func(c *executor.Config) { c.DiskBytes = n } }

// New returns a session of its own. A device that cannot be used is an error
// wrapping ErrDevice; a directory for WithDiskCache that cannot be used is one,
// too.
func New(opts ...SessionOption) (*Session, error) {
	cfg := executor.Config{Device: CPU}
	for _, o := range opts {
		o(&cfg)
	}
	s, err := executor.New(cfg)
	if err != nil {
		return nil, err
	}
	return (*Session)(s), nil
}

// defaultSession is made at its first use, so that a program with sessions of
// its own pays nothing for it.
var defaultSession = sync.OnceValues(func() (*Session, error) { return New() })

// Default returns the session that package-level functions use.
func Default() *Session {
	s, err := defaultSession()
	if err != nil {
		panic(err) // the embedded backends always serve
	}
	return s
}

func (s *Session) ex() *executor.Session { return (*executor.Session)(s) }

// Fork returns a session that shares this one's caches, lockers and live
// tensors, but has steps and random numbers of its own, for another goroutine
// to trace with. Tensors of both may meet.
func (s *Session) Fork() *Session { return (*Session)(s.ex().Fork()) }

// Device returns where tensors are unless they are made elsewhere.
func (s *Session) Device() Device { return s.ex().Device() }

// Close waits for the work in flight, frees the caches and makes every later use
// of the session, its forks and their tensors fail with ErrClosed. Elements that
// were read stay valid. It returns ctx's error if that ends first.
func (s *Session) Close(ctx context.Context) error { return s.ex().Close(ctx) }

// MarkStep ends the step: it syncs the variables with a pending value, the
// tensors marked Keep and those recorded since the last step that nothing
// recorded consumes, and moves the random seeds on. It returns when the work is
// scheduled. On an error nothing has happened and the step is still open; an
// error of work scheduled before is delivered this way, too, and the next call
// goes on. No device given means all.
func (s *Session) MarkStep(ctx context.Context, devices ...Device) error {
	return s.ex().MarkStep(ctx, devices...)
}

// Step runs fn, marks the step and declares the tensors that fn recorded dead,
// except those marked Keep, which lets the computation overwrite the old values
// of variables. An error of fn is returned and drops what fn recorded.
//
// Should the computation itself fail, a variable whose old value it may have
// overwritten has the error until it is assigned again; others keep their value.
func (s *Session) Step(ctx context.Context, fn func() error) error { return s.ex().Step(ctx, fn) }

// StepNumber returns the number of the step being recorded, from 1.
func (s *Session) StepNumber() uint64 { return s.ex().StepNumber() }

// Sync computes the tensors, those that are pending, and returns once the work
// is scheduled. On an error every tensor still holds its graph.
func (s *Session) Sync(ctx context.Context, ts ...*Tensor) error {
	_, err := s.ex().SyncTensors(ctx, handles(ts), executor.SyncTensorsConfig{ForceData: true, SyncData: true})
	return err
}

// WaitDeviceOps waits for the work in flight on the devices (none given: all)
// and returns its error, if nobody has had it yet.
func (s *Session) WaitDeviceOps(ctx context.Context, devices ...Device) error {
	return s.ex().WaitDeviceOps(ctx, devices...)
}

// Keep marks tensors to be computed at the next MarkStep even if something
// consumes them, and to outlive a Step.
func (s *Session) Keep(ts ...*Tensor) { s.ex().Keep(handles(ts)...) }

// Discard marks tensors not to be computed at MarkStep. They stay usable, lazily.
func (s *Session) Discard(ts ...*Tensor) { s.ex().Discard(handles(ts)...) }

// Report returns the counters of the session's executor, all forks together.
func (s *Session) Report() Report { return s.ex().Report() }

// Seed returns the seed that the random ops of this step use on the session's
// device.
func (s *Session) Seed() uint64 { return s.ex().RunningSeed(s.Device()) }

// SetSeed sets the seed on the session's device, from the present step on, and
// restarts the numbering of its random ops.
func (s *Session) SetSeed(seed uint64) { s.ex().SetRngSeed(s.Device(), seed) }

// GetLiveTensors returns the tensors that are in use: those with data, in all
// forks, and those that this session recorded in the present step.
func (s *Session) GetLiveTensors(devices ...Device) []*Tensor {
	return tensors(s.ex().LiveTensors(devices...))
}

// GraphHash returns the hash of the graph that a sync of the tensors would run.
// It fails if they are on several devices or none is pending.
func (s *Session) GraphHash(ts ...*Tensor) (Hash, error) { return s.ex().GraphHash(handles(ts)...) }

// Dump returns the text of the graph that a sync of the tensors would compile,
// as it was recorded, or with lowered after the rewrites for their backend. It
// fails if they are on several devices or none is pending.
func (s *Session) Dump(lowered bool, ts ...*Tensor) (string, error) {
	p, err := s.ex().DumpBackendComputation(lowered, handles(ts)...)
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// ResetTrim lets the present step record as many nodes again (WithTrimNodes)
// before it is synced without a MarkStep.
func (s *Session) ResetTrim() { s.ex().ResetTrimCounter() }

// MarkStep ends the step of the default session, as Session.MarkStep.
func MarkStep(ctx context.Context, devices ...Device) error {
	return Default().MarkStep(ctx, devices...)
}

// Sync computes the tensors, those that are pending, and returns once the work
// is scheduled; they belong to one session and its forks.
func Sync(ctx context.Context, ts ...*Tensor) error {
	s, err := sessionOfAll(ts)
	if err != nil || s == nil {
		return err
	}
	return s.Sync(ctx, ts...)
}

// Keep marks tensors to be computed at the next MarkStep, as Session.Keep.
func Keep(ts ...*Tensor) {
	for _, t := range ts {
		t.session("keep").Keep(t.ex())
	}
}

// Discard marks tensors not to be computed at MarkStep, as Session.Discard.
func Discard(ts ...*Tensor) {
	for _, t := range ts {
		t.session("discard").Discard(t.ex())
	}
}

// SetSeed sets the seed of the default session, as Session.SetSeed.
func SetSeed(seed uint64) { Default().SetSeed(seed) }
