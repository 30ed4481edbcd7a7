//go:build linux && cgo

package aoti_test

import (
	"testing"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/internal/host"
)

// A loaded model that is idle holds two sets of constants at the most, however
// often they were replaced, and nothing once it is closed.
func TestIdleHoldsTwoSets(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_2_11", "mlp_2_6", "folding", "weights_blob"} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			load(t, name).Close() // or skip
			before := host.BytesInUse()
			r := load(t, name, aoti.Instances(2))
			in := f.list(t, "in")
			values, err := r.ExtractConstants(t.Context(), aoti.Active, true)
			if err != nil {
				t.Fatal(err)
			}
			var set int64
			for _, k := range r.Constants() {
				const room = 2 * 64 // for what a storage and its alignment take
				set += k.Bytes + room
			}
			var held []int64
			for range 12 {
				if err := r.Update(t.Context(), values, aoti.Inactive); err != nil {
					t.Fatal(err)
				}
				if err := r.Swap(t.Context()); err != nil {
					t.Fatal(err)
				}
				outs, err := r.Run(t.Context(), in...)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range outs {
					b.Release()
				}
				held = append(held, host.BytesInUse()-before)
			}
			for _, b := range values {
				b.Release()
			}
			if n := len(held); held[n-1] > held[n/2] {
				t.Errorf("memory grows: %v", held)
			}
			if idle := host.BytesInUse() - before; idle > 2*set {
				t.Errorf("%d bytes are held, one set is %d", idle, set)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if n := host.BytesInUse() - before; n != 0 {
				t.Errorf("%d bytes are held after closing", n)
			}
		})
	}
}
