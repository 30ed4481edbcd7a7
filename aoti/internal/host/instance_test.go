//go:build linux && cgo && amd64

package host

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ctest"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/pt2"

	_ "github.com/loris-ml/loris/aoti/internal/vecmath" // which libraries call
)

// artefact opens the library of a real package, without a container around it.
func artefact(t *testing.T, name string) *Library {
	t.Helper()
	p, err := pt2.Open(filepath.Join("..", "..", "testdata", name+".pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := p.Model("")
	if err != nil {
		t.Fatal(err)
	}
	var target *pt2.TargetError
	if err := m.CheckTarget(pt2.HostTarget()); errors.As(err, &target) {
		t.Skip(err)
	}
	private, err := m.Private(t.Context(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	l, err := OpenLibrary(private.Path(), LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), private.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func buffer[T any](t *testing.T, d ir.DType, data []T, dims ...int) *hostmem.Buffer {
	t.Helper()
	mem := make([]byte, len(data)*d.Size())
	copy(over(data, mem), data)
	b, err := hostmem.Wrap(ir.MakeShape(d, dims...), cpuDevice(), mem, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A single model, as the interface without a pool has it: made, its outputs
// counted, given constants and given others, run, and deleted.
func TestSingleModel(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_2_11", "mlp_2_6"} {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			m, err := artefact(t, name).NewInstance()
			if err != nil {
				t.Fatal(err)
			}
			s := m.Spec()
			if len(s.Inputs) != 1 || len(s.Outputs) != 1 {
				t.Errorf("%d inputs and %d outputs", len(s.Inputs), len(s.Outputs))
			}
			x := buffer(t, ir.F32, make([]float32, 8*64), 8, 64)
			if _, err := m.Run(t.Context(), []backend.Buffer{x}, nil); err == nil {
				t.Error("it runs without constants")
			}
			constants, err := m.InitialConstants(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last := slices.IndexFunc(m.Constants(), func(k backend.Constant) bool { return k.Shape == ir.MakeShape(ir.F32, 10) })
			if last < 0 {
				t.Fatalf("%v", m.Constants())
			}
			first := single(t, m, x, constants)
			bias := buffer(t, ir.F32, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 10)
			packed, err := m.PackConstant(t.Context(), last, bias, false)
			if err != nil {
				t.Fatal(err)
			}
			was := constants[last]
			constants[last] = packed
			second := single(t, m, x, constants)
			old := floats(t, m, last, was)
			for i := range second { // the input is zero: only the bias differs
				if d := second[i] - first[i] - (float32(i%10+1) - old[i%10]); d > 1e-5 || d < -1e-5 {
					t.Errorf("element %d is %v, before %v", i, second[i], first[i])
				}
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			for _, b := range append(constants, was) {
				b.Release()
			}
		})
	}
}

// single binds constants, runs, and returns the output.
func single(t *testing.T, m *Instance, x backend.Buffer, constants []backend.Buffer) []float32 {
	t.Helper()
	if err := m.BindConstants(constants); err != nil {
		t.Fatal(err)
	}
	outs, err := m.Run(t.Context(), []backend.Buffer{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer outs[0].Release()
	return slices.Clone(over([]float32{0}, outs[0].(*hostmem.Buffer).Data()))
}

func floats(t *testing.T, m *Instance, i int, b backend.Buffer) []float32 {
	t.Helper()
	dense, err := m.UnpackConstant(t.Context(), i, b, true)
	if err != nil {
		t.Fatal(err)
	}
	defer dense.Release()
	return slices.Clone(over([]float32{0}, dense.(*hostmem.Buffer).Data()))
}

// Libraries turn grad mode off while they run; a run that fails leaves it on, on
// whatever thread.
func TestGradModeAfterFailure(t *testing.T) {
	leakCheck(t)
	grad := ctest.Open(t, ctest.Build(t, "testdata/c/grad.c"))
	m, err := artefact(t, "bounds").NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.BindConstants(nil); err != nil {
		t.Fatal(err)
	}
	x := buffer(t, ir.F32, make([]float32, 18), 6, 3)
	for _, c := range []struct {
		index int64
		fails bool
	}{{5, false}, {6, true}, {0, false}, {-7, true}} {
		done := make(chan struct{})
		go func() { // a thread of its own
			defer close(done)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			outs, err := m.Run(context.Background(), []backend.Buffer{x, buffer(t, ir.I64, []int64{0, c.index, 1}, 3)}, nil)
			if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), "index out of bounds") {
				t.Errorf("index %d: %v", c.index, err)
			}
			for _, b := range outs {
				b.Release()
			}
			if text := grad.Call("test_enabled", nil); text != "" {
				t.Errorf("after index %d: %s", c.index, text)
			}
		}()
		<-done
	}
}
