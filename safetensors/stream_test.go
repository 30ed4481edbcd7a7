package safetensors

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"
)

func TestReaderReadsAStream(t *testing.T) {
	file, err := os.ReadFile("testdata/dtypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	after := "what follows the file"
	stream := io.MultiReader(iotest.OneByteReader(bytes.NewReader(file)), bytes.NewReader([]byte(after)))
	r, err := NewReader(stream)
	if err != nil {
		t.Fatal(err)
	}
	if r.Size() != int64(len(file)) || r.Metadata()["format"] != "pt" {
		t.Errorf("%d bytes, metadata %v", r.Size(), r.Metadata())
	}
	whole, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range whole.Tensors() {
		got, err := r.Next()
		if err != nil || got.Name != want.Name || got.Offset != want.Offset || got.Size != want.Size {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
		if i%3 == 1 { // skipped
			continue
		}
		data, err := io.ReadAll(r)
		if wantData, _ := whole.Bytes(want.Name); err != nil || !bytes.Equal(data, wantData) {
			t.Errorf("%s: %x, %v", want.Name, data, err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
	if rest, err := io.ReadAll(stream); err != nil || string(rest) != after {
		t.Errorf("%q is left of the stream, %v", rest, err)
	}
}

func TestReaderOfATruncatedStream(t *testing.T) {
	whole := file(tensorJSON("U8", "[4]", "[0,4]"), "wxyz")
	for n := range whole {
		r, err := NewReader(bytes.NewReader(whole[:n]))
		if err == nil {
			_, err = r.Next()
			if err == nil && n%2 == 0 {
				_, err = io.ReadAll(r)
			} else if err == nil {
				_, err = r.Next()
			}
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	// What the header promises is not allocated: the stream has 10 of its 99 MB.
	long := file(string(bytes.Repeat([]byte{' '}, 10)), "")
	long[2], long[3] = 0xe0, 0x05
	if _, err := NewReader(bytes.NewReader(long)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a long header that is not there: %v", err)
	}
}

func TestWriterHoldsToWhatWasDeclared(t *testing.T) {
	a, b := Info{Name: "a", DType: F32, Shape: []int64{2}}, Info{Name: "b", DType: U8, Shape: []int64{0}}
	for _, c := range []struct {
		name string
		use  func(w *Writer) error
		want error
	}{
		{"all", func(w *Writer) error {
			for range 2 {
				if t, err := w.Next(); err != nil {
					return err
				} else if _, err := w.Write(make([]byte, t.Size)); err != nil {
					return err
				}
			}
			return w.Close()
		}, nil},
		{"nothing", func(w *Writer) error { return w.Close() }, ErrInvalidTensor},
		{"too little", func(w *Writer) error {
			w.Next()
			w.Write(make([]byte, 7))
			_, err := w.Next()
			return errors.Join(err, w.Close())
		}, ErrInvalidTensor},
		{"too little of the last", func(w *Writer) error {
			w.Next()
			w.Write(make([]byte, 8))
			return w.Close()
		}, ErrInvalidTensor},
		{"too much", func(w *Writer) error {
			w.Next()
			w.Write(make([]byte, 5))
			_, err := w.Write(make([]byte, 4))
			return err
		}, ErrInvalidTensor},
	} {
		var buf bytes.Buffer
		w, err := NewWriter(&buf, []Info{b, a}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.use(w); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.want == nil {
			if _, err := Parse(buf.Bytes()); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// What was streamed is what is written of tensors in memory; after an error the old file stays.
func TestWriteFileFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	var infos []Info
	data := map[string][]byte{}
	for _, x := range fixture() {
		infos = append(infos, Info{Name: x.Name, DType: x.DType, Shape: x.Shape})
		data[x.Name] = x.Data
	}
	source := func(t Info, w io.Writer) error {
		for part := range slices.Chunk(data[t.Name], 3) {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
	want, err := os.ReadFile("testdata/dtypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for range 2 {
		if err := WriteFileFrom(path, infos, fixtureMetadata, source); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q, %v", got, err)
		}
		err := WriteFileFrom(path, infos, nil, func(t Info, w io.Writer) error {
			if t.Name == "i8" {
				return broken
			}
			return source(t, w)
		})
		if !errors.Is(err, broken) {
			t.Errorf("a failing source: %v", err)
		}
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("the directory has %v, %v", all, err)
	}
}

func TestParseSharesMemory(t *testing.T) {
	b := file(tensorJSON("U8", "[2]", "[0,2]"), "xy")
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.Bytes("a")
	if err != nil || string(data) != "xy" || cap(data) != 2 || &data[0] != &b[len(b)-2] {
		t.Errorf("%q of %d, %v", data, cap(data), err)
	}
}
