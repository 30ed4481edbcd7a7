package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

type row struct {
	OK    bool     `parquet:"ok"`
	Small int32    `parquet:"small"`
	Large int64    `parquet:"large,delta"`
	Half  float32  `parquet:"half"`
	Whole float64  `parquet:"whole,zstd"`
	Text  string   `parquet:"text,dict,snappy"`
	Maybe *float64 `parquet:"maybe,optional"`
	Gaps  *float64 `parquet:"gaps,optional"`
	List  []int32  `parquet:"list,list"`
}

// write writes n rows in groups of 1000.
func write(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(1000), parquet.PageBufferSize(1000))
	for i := range n {
		v := float64(i) / 4
		r := row{i%3 == 0, int32(-i), int64(i) << 40, float32(i) / 2, v, fmt.Sprint("t", i%7), &v, nil, []int32{1}}
		if i != 1500 {
			r.Gaps = &v
		}
		if _, err := w.Write([]row{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func check[E loris.Elem](t *testing.T, f *File, name string, want func(i int) E) {
	t.Helper()
	a, err := f.Array(name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	all := make([]E, f.Rows())
	for i := range all {
		all[i] = want(i)
	}
	if got, err := data.Values[E](a); err != nil || !slices.Equal(got, all) {
		t.Errorf("%s: %v, %v", name, a.Shape, err)
	}
}

func TestColumns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	if err := os.WriteFile(path, write(t, 2500), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Rows() != 2500 || f.Groups() != 3 {
		t.Errorf("%d rows, %d groups", f.Rows(), f.Groups())
	}
	if got, want := f.Columns(), []string{"gaps", "half", "large", "maybe", "ok", "small", "text", "whole"}; !reflect.DeepEqual(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		f     *File
		first int
	}{{f, 0}, {f.Group(1), 1000}, {f.Group(2), 2000}} {
		check(t, c.f, "ok", func(i int) bool { return (c.first+i)%3 == 0 })
		check(t, c.f, "small", func(i int) int32 { return int32(-c.first - i) })
		check(t, c.f, "large", func(i int) int64 { return int64(c.first+i) << 40 })
		check(t, c.f, "half", func(i int) float32 { return float32(c.first+i) / 2 })
		check(t, c.f, "whole", func(i int) float64 { return float64(c.first+i) / 4 })
		check(t, c.f, "maybe", func(i int) float64 { return float64(c.first+i) / 4 })
		texts, err := c.f.Strings("text")
		if err != nil || len(texts) != c.f.Rows() || texts[5] != fmt.Sprint("t", (c.first+5)%7) {
			t.Errorf("%d texts, %v", len(texts), err)
		}
	}
}

func TestErrors(t *testing.T) {
	file := write(t, 2500)
	f, err := Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Array("gaps"); err == nil || !strings.Contains(err.Error(), "row 1500 has no value") {
		t.Errorf("gaps: %v", err)
	}
	_, none := f.Array("none")
	_, text := f.Array("text")
	_, list := f.Array("list")
	_, inner := f.Array("list.list.element")
	_, number := f.Strings("half")
	for _, err := range []error{none, text, list, inner, number} {
		if !errors.Is(err, ErrColumn) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// Damaged files are errors, whatever the library does.
func TestDamagedFiles(t *testing.T) {
	file := write(t, 300)
	for i := 0; i < len(file); i += 1 + len(file)/3000 {
		for _, damage := range []func(b []byte) []byte{
			func(b []byte) []byte { return b[:i] },
			func(b []byte) []byte { b[i] ^= 0x41; return b },
		} {
			b := damage(slices.Clone(file))
			f, err := Read(bytes.NewReader(b), int64(len(b)))
			for _, name := range []string{"ok", "small", "large", "half", "whole", "maybe"} {
				if err == nil {
					_, err = f.Array(name)
				}
			}
			if err == nil {
				_, err = f.Strings("text")
			}
			if err != nil && !errors.Is(err, data.ErrFormat) && !errors.Is(err, ErrColumn) && !strings.Contains(err.Error(), "no value") {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
}

func Example() {
	var file bytes.Buffer
	type sample struct {
		X     float32 `parquet:"x"`
		Label int64   `parquet:"label"`
	}
	if err := parquet.Write(&file, []sample{{0.5, 1}, {1.5, 0}, {2.5, 1}}); err != nil {
		fmt.Println(err)
		return
	}
	f, err := Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	x, errX := f.Array("x")
	label, errLabel := f.Array("label")
	ds, err := data.Rows(x, label)
	fmt.Println(ds.Len(), x.Shape, label.Shape, errors.Join(errX, errLabel, err))
	// Output: 3 f32[3] i64[3] <nil>
}
