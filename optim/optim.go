package optim

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tracing"
)

// Optimizer updates parameters by their gradients. Its state consists of variables, the
// number of steps taken and the rate. It must not be used by several goroutines at once.
type Optimizer struct {
	algorithm string
	groups    []group // the last is of parameters that no Group has
	params    []param
	batches   []batch // of all params
	maximize  bool
	steps     atomic.Int64 // a step whose work fails takes its own back, on another goroutine
	inTrace   int64        // steps recorded by the function that is being compiled
	trace     uint64       // and the number of its trace
	lr        float64
	schedule  Schedule
	// Both are nil unless the optimiser is captured (Captured).
	stepVar, lrVar *loris.Variable
}

// param is a parameter with its state.
type param struct {
	name  string
	v     *loris.Variable
	group int
	decay bool
	names []string // of slots
	slots []*loris.Variable
	// master says that the last slot is the f32 value of a narrow parameter.
	master bool
}

// rule is the formula of an algorithm.
type rule interface {
	// slots describes the state of a parameter of the given dimensions. All of it is zero at
	// first.
	slots(dims []int) []slot
	// factors returns the numbers that update uses at a step, counted from 1.
	factors(lr float64, step int64) []any
	// captured is factors for a rate and a step that are f64 tensors of rank 0.
	captured(lr, step *loris.Tensor) []any
	// update records a parameter's next value and state from its value, gradient
	// and state; decay says whether weight decay applies.
	update(p, g *loris.Tensor, decay bool, state, f []*loris.Tensor) (*loris.Tensor, []*loris.Tensor)
}

// slot is a part of a parameter's state.
type slot struct {
	name string
	dims []int
}

// likeParam are slots of the parameter's dimensions.
func likeParam(dims []int, names ...string) []slot {
	out := make([]slot, len(names))
	for i, n := range names {
		out[i] = slot{n, dims}
	}
	return out
}

// Option sets up an Optimizer. Each constructor says which it takes; another one
// panics with a *loris.OpError.
type Option struct {
	name string
	set  func(*config)
}

type config struct {
	momentum, dampening float64
	beta1, beta2, eps   float64
	decay               float64
	decays              func(name string, v *loris.Variable) bool
	nesterov, amsgrad   bool
	maximize, captured  bool
	alpha, lrDecay      float64
	centered            bool
	beta2Decay, clip    float64
	eps1, eps2          float64
	master              bool
	scale               float64 // of the rate
	groups              []groupOption
}

// Momentum is the factor of the moving sum of gradients. The default is 0: none.
func Momentum(v float64) Option { return Option{"Momentum", func(c *config) { c.momentum = v }} }

// Dampening reduces what a gradient adds to the moving sum, except the first:
// the factor is 1-v. The default is 0.
func Dampening(v float64) Option { return Option{"Dampening", func(c *config) { c.dampening = v }} }

// Nesterov uses Nesterov's momentum. It needs a momentum and no dampening.
func Nesterov() Option { return Option{"Nesterov", func(c *config) { c.nesterov = true }} }

// Betas are the factors of the moving averages of the gradient and its square.
// The defaults are 0.9 and 0.999.
func Betas(beta1, beta2 float64) Option {
	return Option{"Betas", func(c *config) { c.beta1, c.beta2 = beta1, beta2 }}
}

// Eps is added to the denominator. The default is 1e-8.
func Eps(v float64) Option { return Option{"Eps", func(c *config) { c.eps = v }} }

// AMSGrad divides by the largest average of squares so far.
func AMSGrad() Option { return Option{"AMSGrad", func(c *config) { c.amsgrad = true }} }

// WeightDecay shrinks parameters: by a penalty added to the gradient in SGD and Adam,
// directly in AdamW. The default is 0, in AdamW 0.01.
func WeightDecay(v float64) Option { return Option{"WeightDecay", func(c *config) { c.decay = v }} }

// DecayOnly restricts weight decay to the parameters for which f is true, such as
// those with more than one dimension.
func DecayOnly(f func(name string, v *loris.Variable) bool) Option {
	return Option{"DecayOnly", func(c *config) { c.decays = f }}
}

