package loris

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestMistakesNameOpShapesAndLine(t *testing.T) {
	m := newSession(t).With()
	other := newSession(t).With()
	x, y := m.Zeros(2, 3), m.Zeros(4, 5)
	for _, c := range []struct {
		name string
		fn   func()
		kind error
		want []string
	}{
		{"matmul", func() { x.MatMul(y) }, ErrShape, []string{"matmul(f32[2,3], f32[4,5])"}},
		{"broadcast", func() { x.Add(y) }, ErrShape, []string{"add(f32[2,3], f32[4,5])"}},
		{"reshape", func() { x.Reshape(7) }, ErrShape, []string{"reshape(f32[2,3])", "[7]"}},
		{"dim", func() { x.Sum(Dim(5)) }, ErrIndex, []string{"sum(f32[2,3])", "5"}},
		{"several dims", func() { x.Argmax(Dim(0, 1)) }, ErrArg, []string{"argmax(f32[2,3])", `"dim"`, "[0 1]"}},
		{"option twice", func() { x.Sum(Dim(0), Dim(1)) }, ErrArg, []string{"sum"}},
		{"nil option", func() { x.Sum(nil, Dim(1)) }, ErrArg, []string{"sum", "nil"}},
		{"rounding mode", func() { x.Div(1, RoundingMode("up")) }, ErrArg, []string{`"up"`}},
		{"no number", func() { x.Mul("two") }, ErrArg, []string{"mul", "two"}},
		{"no tensor", func() { Mul(1, 2) }, ErrArg, []string{"mul", "neither"}},
		{"nil operand", func() { x.Add((*Tensor)(nil)) }, ErrArg, []string{"add", "nil"}},
		{"nil receiver", func() { (*Tensor)(nil).Add(1) }, ErrArg, []string{"add", "nil"}},
		{"nil argument", func() { x.Gather(0, nil) }, ErrArg, []string{"gather", "index"}},
		{"zero tensor", func() { x.MatMul(new(Tensor)) }, ErrArg, []string{"matmul"}},
		{"other session", func() { x.Add(other.Zeros(2, 3)) }, ErrSession, []string{"add"}},
		{"slice length", func() { m.FromSlice([]float32{1, 2}, 3) }, ErrShape, []string{"f32[3]"}},
		{"slice type", func() { m.FromSlice([]string{"a"}) }, ErrDType, []string{"[]string"}},
		{"negative size", func() { m.Zeros(-1) }, ErrShape, []string{"zeros"}},
		{"setting", func() { With(nil) }, ErrArg, []string{"with", "nil"}},
		{"dtype of grad", func() { Grad(m.Arange(0, 4, 1).Sum(), x) }, ErrDType, []string{"grad"}},
		{"wrt of grad", func() { Grad(x.Sum(), 3) }, ErrArg, []string{"grad", "int"}},
		{"variable's shape", func() { NewVariable(x).Assign(y) }, ErrShape, []string{"assign(f32[2,3], f32[4,5])"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Try(c.fn)
			var op *OpError
			if !errors.As(err, &op) || !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want an *OpError wrapping %v", err, c.kind)
			}
			for _, w := range append(c.want, "errors_test.go:") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not contain %q", err, w)
				}
			}
		})
	}
}

func TestUseAfterClose(t *testing.T) {
	ctx := t.Context()
	s, err := New(WithDevice(Ref))
	if err != nil {
		t.Fatal(err)
	}
	fork := s.Fork()
	m := s.With()
	ready := m.FromSlice([]float32{1})
	pending := ready.Add(1)
	v := NewVariable(ready)
	read := floats(t, ready)
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	for name, fn := range map[string]func() error{
		"record":        func() error { return Try(func() { ready.Neg() }) },
		"record binary": func() error { return Try(func() { ready.Add(pending) }) },
		"record number": func() error { return Try(func() { ready.Add(2) }) },
		"create":        func() error { return Try(func() { m.Zeros(1) }) },
		"upload":        func() error { return Try(func() { m.FromSlice([]float32{1}) }) },
		"variable":      func() error { return Try(func() { v.Value() }) },
		"fork":          func() error { return Try(func() { fork.With().Zeros(1) }) },
		"step":          func() error { return s.MarkStep(ctx) },
		"sync":          func() error { return pending.Sync(ctx) },
		"read pending":  func() error { _, err := pending.Float32s(ctx); return err },
		"read data":     func() error { _, err := ready.Float32s(ctx); return err },
		"copy":          func() error { _, err := ready.To(ctx, Null); return err },
		"call": func() error {
			_, err := Compile(func(in ...*Tensor) []*Tensor { return in }).Call(ctx, ready)
			return err
		},
	} {
		if err := fn(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	if read[0] != 1 {
		t.Error("elements that were read changed")
	}
}

func TestUnusableDevice(t *testing.T) {
	for _, d := range []Device{{Type: Ref.Type, Index: 9}, {Type: 250}, CUDA(255)} {
		if _, err := New(WithDevice(d)); !errors.Is(err, ErrDevice) {
			t.Errorf("%v: got %v, want ErrDevice", d, err)
		}
	}
	if d, err := ParseDevice("cuda:3"); d != CUDA(3) || err != nil {
		t.Errorf("got %v, %v", d, err)
	}
	for _, i := range []int{-1, 256} {
		if err := Try(func() { CUDA(i) }); !errors.Is(err, ErrDevice) {
			t.Errorf("CUDA(%d): got %v, want ErrDevice", i, err)
		}
	}
	if _, err := ParseDevice("toaster"); !errors.Is(err, ErrDevice) {
		t.Errorf("got %v, want ErrDevice", err)
	}
}

func TestNoOp(t *testing.T) {
	s := newSession(t, WithNoOp())
	x := s.With().Ones(1).Add(1)
	if err := s.MarkStep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Float32s(t.Context()); !errors.Is(err, ErrNoExecution) {
		t.Errorf("got %v, want ErrNoExecution", err)
	}
}

func TestReadWithCancelledContext(t *testing.T) {
	m := newSession(t).With()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Ones(1).Add(1).Float32s(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// What an op cannot know of its operands' elements before they are there is an error of the read.
func TestMistakesInElements(t *testing.T) {
	m := newSession(t).With()
	x, mask := m.FromSlice([]float32{1, 2, 3, 4}, 4), m.FromSlice([]bool{true, false, true, true}, 4)
	for _, c := range []struct {
		name string
		y    *Tensor
	}{
		{"offsets beyond data", SegmentReduce(x, "sum", SegmentOffsets(m.FromSlice([]int64{0, 3, 9}, 3)))},
		{"negative lengths", SegmentReduce(x, "sum", Lengths(m.FromSlice([]int64{3, -1}, 2)))},
		{"too small a source", x.MaskedScatter(mask, m.FromSlice([]float32{1, 2}, 2))},
		{"number beyond the counts", m.FromSlice([]int64{1, 5}, 2).Bincount(Minlength(3)).Cast(F32)},
	} {
		if _, err := c.y.Float32s(context.Background()); !errors.Is(err, ErrIndex) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
