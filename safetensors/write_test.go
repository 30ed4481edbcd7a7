package safetensors

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestWriteRefuses(t *testing.T) {
	ok := Tensor{"a", U8, []int64{1}, []byte{1}}
	for _, c := range []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
		want     error
	}{
		{"unknown dtype", []Tensor{{"a", "U15", []int64{1}, make([]byte, 2)}}, nil, ErrInvalidTensor},
		{"no dtype", []Tensor{{"a", "", []int64{0}, nil}}, nil, ErrInvalidTensor},
		{"partial bytes", []Tensor{{"a", F4, []int64{3}, make([]byte, 2)}}, nil, ErrInvalidTensor},
		{"too much in all", []Tensor{{"a", U8, []int64{math.MaxInt64}, nil}, {"b", U8, []int64{math.MaxInt64}, nil}}, nil, ErrInvalidTensor},
		{"reserved name", []Tensor{{"__metadata__", U8, []int64{1}, []byte{1}}}, nil, ErrInvalidTensor},
		{"name without meaning", []Tensor{{"\xff", U8, []int64{1}, []byte{1}}}, nil, ErrInvalidTensor},
		{"same name", []Tensor{ok, {"a", F32, nil, make([]byte, 4)}}, nil, ErrInvalidTensor},
		{"negative dimension", []Tensor{{"a", U8, []int64{-1, -1}, []byte{1}}}, nil, ErrInvalidTensor},
		{"overflow", []Tensor{{"a", F32, []int64{1 << 62}, nil}}, nil, ErrInvalidTensor},
		{"too many dimensions", []Tensor{{"a", U8, slices.Repeat([]int64{1}, 65), []byte{1}}}, nil, ErrInvalidTensor},
		{"too little data", []Tensor{{"a", F32, []int64{2}, make([]byte, 7)}}, nil, ErrInvalidTensor},
		{"metadata", []Tensor{ok}, map[string]string{"k": "\xff"}, ErrInvalidTensor},
	} {
		var buf bytes.Buffer
		if err := Write(&buf, c.tensors, c.metadata); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		if buf.Len() != 0 {
			t.Errorf("%s: wrote %d bytes", c.name, buf.Len())
		}
	}
}

func TestWriteLayout(t *testing.T) {
	for _, c := range []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
		header   string
	}{
		{"nothing", nil, nil, `{}      `},
		{"empty metadata", nil, map[string]string{}, `{"__metadata__":{}}     `},
		{"metadata is sorted", nil, map[string]string{"b": "2", "c": "\x01\x7f", "a": "</>&"},
			`{"__metadata__":{"a":"</>&","b":"2","c":"\u0001` + "\x7f" + `"}}     `},
		{"larger elements first, then by name",
			[]Tensor{{"a", U8, []int64{1}, []byte{1}}, {"z", F32, nil, make([]byte, 4)}, {"y", F32, nil, make([]byte, 4)}}, nil,
			`{"y":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"z":{"dtype":"F32","shape":[],"data_offsets":[4,8]},` +
				`"a":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}   `},
	} {
		var buf bytes.Buffer
		if err := Write(&buf, c.tensors, c.metadata); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := buf.Bytes()
		if want := file(c.header, ""); !bytes.HasPrefix(got, want) {
			t.Errorf("%s: wrote\n%q\nwant\n%q", c.name, got, want)
		}
		if _, err := readBytes(got); err != nil {
			t.Errorf("%s: can't be read: %v", c.name, err)
		}
	}
}

type failingWriter struct{ left int }

var errFull = errors.New("full")

func (w *failingWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func TestWriterErrors(t *testing.T) {
	tensors := []Tensor{{"a", U8, []int64{10000}, make([]byte, 10000)}}
	for _, room := range []int{0, 10, 9000} {
		if err := Write(&failingWriter{room}, tensors, nil); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
}

// rewrite reads all of f and writes it again.
func rewrite(t *testing.T, f *File) []byte {
	var tensors []Tensor
	for _, info := range f.Tensors() {
		data, err := f.Bytes(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, Tensor{info.Name, info.DType, info.Shape, data})
	}
	var buf bytes.Buffer
	if err := Write(&buf, tensors, f.Metadata()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// FuzzRead feeds Read anything. What it refuses, it refuses with a position in
// the file; what it accepts covers the file, and is the same after it was
// written and read again.
func FuzzRead(f *testing.F) {
	f.Add(file(`{}`, ""))
	f.Add(file(`{"__metadata__":{"k":"\u00e9"}} `, ""))
	f.Add(file(tensorJSON("F32", "[1,2]", "[0,8]"), "12345678"))
	f.Add(file(tensorJSON("U16", "[1]", "[0,2]"), "12"))
	f.Add(file(`{"a":{"x":[],"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"BOOL","shape":[0],"data_offsets":[1,1]}}`, "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := readBytes(b)
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) || fe.Offset < 0 || fe.Offset > int64(len(b)) || fe.Reason == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if stream, err := NewReader(bytes.NewReader(b)); err != nil || stream.Size() != int64(len(b)) || !reflect.DeepEqual(stream.Tensors(), file.Tensors()) {
			t.Fatalf("as a stream: %v", err)
		}
		end := int64(-1)
		for _, info := range file.Tensors() {
			if end >= 0 && info.Offset != end {
				t.Fatalf("%q begins at %d, the tensor before it ends at %d", info.Name, info.Offset, end)
			}
			end = info.Offset + info.Size
			if _, ok := file.Lookup(info.Name); !ok {
				t.Fatalf("no %q", info.Name)
			}
		}
		if end >= 0 && end != int64(len(b)) {
			t.Fatalf("the tensors end at %d of %d", end, len(b))
		}
		once := rewrite(t, file)
		again, err := readBytes(once)
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		if !maps.Equal(file.Metadata(), again.Metadata()) || len(file.Tensors()) != len(again.Tensors()) {
			t.Fatal("writing lost something")
		}
		for _, info := range file.Tensors() {
			x, errX := file.Bytes(info.Name)
			y, errY := again.Bytes(info.Name)
			if errX != nil || errY != nil || !bytes.Equal(x, y) {
				t.Fatalf("%q: %x, %v became %x, %v", info.Name, x, errX, y, errY)
			}
		}
		if !bytes.Equal(rewrite(t, again), once) {
			t.Fatal("writing is not deterministic")
		}
	})
}

func BenchmarkReadHeader(b *testing.B) {
	tensors := make([]Tensor, 500)
	for i := range tensors {
		tensors[i] = Tensor{"model.layers." + string(rune('a'+i%26)) + string(rune('a'+i/26)), F32, []int64{1}, make([]byte, 4)}
	}
	var buf bytes.Buffer
	if err := Write(&buf, tensors, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := readBytes(buf.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzIndex feeds the reader of indices anything. What it accepts names files beside the index only.
func FuzzIndex(f *testing.F) {
	f.Add(`{"metadata":{"total_size":1},"weight_map":{"a":"m-00001-of-00002.safetensors"}}`)
	f.Add(`{"weight_map":{"a":"../m"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		shards, err := parseIndex(text)
		var fe *FormatError
		if err != nil && (!errors.As(err, &fe) || fe.Offset < 0 || fe.Offset > int64(len(text))) {
			t.Fatalf("error %#v", err)
		}
		for name := range shards {
			if name != filepath.Base(name) || name == ".." {
				t.Fatalf("a file %q", name)
			}
		}
	})
}
