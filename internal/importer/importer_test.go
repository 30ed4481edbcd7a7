package importer_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/internal/importer"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
	"github.com/loris-ml/loris/nn"
)

func TestWeightsAreAModule(t *testing.T) {
	w := new(importer.Weights)
	shared := loris.NewVariable(loris.Ones(2))
	for _, e := range []struct {
		name string
		v    *loris.Variable
		kind importer.Kind
	}{
		{"a", shared, importer.Parameter},
		{"a.b/c::0", loris.NewVariable(loris.Zeros(3)), importer.Parameter},
		{"tied", shared, importer.Parameter},
		{"count", loris.NewVariable(loris.Zeros(1)), importer.Buffer},
		{"mask", loris.NewVariable(loris.Zeros(1)), importer.Constant},
	} {
		if err := w.Add(e.name, e.v, e.kind); err != nil {
			t.Fatal(err)
		}
	}
	if w.Add("a", shared, importer.Buffer) == nil {
		t.Error("a name was taken twice")
	}
	names := func(m func() map[string]*loris.Variable) []string { return slices.Sorted(maps.Keys(m())) }
	check := func(params, buffers []string) {
		t.Helper()
		if got := names(func() map[string]*loris.Variable { return maps.Collect(w.Params()) }); !slices.Equal(got, params) {
			t.Errorf("parameters %v, want %v", got, params)
		}
		if got := names(func() map[string]*loris.Variable { return maps.Collect(w.Buffers()) }); !slices.Equal(got, buffers) {
			t.Errorf("buffers %v, want %v", got, buffers)
		}
	}
	check([]string{"a", "a.b/c::0"}, []string{"count"})
	nn.Freeze(w, func(name string) bool { return name == "a" })
	check([]string{"a.b/c::0"}, []string{"a", "count"})
	file := filepath.Join(t.TempDir(), "w.safetensors")
	if err := nn.Save(context.Background(), file, w, nil); err != nil {
		t.Fatal(err)
	}
	nn.Unfreeze(w, nil)
	check([]string{"a", "a.b/c::0"}, []string{"count"})
	if _, err := nn.Load(context.Background(), file, w); err != nil {
		t.Error(err)
	}
}

func TestCallRecordsByName(t *testing.T) {
	s := loris.Default()
	arange, _ := ir.Lookup("arange")
	x := importer.Call(s, ir.Device{}, arange, []any{0, 6, 1, loris.F32})[0]
	split, _ := ir.Lookup("split")
	parts := importer.Call(s, ir.Device{}, split, []any{x}, ir.A("split_size", []int{4}))
	cat, _ := ir.Lookup("cat")
	y := importer.Call(s, ir.Device{}, cat, []any{[]*loris.Tensor{parts[1], parts[0]}})[0]
	got, err := y.Float32s(context.Background())
	if err != nil || !slices.Equal(got, []float32{4, 5, 0, 1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Read is FromBytes of what is written, on a device whose memory is the host's and on others alike.
func TestRead(t *testing.T) {
	s, err := loris.New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for _, d := range []loris.Device{cpu.Device, ref.Device} {
		m := s.With(loris.On(d))
		for dtype, bytes := range map[ir.DType][]byte{ir.U8: {1, 2, 3, 4}, ir.I16: {1, 2, 3, 4, 5, 6, 7, 8}, ir.Bool: {0, 1, 2, 255}} {
			shape := ir.MakeShape(dtype, 2, 2)
			x, err := importer.Read(t.Context(), m, shape, func(data []byte) error {
				if n := copy(data, bytes); n != len(data) {
					t.Errorf("%d bytes for %v", len(data), shape)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := x.Bytes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want, err := m.FromBytes(bytes, shape).Bytes(t.Context())
			if err != nil || !slices.Equal(got, want) || x.Device() != d {
				t.Errorf("%v on %v is %v, want %v, %v", shape, x.Device(), got, want, err)
			}
		}
		broken := errors.New("broken")
		if _, err := importer.Read(t.Context(), m, ir.MakeShape(ir.F32, 3), func([]byte) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("%v: %v", d, err)
		}
	}
}
