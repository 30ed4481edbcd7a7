package optim

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
)

// newSession returns a session on the default device that the test closes.
func newSession(t testing.TB, opts ...loris.SessionOption) *loris.Session {
	t.Helper()
	s, err := loris.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// goldens is the file that scripts/make_optim_goldens.py writes.
type goldens struct {
	t testing.TB
	f *safetensors.File
}

func openGoldens(t testing.TB) goldens {
	t.Helper()
	f, err := safetensors.Open("testdata/optim.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return goldens{t, f}
}

// get returns a tensor's elements and dimensions.
func (g goldens) get(name string) ([]float64, []int) {
	g.t.Helper()
	x := g.tensor(loris.Default(), loris.F64, name)
	return floats(g.t, x), x.Shape().Dims()
}

func (g goldens) tensor(s *loris.Session, d loris.DType, name string) *loris.Tensor {
	g.t.Helper()
	shape, b, err := tensorfile.Read(g.f, name)
	if err != nil {
		g.t.Fatal(err)
	}
	return s.With().FromBytes(b, shape).Cast(d)
}

// regression is the problem of the goldens.
type regression struct {
	s    *loris.Session
	x, y *loris.Tensor
	w, b *loris.Variable
}

func newRegression(t testing.TB, s *loris.Session, d loris.DType) *regression {
	t.Helper()
	g := openGoldens(t)
	r := &regression{s: s, x: g.tensor(s, d, "x"), y: g.tensor(s, d, "y"),
		w: loris.NewVariable(g.tensor(s, d, "w")), b: loris.NewVariable(g.tensor(s, d, "b"))}
	if err := s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *regression) params() iter.Seq2[string, *loris.Variable] {
	return func(yield func(string, *loris.Variable) bool) {
		_ = yield("w", r.w) && yield("b", r.b)
	}
}

func (r *regression) loss() *loris.Tensor {
	return r.x.MatMul(r.w.Value()).Add(r.b.Value()).MseLoss(r.y)
}

func (r *regression) step(t testing.TB, opt *Optimizer) {
	t.Helper()
	opt.Minimize(r.loss())
	if err := r.s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func floats(t testing.TB, x *loris.Tensor) []float64 {
	t.Helper()
	v, err := x.Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// near compares with a bound on the error relative to max(1, |want|).
func near(t testing.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*math.Max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

var algorithms = []struct {
	name string
	make func(p iter.Seq2[string, *loris.Variable], opts ...Option) *Optimizer
}{
	{"sgd", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewSGD(p, 0.05, o...) }},
	{"sgd_decay", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewSGD(p, 0.05, append(o, WeightDecay(0.1))...)
	}},
	{"sgd_momentum", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewSGD(p, 0.05, append(o, Momentum(0.9))...)
	}},
	{"sgd_dampening", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewSGD(p, 0.05, append(o, Momentum(0.9), Dampening(0.3), WeightDecay(0.01))...)
	}},
	{"sgd_nesterov", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewSGD(p, 0.05, append(o, Momentum(0.8), Nesterov(), WeightDecay(0.01))...)
	}},
	{"sgd_maximize", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewSGD(p, 0.01, append(o, Momentum(0.5), Maximize())...)
	}},
	{"adam", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewAdam(p, 0.1, o...) }},
	{"adam_decay", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewAdam(p, 0.1, append(o, Betas(0.8, 0.95), Eps(1e-3), WeightDecay(0.1))...)
	}},
	{"adam_amsgrad", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewAdam(p, 0.3, append(o, Betas(0.4, 0.5), AMSGrad())...)
	}},
	{"adamw", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewAdamW(p, 0.1, o...) }},
	{"adamw_decay", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewAdamW(p, 0.1, append(o, Betas(0.7, 0.9), WeightDecay(0.3))...)
	}},
	{"adamw_amsgrad", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewAdamW(p, 0.3, append(o, Betas(0.4, 0.5), AMSGrad())...)
	}},
	{"rmsprop", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewRMSprop(p, 0.01, o...) }},
	{"rmsprop_centered", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewRMSprop(p, 0.01, append(o, Alpha(0.9), Eps(1e-4), WeightDecay(0.1), Momentum(0.5), Centered())...)
	}},
	{"adagrad", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewAdagrad(p, 0.1, o...) }},
	{"adagrad_decay", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewAdagrad(p, 0.1, append(o, LRDecay(0.1), WeightDecay(0.1), Eps(1e-3))...)
	}},
	{"lion", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewLion(p, 0.02, o...) }},
	{"lion_decay", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewLion(p, 0.02, append(o, Betas(0.8, 0.9), WeightDecay(0.1))...)
	}},
	{"adafactor", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer { return NewAdafactor(p, 0.1, o...) }},
	{"adafactor_decay", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		return NewAdafactor(p, 0.5, append(o, Beta2Decay(-0.5), ClipUpdate(1.5), Eps2(1e-4, 1e-2), WeightDecay(0.1))...)
	}},
	{"groups", func(p iter.Seq2[string, *loris.Variable], o ...Option) *Optimizer {
		is := func(want string) func(string, *loris.Variable) bool {
			return func(name string, _ *loris.Variable) bool { return name == want }
		}
		return NewAdamW(p, 0.1, append(o, WeightDecay(0), Group(is("w"), WeightDecay(0.2)), Group(is("b"), LRScale(0.25)))...)
	}},
}

