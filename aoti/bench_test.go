package aoti_test

import (
	"context"
	"testing"

	"github.com/loris-ml/loris/aoti"
)

// RunInto with given outputs allocates no Go memory.
func TestRunIntoAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools drop what they hold")
	}
	f := open(t, "mlp")
	r := load(t, "mlp")
	ctx := context.Background()
	in, out := f.list(t, "in"), f.list(t, "out")
	out[0] = aoti.NewBuffer(out[0].Shape().DType(), 8, 10)
	if n := testing.AllocsPerRun(100, func() {
		if err := r.RunInto(ctx, in, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkRun(b *testing.B) {
	f := open(b, "mlp")
	r := load(b, "mlp")
	ctx := context.Background()
	in := f.list(b, "in")
	out := []aoti.Buffer{aoti.NewBuffer(f.list(b, "out")[0].Shape().DType(), 8, 10)}
	b.Run("into", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := r.RunInto(ctx, in, out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			outs, err := r.Run(ctx, in...)
			if err != nil {
				b.Fatal(err)
			}
			outs[0].Release()
		}
	})
}
