package tensorfile

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/loris-ml/loris/ir"
	"github.com/loris-ml/loris/safetensors"
	"os"
)

// Every dtype that a file can have comes back, with its shape and bytes.
func TestRoundTrip(t *testing.T) {
	for _, dims := range [][]int{{}, {0}, {2, 3}} {
		var all []safetensors.Tensor
		shapes := map[string]ir.Shape{}
		for d := range dtypes {
			s := ir.MakeShape(d, dims...)
			data := bytes.Repeat([]byte{1}, s.Bytes())
			f, ok := Tensor(d.String(), s, data)
			if !ok {
				t.Fatalf("%v cannot be written", d)
			}
			all, shapes[f.Name] = append(all, f), s
		}
		path := filepath.Join(t.TempDir(), "t")
		var b bytes.Buffer
		if err := safetensors.Write(&b, all, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		for name, want := range shapes {
			got, data, err := Read(f, name)
			if err != nil || got != want || len(data) != want.Bytes() {
				t.Errorf("%s: %v with %d bytes, %v, want %v", name, got, len(data), err, want)
			}
		}
		if _, _, err := Read(f, "none"); err == nil {
			t.Error("a tensor was read that is not there")
		}
	}
}

func TestNoSuchDType(t *testing.T) {
	if d, ok := Tensor("x", ir.MakeShape(ir.C128), make([]byte, 16)); ok {
		t.Errorf("C128 became %v", d.DType)
	}
	if _, err := Shape(safetensors.Info{Name: "x", DType: "U64"}); !errors.Is(err, ir.ErrDType) {
		t.Errorf("u64: %v", err)
	}
	if _, err := Shape(safetensors.Info{Name: "x", DType: safetensors.F32, Shape: make([]int64, 20)}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("20 dimensions: %v", err)
	}
}
