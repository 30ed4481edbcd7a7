package nn

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
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

// attend adapts an attention to a function of several tensors.
func attend(mask bool) func(m Module, in []*loris.Tensor) *loris.Tensor {
	return func(m Module, in []*loris.Tensor) *loris.Tensor {
		a := m.(*MultiheadAttention)
		q, k, v := in[0], in[0], in[0]
		rest := in[1:]
		switch len(rest) {
		case 2: // memory and mask
			k, v = rest[0], rest[0]
		case 3: // key, value and mask
			k, v = rest[0], rest[1]
		}
		if !mask {
			return a.Attend(q, k, v, nil)
		}
		m4 := in[len(in)-1]
		if m4.DType() == loris.Bool { // keys of each batch
			m4 = m4.Unsqueeze(1).Unsqueeze(1)
		}
		return a.Attend(q, k, v, m4)
	}
}

// bags adapts an embedding bag to indices, offsets and perhaps factors.
func bags(m Module, in []*loris.Tensor) *loris.Tensor {
	return m.(*EmbeddingBag).Bags(in[0], in[1], append(in, nil)[2])
}

// recur returns all results of a recurrent layer in one vector.
func recur(m Module, in []*loris.Tensor) *loris.Tensor {
	y, states := m.(*Recurrent).Run(in[0], in[1:]...)
	all := []*loris.Tensor{y.Flatten()}
	for _, s := range states {
		all = append(all, s.Flatten())
	}
	return loris.Cat(all)
}

// layerCases are the modules of scripts/make_nn_goldens.py.
func layerCases(w Option) map[string]struct {
	m       Module
	eval    bool
	forward func(m Module, in []*loris.Tensor) *loris.Tensor
} {
	f64 := func(s *loris.Session) Option { return With(s.With(loris.As(loris.F64))) }
	c := newConfig("test", []Option{w})
	type row = struct {
		m       Module
		eval    bool
		forward func(m Module, in []*loris.Tensor) *loris.Tensor
	}
	return map[string]row{
		"linear":             {m: NewLinear(4, 3, w)},
		"linear_f64":         {m: NewLinear(4, 3, f64(c.maker.Session()))},
		"linear_nobias":      {m: NewLinear(4, 3, w, NoBias())},
		"conv1d":             {m: NewConv1d(4, 6, 3, w, Stride(2), Padding(2), Dilation(2), Groups(2))},
		"conv2d":             {m: NewConv2d(3, 4, 3, w, Padding(1))},
		"conv2d_general":     {m: NewConv2dRect(4, 6, [2]int{3, 2}, w, Stride(2, 1), Padding(1, 0), Dilation(1, 2), Groups(2), NoBias())},
		"embedding":          {m: NewEmbedding(6, 3, w, PaddingIdx(2))},
		"layer_norm":         {m: NewLayerNorm([]int{6}, w)},
		"layer_norm_2d":      {m: NewLayerNorm([]int{2, 3}, w, Eps(1e-3), NoBias())},
		"rms_norm":           {m: NewRMSNorm([]int{6}, w)},
		"group_norm":         {m: NewGroupNorm(2, 4, w)},
		"batch_norm1d_train": {m: NewBatchNorm1d(4, w)},
		"batch_norm1d_eval":  {m: NewBatchNorm1d(4, w), eval: true},
		"batch_norm2d_train": {m: NewBatchNorm2d(3, w, Momentum(0.3))},
		"batch_norm2d_eval":  {m: NewBatchNorm2d(3, w), eval: true},
		"mha_self":           {m: NewMultiheadAttention(8, 2, w)},
		"mha_causal":         {m: NewMultiheadAttention(8, 2, w, Causal())},
		"mha_mask":           {m: NewMultiheadAttention(8, 2, w, NoBias()), forward: attend(true)},
		"mha_cross":          {m: NewMultiheadAttention(8, 2, w, KVDims(6, 7)), forward: attend(true)},
		"mha_grouped":        {m: NewMultiheadAttention(8, 4, w, KVHeads(2))},
		"sequential": {m: NewSequential(NewConv2d(1, 4, 3, w, Padding(1)), NewBatchNorm2d(4, w), Func(ReLU),
			MaxPool2d(2), Func(Flatten), NewLinear(16, 5, w), Func(GELU), NewLinear(5, 3, w))},
		"conv3d":                {m: NewConv3d(2, 3, 2, w, Padding(1), Stride(2))},
		"conv_transpose1d":      {m: NewConvTranspose1d(4, 6, 3, w, Stride(2), Padding(1), OutputPadding(1), Groups(2))},
		"conv_transpose2d":      {m: NewConvTranspose2d(3, 2, 3, w, Stride(2, 1), Padding(1, 0), OutputPadding(1, 0), Dilation(1, 2))},
		"conv_transpose3d":      {m: NewConvTranspose3d(2, 2, 2, w, NoBias())},
		"batch_norm3d":          {m: NewBatchNorm3d(2, w)},
		"instance_norm1d":       {m: NewInstanceNorm1d(3, w)},
		"instance_norm2d_train": {m: NewInstanceNorm2d(3, w, Affine(), Tracking(), Momentum(0.3))},
		"instance_norm3d_eval":  {m: NewInstanceNorm3d(2, w, Affine(), Tracking()), eval: true},
		"bag_mean":              {m: NewEmbeddingBag(6, 3, w, PaddingIdx(2))},
		"bag_sum":               {m: NewEmbeddingBag(6, 3, w, BagMode("sum")), forward: bags},
		"bag_max":               {m: NewEmbeddingBag(6, 3, w, BagMode("max"), IncludeLastOffset()), forward: bags},
		"rnn":                   {m: NewRNN(3, 4, w), forward: recur},
		"rnn_relu":              {m: NewRNN(3, 4, w, ReLUCell(), Layers(2), NoBias()), forward: recur},
		"gru":                   {m: NewGRU(3, 4, w, BatchFirst()), forward: recur},
		"gru_deep":              {m: NewGRU(3, 4, w, Layers(2), Bidirectional()), forward: recur},
		"lstm":                  {m: NewLSTM(3, 4, w), forward: recur},
		"lstm_deep":             {m: NewLSTM(3, 4, w, Layers(2), Bidirectional(), BatchFirst()), forward: recur},
		"lstm_unbatched":        {m: NewLSTM(3, 4, w), forward: recur},
		"encoder_layer":         {m: NewTransformerEncoderLayer(8, 2, 12, w)},
		"encoder_layer_first": {m: NewTransformerEncoderLayer(8, 2, 12, w, NormFirst(), Activation(GELU), NoBias(),
			Eps(1e-3), Causal())},
	}
}

