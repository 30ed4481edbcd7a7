package aoti_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/host"
)

// times is what the custom op of the fixtures computes.
func times(args host.OpArgs, x, by string) ([]aoti.Buffer, error) {
	in, err := aoti.Float32s(args[x].(aoti.Buffer))
	if err != nil {
		return nil, err
	}
	factor := args[by].(float64)
	if factor != 2.5 {
		return nil, errors.New("another factor")
	}
	out := make([]float32, len(in))
	for i, v := range in {
		out[i] = v * float32(factor)
	}
	return []aoti.Buffer{aoti.FromSlice(out, args[x].(aoti.Buffer).Shape().Dims()...)}, nil
}

// Custom ops in Go, called by name and by a C function of their own.
func TestCustomOps(t *testing.T) {
	const shim = "AOTITorchError aoti_torch_cpu_scaled(AtenTensorHandle x, double by, AtenTensorHandle* ret0)"
	fail := false
	op := func(args host.OpArgs) ([]aoti.Buffer, error) {
		if fail {
			panic("the op does not feel like it")
		}
		return times(args, "x", "by")
	}
	for _, c := range []struct {
		fixture    string
		register   func() error
		unregister func()
	}{
		{"custom_proxy", func() error { return host.Register("loris::scaled", op) }, func() { host.Unregister("loris::scaled") }},
		{"custom_shim", func() error { return host.RegisterShim(shim, op) }, func() { host.UnregisterShim("aoti_torch_cpu_scaled") }},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			load(t, "mlp") // or skip
			if err := c.register(); err != nil {
				t.Fatal(err)
			}
			defer c.unregister()
			handles := host.Handles()
			r, err := aoti.Load(t.Context(), path(c.fixture), aoti.Instances(2))
			if err != nil {
				t.Fatal(err)
			}
			c.unregister() // the library keeps it
			f := open(t, c.fixture)
			for range 3 {
				fail = true
				if _, err := r.Run(t.Context(), f.list(t, "in")...); err == nil || !strings.Contains(err.Error(), "does not feel like it") {
					t.Errorf("a run whose op panics: %v", err)
				}
				fail = false
				outs, err := r.Run(t.Context(), f.list(t, "in")...)
				if err != nil {
					t.Fatal(err)
				}
				if o := compare(t, outs[0], f.tensor(t, "out0"), nil); o.problem != "" {
					t.Error(o.problem)
				}
				outs[0].Release()
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if n := host.Handles(); n != handles {
				t.Errorf("%d handles more", n-handles)
			}
			if _, err := aoti.Load(context.Background(), path(c.fixture)); !errors.As(err, new(*aoti.UnsupportedError)) {
				t.Errorf("it loads without its op: %v", err)
			}
		})
	}
}
