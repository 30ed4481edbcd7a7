package optim

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// LBFGS minimises a function of few to some million numbers whose gradient is exact, as a loss over a
// whole dataset is and that of a batch is not: by steps along an approximation of Newton's direction,
// which it makes of the last gradients, as torch.optim.LBFGS does. The numbers that decide where to go
// next are read after each evaluation, and it computes with them in f64 on the host. The zero value is
// ready to use; it must not be used by several goroutines at once.
type LBFGS struct {
	// Rate is the length of a step, or with StrongWolfe the first that is tried; 0 stands for 1. The
	// first step of all is shorter where the gradient is large.
	Rate float64
	// Iterations bounds the steps of a call of Minimize; 0 stands for 20.
	Iterations int
	// History is how many steps the approximation is made of; 0 stands for 100.
	History int
	// Gradient and Change end a call: where no element of the gradient is larger than the one, or a
	// step changes no number or not the loss by more than the other. 0 stands for 1e-7 and 1e-9.
	Gradient, Change float64
	// StrongWolfe looks for a length of each step that satisfies the strong Wolfe conditions, so that
	// the loss never increases. It takes some evaluations for a step.
	StrongWolfe bool

	steps     [][]float64 // of History: how the numbers changed, and with them the gradient
	changes   [][]float64
	scale     float64 // of the approximation of the inverse Hessian
	direction []float64
	before    []float64 // the gradient where the last step began
	length    float64   // of the last step
}

// Minimize changes the parameters, which are those of each call, until the loss that the function
// records is least or Iterations are done. It returns the loss there. Each evaluation ends a step
// of the parameters' session (loris.Session.MarkStep), so the loss is one compilation. An error leaves
// the parameters at the best values so far. A loss that is no number is an error, too.
func (o *LBFGS) Minimize(ctx context.Context, params iter.Seq2[string, *loris.Variable], loss func() *loris.Tensor) (float64, error) {
	if err := ir.CheckContext("lbfgs", ctx); err != nil {
		return 0, err
	}
	e := newEvaluator("LBFGS", params, loss)
	check("LBFGS", o.Rate >= 0 && o.Iterations >= 0 && o.History >= 0, "rate %v, iterations %d and history %d must not be negative", o.Rate, o.Iterations, o.History)
	x, err := e.values(ctx)
	if err != nil {
		return 0, err
	}
	check("LBFGS", o.before == nil || len(o.before) == len(x), "it has minimised a function of %d numbers, now there are %d", len(o.before), len(x))
	at, err := e.at(ctx, x)
	if err != nil {
		return 0, err
	}
	for range or(o.Iterations, 20) {
		if largest(at.gradient) <= or(o.Gradient, 1e-7) {
			break
		}
		o.update(at.gradient)
		slope := dot(at.gradient, o.direction)
		if slope > -or(o.Change, 1e-9) {
			break
		}
		next, err := o.step(ctx, e, at, slope)
		if err != nil {
			return at.loss, e.back(at, err)
		}
		change := min(o.length*largest(o.direction), math.Abs(next.loss-at.loss))
		if at = next; change <= or(o.Change, 1e-9) {
			break
		}
	}
	return at.loss, e.assign(ctx, at.x)
}

