package aoti_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/internal/ir"
)

// Outputs that alias an input, a constant or each other are memory of their own.
func TestOutputsAliasNothing(t *testing.T) {
	f := open(t, "aliases")
	r := load(t, "aliases")
	ctx := context.Background()
	in := f.list(t, "in")
	outs, err := r.Run(ctx, in...)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, b := range append(outs, in...) {
		data, err := b.Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	for i, data := range all[:len(outs)] {
		was := bytes.Clone(data)
		for j, other := range all {
			if j != i && len(other) > 0 {
				other[0] ^= 0xff
			}
		}
		if !bytes.Equal(data, was) {
			t.Errorf("output %d shares memory", i)
		}
		for j, other := range all {
			if j != i && len(other) > 0 {
				other[0] ^= 0xff
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	runtime.GC()
	for i, b := range outs {
		if o := compare(t, b, f.list(t, "out")[i], nil); o.problem != "" {
			t.Errorf("output %d after Close: %s", i, o.problem)
		}
		b.Release()
	}
}

// A boxed run drops its inputs while it runs, and at its end also if it fails.
func TestBoxedRun(t *testing.T) {
	f := open(t, "bounds")
	r := load(t, "bounds")
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		index []int64
		fails bool
	}{{"runs", []int64{5, 0, 2}, false}, {"fails", []int64{0, 6, 1}, true}} {
		t.Run(c.name, func(t *testing.T) {
			in := []aoti.Buffer{&counted{Buffer: f.tensor(t, "in0")}, &counted{Buffer: aoti.FromSlice(c.index, 3)}}
			kept := []*counted{in[0].(*counted), in[1].(*counted)}
			outs, err := r.BoxedRun(ctx, in)
			if (err != nil) != c.fails {
				t.Error(err)
			}
			if err == nil && len(outs) != 1 {
				t.Errorf("%d outputs", len(outs))
			}
			for i, b := range kept {
				if b.released != 1 || in[i] != nil {
					t.Errorf("input %d was released %d times", i, b.released)
				}
			}
		})
	}
	// A wrong call drops them, too.
	b := &counted{Buffer: f.tensor(t, "in0")}
	if _, err := r.BoxedRun(ctx, []aoti.Buffer{b}); err == nil || b.released != 1 {
		t.Errorf("released %d times, %v", b.released, err)
	}
}

// counted counts its releases.
type counted struct {
	aoti.Buffer
	released int
}

func (c *counted) Release() { c.released++; c.Buffer.Release() }

// The step of a run can be replaced.
func TestRunStep(t *testing.T) {
	f := open(t, "mlp")
	steps := 0
	r := load(t, "mlp", aoti.RunStep(func(ctx context.Context, m aoti.Model, inputs []aoti.Buffer, donated []bool) ([]aoti.Buffer, error) {
		steps++
		return m.Run(ctx, inputs, donated)
	}))
	outs, err := r.RunNamed(context.Background(), map[string]aoti.Buffer{r.InputNames()[0]: f.tensor(t, "in0")})
	if err != nil || steps != 1 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	if o := compare(t, outs[r.OutputNames()[0]], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
		t.Error(o.problem)
	}
	into := []aoti.Buffer{aoti.NewBuffer(ir.F32, 8, 9)}
	if err := r.RunInto(context.Background(), f.list(t, "in"), into); !errors.Is(err, ir.ErrShape) {
		t.Errorf("a buffer that is too small: %v", err)
	}
	if _, err := r.RunNamed(context.Background(), map[string]aoti.Buffer{"other": nil}); !errors.Is(err, ir.ErrArg) || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

// A device that packages don't run on is refused, and so is a model that is not
// there.
func TestRefusedDevice(t *testing.T) {
	var target *aoti.TargetError
	if _, err := aoti.Load(context.Background(), path("mlp"), aoti.Device("npu:1")); !errors.As(err, &target) || target.What != "device" {
		t.Errorf("a device that there is none of: %v", err)
	}
	if _, err := aoti.Load(context.Background(), path("several"), aoti.ModelName("none")); err == nil || !strings.Contains(err.Error(), "double") {
		t.Errorf("a model that is not there: %v", err)
	}
}

// There is one CPU, and a pool of no instances is an error.
func TestWrongOptions(t *testing.T) {
	load(t, "mlp") // or skip
	if _, err := aoti.Load(context.Background(), path("mlp"), aoti.Device("cpu:1")); !errors.Is(err, ir.ErrDevice) {
		t.Errorf("a second CPU: %v", err)
	}
	for _, opts := range [][]aoti.Option{
		{aoti.Instances(0)}, {aoti.Instances(-1)}, {aoti.Instances(3), aoti.MaxInstances(2)},
	} {
		if _, err := aoti.Load(context.Background(), path("mlp"), opts...); !errors.Is(err, container.ErrInstances) {
			t.Errorf("%v", err)
		}
	}
}

// Weights that are kept once or twice give the same results, whichever the run.
func TestUnpackedWeights(t *testing.T) {
	for _, name := range []string{"mlp", "conv"} {
		f := open(t, name)
		once, twice := load(t, name, aoti.UnpackedWeights()), load(t, name)
		for range 3 {
			for _, r := range []*aoti.Runner{once, twice} {
				out, err := r.Run(t.Context(), f.list(t, "in")...)
				if err != nil {
					t.Fatal(err)
				}
				if o := compare(t, out[0], f.tensor(t, "out0"), f.tensor(t, "ref0")); o.problem != "" {
					t.Errorf("%s: %s", name, o.problem)
				}
				out[0].Release()
			}
		}
	}
}
