package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/safetensors"
)

// all reads a dataset in order.
func all[T any](t *testing.T, ds Dataset[T]) []T {
	t.Helper()
	var out []T
	for i := range ds.Len() {
		s, err := ds.At(t.Context(), i, newGenerator().of(0, 0, i))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func TestDatasets(t *testing.T) {
	letters := Slice([]string{"a", "b", "c", "d"})
	first, rest := Split(letters, 1, 7)
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"Slice", all(t, letters), []string{"a", "b", "c", "d"}},
		{"Map", all(t, Map(letters, func(s string) (string, error) { return s + s, nil })), []string{"aa", "bb", "cc", "dd"}},
		{"Subset", all(t, Subset(letters, []int{3, 0, 3})), []string{"d", "a", "d"}},
		{"Concat", all(t, Concat(letters, Slice([]string{}), Slice([]string{"e"}))), []string{"a", "b", "c", "d", "e"}},
		{"Concat of nothing", all(t, Concat[string]()), nil},
		{"Split", slices.Sorted(slices.Values(append(all(t, first), all(t, rest)...))), []string{"a", "b", "c", "d"}},
		{"Split's order", all(t, first), []string{[]string{"a", "b", "c", "d"}[Permutation(4, 7)[0]]}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func checkValues[E loris.Elem](t *testing.T, values []E, d loris.DType) {
	t.Helper()
	a := Of(values, len(values), 1)
	if a.Shape != loris.MakeShape(d, len(values), 1) {
		t.Errorf("%v of %T", a.Shape, values)
	}
	for _, data := range [][]byte{a.Data, append(make([]byte, 1, len(a.Data)+1), a.Data...)[1:]} { // the second is not aligned
		got, err := Values[E](Array{a.Shape, data})
		if err != nil || !reflect.DeepEqual(got, values) {
			t.Errorf("%v: %v, %v, want %v", d, got, err, values)
		}
	}
	if _, err := Values[E](Array{a.Shape, a.Data[1:]}); !errors.Is(err, loris.ErrShape) {
		t.Errorf("%v with too few bytes: %v", d, err)
	}
	if _, err := Values[E](Array{Shape: loris.MakeShape(loris.F16, 0)}); !errors.Is(err, loris.ErrDType) {
		t.Errorf("f16 as %v: %v", d, err)
	}
	m := loris.With()
	if got, err := loris.Read[E](t.Context(), a.Tensor(m)); err != nil || !reflect.DeepEqual(got, values) {
		t.Errorf("a tensor of %v has %v, %v", values, got, err)
	}
}

func TestValues(t *testing.T) {
	checkValues(t, []bool{true, false}, loris.Bool)
	checkValues(t, []uint8{1, 255}, loris.U8)
	checkValues(t, []int8{1, -128}, loris.I8)
	checkValues(t, []int16{1, -128}, loris.I16)
	checkValues(t, []int32{1, -128}, loris.I32)
	checkValues(t, []int64{1, -128}, loris.I64)
	checkValues(t, []int{1, -128}, loris.I64)
	checkValues(t, []float32{1.5, -128}, loris.F32)
	checkValues(t, []float64{1.5, -128}, loris.F64)
	checkValues(t, []complex64{1.5i, -128}, loris.C64)
	checkValues(t, []complex128{1.5i, -128}, loris.C128)
}

func TestRowsAndStack(t *testing.T) {
	ds, err := Rows(Of([]float32{1, 2, 3, 4, 5, 6}, 3, 2), Of([]int64{7, 8, 9}))
	if err != nil {
		t.Fatal(err)
	}
	samples := all(t, ds)
	if samples[1][0].Shape != loris.MakeShape(loris.F32, 2) || samples[1][1].Shape != loris.MakeShape(loris.I64) {
		t.Errorf("%v", samples[1])
	}
	batch, err := Stack([]Sample{samples[2], samples[0]})
	if err != nil || batch.Len() != 2 {
		t.Fatal(batch, err)
	}
	ts := batch.Tensors(loris.With())
	x, errX := ts[0].Float32s(t.Context())
	y, errY := loris.Read[int64](t.Context(), ts[1])
	if errors.Join(errX, errY) != nil || !slices.Equal(x, []float32{5, 6, 1, 2}) || !slices.Equal(y, []int64{9, 7}) {
		t.Errorf("%v, %v", x, y)
	}
	if b, err := Stack(nil); b.Len() != 0 || err != nil {
		t.Errorf("%v, %v", b, err)
	}
	for want, samples := range map[string][]Sample{
		"array 0 of sample 1": {{Of([]float32{1})}, {Of([]float32{1, 2})}},
		"has 2 arrays":        {{Of([]float32{1})}, {Of([]float32{1}), Of([]float32{1})}},
		"f64[1] with 8 bytes": {{Of([]float32{1})}, {Of([]float64{1})}},
	} {
		if _, err := Stack(samples); !errors.Is(err, loris.ErrShape) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, arrays := range map[string][]Array{
		"no arrays":                nil,
		"array 0, f32[], has no":   {Of([]float32{1}, []int{}...)},
		"array 1, f32[2], has oth": {Of([]float32{1}), Of([]float32{1, 2})},
		"array 0 has 4 bytes":      {{loris.MakeShape(loris.F32, 2), make([]byte, 4)}},
	} {
		if _, err := Rows(arrays...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// A dataset over a file gives what one over its arrays gives, and reads what it is asked for.
func TestTensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.safetensors")
	x, y := Of([]float32{1, 2, 3, 4, 5, 6}, 3, 2), Of([]int64{7, 8, 9})
	err := safetensors.WriteFile(path, []safetensors.Tensor{
		{Name: "x", DType: safetensors.F32, Shape: []int64{3, 2}, Data: x.Data},
		{Name: "y", DType: safetensors.I64, Shape: []int64{3}, Data: y.Data},
		{Name: "u", DType: safetensors.U16, Shape: []int64{1}, Data: make([]byte, 2)},
		{Name: "scalar", DType: safetensors.U8, Shape: nil, Data: make([]byte, 1)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := Tensors(f, "y", "x")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Rows(y, x)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all(t, ds), all(t, rows); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if a, err := ReadTensor(f, "x"); err != nil || !reflect.DeepEqual(a, x) {
		t.Errorf("%v, %v", a, err)
	}
	for name, want := range map[string]error{"none": safetensors.ErrNotFound, "u": loris.ErrDType, "scalar": loris.ErrShape} {
		if _, err := Tensors(f, "x", name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadTensor(f, "none"); !errors.Is(err, safetensors.ErrNotFound) {
		t.Errorf("%v", err)
	}
	f.Close()
	if _, err := ds.At(t.Context(), 1, nil); !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), `row 1 of tensor "y"`) {
		t.Errorf("of a closed file: %v", err)
	}
}

func TestFiles(t *testing.T) {
	fsys := fstest.MapFS{"a/1": {Data: []byte("one")}, "a/2": {Data: []byte("two")}}
	read := func(path string, r io.Reader) (string, error) {
		b, err := io.ReadAll(r)
		if bytes.Equal(b, []byte("two")) {
			err = io.ErrUnexpectedEOF
		}
		return path + string(b), err
	}
	ds := Files(fsys, []string{"a/1", "a/2", "a/3"}, read)
	if s, err := ds.At(t.Context(), 0, nil); s != "a/1one" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := ds.At(t.Context(), 1, nil); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "a/2") {
		t.Errorf("%v", err)
	}
	if _, err := ds.At(t.Context(), 2, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "a/3") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ds.At(ctx, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestPermutation compares with the Python code of examples/digits/README.md.
func TestPermutation(t *testing.T) {
	for _, c := range []struct {
		n    int
		seed uint64
		want []int
	}{
		{10, 0, []int{6, 3, 2, 9, 8, 1, 4, 7, 0, 5}},
		{10, 1, []int{4, 2, 8, 1, 9, 3, 0, 6, 7, 5}},
		{7, math.MaxUint64, []int{5, 4, 6, 2, 1, 3, 0}},
		{1, 5, []int{0}},
		{0, 5, []int{}},
	} {
		if got := Permutation(c.n, c.seed); !slices.Equal(got, c.want) {
			t.Errorf("Permutation(%d, %d) = %v, want %v", c.n, c.seed, got, c.want)
		}
	}
}

// The random numbers of samples stay what they are: files of results and resumed runs rely on them.
func TestRandomNumbersOfSamples(t *testing.T) {
	r := newGenerator().of(1, 2, 3)
	got := fmt.Sprintf("%x %x", r.Uint64(), r.Uint64())
	if want := "74c7e18b53f52a4e 72d6cfd0dd08d76e"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
