package optim

import (
	"math"

	"github.com/loris-ml/loris"
)

// Schedule is a learning rate as a function of the number of steps taken before, which is
// 0 at the first step.
type Schedule func(step int) float64

// Constant is the rate lr at all steps.
func Constant(lr float64) Schedule { return func(int) float64 { return lr } }

// StepDecay multiplies the rate by gamma after each size steps, as torch's
// StepLR.
func StepDecay(lr float64, size int, gamma float64) Schedule {
	atLeast("StepDecay", size, 1)
	return func(step int) float64 { return lr * math.Pow(gamma, float64(step/size)) }
}

// Linear changes the rate linearly from one value to another within the given steps and
// keeps it there, as torch's LinearLR.
func Linear(from, to float64, steps int) Schedule {
	atLeast("Linear", steps, 1)
	return func(step int) float64 {
		return from + (to-from)*float64(min(step, steps))/float64(steps)
	}
}

// Cosine lowers the rate from lr to low along half a cosine within the given steps, as
// torch's CosineAnnealingLR, and keeps it there.
func Cosine(lr, low float64, steps int) Schedule {
	atLeast("Cosine", steps, 1)
	return func(step int) float64 {
		return cosine(lr, low, float64(min(step, steps))/float64(steps))
	}
}

// cosine goes from one rate to another along half a cosine, at t from 0 to 1.
func cosine(from, to, t float64) float64 {
	return to + (from-to)*(1+math.Cos(math.Pi*t))/2
}

// Warmup puts steps before a schedule in which the rate grows linearly from start times
// the schedule's first rate to that rate. The schedule counts from the end of the warmup.
func Warmup(start float64, steps int, then Schedule) Schedule {
	atLeast("Warmup", steps, 1)
	rise := Linear(start*then(0), then(0), steps)
	return func(step int) float64 {
		if step < steps {
			return rise(step)
		}
		return then(step - steps)
	}
}

// OneCycle rises from peak/25 to peak within the first 30 % of the steps, and
// falls to peak/250000 until the last, both along half a cosine, as torch's
// OneCycleLR with its defaults. It needs at least 4 steps.
func OneCycle(peak float64, steps int) Schedule {
	atLeast("OneCycle", steps, 4)
	const initial, final = 25, 1e4
	top, end := 0.3*float64(steps)-1, float64(steps-1)
	return func(step int) float64 {
		s := math.Min(float64(step), end)
		if s <= top {
			return cosine(peak/initial, peak, s/top)
		}
		return cosine(peak, peak/initial/final, (s-top)/(end-top))
	}
}

func atLeast(schedule string, n, least int) {
	check(schedule, n >= least, "the number of steps is %d, must be at least %d", n, least)
}

// ClipGradNorm scales all gradients down so that their common norm is at most maxNorm, and
// returns them and the norm before, as torch.nn.utils.clip_grad_norm_. Nil gradients stay
// nil. The norm is marked Keep, so that it can be read after the step. Another bound never
// recompiles. Without gradients it panics with a *loris.OpError.
func ClipGradNorm(grads []*loris.Tensor, maxNorm float64) (clipped []*loris.Tensor, norm *loris.Tensor) {
	var sum *loris.Tensor
	for _, g := range grads {
		if g == nil {
			continue
		}
		w := widen(g)
		s := w.Mul(w).Sum()
		if sum != nil {
			s = sum.Add(s)
		}
		sum = s
	}
	if sum == nil {
		panic(misuse("ClipGradNorm", loris.ErrArg, "there are no gradients"))
	}
	norm = sum.Sqrt().Keep()
	scale := loris.Div(maxNorm, norm.Add(1e-6)).Minimum(1)
	return each(grads, func(g *loris.Tensor) *loris.Tensor { return g.Mul(scale) }), norm
}

// widen converts f16, whose squares overflow easily, and bf16, whose sums round, to f32.
func widen(g *loris.Tensor) *loris.Tensor {
	if d := g.DType(); d == loris.F16 || d == loris.BF16 {
		return g.Cast(loris.F32)
	}
	return g
}

// ClipGradValue limits every element of the gradients to [-bound, bound], as
// torch.nn.utils.clip_grad_value_. Nil gradients stay nil. Another bound never
// recompiles.
func ClipGradValue(grads []*loris.Tensor, bound float64) []*loris.Tensor {
	return each(grads, func(g *loris.Tensor) *loris.Tensor { return g.Maximum(-bound).Minimum(bound) })
}

func each(grads []*loris.Tensor, f func(*loris.Tensor) *loris.Tensor) []*loris.Tensor {
	out := make([]*loris.Tensor, len(grads))
	for i, g := range grads {
		if g != nil {
			out[i] = f(g)
		}
	}
	return out
}
