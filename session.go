package loris

import (
	"context"
	"sync"

	"github.com/loris-ml/loris/internal/executor"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/report"
)

// Session owns everything that recording and running needs: the recorder, the
// computation cache, the device lockers, the random seeds. One goroutine at a time may
// record steps with it, that is assign variables and call MarkStep or Step: these say so if they
// find another goroutine in MarkStep or Step. All other methods are safe for concurrent use.
// Fork returns further sessions over the same caches and lockers.
type Session executor.Session

// Report has the counters of a session and its forks: how often it compiled and why,
// where time went, what memory is in use. Its fields are documented in package report.
type Report = report.Report

// Hash is the 128-bit hash of a graph.
type Hash = ir.Hash

// LinePolicy says when ops note the user's source line.
type LinePolicy = ir.LinePolicy

// The policies. LinesSampled, the default, notes the line when an op is recorded in a
// place of the step for the first time, and keeps it for later steps.
const (
	LinesSampled = ir.LinesSampled
	LinesOff     = ir.LinesOff
	LinesAlways  = ir.LinesAlways
)

// SessionOption sets up a Session.
type SessionOption func(*executor.Config)

// WithDevice sets the device of tensors that are not made on another one.
// The default is cpu:0.
func WithDevice(d Device) SessionOption { return func(c *executor.Config) { c.Device = d } }

// WithSeed sets the first seed of the random numbers of each device.
func WithSeed(seed uint64) SessionOption { return func(c *executor.Config) { c.Seed = seed } }

// WithCacheBytes bounds the bytes that the computations in the cache hold, with the code
// of their kernels and their constants (Report.CacheBytes). Close gives them back; the
// process keeps up to 32 MiB of kernels for sessions to come. With a negative bound only
// as many computations as WithCacheEntries says are cached.
func WithCacheBytes(n int64) SessionOption { return func(c *executor.Config) { c.CacheBytes = n } }

// WithCacheEntries sets how many computations that the bound of WithCacheBytes does not
// admit are cached nevertheless, the most recently used ones.
func WithCacheEntries(n int) SessionOption { return func(c *executor.Config) { c.CacheStrong = n } }

// WithDataCacheBytes bounds the cache of tensors made by Maker.Constant, for each device.
func WithDataCacheBytes(n int64) SessionOption {
	return func(c *executor.Config) { c.DataCacheBytes = n }
}

// WithDataCacheScalars sets how many numbers, such as learning rates, are kept on each
// device, the most recently used ones; negative means none. The default is 1024.
func WithDataCacheScalars(n int) SessionOption {
	return func(c *executor.Config) { c.DataCacheScalars = n }
}

// WithTrimNodes sets the number of nodes at which a graph is synced without a MarkStep;
// negative means never.
func WithTrimNodes(n int) SessionOption { return func(c *executor.Config) { c.TrimNodes = n } }

// WithNoOp makes the session compile and schedule but execute nothing: reads fail with
// ErrNoExecution.
func WithNoOp() SessionOption { return func(c *executor.Config) { c.NoOp = true } }

// WithLines sets when ops note the user's source line.
func WithLines(p LinePolicy) SessionOption { return func(c *executor.Config) { c.Lines = p } }

// WithInstances bounds the instances of one computation that forks may run at once, each of which
// has constants of its own. The default is GOMAXPROCS, or 1 with WithThreads. A further instance is
// made when a fork finds all others in use.
func WithInstances(n int) SessionOption { return func(c *executor.Config) { c.Instances = n } }

// WithInFlight bounds how many steps are queued on a device that keeps the order of its
// work, such as a GPU, so that it does not wait for the host between them. The default
// is 3; with 1 a step waits for the one before. A step that fails gives its error to
// the readers of its results, to the steps that used them, and, if the session has not
// read it, to one of its next calls of MarkStep. The CPU backend runs the steps of a session one
// after another.
func WithInFlight(n int) SessionOption { return func(c *executor.Config) { c.InFlight = n } }

// WithThreads bounds how many processors the steps of a session and its forks use at a
// time on the CPU backend. The default, 0, means GOMAXPROCS, which is never exceeded.
// Steps of a session and its forks that are bounded take turns. Sessions with different bounds
// may run side by side: all steps together use no more than GOMAXPROCS processors, and a step
// waits for a free one. Neither results (but see
// WithDeterministic) nor compiled code depend on the bound. Models that PyTorch compiled
// have a bound of their own, aoti.Threads.
func WithThreads(n int) SessionOption { return func(c *executor.Config) { c.Threads = n } }