// Maximize makes the optimiser maximise the loss instead of minimising it.
func Maximize() Option { return Option{"Maximize", func(c *config) { c.maximize = true }} }

// Captured keeps the number of steps and the rate, unless that is a schedule's, in variables of
// the State, and computes the bias corrections in the graph. They may differ in the last places
// from those of an ordinary optimiser, whose numbers are computed in Go.
func Captured() Option { return Option{"Captured", func(c *config) { c.captured = true }} }

// misuse is the error of a mistake in using an optimiser.
func misuse(op string, kind error, format string, args ...any) error {
	return ir.NewOpError("optim."+op, kind, nil, format, args...)
}

// newConfig applies the options to an algorithm, which takes those named and some that
// all algorithms take.
func newConfig(algorithm string, def config, opts []Option, names ...string) *config {
	names = append(names, "WeightDecay", "DecayOnly", "Maximize", "Captured", "Group", "MasterWeights")
	for _, o := range opts {
		if !slices.Contains(names, o.name) {
			panic(misuse(algorithm, loris.ErrArg, "there is no option %s", o.name))
		}
		o.set(&def)
	}
	return &def
}

// check panics unless ok.
func check(algorithm string, ok bool, format string, args ...any) {
	if !ok {
		panic(misuse(algorithm, loris.ErrArg, format, args...))
	}
}

// newOptimizer records the state of the parameters, zeros at first. The state of f16 and
// bf16 parameters is f32.
func newOptimizer(algorithm string, r func(c config) rule, params iter.Seq2[string, *loris.Variable], lr float64, c *config) *Optimizer {
	check(algorithm, lr >= 0, "the rate is %v, must not be negative", lr)
	o := &Optimizer{algorithm: algorithm, groups: c.makeGroups(algorithm, r), lr: lr, maximize: c.maximize}
	for name, v := range params {
		if !v.Shape().DType().IsFloat() {
			panic(misuse(algorithm, loris.ErrDType, "parameter %q is %v, must be floating", name, v.Shape()))
		}
		p := param{name: name, v: v, group: c.groupOf(name, v)}
		g := &o.groups[p.group]
		p.decay = g.decay != 0 && (c.decays == nil || c.decays(name, v))
		m := v.Session().With(loris.On(v.Value().Device()), loris.As(computeDType(v)))
		add := func(name string, t *loris.Tensor) {
			p.names, p.slots = append(p.names, name), append(p.slots, loris.NewVariable(t))
		}
		for _, sl := range g.rule.slots(v.Shape().Dims()) {
			add(sl.name, m.Zeros(sl.dims...).Discard())
		}
		master := c.master && v.Shape().DType() != computeDType(v)
		if master {
			add("master", v.Value().Cast(computeDType(v)).Discard())
		}
		p.master = master
		o.params = append(o.params, p)
	}
	check(algorithm, len(o.params) > 0, "there are no parameters")
	o.batches = batchesOf(o.params)
	if c.captured {
		s := o.params[0].v.Session()
		o.stepVar = loris.NewVariable(scalar(s, loris.I64, 0))
		o.lrVar = loris.NewVariable(scalar(s, loris.F64, math.Float64bits(lr)))
	}
	return o
}

// scalar returns data of rank 0 with the given bits.
func scalar(s *loris.Session, d loris.DType, bits uint64) *loris.Tensor {
	return s.With().FromBytes(binary.LittleEndian.AppendUint64(nil, bits), loris.MakeShape(d))
}

// computeDType is the dtype in which a parameter's update is computed.
func computeDType(v *loris.Variable) loris.DType {
	switch d := v.Shape().DType(); d {
	case loris.F16, loris.BF16:
		return loris.F32
	default:
		return d
	}
}

// Grads records the gradients of a loss with respect to the parameters, in
// order, for Step.
func (o *Optimizer) Grads(loss *loris.Tensor) []*loris.Tensor {
	wrt := make([]any, len(o.params))
	for i, p := range o.params {
		wrt[i] = p.v
	}
	return loris.Grad(loss, wrt...)
}

