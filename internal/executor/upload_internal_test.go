package executor

import (
	"bytes"
	"context"
	"testing"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	_ "github.com/loris-ml/loris/internal/ref"
)

// A hit of the data cache is confirmed by the contents: what lies under the key
// of other bytes, or has another shape, is not taken for them.
func TestDataCacheComparesContents(t *testing.T) {
	ctx := context.Background()
	d, err := ir.ParseDevice("ref")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Device: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	be, err := backend.For(d)
	if err != nil {
		t.Fatal(err)
	}
	shape, data := ir.MakeShape(ir.I32, 2), []byte{1, 0, 0, 0, 2, 0, 0, 0}
	get := func() *Tensor {
		t.Helper()
		x := new(Tensor)
		if err := s.UploadCached(ctx, x, shape, d, data); err != nil {
			t.Fatal(err)
		}
		got, err := x.Fetch(ctx)
		if err != nil || !bytes.Equal(got, data) || x.Shape() != shape {
			t.Fatalf("got %v of %v (%v), want %v of %v", got, x.Shape(), err, data, shape)
		}
		return x
	}
	for name, under := range map[string]struct {
		shape ir.Shape
		data  []byte
	}{
		"other contents": {shape, []byte{1, 0, 0, 0, 3, 0, 0, 0}},
		"another shape":  {ir.MakeShape(ir.I32, 1, 2), data},
	} {
		t.Run(name, func(t *testing.T) {
			buf, err := be.Upload(ctx, under.shape, d, under.data)
			if err != nil {
				t.Fatal(err)
			}
			key := hostKey(shape, data)
			s.core.data.Put(d, key, readyData(buf, DeviceDataInfo{ReadOnly: true}), int64(len(data))).Release()
			first := get()
			if second := get(); second.Data() != first.Data() {
				t.Error("what was uploaded is not found again")
			}
		})
	}
}
