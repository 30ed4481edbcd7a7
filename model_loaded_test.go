//go:build linux && amd64 && cgo

package loris

import (
	"errors"
	"math"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/safetensors"
)

// loaded returns a model that PyTorch compiled for any batch size, and what it
// computes.
func loaded(t *testing.T) (*aoti.Runner, *safetensors.File) {
	t.Helper()
	r, err := aoti.Load(t.Context(), "aoti/testdata/dynamic_batch.pt2")
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open("aoti/testdata/dynamic_batch.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), f.Close()); err != nil {
			t.Error(err)
		}
	})
	return r, f
}

func numbers(t *testing.T, f *safetensors.File, name string) ([]float32, []int) {
	t.Helper()
	info, ok := f.Lookup(name)
	data, err := f.Bytes(name)
	if !ok || err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	dims := make([]int, len(info.Shape))
	for i, d := range info.Shape {
		dims[i] = int(d)
	}
	return hostmem.View[float32](data), dims
}

func near(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > 1e-6 {
			t.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// A loaded model is an op of a lazy program; the shapes of its outputs are found
// by running it on zeros.
func TestCallLoadedModel(t *testing.T) {
	r, f := loaded(t)
	m := newSession(t).With()
	for _, batch := range []string{"", "case1.", "case2."} {
		x, dims := numbers(t, f, batch+"in0")
		want, _ := numbers(t, f, batch+"out0")
		y := Call(r, m.FromSlice(x, dims...).Neg().Neg())[0]
		if y.Dim(0) != dims[0] {
			t.Fatalf("recorded as %v", y.Shape())
		}
		half := read(t, y.Mul(0.5).Float32s)
		for i := range half {
			half[i] *= 2
		}
		near(t, half, want)
	}
	if err := Try(func() { Call(r, m.Zeros(3, 7)) }); err == nil {
		t.Error("an input that the model does not take was recorded")
	}
}

// A loaded model stands for a graph that is recorded with operations.
func TestPlugLoadedModel(t *testing.T) {
	r, f := loaded(t)
	s := newSession(t, WithDevice(CPU))
	x, dims := numbers(t, f, "in0")
	want, _ := numbers(t, f, "out0")
	in := s.With().FromSlice(x, dims...)
	classes := len(want) / dims[0]
	graph := func(in ...*Tensor) []*Tensor { return []*Tensor{in[0].Narrow(1, 0, classes).Softmax(1)} }
	if _, err := s.Plug(t.Context(), GraphOf(graph, in), r); err != nil {
		t.Fatal(err)
	}
	near(t, read(t, graph(in)[0].Float32s), want)
	if rep := s.Report(); rep.Compiles != 0 || rep.Plugged[0].Runs != 1 {
		t.Errorf("%v", rep)
	}
}

// A model that was called is let go when it is closed: steps recorded with it
// and not run fail, and recording it is an error.
func TestCallClosedModel(t *testing.T) {
	r, f := loaded(t)
	m := newSession(t).With()
	x, dims := numbers(t, f, "in0")
	y := Call(r, m.FromSlice(x, dims...))[0]
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Float32s(t.Context()); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("a step that calls a closed model: %v", err)
	}
	if err := Try(func() { Call(r, m.Zeros(dims...)) }); err == nil {
		t.Error("a closed model was recorded")
	}
}