// Minimize records the gradients of a loss and a step along them.
func (o *Optimizer) Minimize(loss *loris.Tensor) { o.Step(o.Grads(loss)) }

// Step records an update of the parameters and of the state by the gradients, one for each
// parameter in order; a parameter with a nil gradient is not updated. From here on the
// parameters have their next values, which the next MarkStep computes. A recorded step is
// counted even if loris.Session.Step drops it because of an error. Gradients that do not
// fit panic with a *loris.OpError.
func (o *Optimizer) Step(grads []*loris.Tensor) { o.step(grads, nil) }

// step is Step that keeps everything as it is where ok, unless it is nil, is false.
func (o *Optimizer) step(grads []*loris.Tensor, ok *loris.Tensor) {
	if len(grads) != len(o.params) {
		panic(misuse("step", loris.ErrArg, "%d gradients are given for %d parameters", len(grads), len(o.params)))
	}
	for i, g := range grads {
		if p := o.params[i]; g != nil && !g.Shape().SameDims(p.v.Shape()) {
			panic(misuse("step", loris.ErrShape, "the gradient of %q is %v, the parameter %v", p.name, g.Shape(), p.v.Shape()))
		}
	}
	f := o.factors(o.session(grads), ok)
	for i := range o.batches {
		o.batches[i].update(o, grads, f, ok)
	}
}

// session returns the session that the gradients, or without any the parameters, belong to.
func (o *Optimizer) session(grads []*loris.Tensor) *loris.Session {
	for _, g := range grads {
		if g != nil {
			return g.Session()
		}
	}
	return o.params[0].v.Session()
}

// factorsOf returns the numbers of a step for a group as tensors for a device and of a dtype, in a session: one of
// rank 0 for each, or one that has all.
type factorsOf func(of numbersFor) []*loris.Tensor

// numbersFor says for whom the numbers of a step are.
type numbersFor struct {
	s      *loris.Session
	group  int
	device loris.Device
	dtype  loris.DType
}

// factors counts the step and returns the numbers that the rules use in it. Each is one
// parameter of the graph, however many updates use it.
func (o *Optimizer) factors(session *loris.Session, ok *loris.Tensor) factorsOf {
	numbers := make([][]any, len(o.groups))
	count := func() { o.steps.Add(1) }
	trace := session.OnCall(count, func() { o.steps.Add(-1) })
	if trace != o.trace {
		o.trace, o.inTrace = trace, 0
	}
	switch {
	case o.stepVar != nil:
		was := o.stepVar.ValueIn(session)
		step := was.Add(1)
		o.stepVar.Assign(either(ok, step, was))
		rate, at := o.rate(session), step.Cast(loris.F64)
		for i, g := range o.groups {
			lr := rate
			if g.scale != 1 {
				lr = rate.Mul(g.scale)
			}
			numbers[i] = g.rule.captured(lr, at)
		}
	case trace != 0:
		return o.hostFactors()
	default:
		for i, g := range o.groups {
			numbers[i] = g.rule.factors(o.LR()*g.scale, o.steps.Load()+1)
		}
	}
	if trace == 0 {
		count()
	} else {
		o.inTrace++
	}
	return memoised(func(of numbersFor) []*loris.Tensor {
		if o.stepVar == nil {
			return []*loris.Tensor{of.together(numbers[of.group])}
		}
		f := make([]*loris.Tensor, len(numbers[of.group]))
		for i, n := range numbers[of.group] {
			if t, ok := n.(*loris.Tensor); ok {
				f[i] = cast(t, of.dtype)
			} else {
				f[i] = of.s.With(loris.As(of.dtype)).Scalar(n)
			}
		}
		return f
	})
}

// together returns a tensor of numbers, which are float64: one that is new in each step takes less than as many
// scalars.
func (of numbersFor) together(numbers []any) *loris.Tensor {
	m := of.s.With(loris.On(of.device))
	if of.dtype == loris.F64 {
		v := make([]float64, len(numbers))
		for i, n := range numbers {
			v[i] = n.(float64)
		}
		return m.FromSlice(v)
	}
	v := make([]float32, len(numbers))
	for i, n := range numbers {
		v[i] = float32(n.(float64))
	}
	return m.FromSlice(v)
}

