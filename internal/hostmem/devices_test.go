package hostmem_test

import (
	"errors"
	"testing"

	"github.com/loris-ml/loris/internal/hostmem"
	"github.com/loris-ml/loris/internal/ir"
)

func TestUpload(t *testing.T) {
	own, other := ir.RegisterDeviceType("hostmemtest"), ir.RegisterDeviceType("hostmemother")
	devices := hostmem.Devices{Type: own, Count: 2}
	s := ir.MakeShape(ir.I32, 1)
	for _, c := range []struct {
		name string
		d    ir.Device
		data []byte
		want error
	}{
		{"first", ir.Device{Type: own}, []byte{1, 2, 3, 4}, nil},
		{"last", ir.Device{Type: own, Index: 1}, []byte{1, 2, 3, 4}, nil},
		{"past the last", ir.Device{Type: own, Index: 2}, []byte{1, 2, 3, 4}, ir.ErrDevice},
		{"another type", ir.Device{Type: other}, []byte{1, 2, 3, 4}, ir.ErrDevice},
		{"none", ir.Device{}, []byte{1, 2, 3, 4}, ir.ErrDevice},
		{"too short", ir.Device{Type: own}, []byte{1, 2, 3}, ir.ErrShape},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := hostmem.NewAllocator()
			b, err := devices.Upload(a, s, c.d, c.data)
			if c.want != nil {
				if !errors.Is(err, c.want) || b != nil {
					t.Errorf("got %v, %v, want %v", b, err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Release()
			if got := hostmem.Slice[int32](b)[0]; got != 0x04030201 || b.Device() != c.d {
				t.Errorf("%#x on %v, want 0x4030201 on %v", got, b.Device(), c.d)
			}
			if n := a.BytesInUse(c.d); n != 4 {
				t.Errorf("%d bytes in use, want 4", n)
			}
		})
	}
}
