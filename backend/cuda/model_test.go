//go:build cuda && linux && cgo

package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/ref"
)

func parse(t testing.TB, text string) *graph.Program {
	t.Helper()
	p, err := graph.Parse(text)
	check(t, err)
	return p
}

// compiled returns a model that is closed at the end of the test.
func compiled(t testing.TB, b *Backend, text string, aliases ...backend.Alias) *model {
	t.Helper()
	m, err := b.Compile(t.Context(), parse(t, text), gpu(0), backend.CompileOptions{Aliases: aliases})
	check(t, err)
	t.Cleanup(func() { check(t, m.Close()) })
	return m.(*model)
}

// floats uploads numbers; the buffer is released at the end of the test.
func floats(t testing.TB, b *Backend, v ...float64) backend.Buffer {
	t.Helper()
	return uploaded(t, b, ir.MakeShape(ir.F32, len(v)), elements.EncodeFloats(ir.F32, v))
}

func uploaded(t testing.TB, b *Backend, s ir.Shape, data []byte) backend.Buffer {
	t.Helper()
	buf, err := b.Upload(t.Context(), s, gpu(0), data)
	check(t, err)
	t.Cleanup(buf.Release)
	return buf
}

// got reads numbers and releases the buffer.
func got(t testing.TB, b backend.Buffer) []float64 {
	t.Helper()
	raw, err := b.Bytes(t.Context())
	check(t, err)
	b.Release()
	return numbers(b.Shape(), raw)
}

// numbers decodes elements of any dtype.
func numbers(s ir.Shape, raw []byte) []float64 {
	out := make([]float64, s.Numel())
	for i := range out {
		if d := s.DType(); d.IsFloatOrF8() {
			out[i] = elements.Float(d, raw, i)
		} else {
			out[i] = float64(elements.Int(d, raw, i))
		}
	}
	return out
}

const softmax = `program @softmax {
	%x = parameter "x" : f32[2,3]
	%w = parameter "w" : f32[3,2]
	%0 = exp(sub(%x, amax(%x, dim=[1], keepdim=true)))
	%1 = div(%0, sum(%0, dim=[1], keepdim=true))
	return %1, matmul(%1, %w), permute(%1, dims=[1,0])
}`

func TestModel(t *testing.T) {
	_, b := newFake(t, 1)
	before := b.BytesInUse(gpu(0))
	p := parse(t, softmax)
	m, err := b.Compile(t.Context(), p, gpu(0), backend.CompileOptions{})
	check(t, err)
	x, w := elements.EncodeFloats(ir.F32, []float64{1, 2, 3, -1, 0, 5}), elements.EncodeFloats(ir.F32, []float64{1, -2, 3, 4, 0.5, 2})
	want, err := ref.Eval(p, [][]byte{x, w})
	check(t, err)
	in := []backend.Buffer{uploaded(t, b, p.Params[0].Shape, x), uploaded(t, b, p.Params[1].Shape, w)}
	for range 3 {
		outs, err := m.Run(t.Context(), in, nil)
		check(t, err)
		for i, o := range outs {
			y, expected := got(t, o), elements.DecodeFloats(ir.F32, want[i])
			for k := range y {
				if d := y[k] - expected[k]; d > 1e-5 || d < -1e-5 {
					t.Errorf("output %d: got %v, want %v", i, y, expected)
				}
			}
		}
	}
	check(t, m.Close())
	check(t, m.Close())
	if _, err := m.Run(t.Context(), in, nil); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	for _, buf := range in {
		buf.Retain() // the test releases them at its end
		buf.Release()
	}
	if held := b.BytesInUse(gpu(0)) - before; held != int64(len(x)+len(w)) {
		t.Errorf("%d bytes are in use beside the inputs", held-int64(len(x)+len(w)))
	}
}

// TestFaults checks that a fault is the error of its run, and of no other.
func TestFaults(t *testing.T) {
	_, b := newFake(t, 1)
	m := compiled(t, b, `program @pick {
		%x = parameter "x" : f32[4]
		%i = parameter "i" : i64[2]
		%d = parameter "d" : i32[2]
		%0 = index_select(%x, dim=0, index=%i)
		%1 = floor_divide(%d, %d)
		return %0, %1
	}`)
	x := floats(t, b, 1, 2, 3, 4)
	ints := func(d ir.DType, v ...int64) backend.Buffer {
		return uploaded(t, b, ir.MakeShape(d, len(v)), elements.EncodeInts(d, v))
	}
	good, bad := ints(ir.I64, 3, 0), ints(ir.I64, 1, 9)
	ones, zero := ints(ir.I32, 1, 2), ints(ir.I32, 1, 0)
	for _, c := range []struct {
		i, d backend.Buffer
		want error
		text string
	}{
		{good, ones, nil, ""},
		{bad, ones, ir.ErrIndex, "index 9 is out of range for size 4"},
		{good, zero, ir.ErrZeroDivision, "floor_divide"},
		{good, ones, nil, ""},
	} {
		outs, err := m.Run(t.Context(), []backend.Buffer{x, c.i, c.d}, nil)
		check(t, err)
		err = m.Wait(t.Context())
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %v with %q", err, c.want, c.text)
		}
		if done, again := m.Finished(); !done || !errors.Is(again, c.want) {
			t.Errorf("afterwards: %v, %v", done, again)
		}
		for _, o := range outs {
			o.Release()
		}
	}
}