// memoised makes the tensors for each once.
func memoised(make factorsOf) factorsOf {
	made := map[numbersFor][]*loris.Tensor{}
	return func(of numbersFor) []*loris.Tensor {
		if made[of] == nil {
			made[of] = make(of)
		}
		return made[of]
	}
}

// hostFactors is factors in a function that is being compiled: each call asks the rule for the
// numbers of its step.
func (o *Optimizer) hostFactors() factorsOf {
	before := o.inTrace // steps that the function takes before this one
	o.inTrace++
	return memoised(func(of numbersFor) []*loris.Tensor {
		g := o.groups[of.group]
		numbers := func() []any {
			steps := o.steps.Load() + before
			return g.rule.factors(o.rateAt(steps)*g.scale, steps+1)
		}
		f := make([]*loris.Tensor, len(numbers()))
		for i := range f {
			f[i] = of.s.With(loris.As(of.dtype)).ScalarFunc(func() float64 { return numbers()[i].(float64) })
		}
		return f
	})
}

// rate is the rate of a captured optimiser's step as an f64 tensor.
func (o *Optimizer) rate(s *loris.Session) *loris.Tensor {
	if !loris.Guard(func() bool { return o.schedule != nil }) {
		return o.lrVar.ValueIn(s)
	}
	before := o.inTrace
	return s.With(loris.As(loris.F64)).ScalarFunc(func() float64 { return o.rateAt(o.steps.Load() + before) })
}

// rateAt is the rate after the given number of steps.
func (o *Optimizer) rateAt(steps int64) float64 {
	if o.schedule != nil {
		return o.schedule(int(steps))
	}
	return o.lr
}

// LR returns the rate of the next step: that of the schedule if there is one, otherwise that of
// the last SetLR.
func (o *Optimizer) LR() float64 { return o.rateAt(o.steps.Load()) }

// SetLR sets the rate from the next step on and removes the schedule. Inside a function given to
// loris.Compile it panics with a *loris.OpError: call it between calls, or set a schedule.
func (o *Optimizer) SetLR(lr float64) {
	check(o.algorithm, !tracing.Inside(), "SetLR inside a function that is being compiled, which runs once for all calls")
	check(o.algorithm, lr >= 0, "the rate is %v, must not be negative", lr)
	o.lr, o.schedule = lr, nil
	if o.lrVar != nil {
		o.lrVar.Assign(scalar(o.lrVar.Session(), loris.F64, math.Float64bits(lr)))
	}
}

// SetSchedule makes the rate a function of the number of steps taken before. Inside a function
// given to loris.Compile it panics as SetLR does.
func (o *Optimizer) SetSchedule(s Schedule) {
	check(o.algorithm, !tracing.Inside(), "SetSchedule inside a function that is being compiled, which runs once for all calls")
	o.schedule = s
}

// Steps returns the number of steps that were recorded, or scheduled by calls of a function given
// to loris.Compile.
func (o *Optimizer) Steps() int64 { return o.steps.Load() }

// Elementwise reports whether each element's next value depends on its own value, gradient and state alone, so
// that parts of parameters can be updated by themselves.
func (o *Optimizer) Elementwise() bool { return o.algorithm != "Adafactor" }

// Params yields the parameters with their names, in the order of the gradients.
func (o *Optimizer) Params() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		for _, p := range o.params {
			if !yield(p.name, p.v) {
				return
			}
		}
	}
}

// State yields the variables of the state: for a captured optimiser first "step" and "lr",
// then for each parameter those of PyTorch's optimiser, such as "0.weight.exp_avg".
func (o *Optimizer) State() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		if o.stepVar != nil && (!yield("step", o.stepVar) || !yield("lr", o.lrVar)) {
			return
		}
		for _, p := range o.params {
			for i, v := range p.slots {
				if !yield(p.name+"."+p.names[i], v) {
					return
				}
			}
		}
	}
}