func TestTrajectories(t *testing.T) {
	g := openGoldens(t)
	for _, a := range algorithms {
		for _, d := range []struct {
			dtype  loris.DType
			prefix string
			tol    float64
		}{{loris.F32, a.name, 2e-6}, {loris.F64, a.name + "/f64", 1e-14}} {
			t.Run(d.prefix, func(t *testing.T) {
				r := newRegression(t, newSession(t), d.dtype)
				follow(t, g, d.prefix, d.tol, r, a.make(r.params()))
			})
		}
	}
}

// follow trains and compares the parameters at every step.
func follow(t *testing.T, g goldens, prefix string, tol float64, r *regression, opt *Optimizer) {
	t.Helper()
	w, dims := g.get(prefix + "/w")
	b, _ := g.get(prefix + "/b")
	nw, nb := len(w)/dims[0], len(b)/dims[0]
	for i := range dims[0] {
		near(t, "w", floats(t, r.w.Value()), w[i*nw:(i+1)*nw], tol)
		near(t, "b", floats(t, r.b.Value()), b[i*nb:(i+1)*nb], tol)
		r.step(t, opt)
	}
}

func TestScheduledTrajectory(t *testing.T) {
	r := newRegression(t, newSession(t), loris.F32)
	opt := NewSGD(r.params(), 1, Momentum(0.9))
	opt.SetSchedule(Cosine(0.05, 0, 10))
	follow(t, openGoldens(t), "sgd_cosine", 2e-6, r, opt)
}

// A step is compiled once, whatever its numbers become: rates, and Adam's bias
// corrections, which with small betas reach exactly 1 within these steps.
func TestOneCompile(t *testing.T) {
	for _, a := range []struct {
		name string
		make func(r *regression) *Optimizer
	}{
		{"adam", func(r *regression) *Optimizer { return NewAdam(r.params(), 0.1, Betas(0.1, 0.2), WeightDecay(0.1)) }},
		{"adamw", func(r *regression) *Optimizer { return NewAdamW(r.params(), 0.1, Betas(0.1, 0.2), AMSGrad()) }},
		{"sgd", func(r *regression) *Optimizer { return NewSGD(r.params(), 0.1, Momentum(0.9), Dampening(0.5)) }},
	} {
		t.Run(a.name, func(t *testing.T) {
			s := newSession(t)
			r := newRegression(t, s, loris.F32)
			opt := a.make(r)
			if err := s.MarkStep(t.Context()); err != nil { // the zeros of the state
				t.Fatal(err)
			}
			before := s.Report().Compiles
			for i := range 50 {
				switch i {
				case 10:
					opt.SetLR(0.01)
				case 20:
					opt.SetLR(0)
				case 30:
					opt.SetSchedule(Warmup(0.1, 33, Cosine(0.1, 0, 10)))
				}
				r.step(t, opt)
			}
			if n := s.Report().Compiles - before; n != 1 {
				t.Errorf("%d compilations in 50 steps, want 1: %+v", n, s.Report().Recent)
			}
			if opt.Steps() != 50 {
				t.Errorf("%d steps", opt.Steps())
			}
		})
	}
}