// WithDeterministic makes a program compute the same bits from the same inputs in every
// run on a machine, whatever WithThreads, GOMAXPROCS and the load are. Without it this
// holds on the CPU backend except for attention with is_causal over values that are not
// finite: how far an infinity or NaN spreads to earlier queries depends on the number of
// processors. Models that PyTorch compiled are not covered.
func WithDeterministic() SessionOption { return func(c *executor.Config) { c.Deterministic = true } }

// WithFlushDenormals lets computations replace subnormal numbers, in f32 those below
// 1.2e-38, by zero. Many processors take a hundred times as long for an operation on one,
// and training makes them: the averages of Adam decay towards zero for weights without
// gradients, such as those of pixels that are always black, and stay subnormal. Fused
// kernels of the CPU backend in machine code flush them; products, convolutions, kernels
// in Go and ops that only move values keep them. XLA always flushes them, PyTorch with
// torch.set_flush_denormal.
func WithFlushDenormals() SessionOption { return func(c *executor.Config) { c.FlushDenormals = true } }

// WithMemoryLimit bounds the bytes of the host's memory that tensors of the process may hold when
// this session or a fork of it asks for more. What does not fit is an [*OutOfMemory] of the step,
// read or upload that asked, before anything is allocated, and variables keep their values. Without
// it, or with 0, the limit is 80 % of the machine's memory, or of what the process's control group,
// its limit of address space or GOMEMLIMIT leave it, whichever is least.
func WithMemoryLimit(bytes int64) SessionOption {
	return func(c *executor.Config) { c.MemoryLimit = bytes }
}

// WithDiskCache keeps compiled artefacts in a directory, which it makes if need be, so
// that the next start of the program compiles nothing. Processes may share it. It holds at
// most 4 GiB (see WithDiskCacheBytes), the most recently used artefacts. They are machine
// code that later processes run: the directory must belong to the user alone.
func WithDiskCache(dir string) SessionOption { return func(c *executor.Config) { c.DiskDir = dir } }

// WithDiskCacheBytes sets how many bytes WithDiskCache keeps; a negative number means no
// bound.
func WithDiskCacheBytes(n int64) SessionOption { return func(c *executor.Config) { c.DiskBytes = n } }

// New returns a session that shares nothing with others. A device that cannot be used is
// an error wrapping ErrDevice; a directory that WithDiskCache cannot use is an error, too.
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

// defaultSession is made at its first use, so that a program with sessions of its own
// does not pay for it.
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

// Fork returns a session for another goroutine to record with. It shares this one's
// caches, lockers and live tensors, and has steps and random numbers of its own. Tensors
// of both may be operands of one op.
//
// Of variables it sees what this session has committed at the end of a step, and nothing
// that is pending here; see Variable for what that is after each way a step can end, and
// Snapshot for serving a model on forks while it trains.
func (s *Session) Fork() *Session { return (*Session)(s.ex().Fork()) }

// Device returns the device of tensors that are not made on another one.
func (s *Session) Device() Device { return s.ex().Device() }

// Close waits for the work in flight and frees the caches. Later uses of the session, its
// forks and their tensors fail with ErrClosed; elements that were read stay valid. Close
// returns ctx's error if ctx ends first.
func (s *Session) Close(ctx context.Context) error {
	if err := ir.CheckContext("close", ctx); err != nil {
		return err
	}
	return s.ex().Close(ctx)
}

// MarkStep ends the step on the devices, or on all if none is given. It syncs variables
// with a pending value, tensors marked Keep, and tensors recorded since the last step that
// no recorded op uses; and it advances the random seeds. It returns when the work is
// scheduled. After an error the step is still open and nothing has changed. The error may
// be that of work that the session scheduled before and whose error it has not read
// (*AsyncError); it is reported once, and the next call goes on. Only what cannot be computed
// at all leaves the step with its error, so that later steps do not fail with it, too: tensors
// whose graph cannot be compiled are discarded, and all assignments are taken back if one of
// them is such a tensor, or has failed when it was read.
func (s *Session) MarkStep(ctx context.Context, devices ...Device) error {
	if err := ir.CheckContext("mark_step", ctx); err != nil {
		return err
	}
	return s.ex().MarkStep(ctx, devices...)
}

