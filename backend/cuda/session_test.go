//go:build cuda && linux && cgo

package cuda_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/cuda"
	"github.com/loris-ml/loris/backend/cuda/internal/fakecuda"
	"github.com/loris-ml/loris/internal/graph"
)

// onFake puts a stand-in in the place of the machine's GPUs until the end of the
// test.
func onFake(t testing.TB) *fakecuda.Fake {
	t.Helper()
	f := fakecuda.New(t)
	b := cuda.New(cuda.Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path})
	backend.Register(b)
	t.Cleanup(func() {
		backend.Register(cuda.New(cuda.Libraries{}))
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func session(t testing.TB, d loris.Device) *loris.Session {
	t.Helper()
	s, err := loris.New(loris.WithDevice(d))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// train takes some steps of a small network and returns the losses and a weight.
func train(t *testing.T, d loris.Device) (losses []float32) {
	t.Helper()
	s := session(t, d)
	defer s.Close(t.Context())
	m := s.With()
	numbers := func(n int, step float64) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(math.Sin(step * float64(i+1)))
		}
		return out
	}
	x, y := m.FromSlice(numbers(8*3, 0.7), 8, 3), m.FromSlice(numbers(8*2, 1.1), 8, 2)
	w := loris.NewVariable(m.FromSlice(numbers(3*4, 0.3), 3, 4))
	v := loris.NewVariable(m.FromSlice(numbers(4*2, 0.9), 4, 2))
	for range 6 {
		loss := x.MatMul(w.Value()).Tanh().MatMul(v.Value()).Sub(y).Square().Mean()
		g := loris.Grad(loss, w, v)
		w.Assign(w.Value().Sub(g[0].Mul(0.5)))
		v.Assign(v.Value().Sub(g[1].Mul(0.5)))
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := loss.Item(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, float32(l))
	}
	data, err := w.Value().Float32s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return append(losses, data...)
}

// TestTraining takes the same steps on a GPU and on the CPU.
func TestTraining(t *testing.T) {
	onFake(t)
	want, got := train(t, loris.CPU), train(t, loris.CUDA(0))
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d < 1e-5) {
			t.Errorf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// TestStepsAreEnqueuedAhead checks that a device that is at work is given the steps
// that follow, which overwrite each other's results in order.
func TestStepsAreEnqueuedAhead(t *testing.T) {
	f := onFake(t)
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	v := loris.NewVariable(s.With().FromSlice([]float32{1, 3}, 2))
	step := func() {
		t.Helper()
		if err := s.Step(t.Context(), func() error { v.Assign(v.Value().Mul(2)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	step()
	step()
	if err := s.WaitDeviceOps(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Calls()
	f.Hold()
	for range 3 {
		step()
	}
	launches := 0
	for launches < 3 {
		for _, c := range f.Calls() {
			if strings.HasPrefix(c, "cuLaunchKernel") {
				launches++
			}
		}
		time.Sleep(time.Millisecond)
	}
	f.Resume()
	got, err := v.Value().Float32s(t.Context())
	if err != nil || got[0] != 32 || got[1] != 96 {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestLineOfFault checks that an index out of range comes to who reads the result,
// with the line that recorded the op.
func TestLineOfFault(t *testing.T) {
	onFake(t)
	s, err := loris.New(loris.WithDevice(loris.CUDA(0)), loris.WithLines(loris.LinesAlways))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	m := s.With()
	y := m.FromSlice([]float32{1, 2, 3}, 3).IndexSelect(0, m.FromSlice([]int64{1, 7}, 2))
	_, err = y.Float32s(t.Context())
	if !errors.Is(err, loris.ErrIndex) || !strings.Contains(err.Error(), "index 7") || !strings.Contains(err.Error(), "session_test.go") {
		t.Errorf("got %v", err)
	}
}

// TestCallInSession calls a model on a GPU between ops, and one that is elsewhere.
func TestCallInSession(t *testing.T) {
	onFake(t)
	onto := func(d loris.Device) *container.Container {
		run, err := graph.Parse("program @p {\n %x = parameter \"x\" : f32[3]\n return cumsum(%x, dim=0)\n}")
		if err != nil {
			t.Fatal(err)
		}
		p := container.Program{Run: run, Device: d}
		c, err := container.New(t.Context(), p.Compile, container.Config{Instances: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	models := map[loris.Device]*container.Container{loris.CPU: onto(loris.CPU), loris.CUDA(0): onto(loris.CUDA(0))}
	for d, m := range models {
		s := session(t, d)
		defer s.Close(t.Context())
		x := s.With().FromSlice([]float32{1, 2, 3}, 3)
		y := loris.Call(m, loris.Call(m, x.Add(1))[0].Neg())[0].Mul(2)
		got, err := y.Float32s(t.Context())
		if err != nil || !slices.Equal(got, []float32{-4, -14, -32}) {
			t.Errorf("on %v: %v, %v", d, got, err)
		}
		for other, m := range models {
			if other == d {
				continue
			}
			err := loris.Try(func() { loris.Call(m, x) })
			var e *backend.PlaceError
			if !errors.As(err, &e) || e.Model != other || e.Tensors != d || !errors.Is(err, loris.ErrDevice) {
				t.Errorf("on %v, the model on %v: %v", d, other, err)
			}
		}
	}
}

// TestConstantsThatComeAgain checks that host data that was uploaded before is found
// on the device without bringing anything back, and only what is equal.
func TestConstantsThatComeAgain(t *testing.T) {
	f := onFake(t)
	s := session(t, loris.CUDA(0))
	defer s.Close(t.Context())
	shape := loris.FromSlice([]float32{1, 2}, 2).Shape()
	one, two := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, []byte{0, 0, 0, 0x40, 0, 0, 0x80, 0x3f}
	m := s.With()
	first := m.Constant(one, shape)
	f.Hold() // nobody waits for the device
	again, other := m.Constant(one, shape), m.Constant(two, shape)
	f.Resume()
	uploads := 0
	for _, call := range f.Calls() {
		if strings.HasPrefix(call, "cuMemcpyDtoH") {
			t.Errorf("something came back: %s", call)
		}
		if strings.HasPrefix(call, "cuMemcpyHtoD") {
			uploads++
		}
	}
	if uploads != 2 {
		t.Errorf("%d uploads, want 2", uploads)
	}
	for i, x := range []*loris.Tensor{first, again, other} {
		want := []float32{1, 2}
		if i == 2 {
			want = []float32{2, 1}
		}
		if got, err := x.Float32s(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("tensor %d: %v, %v", i, got, err)
		}
	}
}
