package nn

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
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
