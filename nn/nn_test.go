package nn

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

func names(m Module) (params, buffers []string) {
	for n := range m.Params() {
		params = append(params, n)
	}
	for n := range m.Buffers() {
		buffers = append(buffers, n)
	}
	return params, buffers
}

// block is a module of one's own with a shared variable.
type block struct {
	Base
	fc *Linear
}

func TestNames(t *testing.T) {
	s := newSession(t)
	w := With(s.With())
	b := &block{fc: NewLinear(2, 3, w)}
	b.Add("fc", b.fc)
	b.Add("seq", NewSequential(NewBatchNorm1d(3, w), Func(Tanh), NewMultiheadAttention(4, 2, w), NewSequential(NewLinear(1, 1, w, NoBias()))))
	tied := b.Param("tied", b.fc.Weight)
	b.Buffer("steps", loris.NewVariable(s.With(loris.As(loris.I64)).Zeros()))
	params, buffers := names(b)
	if want := []string{"fc.weight", "fc.bias", "seq.0.weight", "seq.0.bias", "seq.2.in_proj_weight", "seq.2.in_proj_bias",
		"seq.2.out_proj.weight", "seq.2.out_proj.bias", "seq.3.0.weight"}; !reflect.DeepEqual(params, want) {
		t.Errorf("parameters %q, want %q", params, want)
	}
	if want := []string{"seq.0.running_mean", "seq.0.running_var", "seq.0.num_batches_tracked", "steps"}; !reflect.DeepEqual(buffers, want) {
		t.Errorf("buffers %q, want %q", buffers, want)
	}
	if tied != b.fc.Weight {
		t.Error("Param returned another variable")
	}
	if n := NumParams(b); n != 6+3+3+3+48+12+16+4+1 {
		t.Errorf("%d elements", n)
	}
	for n := range b.Params() { // stops when told to, also inside modules
		if n == "seq.0.weight" {
			break
		}
	}
}

