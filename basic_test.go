package loris

import (
	"context"
	"errors"
	"flag"
	"reflect"
	"testing"
)

// testDevice is where the tests compute.
var testDevice = flag.String("device", "cpu", "the device that the tests use")

// newSession returns a session that the test closes.
func newSession(t testing.TB, opts ...SessionOption) *Session {
	t.Helper()
	d, err := ParseDevice(*testDevice)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(append([]SessionOption{WithDevice(d)}, opts...)...)
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

func floats(t testing.TB, x *Tensor) []float32 {
	t.Helper()
	v, err := x.Float32s(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantFloats(t testing.TB, x *Tensor, want ...float32) {
	t.Helper()
	if got := floats(t, x); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestArithmetic(t *testing.T) {
	m := newSession(t).With()
	x := m.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	y := m.FromSlice([]float32{10, 20})
	for _, c := range []struct {
		name string
		got  *Tensor
		want []float32
	}{
		{"add", x.Add(y), []float32{11, 22, 13, 24}},
		{"add number", x.Add(1), []float32{2, 3, 4, 5}},
		{"number minus", Sub(1, x), []float32{0, -1, -2, -3}},
		{"alpha", x.Add(y, Alpha(2)), []float32{21, 42, 23, 44}},
		{"alpha of number", x.Sub(2, Alpha(0.5)), []float32{0, 1, 2, 3}},
		{"floor", x.Div(2, RoundingMode("floor")), []float32{0, 1, 1, 2}},
		{"trunc", x.Neg().Div(2, RoundingMode("trunc")), []float32{0, -1, -1, -2}},
		{"div", Div(12, x), []float32{12, 6, 4, 3}},
		{"matmul", x.MatMul(x), []float32{7, 10, 15, 22}},
		{"sum", x.Sum(Dim(1), Keepdim(true)), []float32{3, 7}},
		{"permute", x.Permute(1, 0), []float32{1, 3, 2, 4}},
		{"where", Where(x.Gt(2), x, -1), []float32{-1, -1, 3, 4}},
		{"cat", Cat([]*Tensor{x, x}, Dim(1)), []float32{1, 2, 1, 2, 3, 4, 3, 4}},
		{"same operand", x.Mul(x), []float32{1, 4, 9, 16}},
		{"full", m.Full(2.5, 2), []float32{2.5, 2.5}},
		{"linspace", m.Linspace(0, 1, 3), []float32{0, 0.5, 1}},
	} {
		t.Run(c.name, func(t *testing.T) { wantFloats(t, c.got.Cast(F32), c.want...) })
	}
}

func TestGradAndVariables(t *testing.T) {
	ctx := t.Context()
	s := newSession(t)
	w := NewVariable(s.With().FromSlice([]float32{1, -2, 3}))
	for range 3 {
		loss := w.Value().Mul(w.Value()).Sum()
		g := Grad(loss, w)[0]
		w.Assign(w.Value().Sub(g.Mul(0.25)))
		if err := s.MarkStep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	wantFloats(t, w.Value(), 0.125, -0.25, 0.375)
	if r := s.Report(); r.Compiles != 1 || r.Steps != 3 {
		t.Errorf("3 equal steps: %d compiles in %d steps, want 1 in 3\n%v", r.Compiles, r.Steps, r)
	}
}

func TestTry(t *testing.T) {
	m := newSession(t).With()
	_, err := TryValue(func() *Tensor { return m.Zeros(2, 3).MatMul(m.Zeros(2, 3)) })
	var op *OpError
	if !errors.As(err, &op) || !errors.Is(err, ErrShape) || op.Op != "matmul" || len(op.Shapes) != 2 {
		t.Fatalf("got %v", err)
	}
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("another panic became %v", r)
		}
	}()
	_ = Try(func() { panic("other") })
}
