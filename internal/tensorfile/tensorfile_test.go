package tensorfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/safetensors"
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

// hole is a file of a header and zeros without end.
type hole struct{ header []byte }

func (h hole) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(h.header)) {
		copy(p, h.header[off:])
	}
	return len(p), nil
}

// A file with holes may be larger than memory; reading its tensor is an error, not the end of the process.
func TestTensorsThatMemoryCannotHold(t *testing.T) {
	const size = 1 << 50
	text := fmt.Sprintf(`{"x":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, size, size)
	header := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	f, err := safetensors.Read(hole{header}, int64(len(header))+size)
	if err != nil {
		t.Fatal(err)
	}
	var full *ir.OutOfMemory
	if _, _, err := Read(f, "x"); !errors.As(err, &full) || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("error %v", err)
	}
}

// A file that lacks a tensor, has one too many and another of another shape is told of all three.
func TestMatch(t *testing.T) {
	info := func(name string, dims ...int64) safetensors.Info {
		return safetensors.Info{Name: name, DType: safetensors.F32, Shape: dims}
	}
	files := map[string]safetensors.Info{"a": info("a", 2), "b": info("file.b", 3), "d": info("file.d", 4)}
	places := []Place{{"a", ir.MakeShape(ir.F32, 2)}, {"b", ir.MakeShape(ir.F32, 2)}, {"c", ir.MakeShape(ir.F32)}}
	m := Match(files, []string{"a", "b", "d"}, places, func(file, own ir.Shape) bool { return file == own })
	want := "\"b\": shape or dtype mismatch: the file has f32[3], the program f32[2]\n\"c\": tensor is missing in the file\n\"file.d\": unexpected tensor in the file"
	if err := m.Err(true); err == nil || err.Error() != want || !errors.Is(err, ErrMismatch) || !errors.Is(err, ErrMissing) || !errors.Is(err, ErrUnexpected) {
		t.Errorf("%v, want %v", err, want)
	}
	if err := m.Err(false); !errors.Is(err, ErrMismatch) || errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
}