// TestWithStream checks that a run comes after what is in the caller's stream, and
// before what follows.
func TestWithStream(t *testing.T) {
	f, b := newFake(t, 1)
	m := compiled(t, b, "program @p {\n %x = parameter \"x\" : f32[2]\n return neg(%x)\n}")
	x := floats(t, b, 1, 2)
	check(t, x.(*buffer).mem.ready.wait(t.Context()))
	s, err := m.dev.ctx.NewStream(0)
	check(t, err)
	defer s.Close()
	f.Calls()
	outs, err := m.Run(WithStream(t.Context(), s.Handle()), []backend.Buffer{x}, nil)
	check(t, err)
	var order []string
	for _, c := range f.Calls() {
		name, _, _ := strings.Cut(c, " ")
		if name == "cuEventRecord" || name == "cuStreamWaitEvent" || name == "cuLaunchKernel" {
			order = append(order, name)
		}
	}
	if got, want := strings.Join(order, " "), "cuEventRecord cuStreamWaitEvent cuLaunchKernel cuEventRecord cuStreamWaitEvent"; got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	// What follows in the stream sees the result.
	data := make([]byte, 8)
	check(t, s.CopyOut(data, outs[0].(*buffer).address()))
	check(t, s.Wait(t.Context()))
	if y := elements.DecodeFloats(ir.F32, data); y[0] != -1 || y[1] != -2 {
		t.Errorf("got %v", y)
	}
	outs[0].Release()
}

func TestDevicesOfInputs(t *testing.T) {
	_, b := newFake(t, 2)
	m := compiled(t, b, "program @p {\n %x = parameter \"x\" : f32[1]\n return neg(%x)\n}")
	one := elements.EncodeFloats(ir.F32, []float64{1})
	host, err := ref.New().Upload(t.Context(), ir.MakeShape(ir.F32, 1), ref.Device, one)
	check(t, err)
	defer host.Release()
	other, err := b.Upload(t.Context(), ir.MakeShape(ir.F32, 1), gpu(1), one)
	check(t, err)
	defer other.Release()
	for _, in := range []backend.Buffer{host, other} {
		if _, err := m.Run(t.Context(), []backend.Buffer{in}, nil); !errors.Is(err, ir.ErrDevice) || !strings.Contains(err.Error(), in.Device().String()) {
			t.Errorf("an input on %v: %v", in.Device(), err)
		}
	}
}

// TestArtifact checks that a second backend compiles nothing that the first one
// has left, and what is damaged anew.
func TestArtifact(t *testing.T) {
	f, b := newFake(t, 1)
	ctx := context.Background()
	p := parse(t, softmax)
	compilations := func() (n int) {
		for _, c := range f.Calls() {
			if strings.HasPrefix(c, "nvrtcCompileProgram") {
				n++
			}
		}
		return n
	}
	m, kept, err := b.CompileArtifact(ctx, p, gpu(0), backend.CompileOptions{}, nil)
	check(t, err)
	check(t, m.Close())
	first := compilations()
	if first == 0 || kept == nil {
		t.Fatalf("%d compilations, artefact of %d bytes", first, len(kept))
	}
	for _, c := range []struct {
		name     string
		artifact []byte
		want     int
		fresh    bool
	}{
		{"kept", kept, 0, false},
		{"damaged", kept[:len(kept)/2], first, true},
		{"none", nil, first, true},
	} {
		other := New(Libraries{Driver: f.Path, NVRTC: f.Path, CUBLASLt: f.Path})
		m, fresh, err := other.CompileArtifact(ctx, p, gpu(0), backend.CompileOptions{}, c.artifact)
		check(t, err)
		if n := compilations(); n != c.want || (fresh != nil) != c.fresh {
			t.Errorf("%s: %d compilations, want %d; fresh: %v", c.name, n, c.want, fresh != nil)
		}
		check(t, m.Close())
		check(t, other.Close())
	}
}