func TestMisuse(t *testing.T) {
	s := newSession(t)
	w := With(s.With())
	x := s.With().Zeros(2, 3)
	base := &Base{}
	base.Add("a", Func(ReLU))
	for name, c := range map[string]struct {
		do   func()
		kind error
		says string
	}{
		"option":      {func() { NewLinear(1, 1, w, Groups(2)) }, loris.ErrArg, "no option Groups"},
		"size":        {func() { NewLinear(0, 1, w) }, loris.ErrArg, "a size is 0"},
		"groups":      {func() { NewConv2d(3, 4, 1, w, Groups(2)) }, loris.ErrArg, "3 and 4 channels"},
		"stride":      {func() { NewConv2d(3, 4, 1, w, Stride(1, 1, 1)) }, loris.ErrArg, "1 or 2 numbers"},
		"padding row": {func() { NewEmbedding(2, 1, w, PaddingIdx(2)) }, loris.ErrArg, "PaddingIdx 2"},
		"norm":        {func() { NewLayerNorm(nil, w) }, loris.ErrArg, "no dimensions"},
		"norm groups": {func() { NewGroupNorm(2, 3, w) }, loris.ErrArg, "3 channels"},
		"heads":       {func() { NewMultiheadAttention(8, 3, w) }, loris.ErrArg, "3 heads"},
		"kv heads":    {func() { NewMultiheadAttention(8, 4, w, KVHeads(3)) }, loris.ErrArg, "3 groups"},
		"dropout":     {func() { NewDropout(1.5) }, loris.ErrArg, "p is 1.5"},
		"batch rank":  {func() { NewBatchNorm2d(3, w).Forward(x) }, loris.ErrShape, "number of dimensions"},
		"batch of 1":  {func() { NewBatchNorm1d(3, w).Forward(s.With().Zeros(1, 3)) }, loris.ErrShape, "more than one"},
		"input":       {func() { NewLinear(4, 1, w).Forward(x) }, loris.ErrShape, "linear"},
		"name":        {func() { base.Add("a", Func(ReLU)) }, loris.ErrArg, `"a" is used`},
		"dot":         {func() { base.Add("a.b", Func(ReLU)) }, loris.ErrArg, "has a dot"},
		"nil":         {func() { base.Param("p", nil) }, loris.ErrArg, "is nil"},
		"transposed":  {func() { NewConvTranspose2d(3, 4, 1, w, OutputPadding(1, 2, 3)) }, loris.ErrArg, "1 or 2 numbers"},
		"bag mode":    {func() { NewEmbeddingBag(2, 2, w, BagMode("min")) }, loris.ErrArg, `"min"`},
		"layers":      {func() { NewGRU(2, 2, w, Layers(0)) }, loris.ErrArg, "a size is 0"},
		"cell":        {func() { NewGRU(2, 2, w, ReLUCell()) }, loris.ErrArg, "no option ReLUCell"},
		"between":     {func() { NewLSTM(2, 2, w, DropoutP(2)) }, loris.ErrArg, "DropoutP is 2"},
		"states":      {func() { NewLSTM(3, 2, w).Run(x, x) }, loris.ErrArg, "1 states are given, must be 2"},
		"sequence":    {func() { NewLSTM(3, 2, w).Run(s.With().Zeros(3)) }, loris.ErrShape, "number of dimensions"},
		"instances":   {func() { NewInstanceNorm1d(3, w).Forward(s.With().Zeros(3, 1)) }, loris.ErrShape, "more than one"},
		"fans":        {func() { KaimingUniform(0)(s.With(), 3) }, loris.ErrArg, "fans"},
		"truncation":  {func() { TruncNormal(0, 1, 2, 2) }, loris.ErrArg, "less than high"},
	} {
		err := loris.Try(c.do)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// moments returns the mean, the standard deviation and the largest magnitude.
func moments(v []float64) (mean, std, most float64) {
	for _, x := range v {
		mean += x / float64(len(v))
		most = math.Max(most, math.Abs(x))
	}
	for _, x := range v {
		std += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(std), most
}

// The bounds and deviations are those that torch.nn.init documents, for a weight
// of 64 outputs and 48·3 inputs.
func TestInit(t *testing.T) {
	s := newSession(t, loris.WithSeed(7))
	const in, out = 48 * 3, 64 * 3
	uniform := func(bound float64) [2]float64 { return [2]float64{bound / math.Sqrt(3), bound} }
	for name, c := range map[string]struct {
		init Init
		want [2]float64 // deviation and bound; bound 0: none
	}{
		"kaiming √5":      {KaimingUniform(math.Sqrt(5)), uniform(1 / math.Sqrt(in))},
		"kaiming 0":       {KaimingUniform(0), uniform(math.Sqrt(6.0 / in))},
		"kaiming normal":  {KaimingNormal(0), [2]float64{math.Sqrt(2.0 / in), 0}},
		"xavier":          {XavierUniform(2), uniform(2 * math.Sqrt(6.0/(in+out)))},
		"xavier normal":   {XavierNormal(1), [2]float64{math.Sqrt(2.0 / (in + out)), 0}},
		"uniform":         {Uniform(-3, 3), uniform(3)},
		"normal":          {Normal(0, 0.5), [2]float64{0.5, 0}},
		"truncated":       {TruncNormal(0, 1, -2, 2), [2]float64{0.8796, 2}},
		"truncated tight": {TruncNormal(0, 2, -0.1, 0.1), uniform(0.1)},
	} {
		v := floats(t, c.init(s.With(), 64, 48, 3))
		mean, std, most := moments(v)
		if math.Abs(mean) > 0.05*c.want[0] || math.Abs(std/c.want[0]-1) > 0.03 {
			t.Errorf("%s: mean %v, deviation %v, want 0 and %v", name, mean, std, c.want[0])
		}
		if b := c.want[1]; b != 0 && (most > b*1.000001 || most < 0.99*b) {
			t.Errorf("%s: the largest is %v, the bound %v", name, most, b)
		}
	}
	for name, c := range map[string]struct {
		init Init
		want float64
	}{"zeros": {Zeros, 0}, "ones": {Ones, 1}, "constant": {Constant(0.25), 0.25}} {
		for _, v := range floats(t, c.init(s.With(loris.As(loris.BF16)), 3)) {
			if v != c.want {
				t.Errorf("%s: %v", name, v)
			}
		}
	}
}

// A layer's defaults are the documented ones, and a seed determines a model.
func TestLayerInit(t *testing.T) {
	build := func(seed uint64) map[string][]float64 {
		s := newSession(t)
		s.SetSeed(seed)
		w := With(s.With())
		m := NewSequential(NewLinear(100, 50, w), NewConv1d(10, 20, 10, w, Groups(2)), NewEmbedding(30, 40, w, PaddingIdx(3)),
			NewMultiheadAttention(24, 2, w), NewLinear(20, 20, w, InitWeight(TruncNormal(0, 0.02, -0.04, 0.04))))
		out := map[string][]float64{}
		for n, v := range m.Params() {
			out[n] = floats(t, v.Value())
		}
		return out
	}
	got := build(1)
	for n, bound := range map[string]float64{
		"0.weight": 0.1, "0.bias": 0.1, "1.weight": 1 / math.Sqrt(50), "1.bias": 1 / math.Sqrt(50),
		"3.in_proj_weight": math.Sqrt(6.0 / (24 + 72)), "3.in_proj_bias": 0, "3.out_proj.weight": 1 / math.Sqrt(24), "3.out_proj.bias": 0,
		"4.weight": 0.04, "4.bias": 1 / math.Sqrt(20),
	} {
		if _, _, most := moments(got[n]); most > bound*1.000001 || most < 0.8*bound {
			t.Errorf("%s: the largest is %v, the bound %v", n, most, bound)
		}
	}
	for i, v := range got["2.weight"] {
		if (v == 0) != (i/40 == 3) {
			t.Fatalf("element %d of the embedding is %v", i, v)
		}
	}
	if !maps.EqualFunc(got, build(1), slices.Equal) {
		t.Error("the same seed gives another model")
	}
	if slices.Equal(got["0.weight"], build(2)["0.weight"]) {
		t.Error("another seed gives the same model")
	}
}

func TestDropout(t *testing.T) {
	s := newSession(t)
	x := s.With().Ones(1000)
	m := NewSequential(NewDropout(0.3))
	zeros := 0
	for _, v := range floats(t, m.Forward(x)) {
		if v == 0 {
			zeros++
		} else if math.Abs(v-1/0.7) > 1e-6 {
			t.Fatalf("an element is %v", v)
		}
	}
	if zeros < 230 || zeros > 370 {
		t.Errorf("%d of 1000 elements were dropped", zeros)
	}
	m.SetTraining(false)
	if y := m.Forward(x); y != x {
		t.Error("evaluation changes the input")
	}
}

// Dropout between recurrent layers needs training and more than one layer.
func TestRecurrentDropout(t *testing.T) {
	s := newSession(t)
	w := With(s.With())
	x := s.With().Randn(4, 2, 3)
	for name, c := range map[string]struct {
		m     *Recurrent
		train bool
		drops bool
	}{
		"training":   {NewGRU(3, 5, w, Layers(2), Bidirectional(), DropoutP(0.5)), true, true},
		"evaluation": {NewGRU(3, 5, w, Layers(2), DropoutP(0.5)), false, false},
		"one layer":  {NewLSTM(3, 5, w, DropoutP(0.5)), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.m.SetTraining(c.train)
			y, states := c.m.Run(x)
			if want := []int{c.m.layers * c.m.directions, 2, 5}; !slices.Equal(states[0].Dims(), want) {
				t.Errorf("a state of %v, want %v", states[0].Dims(), want)
			}
			if same := slices.Equal(floats(t, y), floats(t, c.m.Forward(x))); same == c.drops {
				t.Errorf("two runs are equal: %v", same)
			}
		})
	}
}

// Evaluating leaves the statistics and computes nothing but the result.
func TestBatchNormEval(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	m := NewBatchNorm1d(3, With(s.With()))
	x := s.With().FromSlice([]float32{1, 2, 3, 3, 2, 1}, 2, 3)
	m.Forward(x).Discard()
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	mean := floats(t, m.RunningMean.Value())
	if n := floats(t, m.NumBatches.Value())[0]; n != 1 || math.Abs(mean[0]-0.2) > 1e-6 {
		t.Errorf("after a batch: %v batches, mean %v", n, mean)
	}
	m.SetTraining(false)
	y := m.Forward(x)
	runs := s.Report().Runs
	if err := s.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	if got := floats(t, m.RunningMean.Value()); !slices.Equal(got, mean) {
		t.Errorf("evaluation moved the mean to %v", got)
	}
	if n := s.Report().Runs - runs; n != 2 { // the step and the cast of floats
		t.Errorf("%d computations", n)
	}
	if y.Pending() {
		t.Error("the result was not computed")
	}
	untracked := NewBatchNorm1d(3, With(s.With()), NoTracking())
	untracked.SetTraining(false)
	for _, v := range floats(t, untracked.Forward(x).Abs()) {
		if math.Abs(v-1) > 1e-4 && v != 0 {
			t.Errorf("without statistics: %v", v)
		}
	}
}
