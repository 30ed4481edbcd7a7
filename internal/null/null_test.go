package null

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/aten"
	"github.com/loris-ml/loris/internal/graph"
	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

var dev = ir.Device{Type: DeviceType, Index: 1}

func compile(t testing.TB, b *Backend) backend.Model {
	t.Helper()
	in := graph.NewParams([]graph.Param{{Name: "x", Shape: ir.MakeShape(ir.F32, 2, 3)}})
	var rec ir.Builder
	p := graph.FromValues("p", in, []ir.Value{rec.Exp(in[0]), rec.Unary(aten.IsNaN, in[0])})
	m, err := b.Compile(context.Background(), p, dev, backend.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModel(t *testing.T) {
	hostmem.CheckLeaks(t)
	ctx := context.Background()
	b := New()
	m := compile(t, b)
	in, err := b.Upload(ctx, ir.MakeShape(ir.F32, 2, 3), dev, bytes.Repeat([]byte{1}, 24))
	if err != nil {
		t.Fatal(err)
	}
	var first []backend.Buffer
	for range 2 {
		outs, err := m.Run(ctx, []backend.Buffer{in}, []bool{true})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range outs {
			raw, err := o.Bytes(ctx)
			if err != nil || !bytes.Equal(raw, make([]byte, len(raw))) {
				t.Errorf("output %d is %v, %v; want zeros", i, raw, err)
			}
			if o.Shape() != m.Spec().Outputs[i].Shape || o.Device() != dev {
				t.Errorf("output %d is %v on %v", i, o.Shape(), o.Device())
			}
			if first != nil && o != first[i] {
				t.Errorf("output %d is not the one of the run before", i)
			}
		}
		for _, o := range first {
			o.Release()
		}
		first = outs
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	if got := b.BytesInUse(dev); got != 24+24+6 {
		t.Errorf("%d bytes in use while outputs live, want 54", got)
	}
	for _, o := range first {
		o.Release()
	}
	in.Release()
	if got := b.BytesInUse(dev); got != 0 {
		t.Errorf("%d bytes in use at the end", got)
	}
}

func TestErrors(t *testing.T) {
	ctx := context.Background()
	b := New()
	m := compile(t, b)
	defer m.Close()
	if _, err := m.Run(ctx, nil, nil); !errors.Is(err, ir.ErrArg) {
		t.Errorf("error %v from a run without inputs", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Run(done, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v from a run that is cancelled", err)
	}
	s := ir.MakeShape(ir.F32, 1)
	for _, d := range []ir.Device{{}, {Type: DeviceType, Index: Devices}} {
		if _, err := b.Upload(ctx, s, d, make([]byte, 4)); !errors.Is(err, ir.ErrDevice) {
			t.Errorf("error %v from an upload to %v", err, d)
		}
	}
	if _, err := b.Upload(ctx, s, dev, nil); !errors.Is(err, ir.ErrShape) {
		t.Errorf("error %v from an upload of too few bytes", err)
	}
	if got, err := backend.For(dev); err != nil || got.DeviceType() != DeviceType {
		t.Errorf("the registry has %v, %v", got, err)
	}
}

func BenchmarkRun(b *testing.B) {
	m := compile(b, New())
	defer m.Close()
	ctx := context.Background()
	in := make([]backend.Buffer, 1)
	b.ReportAllocs()
	for b.Loop() {
		outs, err := m.Run(ctx, in, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range outs {
			o.Release()
		}
	}
}