// or returns v, or the default where v is zero.
func or[T int | float64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// update notes the change of the gradient over the last step, and finds the next direction.
func (o *LBFGS) update(gradient []float64) {
	if o.before == nil {
		o.scale = 1
	} else {
		s, y := make([]float64, len(gradient)), make([]float64, len(gradient))
		for i, g := range gradient {
			s[i], y[i] = o.length*o.direction[i], g-o.before[i]
		}
		if curvature := dot(s, y); curvature > 1e-10 {
			if n := or(o.History, 100); len(o.steps) == n {
				o.steps, o.changes = o.steps[1:], o.changes[1:]
			}
			o.steps, o.changes = append(o.steps, s), append(o.changes, y)
			o.scale = curvature / dot(y, y)
		}
	}
	first := o.before == nil
	o.before = gradient
	o.direction = o.newton(gradient)
	if o.length = or(o.Rate, 1); first {
		sum := 0.0
		for _, g := range gradient {
			sum += math.Abs(g)
		}
		o.length *= min(1, 1/sum)
	}
}

// newton returns the gradient times the approximation of the inverse Hessian, negated: the two loops
// of the method.
func (o *LBFGS) newton(gradient []float64) []float64 {
	d := make([]float64, len(gradient))
	for i, g := range gradient {
		d[i] = -g
	}
	factors := make([]float64, len(o.steps))
	for k := len(o.steps) - 1; k >= 0; k-- {
		factors[k] = dot(o.steps[k], d) / dot(o.steps[k], o.changes[k])
		add(d, -factors[k], o.changes[k])
	}
	for i := range d {
		d[i] *= o.scale
	}
	for k := range o.steps {
		add(d, factors[k]-dot(o.changes[k], d)/dot(o.steps[k], o.changes[k]), o.steps[k])
	}
	return d
}

// point is an evaluation.
type point struct {
	x, gradient []float64
	loss        float64
}

// step goes along the direction from a point, whose slope there is given, and notes how far.
func (o *LBFGS) step(ctx context.Context, e *evaluator, from point, slope float64) (point, error) {
	along := func(length float64) (point, error) {
		x := append([]float64(nil), from.x...)
		add(x, length, o.direction)
		return e.at(ctx, x)
	}
	if !o.StrongWolfe {
		return along(o.length)
	}
	to, length, err := wolfe(along, from, slope, o.length, func(p point) float64 { return dot(p.gradient, o.direction) }, or(o.Change, 1e-9)/max(largest(o.direction), 1e-300))
	o.length = length
	return to, err
}

// evaluator computes a loss and its gradient for given values of parameters.
type evaluator struct {
	params []*loris.Variable
	loss   func() *loris.Tensor
}

func newEvaluator(name string, params iter.Seq2[string, *loris.Variable], loss func() *loris.Tensor) *evaluator {
	e := &evaluator{loss: loss}
	for n, v := range params {
		if !v.Shape().DType().IsFloat() {
			panic(misuse(name, loris.ErrDType, "parameter %q is %v, must be floating", n, v.Shape()))
		}
		e.params = append(e.params, v)
	}
	check(name, len(e.params) > 0, "there are no parameters")
	return e
}

// values reads all parameters.
func (e *evaluator) values(ctx context.Context) (x []float64, err error) {
	for _, v := range e.params {
		if x, err = appendElements(ctx, x, v.Value()); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func appendElements(ctx context.Context, x []float64, t *loris.Tensor) ([]float64, error) {
	e, err := t.Cast(loris.F64).Float64s(ctx)
	return append(x, e...), err
}

// assign gives the parameters values and ends the session's step.
func (e *evaluator) assign(ctx context.Context, x []float64) error {
	e.record(x)
	return e.params[0].Session().MarkStep(ctx)
}

func (e *evaluator) record(x []float64) {
	for _, v := range e.params {
		n := v.Shape().Numel()
		v.Assign(v.Session().With(loris.On(v.Value().Device())).FromSlice(x[:n], v.Shape().Dims()...).Cast(v.Shape().DType()))
		x = x[n:]
	}
}

// at evaluates the loss and the gradient at x, where it leaves the parameters.
func (e *evaluator) at(ctx context.Context, x []float64) (point, error) {
	p := point{x: x}
	e.record(x)
	t := e.loss()
	wrt := make([]any, len(e.params))
	for i, v := range e.params {
		wrt[i] = v
	}
	all := append([]*loris.Tensor{t}, loris.Grad(t, wrt...)...)
	loris.Keep(all...)
	if err := e.params[0].Session().MarkStep(ctx); err != nil {
		return p, err
	}
	numbers := make([]float64, 0, len(x)+1)
	for _, t := range all {
		var err error
		if numbers, err = appendElements(ctx, numbers, t); err != nil {
			return p, err
		}
	}
	if p.loss, p.gradient = numbers[0], numbers[1:]; math.IsNaN(p.loss) || math.IsInf(p.loss, 0) {
		return p, fmt.Errorf("optim: lbfgs: the loss is %v", p.loss)
	}
	return p, nil
}

// back puts the parameters back to a point after an error, whatever became of the context.
func (e *evaluator) back(p point, err error) error {
	_ = e.assign(context.Background(), p.x) // the first error says more
	return err
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// add adds f·y to x.
func add(x []float64, f float64, y []float64) {
	for i := range x {
		x[i] += f * y[i]
	}
}

func largest(x []float64) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most
}
