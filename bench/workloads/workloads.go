// Package workloads has what Loris is measured by: complete small programs, with
// the arithmetic they need at least, and how much longer than the best of its
// peers Loris may take. bench/compare runs them beside their twins in other
// systems, bench/profile takes one apart, and go test -bench runs them alone.
//
// All systems compute from the same numbers, which Data makes without a file.
package workloads

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/loris-ml/loris"
)

// Workload is one program.
type Workload struct {
	// Name is what reports and the peers' programs call it.
	Name string
	// Must and Aim are the most time that Loris may take and the time that it
	// should, as multiples of the best peer's.
	Must, Aim float64
	// FLOP is the arithmetic of one run and Bytes what it reads and writes at
	// least if nothing is in a cache; 0 where neither is what bounds it.
	FLOP, Bytes float64
	// Ops divides the time of a run for reports; 1 but for chains of ops.
	Ops int
	// Runs is how many runs, counted from a fresh start, give what is compared
	// across systems, and Tolerance the most that an element may differ, relative
	// to the largest element.
	Runs      int
	Tolerance float64
	// Heavy ones take seconds or gigabytes, and Large ones so much that tests run smaller forms of
	// them; Memory says that the peak of tensor memory is compared, too.
	Heavy, Large, Memory bool
	// Peers are the systems that it is meaningful for; nil means all.
	Peers []string
	// Session has what the session needs to compute as the peers do.
	Session []loris.SessionOption
	// Rivals are those of them whose best the ratio is to; nil means all. The
	// others are run for comparison.
	Rivals []string
	// Alone says that on GPUs, too, each run is waited for before the next.
	Alone bool
	// MustGPU is Must on a GPU, against torch.compile; 0 where nothing is asked.
	// GPU says that the workload is for GPUs only.
	MustGPU float64
	GPU     bool

	open func(ctx context.Context, s *loris.Session) (*Instance, error)
}

// Instance is a workload that is ready to run in one session.
type Instance struct {
	// Start runs it once and may return before the results are there; runs may follow
	// each other.
	Start func(ctx context.Context) error
	// Finish waits for the results of all runs.
	Finish func(ctx context.Context) error
	// Results returns the values that are compared, after the runs so far.
	Results func(ctx context.Context) ([]float32, error)
	// Forget releases the results of the runs so far; nil where there are none
	// but the state.
	Forget func()
}

// Run runs the workload once and returns when all results are there.
func (in *Instance) Run(ctx context.Context) error {
	if err := in.Start(ctx); err != nil {
		return err
	}
	return in.Finish(ctx)
}

// Open makes the inputs and the state of a workload in a session and waits until
// they are there.
func (w *Workload) Open(ctx context.Context, s *loris.Session) (*Instance, error) {
	in, err := w.open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", w.Name, err)
	}
	return in, nil
}

// AheadGPU is how many runs a GPU is given before they are waited for: a loop that
// trains, or serves, keeps it at work.
const AheadGPU = 10

// Batch returns how many runs are timed together.
func (w *Workload) Batch(gpu bool) int {
	if gpu && !w.Alone {
		return AheadGPU
	}
	return 1
}

// For reports whether the workload is meaningful for a peer.
func (w *Workload) For(peer string) bool { return w.Peers == nil || slices.Contains(w.Peers, peer) }

// On returns the workload with what is asked of it on GPUs.
func (w *Workload) On(gpu bool) *Workload {
	if !gpu {
		return w
	}
	on := *w
	on.Must, on.Aim, on.Rivals = w.MustGPU, 0, nil
	if w.MustGPU > 0 {
		on.Rivals = []string{"compile"}
	}
	return &on
}

// Against reports whether the ratio counts a peer.
func (w *Workload) Against(peer string) bool {
	return w.Rivals == nil || slices.Contains(w.Rivals, peer)
}

// All returns the workloads in the order of reports.
func All() []*Workload {
	return []*Workload{
		pointwise("pointwise-1M", 1<<20),
		pointwise("pointwise-16M", 1<<24),
		softmax(),
		layerNorm(),
		matmul(256), matmul(1024), matmul(2048),
		batched(),
		mlp(),
		encoder(),
		convolution(),
		resnet(),
		digitsTraining(),
		digitsCompiled(),
		chainRecorded(),
		chainCompiled(),
		firstCompile(), firstCompileSmall(),
		gpt2(),
		gptTraining(), gptDecoding(), varyingLengths(),
		gruGradients(), lstmInference(),
		gpt2Training(gptSize{layers: gptLayers, dim: gptDim, heads: gptHeads, vocab: gptVocab, batch: 4, length: 512}),
		vitTraining(vitSize{layers: 12, dim: 768, heads: 12, image: 224, patch: 16, classes: 1000, batch: 4}),
		resnet50Training(resnet50, 224, 4),
		llamaDecode(llamaSize{layers: 22, dim: 2048, heads: 32, hidden: 5632, vocab: 32000, context: 256, group: 128}),
		longAttention(8, 8, 4096, 64),
		embeddingTraining(1_000_000, 64, 4096),
		mlpOf("mlp-step-bf16", loris.BF16, 3e-2),
		encoderOf("encoder-block-bf16", loris.BF16, 3e-2),
	}
}

// Select returns the workloads whose names the regular expression matches.
func Select(expr string) ([]*Workload, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	var list []*Workload
	for _, w := range All() {
		if re.MatchString(w.Name) {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no workload matches %q", expr)
	}
	return list, nil
}

// ready returns handles of data that the numbers were copied to.
func ready(ctx context.Context, ts ...*loris.Tensor) error {
	for _, t := range ts {
		if t.Pending() {
			return errors.New("an input is not data yet")
		}
		if err := t.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// function makes the instance of a workload that computes one result from
// tensors that stay. Its memory is reused as a training loop reuses that of its
// weights: the result is the new value of a variable.
func function(ctx context.Context, s *loris.Session, f func() *loris.Tensor) (*Instance, error) {
	var out *loris.Variable
	in := &Instance{
		Start: func(ctx context.Context) error {
			return s.Step(ctx, func() error {
				if y := f(); out == nil {
					out = loris.NewVariable(y)
				} else {
					out.Assign(y)
				}
				return nil
			})
		},
		Finish:  waiting(s),
		Results: func(ctx context.Context) ([]float32, error) { return numbers(ctx, out.Value()) },
		Forget:  func() { out = nil },
	}
	return in, in.Run(ctx)
}

// waiting returns a wait for what a session has on its devices.
func waiting(s *loris.Session) func(context.Context) error {
	return func(ctx context.Context) error { return s.WaitDeviceOps(ctx) }
}

// decoding makes a token with each run: run returns its place and the token before it, and forward the
// logits that follow them.
func decoding(ctx context.Context, s *loris.Session, logits *loris.Variable, forward func(place, token *loris.Tensor) *loris.Tensor, run func(n int) (place, token int64)) (*Instance, error) {
	m, runs := s.With(), 0
	return &Instance{
		Start: func(ctx context.Context) error {
			place, token := run(runs)
			runs++
			return s.Step(ctx, func() error {
				logits.Assign(forward(m.FromSlice([]int64{place}), m.FromSlice([]int64{token})))
				return nil
			})
		},
		Finish:  waiting(s),
		Results: func(ctx context.Context) ([]float32, error) { return logits.Value().Float32s(ctx) },
	}, s.WaitDeviceOps(ctx)
}
