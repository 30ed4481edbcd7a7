package loris

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/memlimit"
)

// limited returns a session whose process may hold so many bytes more than it does.
func limited(t *testing.T, more int64, opts ...SessionOption) *Session {
	t.Helper()
	// More than the limit allows, and than there is, collects what tests before have left.
	_ = memlimit.Check(memlimit.Held()+1, memlimit.Held()+1)
	return newSession(t, append(opts, WithMemoryLimit(memlimit.Held()+more))...)
}

// wantOutOfMemory checks an error for want of memory, which names the op at a line of this file; no
// op stands for an upload or a read.
func wantOutOfMemory(t *testing.T, err error, op string, wanted int64) {
	t.Helper()
	var oom *OutOfMemory
	if !errors.As(err, &oom) {
		t.Fatalf("got %v, want an *OutOfMemory", err)
	}
	if oom.Op != op || oom.Wanted < wanted || oom.Limit <= 0 {
		t.Errorf("got %+v, want %d bytes or more for %q", oom, wanted, op)
	}
	if op != "" && (!strings.Contains(oom.Line, "limit_test.go:") || !oom.Shape.DType().Valid()) {
		t.Errorf("%v names no line of the user or no shape", err)
	}
}

// Whatever the size, a tensor that is too large is an error, and the session goes on.
func TestTooLargeATensorIsAnError(t *testing.T) {
	for _, d := range []Device{CPU, Ref} {
		for _, c := range []struct {
			name, op string
			wanted   int64
			make     func(m Maker) *Tensor
		}{
			{"a forgotten squeeze", "add", 1 << 44, func(m Maker) *Tensor { x := m.Arange(0, 1<<15, 1); return x.Unsqueeze(1).Mul(x).Unsqueeze(2).Add(x) }},
			{"nearly the largest shape", "full", 1 << 60, func(m Maker) *Tensor { return m.Ones(1<<30, 1).Add(m.Ones(1, 1<<28)) }},
			{"inside", "cumsum", 1 << 40, func(m Maker) *Tensor { return m.Ones(1, 1).Expand(1<<19, 1<<19).Cumsum(0).Relu().Cumsum(1).Sum() }},
			{"a copy of a view", "expand", 1 << 44, func(m Maker) *Tensor { return m.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3).Expand(1<<40, 2, 3).Sum() }},
			{"full", "expand", 1 << 52, func(m Maker) *Tensor { return m.Full(2, 1<<50) }},
			{"wider inside", "sort", 1 << 60, func(m Maker) *Tensor {
				v, _ := m.With(As(U8)).Ones(1, 1).Expand(1<<30, 1<<28).Sort()
				return v
			}},
		} {
			t.Run(d.String()+"/"+c.name, func(t *testing.T) {
				s := newSession(t, WithDevice(d))
				_, err := c.make(s.With()).Bytes(t.Context())
				var oom *OutOfMemory
				if !errors.As(err, &oom) {
					t.Fatalf("got %v, want an *OutOfMemory", err)
				}
				if d == CPU && (oom.Op != c.op || oom.Wanted < c.wanted) || !strings.Contains(oom.Line, "limit_test.go:") {
					t.Errorf("got %v (%d bytes), want %d bytes or more for %s", err, oom.Wanted, c.wanted, c.op)
				}
				_ = s.WaitDeviceOps(t.Context()) // the same error
				wantFloats(t, s.With().Ones(2).Add(1), 2, 2)
			})
		}
	}
}

// Many tensors of a size that is no problem alone.
func TestManyTensorsReachTheLimit(t *testing.T) {
	const bytes, most = 1 << 16, 16
	for d, limit := range map[Device]int64{CPU: most * bytes, Ref: 40 * bytes} { // Ref has scratch
		s := limited(t, limit, WithDevice(d))
		var kept []*Tensor
		var err error
		for len(kept) < 2*most && err == nil {
			x := s.With().Ones(bytes / 4).Add(float64(len(kept)))
			kept = append(kept, x)
			if err = s.Sync(t.Context(), x); err == nil {
				err = s.WaitDeviceOps(t.Context())
			}
		}
		wantOutOfMemory(t, err, "add", bytes)
		if len(kept) < most/4 {
			t.Errorf("%v: only %d tensors of %d had room", d, len(kept), most)
		}
		_ = s.WaitDeviceOps(t.Context()) // the same error
		kept = []*Tensor{kept[0]}        // the others are garbage, whose memory is found when it is needed
		for range 2 * most {
			wantFloats(t, s.With().Ones(bytes/4).Add(2).Amax(), 3)
		}
		if v, err := kept[0].Float32s(t.Context()); err != nil || v[0] != 1 {
			t.Errorf("%v: the first tensor is %v", d, err)
		}
	}
}

// A step that does not fit leaves variables what they were, donated or not.
func TestVariablesSurviveAStepWithoutMemory(t *testing.T) {
	ctx := t.Context()
	for _, d := range []Device{CPU, Ref} {
		for _, step := range []func(s *Session, fn func() error) error{
			func(s *Session, fn func() error) error { return s.Step(ctx, fn) },
			func(s *Session, fn func() error) error {
				if err := fn(); err != nil {
					return err
				}
				return s.MarkStep(ctx)
			},
		} {
			s := newSession(t, WithDevice(d))
			v := NewVariable(s.With().FromSlice([]float32{1, 2}))
			big := 1 << 21
			for i := range 3 {
				err := step(s, func() error {
					m := s.With()
					x := m.Ones(big, 1).Add(m.Ones(1, big)).Cumsum(0)
					v.Assign(v.Value().Add(x.Sum()))
					return nil
				})
				if err == nil {
					err = s.WaitDeviceOps(ctx)
				}
				var oom *OutOfMemory
				if !errors.As(err, &oom) {
					t.Fatalf("%v, step %d: got %v, want an *OutOfMemory", d, i, err)
				}
				wantFloats(t, v.Value(), 1, 2)
			}
			if err := step(s, func() error { v.Assign(v.Value().Mul(2)); return nil }); err != nil {
				t.Fatal(err)
			}
			wantFloats(t, v.Value(), 2, 4)
		}
	}
}

// What has no op is named by its shape.
func TestUploadsCountTowardsTheLimit(t *testing.T) {
	s := limited(t, 1<<20)
	err := Try(func() { s.With().FromSlice(make([]float32, 1<<20)) })
	wantOutOfMemory(t, err, "", 1<<22)
	if !strings.Contains(err.Error(), "f32[1048576]") {
		t.Errorf("%v names no shape", err)
	}
	wantFloats(t, s.With().FromSlice([]float32{3}), 3)
	if err := copyFits(MakeShape(U8, math.MaxInt64/2), 8); err == nil {
		t.Error("a copy of everything fits")
	}
}

// A reversal of a tensor without dimensions is the tensor, and the next steps go on.
func TestFlipOfAScalar(t *testing.T) {
	for _, d := range []Device{CPU, Ref} {
		s := newSession(t, WithDevice(d))
		x := s.With().FromSlice([]float32{1, 2}).Sum()
		y := x.Flip(0)
		if err := s.MarkStep(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantFloats(t, y, 3)
		wantFloats(t, x.Add(1).Flip(-1), 4)
		if err := Try(func() { x.Flip(1) }); !errors.Is(err, ErrIndex) {
			t.Errorf("flip along a dimension that there is not: %v", err)
		}
	}
}
