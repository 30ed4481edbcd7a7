package aoti_test

import (
	"context"
	"os"
	"testing"

	"github.com/loris-ml/loris/aoti"
)

// Packages run unchanged on a real libtorch, whose path is in LORIS_LIBTORCH,
// beside packages that run without it.
func TestWithLibtorch(t *testing.T) {
	lib := os.Getenv("LORIS_LIBTORCH")
	if lib == "" {
		t.Skip("LORIS_LIBTORCH does not name a libtorch_cpu.so of PyTorch 2.15")
	}
	ctx := context.Background()
	for _, name := range []string{"mlp_linked", "mlp", "conv", "aliases", "weights_blob", "indexing", "folding", "mlp_2_6"} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			var opts []aoti.Option
			if name != "mlp_2_6" {
				opts = append(opts, aoti.WithLibtorch(lib))
			}
			r := load(t, name, opts...)
			for range 2 {
				outs, err := r.Run(ctx, f.list(t, "in")...)
				if err != nil {
					t.Fatal(err)
				}
				for i, b := range outs {
					if o := compare(t, b, f.list(t, "out")[i], nil); o.problem != "" && name != "mlp_2_6" {
						t.Errorf("output %d: %s", i, o.problem)
					}
					b.Release()
				}
				if name == "folding" {
					break // it counts its runs
				}
				c, err := r.ExtractConstants(ctx, aoti.Active, true)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Update(ctx, c, aoti.Inactive); err != nil {
					t.Fatal(err)
				}
				if err := r.Swap(ctx); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