// Layers with PyTorch's weights give its outputs, gradients and statistics.
func TestLayers(t *testing.T) {
	f, err := safetensors.Open("testdata/layers.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	g := goldens{t, f, newSession(t)}
	cases := layerCases(With(g.s.With()))
	for _, info := range f.Tensors() {
		name, _, _ := strings.Cut(info.Name, "/")
		if _, ok := cases[name]; !ok {
			t.Errorf("no case for %s", info.Name)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := goldens{t, f, g.s}
			if c.forward == nil {
				c.forward = func(m Module, in []*loris.Tensor) *loris.Tensor { return m.(Layer).Forward(in[0]) }
			}
			c.m.SetTraining(!c.eval)
			g.check(name, c.m, c.forward)
		})
	}
}

type goldens struct {
	t testing.TB
	f *safetensors.File
	s *loris.Session
}

func (g goldens) check(name string, m Module, forward func(Module, []*loris.Tensor) *loris.Tensor) {
	g.t.Helper()
	for n, v := range m.Params() {
		v.Assign(g.tensor(name + "/param/" + n))
	}
	for n, v := range m.Buffers() {
		v.Assign(g.tensor(name + "/buffer/" + n))
	}
	g.complete(name, m)
	var in []*loris.Tensor
	for i := 0; ; i++ {
		n := fmt.Sprintf("%s/in/%d", name, i)
		if _, ok := g.f.Lookup(n); !ok {
			break
		}
		in = append(in, g.tensor(n))
	}
	out := forward(m, in)
	var wrt []any
	var names []string
	for n, v := range m.Params() {
		wrt, names = append(wrt, v), append(names, n)
	}
	var grads []*loris.Tensor
	if len(wrt) > 0 {
		grads = loris.GradOf([]*loris.Tensor{out}, []*loris.Tensor{g.tensor(name + "/weight")}, wrt...)
	}
	if err := loris.Sync(g.t.Context(), append(grads, out)...); err != nil {
		g.t.Fatal(err)
	}
	g.near(name+"/out/0", out)
	for i, n := range names {
		g.near(name+"/grad/"+n, grads[i])
	}
	for n, v := range m.Buffers() {
		g.near(name+"/after/"+n, v.Value())
	}
}

// complete checks that the module has every variable that PyTorch's has.
func (g goldens) complete(name string, m Module) {
	g.t.Helper()
	own := map[string]bool{}
	for n := range m.Params() {
		own["param/"+n] = true
	}
	for n := range m.Buffers() {
		own["buffer/"+n] = true
	}
	for _, info := range g.f.Tensors() {
		rest, ok := strings.CutPrefix(info.Name, name+"/")
		if ok && (strings.HasPrefix(rest, "param/") || strings.HasPrefix(rest, "buffer/")) && !own[rest] {
			g.t.Errorf("the module has no %s", rest)
		}
	}
}

func (g goldens) tensor(name string) *loris.Tensor {
	g.t.Helper()
	s, b, err := tensorfile.Read(g.f, name)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.s.With().FromBytes(b, s)
}

func (g goldens) near(name string, got *loris.Tensor) {
	g.t.Helper()
	want := g.tensor(name)
	if got.Shape() != want.Shape() {
		g.t.Errorf("%s: got %v, want %v", name, got.Shape(), want.Shape())
		return
	}
	tol := 1e-5
	if got.DType() == loris.F64 {
		tol = 1e-13
	}
	a, b := floats(g.t, got), floats(g.t, want)
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= tol*math.Max(1, math.Abs(b[i]))) {
			g.t.Errorf("%s: element %d is %v, want %v", name, i, a[i], b[i])
			return
		}
	}
}

func floats(t testing.TB, x *loris.Tensor) []float64 {
	t.Helper()
	v, err := x.Cast(loris.F64).Float64s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// float32le returns the bytes of a file's f32 tensor.
func float32le(v ...float32) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}