// Step runs fn, marks the step and declares the tensors that fn recorded dead, except
// those marked Keep; so the computation may overwrite the old values of variables. If fn
// panics, or Step returns an error, of fn or of MarkStep, what fn recorded is dropped and what
// it assigned is taken back: the same Step may be tried again.
//
// If the computation fails, a variable whose old value it may have overwritten has the
// error until it is assigned again; others keep their value.
func (s *Session) Step(ctx context.Context, fn func() error) error {
	if err := ir.CheckContext("step", ctx); err != nil {
		return err
	}
	return s.ex().Step(ctx, fn)
}

// StepNumber returns the number of the step being recorded, from 1.
func (s *Session) StepNumber() uint64 { return s.ex().StepNumber() }

// Sync computes those of the tensors that are pending, and returns once the work is
// scheduled. After an error every tensor still holds its graph.
func (s *Session) Sync(ctx context.Context, ts ...*Tensor) error {
	if err := ir.CheckContext("sync", ctx); err != nil {
		return err
	}
	_, err := s.ex().SyncTensors(ctx, handles(ts), executor.SyncTensorsConfig{ForceData: true, SyncData: true})
	return err
}

// WaitDeviceOps waits for the work in flight on the devices, or on all if none is given,
// and returns the errors of work, of this session or another, that nobody was told before.
func (s *Session) WaitDeviceOps(ctx context.Context, devices ...Device) error {
	if err := ir.CheckContext("wait_device_ops", ctx); err != nil {
		return err
	}
	return s.ex().WaitDeviceOps(ctx, devices...)
}

// Keep marks tensors to be computed at the next MarkStep even if a recorded op uses them,
// and to outlive a Step.
func (s *Session) Keep(ts ...*Tensor) { s.ex().Keep(handles(ts)...) }

// Discard marks tensors not to be computed at MarkStep. They are computed when they are
// used.
func (s *Session) Discard(ts ...*Tensor) { s.ex().Discard(handles(ts)...) }

// Report returns the counters of the session's executor, all forks together.
func (s *Session) Report() Report { return s.ex().Report() }

// Seed returns the seed of this step's random ops on the session's device.
func (s *Session) Seed() uint64 { return s.ex().RunningSeed(s.Device()) }

// SetSeed sets the seed on the session's device from the present step on, and restarts
// the numbering of its random ops.
func (s *Session) SetSeed(seed uint64) { s.ex().SetRngSeed(s.Device(), seed) }

// LiveTensors returns the tensors that are in use: those with data, in all forks,
// and those that this session recorded in the present step. No device given means
// all.
func (s *Session) LiveTensors(devices ...Device) []*Tensor {
	return wrapAll(s.ex().LiveTensors(devices...))
}

// GraphHash returns the hash of the graph that a sync of the tensors would run. It is an
// error if they are on several devices or none is pending.
func (s *Session) GraphHash(ts ...*Tensor) (Hash, error) { return s.ex().GraphHash(handles(ts)...) }

// Dump returns the text of the graph that a sync of the tensors would compile, as it was
// recorded or, if lowered, after the rewrites for their backend. It is an error if they
// are on several devices or none is pending.
func (s *Session) Dump(lowered bool, ts ...*Tensor) (string, error) {
	p, err := s.ex().DumpBackendComputation(lowered, handles(ts)...)
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// ResetTrim restarts the count of nodes at which the present step is synced without a
// MarkStep (WithTrimNodes).
func (s *Session) ResetTrim() { s.ex().ResetTrimCounter() }

// MarkStep ends the step of the default session, as Session.MarkStep.
func MarkStep(ctx context.Context, devices ...Device) error {
	if err := ir.CheckContext("mark_step", ctx); err != nil {
		return err
	}
	return Default().MarkStep(ctx, devices...)
}

// Sync computes those of the tensors that are pending, and returns once the work is
// scheduled. They belong to one session and its forks.
func Sync(ctx context.Context, ts ...*Tensor) error {
	if err := ir.CheckContext("sync", ctx); err != nil {
		return err
	}
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
