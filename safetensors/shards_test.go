package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// model returns tensors a0, a1, … of the sizes given, and a source of their data.
func model(sizes ...int64) ([]Info, Source) {
	var infos []Info
	for i, n := range sizes {
		infos = append(infos, Info{Name: fmt.Sprintf("a%d", i), DType: U8, Shape: []int64{n}})
	}
	return infos, func(t Info, w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte(t.Name[1:]), int(t.Size)))
		return err
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	unrelated := filepath.Join(dir, "m-extra.safetensors")
	if err := WriteFile(unrelated, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sizes []int64
		max   int64
		files []string
		shard []int // of each tensor, from 1
	}{
		{[]int64{4, 4, 4}, 100, []string{"m.safetensors"}, nil},
		{[]int64{4, 4, 4}, 8, []string{"m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"}, []int{1, 1, 2}},
		{[]int64{1, 20, 0, 1}, 8, []string{"m-00001-of-00003.safetensors", "m-00002-of-00003.safetensors", "m-00003-of-00003.safetensors"}, []int{1, 2, 2, 3}},
		{[]int64{4, 4, 4}, 12, []string{"m.safetensors"}, nil},
		{nil, 12, []string{"m.safetensors"}, nil},
	} {
		infos, source := model(c.sizes...)
		if err := WriteShards(path, infos, map[string]string{"format": "pt"}, c.max, source); err != nil {
			t.Fatal(err)
		}
		open := path
		want := append([]string{"m-extra.safetensors"}, c.files...)
		if len(c.files) > 1 {
			open += ".index.json"
			want = append(want, "m.safetensors.index.json")
		}
		slices.Sort(want)
		if got := names(t, dir); !slices.Equal(got, want) {
			t.Errorf("%v by %d: files %v, want %v", c.sizes, c.max, got, want)
		}
		f, err := Open(open)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Tensors()) != len(infos) || f.Metadata()["format"] != "pt" {
			t.Errorf("%+v, %v", f.Tensors(), f.Metadata())
		}
		for i, x := range infos {
			data, err := f.Bytes(x.Name)
			if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{byte('0' + i)}, int(c.sizes[i]))) {
				t.Errorf("%s: %q, %v", x.Name, data, err)
			}
			if got, _ := f.Lookup(x.Name); c.shard != nil && got.Shard != c.files[c.shard[i]-1] {
				t.Errorf("%s is in %s", x.Name, got.Shard)
			}
			into := make([]byte, c.sizes[i])
			if err := f.ReadInto(x.Name, into); err != nil || !bytes.Equal(into, data) {
				t.Errorf("%s: ReadInto gives %q, %v", x.Name, into, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestIndexText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	infos, source := model(4, 4)
	if err := WriteShards(path, infos, nil, 4, source); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path + ".index.json")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "metadata": {
    "total_size": 8
  },
  "weight_map": {
    "a0": "m-00001-of-00002.safetensors",
    "a1": "m-00002-of-00002.safetensors"
  }
}
`
	if string(text) != want {
		t.Errorf("wrote\n%s\nwant\n%s", text, want)
	}
}

// A model that cannot be written leaves the one that is there.
func TestShardsAreCheckedFirst(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.safetensors")
	infos, source := model(4, 4)
	if err := WriteShards(path, infos, nil, 100, source); err != nil {
		t.Fatal(err)
	}
	bad := append(slices.Clone(infos), Info{Name: "a0", DType: U8})
	for _, err := range []error{
		WriteShards(path, bad, nil, 4, source),
		WriteShards(filepath.Join(dir, "m.bin"), infos, nil, 4, source),
		WriteShards(path, infos, nil, 0, source),
	} {
		if !errors.Is(err, ErrInvalidTensor) {
			t.Errorf("error %v", err)
		}
	}
	broken := errors.New("broken")
	if err := WriteShards(path, infos, nil, 4, func(Info, io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"m.safetensors"}) {
		t.Errorf("files %v", got)
	}
}

func TestHostileIndex(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "model")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	tensor := []Tensor{{"a", U8, []int64{1}, []byte{1}}}
	for _, path := range []string{filepath.Join(outer, "secret"), filepath.Join(dir, "s")} {
		if err := WriteFile(path, tensor, nil); err != nil {
			t.Fatal(err)
		}
	}
	open := func(text string) error {
		path := filepath.Join(dir, "m.safetensors.index.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err == nil {
			f.Close()
		}
		return err
	}
	if err := open(`{"metadata":{"total_size":1,"x":[null]},"weight_map":{"a":"s"}}`); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"../secret", filepath.Join(outer, "secret"), "", ".", "..", "./s", `..\secret`} {
		quoted, _ := json.Marshal(name)
		var fe *FormatError
		if err := open(`{"weight_map":{"a":` + string(quoted) + `}}`); !errors.As(err, &fe) || fe.Offset != 19 {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, text := range []string{``, `[]`, `{}`, `{"weight_map":[]}`, `{"weight_map":{}}x`, `{"weight_map":{},"weight_map":{}}`,
		`{"weight_map":{"a":"s","a":"s"}}`, `{"weight_map":{"a":1}}`, "{\"weight_map\":{\"\xff\":\"s\"}}", "{\"weight_map\":{}}\x00"} {
		var fe *FormatError
		if err := open(text); !errors.As(err, &fe) || !strings.Contains(err.Error(), "index.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := open(`{"weight_map":{"b":"s"}}`); !errors.Is(err, ErrNotFound) {
		t.Errorf("a tensor that is not there: %v", err)
	}
	if err := open(`{"weight_map":{"a":"none"}}`); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := open(`{"weight_map":{"a":"m.safetensors.index.json"}}`); err == nil {
		t.Error("the index passed for a file")
	}
}
