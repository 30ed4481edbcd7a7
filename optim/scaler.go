package optim

import (
	"iter"

	"github.com/loris-ml/loris"
)

// LossScaler keeps gradients in f16 from vanishing, as torch.amp.GradScaler: the loss is multiplied
// by a scale, the gradients are divided by it, and a step whose gradients are not finite is left
// out and halves the scale. Its state are variables, so that it may be part of a function given to
// loris.Compile. Training in bf16 needs none.
type LossScaler struct {
	// Scale is the factor, f32, and Good the number of finite steps since it changed, i64.
	Scale, Good *loris.Variable
	growth      float64
	backoff     float64
	interval    int
}

// NewLossScaler returns a scaler in a session, nil for the default one, with the scale 65536,
// which doubles after 2000 finite steps and halves after one that is not.
func NewLossScaler(s *loris.Session) *LossScaler {
	if s == nil {
		s = loris.Default()
	}
	return &LossScaler{Scale: loris.NewVariable(s.With().Full(65536.0).Discard()),
		Good:   loris.NewVariable(s.With(loris.As(loris.I64)).Zeros().Discard()),
		growth: 2, backoff: 0.5, interval: 2000}
}

// SetGrowth changes by what the scale grows after so many finite steps, and shrinks after one that is
// not.
func (l *LossScaler) SetGrowth(growth, backoff float64, interval int) {
	check("LossScaler", growth >= 1 && backoff > 0 && backoff < 1 && interval >= 1,
		"growth %v must be at least 1, backoff %v in (0, 1), the interval %d at least 1", growth, backoff, interval)
	l.growth, l.backoff, l.interval = growth, backoff, interval
}

// Scaled records the loss, in f32, times the scale.
func (l *LossScaler) Scaled(loss *loris.Tensor) *loris.Tensor {
	return loss.Cast(loris.F32).Mul(l.Scale.ValueIn(loss.Session()))
}

// Step records the optimiser's step by gradients of a Scaled loss if all of them are finite, and the
// next scale. It returns whether they are, a bool of rank 0. The optimiser must be Captured, since
// only the graph knows which steps count.
func (l *LossScaler) Step(o *Optimizer, grads []*loris.Tensor) (finite *loris.Tensor) {
	check(o.algorithm, o.stepVar != nil, "a LossScaler needs an optimiser that is Captured")
	s := o.session(grads)
	scale, good := l.Scale.ValueIn(s), l.Good.ValueIn(s)
	plain := make([]*loris.Tensor, len(grads))
	for i, g := range grads {
		if g == nil {
			continue
		}
		// The scale may be more than f16 can hold.
		plain[i] = g.Cast(loris.F32).Div(scale)
		if ok := plain[i].IsFinite().All(); finite == nil {
			finite = ok
		} else {
			finite = finite.LogicalAnd(ok)
		}
	}
	if finite == nil {
		panic(misuse("LossScaler", loris.ErrArg, "all gradients are nil"))
	}
	o.step(plain, finite)
	grows := good.Ge(l.interval - 1)
	l.Scale.Assign(loris.Where(finite, loris.Where(grows, scale.Mul(l.growth), scale), scale.Mul(l.backoff)))
	l.Good.Assign(loris.Where(finite.LogicalAnd(grows.LogicalNot()), good.Add(1), good.ZerosLike()))
	return finite
}

// State yields the variables "scale" and "good".
func (l *LossScaler) State() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		_ = yield("scale", l.Scale) && yield("good", l.Good)
	}
}