// Captured optimisers take the same steps with their numbers in the graph.
func TestCaptured(t *testing.T) {
	g := openGoldens(t)
	for _, a := range algorithms {
		t.Run(a.name, func(t *testing.T) {
			r := newRegression(t, newSession(t), loris.F32)
			follow(t, g, a.name, 2e-6, r, a.make(r.params(), Captured()))
		})
	}
}

// A compiled training step records once; its numbers move on all the same.
func TestCapturedInCompile(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	r := newRegression(t, s, loris.F32)
	opt := NewAdam(r.params(), 0.1, Captured())
	compiled := loris.Compile(func(in ...*loris.Tensor) []*loris.Tensor {
		loss := in[0].MatMul(r.w.Value()).Add(r.b.Value()).MseLoss(in[1])
		opt.Minimize(loss)
		return []*loris.Tensor{loss}
	})
	step := func(ctx context.Context) error {
		_, err := compiled.Call(ctx, r.x, r.y)
		return err
	}
	w, dims := openGoldens(t).get("adam/w")
	n := len(w) / dims[0]
	for i := range dims[0] {
		near(t, "w", floats(t, r.w.Value()), w[i*n:(i+1)*n], 2e-6)
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	before := floats(t, r.w.Value())
	opt.SetLR(0)
	if err := step(ctx); err != nil {
		t.Fatal(err)
	}
	near(t, "w at rate 0", floats(t, r.w.Value()), before, 0)
	if n := s.Report().Compiles; n > 3 { // the data, the zeros of the state, the step
		t.Errorf("%d compilations", n)
	}
}

func TestClip(t *testing.T) {
	g := openGoldens(t)
	s := newSession(t)
	grads := []*loris.Tensor{g.tensor(s, loris.F32, "clip/0"), nil, g.tensor(s, loris.F32, "clip/1")}
	compare := func(name string, got []*loris.Tensor) {
		t.Helper()
		if got[1] != nil {
			t.Errorf("%s: a nil gradient became %v", name, got[1].Shape())
		}
		for i, at := range []int{0, 2} {
			want, _ := g.get("clip/" + name + "/" + string(rune('0'+i)))
			near(t, name, floats(t, got[at]), want, 1e-6)
		}
	}
	for name, bound := range map[string]float64{"norm": 0.5, "loose": 50} {
		got, norm := ClipGradNorm(grads, bound)
		compare(name, got)
		want, _ := g.get("clip/" + name + "/total")
		near(t, name, floats(t, norm), want, 1e-6)
	}
	_, norm := ClipGradNorm(grads, 1)
	if err := s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if norm.Pending() {
		t.Error("the norm is not kept: reading it after the step would run the step again")
	}
	compare("value", ClipGradValue(grads, 0.4))
	half := loris.BF16FromSlice([]float32{3, 4})
	got, norm := ClipGradNorm([]*loris.Tensor{half}, 1)
	near(t, "norm of bf16", floats(t, norm), []float64{5}, 1e-6)
	if d := got[0].DType(); d != loris.BF16 {
		t.Errorf("a clipped bf16 gradient is %v", d)
	}
}

func TestSchedules(t *testing.T) {
	g := openGoldens(t)
	for name, s := range map[string]Schedule{
		"step":          StepDecay(0.2, 4, 0.5),
		"cosine":        Cosine(0.2, 0.01, 10),
		"linear":        Linear(0.05, 0.2, 6),
		"warmup_cosine": Warmup(0.25, 3, Cosine(0.2, 0, 10)),
		"one_cycle":     OneCycle(0.2, 20),
	} {
		want, _ := g.get("lr/" + name)
		got := make([]float64, len(want))
		for i := range got {
			got[i] = s(i)
		}
		near(t, name, got, want, 1e-12)
	}
	for name, c := range map[string]struct {
		s    Schedule
		want float64
	}{
		"constant": {Constant(0.3), 0.3}, "linear": {Linear(1, 2, 5), 2},
		"cosine": {Cosine(1, 0.5, 5), 0.5}, "one_cycle": {OneCycle(0.2, 20), 0.2 / 25 / 1e4},
	} {
		near(t, name+" beyond its end", []float64{c.s(1000)}, []float64{c.want}, 1e-15)
	}
}

func TestHalfParameters(t *testing.T) {
	s := newSession(t)
	w := loris.NewVariable(s.With(loris.As(loris.BF16)).FromSlice([]float32{1, -2, 0}))
	opt := NewAdam(func(yield func(string, *loris.Variable) bool) { yield("w", w) }, 0.5)
	for range 2 {
		opt.Step([]*loris.Tensor{s.With(loris.As(loris.BF16)).FromSlice([]float32{1, 1, 0})})
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	near(t, "w", floats(t, w.Value()), []float64{0, -3, 0}, 1e-2)
	for name, v := range opt.State() {
		if v.Shape().DType() != loris.F32 {
			t.Errorf("%s is %v", name, v.Shape())
		}
	}
}

func TestNilGradientsAndDecay(t *testing.T) {
	s := newSession(t)
	r := newRegression(t, s, loris.F64)
	opt := NewSGD(r.params(), 0.5, WeightDecay(0.5), DecayOnly(func(name string, v *loris.Variable) bool {
		return v.Shape().Rank() > 1
	}))
	w, b := floats(t, r.w.Value()), floats(t, r.b.Value())
	opt.Step([]*loris.Tensor{r.w.Value().ZerosLike(), r.b.Value().ZerosLike()})
	near(t, "b without decay", floats(t, r.b.Value()), b, 0)
	for i := range w {
		w[i] *= 0.75
	}
	near(t, "w with decay", floats(t, r.w.Value()), w, 1e-15)
	opt.Step([]*loris.Tensor{nil, r.b.Value()})
	near(t, "w with nil", floats(t, r.w.Value()), w, 0)
	near(t, "b", floats(t, r.b.Value()), []float64{b[0] / 2, b[1] / 2}, 1e-15)
}

func TestMisuse(t *testing.T) {
	s := newSession(t)
	r := newRegression(t, s, loris.F32)
	opt := NewSGD(r.params(), 0.1)
	ints := loris.NewVariable(s.With().FromSlice([]int64{1}))
	for _, c := range []struct {
		name string
		do   func()
		kind error
		says string
	}{
		{"option", func() { NewSGD(r.params(), 0.1, AMSGrad()) }, loris.ErrArg, "AMSGrad"},
		{"rate", func() { NewAdam(r.params(), -1) }, loris.ErrArg, "rate is -1"},
		{"beta", func() { NewAdam(r.params(), 1, Betas(1, 0)) }, loris.ErrArg, "beta is 1"},
		{"nesterov", func() { NewSGD(r.params(), 1, Nesterov()) }, loris.ErrArg, "Nesterov"},
		{"empty", func() { NewSGD(func(func(string, *loris.Variable) bool) {}, 1) }, loris.ErrArg, "no parameters"},
		{"dtype", func() { NewSGD(func(y func(string, *loris.Variable) bool) { y("n", ints) }, 1) }, loris.ErrDType, `"n"`},
		{"count", func() { opt.Step(nil) }, loris.ErrArg, "0 gradients"},
		{"shape", func() { opt.Step([]*loris.Tensor{r.b.Value(), r.b.Value()}) }, loris.ErrShape, `"w"`},
		{"steps", func() { Cosine(1, 0, 0) }, loris.ErrArg, "Cosine"},
		{"clip", func() { ClipGradNorm([]*loris.Tensor{nil}, 1) }, loris.ErrArg, "no gradients"},
	} {
		err := loris.Try(c.do)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if opt.Steps() != 0 {
		t.Errorf("a refused step was counted")
	}
}
