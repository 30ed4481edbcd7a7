package nn

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/safetensors"
)

var out = flag.String("out", "", "also write a module to this `file`, for scripts/check_nn_weights.py")

// mixed is a module with variables of several dtypes.
func mixed(s *loris.Session) Module {
	w := With(s.With())
	m := NewSequential(NewConv2d(1, 2, 3, w), NewBatchNorm2d(2, w), Func(ReLU), NewLinear(4, 3, With(s.With(loris.As(loris.BF16)))),
		NewLayerNorm([]int{3}, With(s.With(loris.As(loris.F64)))), NewMultiheadAttention(4, 2, w))
	return m
}

func bytesOf(t testing.TB, m Module) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, n := range variables(m) {
		b, err := n.v.Value().Bytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out[n.name] = n.v.Shape().String() + string(b)
	}
	return out
}

func TestSaveLoad(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	s := newSession(t)
	a := mixed(s)
	if err := Save(ctx, path, a, map[string]string{"epoch": "3"}); err != nil {
		t.Fatal(err)
	}
	if n := s.Report().Compiles; n != 1 {
		t.Errorf("%d compilations, want one for all variables", n)
	}
	if *out != "" {
		if err := Save(ctx, *out, a, nil); err != nil {
			t.Fatal(err)
		}
	}
	s2 := newSession(t, loris.WithSeed(99))
	b := mixed(s2)
	meta, err := Load(ctx, path, b)
	if err != nil {
		t.Fatal(err)
	}
	if meta["epoch"] != "3" || meta["format"] != "pt" || len(meta) != 2 {
		t.Errorf("metadata %q", meta)
	}
	if meta2, err := Metadata(path); err != nil || len(meta2) != 2 {
		t.Errorf("Metadata: %q, %v", meta2, err)
	}
	if err := s2.MarkStep(ctx); err != nil {
		t.Fatal(err)
	}
	if r := s2.Report(); r.Runs != 0 {
		t.Errorf("the initial values were computed: %d runs", r.Runs)
	}
	x, y := bytesOf(t, a), bytesOf(t, b)
	for n := range x {
		if x[n] != y[n] {
			t.Errorf("%s differs", n)
		}
	}
	path2 := filepath.Join(dir, "again.safetensors")
	if err := Save(ctx, path2, b, map[string]string{"epoch": "3"}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, path), read(t, path2)) {
		t.Error("the files differ")
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("left behind: %v", files)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLoadMismatch(t *testing.T) {
	ctx := t.Context()
	good := map[string]safetensors.Tensor{
		"weight": {Name: "weight", DType: safetensors.F32, Shape: []int64{1, 2}, Data: float32le(1, 2)},
		"bias":   {Name: "bias", DType: safetensors.F32, Shape: []int64{1}, Data: float32le(3)},
	}
	for _, c := range []struct {
		name  string
		edit  func(map[string]safetensors.Tensor)
		kinds []error
		says  []string
	}{
		{"good", func(map[string]safetensors.Tensor) {}, nil, nil},
		{"missing", func(m map[string]safetensors.Tensor) { delete(m, "bias") }, []error{ErrMissing}, []string{`"bias"`}},
		{"unexpected", func(m map[string]safetensors.Tensor) {
			m["scale"] = safetensors.Tensor{Name: "scale", DType: "F32", Shape: []int64{0}}
		}, []error{ErrUnexpected}, []string{`"scale"`}},
		{"shape", func(m map[string]safetensors.Tensor) {
			m["weight"] = safetensors.Tensor{Name: "weight", DType: "F32", Shape: []int64{2, 1}, Data: float32le(1, 2)}
		}, []error{ErrMismatch}, []string{`"weight"`, "f32[2 1]", "f32[1 2]"}},
		{"dtype", func(m map[string]safetensors.Tensor) {
			m["bias"] = safetensors.Tensor{Name: "bias", DType: "I32", Shape: []int64{1}, Data: float32le(3)}
		}, []error{ErrMismatch}, []string{`"bias"`, "i32[1]", "f32[1]"}},
		{"several", func(m map[string]safetensors.Tensor) {
			delete(m, "weight")
			m["w"] = safetensors.Tensor{Name: "w", DType: "F32", Shape: []int64{1}, Data: float32le(3)}
		}, []error{ErrMissing, ErrUnexpected}, []string{`"weight"`, `"w"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tensors := map[string]safetensors.Tensor{"weight": good["weight"], "bias": good["bias"]}
			c.edit(tensors)
			path := filepath.Join(t.TempDir(), "w.safetensors")
			var list []safetensors.Tensor
			for _, x := range tensors {
				list = append(list, x)
			}
			var b bytes.Buffer
			if err := safetensors.Write(&b, list, nil); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			m := NewLinear(2, 1, With(newSession(t).With()), InitWeight(Constant(7)))
			before := bytesOf(t, m)
			_, err := Load(ctx, path, m)
			if c.kinds == nil {
				if got := floats(t, m.Weight.Value()); err != nil || !slices.Equal(got, []float64{1, 2}) {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			for _, k := range c.kinds {
				if !errors.Is(err, k) {
					t.Errorf("%v is no %v", err, k)
				}
			}
			for _, says := range append(c.says, path) {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %s", err, says)
				}
			}
			if after := bytesOf(t, m); after["weight"] != before["weight"] || after["bias"] != before["bias"] {
				t.Error("a refused file changed the module")
			}
		})
	}
}

// Weights of 8 bits are saved and loaded as they are.
func TestSaveLoadEightBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	for _, d := range []loris.DType{loris.F8E4M3FN, loris.F8E5M2} {
		s := newSession(t)
		make8 := func(values ...float32) *Base {
			m := &Base{}
			m.Param("w", loris.NewVariable(s.With(loris.As(d)).FromSlice(values)))
			return m
		}
		a, b := make8(1.5, -448, 0.001, 0), make8(0, 0, 0, 0)
		if err := Save(t.Context(), path, a, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(t.Context(), path, b); err != nil {
			t.Fatal(err)
		}
		if got, want := bytesOf(t, b), bytesOf(t, a); !maps.Equal(got, want) {
			t.Errorf("%v: loaded %q, want %q", d, got, want)
		}
	}
}

// A save that fails leaves the old file and nothing else.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	bad := &Base{}
	bad.Param("p", loris.NewVariable(s.With().FromBytes(make([]byte, 16), loris.MakeShape(loris.C128, 1))))
	if err := Save(t.Context(), path, bad, nil); !errors.Is(err, loris.ErrDType) || !strings.Contains(err.Error(), `"p"`) {
		t.Errorf("a dtype that files lack: %v", err)
	}
	m := NewLinear(2, 2, With(s.With()))
	if err := Save(t.Context(), path, m, map[string]string{"k": "\xff"}); !errors.Is(err, safetensors.ErrInvalidTensor) {
		t.Errorf("bad metadata: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Save(ctx, path, NewLinear(2, 2, With(s.With())), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	if err := Save(t.Context(), filepath.Join(dir, "none", "m"), m, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if b := read(t, path); string(b) != "old" {
		t.Errorf("the old file holds %q", b)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	if _, err := Load(t.Context(), path, m); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("loading no weights: %v", err)
	}
	if _, err := Metadata(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("metadata of nothing: %v", err)
	}
}

// writeWeights writes a file of f32 vectors of 2 elements, each of its number in the list.
func writeWeights(t testing.TB, dtype safetensors.DType, names ...string) string {
	t.Helper()
	var list []safetensors.Tensor
	for i, n := range names {
		data := float32le(float32(i), float32(i))
		if dtype == safetensors.F64 {
			data = make([]byte, 16)
		}
		list = append(list, safetensors.Tensor{Name: n, DType: dtype, Shape: []int64{2}, Data: data})
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadOptions(t *testing.T) {
	var report LoadReport
	type names = map[string]string
	for name, c := range map[string]struct {
		file  []string
		dtype safetensors.DType
		own   loris.DType
		opts  []LoadOption
		want  map[string]float64 // 7 stays
		fails error
		says  string
		left  LoadReport
	}{
		"prefix":             {file: []string{"m.a.x", "m.b", "other"}, opts: []LoadOption{Prefix("m.")}, want: map[string]float64{"a.x": 0, "b": 1}},
		"without the prefix": {file: []string{"m.a.x", "m.b"}, fails: ErrMissing, says: `"a.x"`},
		"rename": {file: []string{"p.q.x", "c"}, opts: []LoadOption{Rename(names{"p.": "z.", "p.q.": "a.", "c": "b"})},
			want: map[string]float64{"a.x": 0, "b": 1}},
		"no dot, no prefix": {file: []string{"qa.x", "b"}, opts: []LoadOption{Rename(names{"q": ""})}, fails: ErrUnexpected, says: `"qa.x"`},
		"two of a name":     {file: []string{"a.x", "b", "c"}, opts: []LoadOption{Rename(names{"c": "b"})}, fails: ErrUnexpected, says: "too"},
		"both": {file: []string{"m.q", "m.b", "q"}, opts: []LoadOption{Prefix("m."), Rename(names{"q": "a.x"})},
			want: map[string]float64{"a.x": 0, "b": 1}},
		"partial": {file: []string{"u", "b", "v"}, opts: []LoadOption{Partial(&report)}, want: map[string]float64{"a.x": 7, "b": 1},
			left: LoadReport{Missing: []string{"a.x"}, Unexpected: []string{"u", "v"}}},
		"partial without a report": {file: []string{"a.x"}, opts: []LoadOption{Partial(nil)}, want: map[string]float64{"a.x": 0, "b": 7}},
		"another dtype":            {file: []string{"a.x", "b"}, own: loris.BF16, fails: ErrMismatch, says: "f32[2]"},
		"cast":                     {file: []string{"a.x", "b"}, own: loris.BF16, opts: []LoadOption{CastFloats()}, want: map[string]float64{"a.x": 0, "b": 1}},
		"cast down":                {file: []string{"a.x", "b"}, dtype: safetensors.F64, opts: []LoadOption{CastFloats()}, want: map[string]float64{"a.x": 0, "b": 0}},
		"no floats":                {file: []string{"a.x", "b"}, own: loris.I32, opts: []LoadOption{CastFloats()}, fails: ErrMismatch, says: "i32[2]"},
		"a partial mismatch":       {file: []string{"b"}, own: loris.BF16, opts: []LoadOption{Partial(&report)}, fails: ErrMismatch, says: `"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			report = LoadReport{}
			if c.dtype == "" {
				c.dtype = safetensors.F32
			}
			if c.own == 0 {
				c.own = loris.F32
			}
			s := newSession(t)
			seven := func() *loris.Variable { return loris.NewVariable(s.With(loris.As(c.own)).Full(7, 2)) }
			m, inner := &Base{}, &Base{}
			inner.Param("x", seven())
			m.Add("a", inner)
			m.Buffer("b", seven())
			_, err := Load(t.Context(), writeWeights(t, c.dtype, c.file...), m, c.opts...)
			if c.fails != nil {
				if !errors.Is(err, c.fails) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				c.want = map[string]float64{"a.x": 7, "b": 7}
			} else if err != nil {
				t.Fatal(err)
			}
			for _, n := range variables(m) {
				if got := floats(t, n.v.Value()); got[0] != c.want[n.name] {
					t.Errorf("%s is %v, want %v", n.name, got, c.want[n.name])
				}
			}
			if !reflect.DeepEqual(report, c.left) {
				t.Errorf("reports %+v, want %+v", report, c.left)
			}
		})
	}
}

// Frozen parameters are buffers, in files as before.
func TestFreeze(t *testing.T) {
	s := newSession(t)
	w := With(s.With())
	b := &block{fc: NewLinear(2, 2, w)}
	b.Add("fc", b.fc)
	b.Add("seq", NewSequential(NewLinear(2, 2, w, NoBias()), NewBatchNorm1d(2, w), Func(ReLU)))
	b.Param("tied", b.fc.Weight)
	own := []string{"seq.1.running_mean", "seq.1.running_var", "seq.1.num_batches_tracked"}
	all, _ := names(b)
	for _, step := range []struct {
		do      func()
		params  []string
		buffers []string
	}{
		{func() { Freeze(b, func(n string) bool { return strings.HasPrefix(n, "fc.") }) },
			[]string{"seq.0.weight", "seq.1.weight", "seq.1.bias"}, append([]string{"fc.weight", "fc.bias"}, own...)},
		{func() { Unfreeze(b, func(n string) bool { return n == "fc.weight" }) },
			[]string{"fc.weight", "seq.0.weight", "seq.1.weight", "seq.1.bias"}, append([]string{"fc.bias"}, own...)},
		{func() { Freeze(b, nil) }, nil,
			append([]string{"fc.weight", "fc.bias", "seq.0.weight", "seq.1.weight", "seq.1.bias"}, own...)},
		{func() { Unfreeze(b, nil) }, all, own},
	} {
		step.do()
		if params, buffers := names(b); !slices.Equal(params, step.params) || !slices.Equal(buffers, step.buffers) {
			t.Errorf("parameters %q, buffers %q, want %q and %q", params, buffers, step.params, step.buffers)
		}
	}
}

// A model that lies in several files is read by its index.
func TestLoadShards(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	m := NewLinear(3, 2)
	if err := Save(t.Context(), path, m, nil); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sharded := filepath.Join(dir, "sharded.safetensors")
	err = safetensors.WriteShards(sharded, f.Tensors(), f.Metadata(), 8, func(info safetensors.Info, w io.Writer) error {
		data, err := f.Bytes(info.Name)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	other := NewLinear(3, 2)
	meta, err := Load(t.Context(), sharded+".index.json", other)
	if err != nil || meta["format"] != "pt" {
		t.Fatalf("%v, %v", meta, err)
	}
	want, errWant := m.Weight.Value().Float32s(t.Context())
	got, err := other.Weight.Value().Float32s(t.Context())
	if err != nil || errWant != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v, %v", got, want, errors.Join(err, errWant))
	}
}
