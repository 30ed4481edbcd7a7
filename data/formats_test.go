package data

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris"
)

func TestReadCSV(t *testing.T) {
	const text = "id;height;kind;ok;small\n1; 1.5 ;cat;true;-3\n2;;dog;0;4\n"
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = ';'
	r.ReuseRecord = true
	arrays, err := ReadCSV(r, Column{Name: "height", Empty: "NaN"}, Column{Name: "id", DType: loris.I64},
		Column{Name: "kind", Categories: []string{"dog", "cat"}}, Column{Name: "ok", DType: loris.Bool},
		Column{Name: "small", DType: loris.I8}, Column{Name: "small", DType: loris.F64}, Column{Name: "height", DType: loris.F16, Empty: "2"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Array{Of([]float32{1.5, float32(math.NaN())}), Of([]int64{1, 2}), Of([]int64{1, 0}), Of([]bool{true, false}),
		Of([]int8{-3, 4}), Of([]float64{-3, 4}), {loris.MakeShape(loris.F16, 2), []byte{0x00, 0x3e, 0x00, 0x40}}}
	if !reflect.DeepEqual(arrays, want) {
		t.Errorf("%v, want %v", arrays, want)
	}
}

func TestReadCSVRefuses(t *testing.T) {
	for _, c := range []struct {
		text string
		col  Column
		want string
	}{
		{"", Column{Name: "a"}, "unexpected EOF"},
		{"a,b\n1,2\n", Column{Name: "c"}, `no column "c"`},
		{"a,a\n1,2\n", Column{Name: "a"}, `or several`},
		{"a,b\n1\n", Column{Name: "a"}, "wrong number of fields"},
		{"a,b\n1,\"\n", Column{Name: "a"}, `extraneous or missing "`},
		{"a,b\n1,x\n", Column{Name: "b"}, `line 2, position 3, column "b": strconv.ParseFloat: parsing "x"`},
		{"a\n1\n\" \"\n", Column{Name: "a"}, `line 3, position 1`},
		{"a\n300\n", Column{Name: "a", DType: loris.U8}, "out of range"},
		{"a\n-1\n", Column{Name: "a", DType: loris.U8}, "invalid syntax"},
		{"a\n128\n", Column{Name: "a", DType: loris.I8}, "out of range"},
		{"a\n1.5\n", Column{Name: "a", DType: loris.I64}, "invalid syntax"},
		{"a\nyes\n", Column{Name: "a", DType: loris.Bool}, "invalid syntax"},
		{"a\nc\n", Column{Name: "a", Categories: []string{"b"}}, `"c" is none of the categories ["b"]`},
		{"a\n1\n", Column{Name: "a", DType: loris.C64}, "c64"},
	} {
		_, err := ReadCSV(csv.NewReader(strings.NewReader(c.text)), c.col)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestMatrix(t *testing.T) {
	m, err := Matrix(Of([]int16{1, 2, 3}), Of([]int16{4, 5, 6}))
	if want := Of([]int16{1, 4, 2, 5, 3, 6}, 3, 2); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%v, %v", m, err)
	}
	for _, columns := range [][]Array{nil, {Of([]int8{1, 2}, 1, 2)}, {Of([]int8{1}), Of([]int16{1})}, {Of([]int8{1}), Of([]int8{1, 2})}} {
		if _, err := Matrix(columns...); !errors.Is(err, loris.ErrShape) {
			t.Errorf("%v: %v", columns, err)
		}
	}
}

// idx returns a file of the format.
func idx(kind byte, values any, dims ...uint32) []byte {
	b := []byte{0, 0, kind, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	b, err := binary.Append(b, binary.BigEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

func TestReadIDX(t *testing.T) {
	for _, c := range []struct {
		file []byte
		want Array
	}{
		{idx(8, []uint8{1, 2, 3, 4, 5, 6}, 1, 2, 3), Of([]uint8{1, 2, 3, 4, 5, 6}, 1, 2, 3)},
		{idx(9, []int8{-1}, 1), Of([]int8{-1})},
		{idx(11, []int16{-2, 300}, 2), Of([]int16{-2, 300})},
		{idx(12, []int32{-2, 70000}, 2), Of([]int32{-2, 70000})},
		{idx(13, []float32{1.5}, 1), Of([]float32{1.5})},
		{idx(14, []float64{1.5}, 1), Of([]float64{1.5})},
		{idx(14, []float64{1.5}), Of([]float64{1.5}, []int{}...)},
	} {
		got, err := ReadIDX(bytes.NewReader(c.file))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, %v, want %v", got, err, c.want)
		}
		for n := range c.file {
			if _, err := ReadIDX(bytes.NewReader(c.file[:n])); !errors.Is(err, ErrFormat) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d of %d bytes: %v", n, len(c.file), err)
			}
		}
		if _, err := ReadIDX(bytes.NewReader(append(slices.Clone(c.file), 0))); !errors.Is(err, ErrFormat) {
			t.Errorf("with a byte more: %v", err)
		}
	}
	for _, file := range [][]byte{
		idx(7, []uint8{1}, 1), {1, 0, 8, 0, 1}, idx(8, []uint8{}, 1, 1, 1, 1, 1, 1, 1, 1, 1),
		idx(8, []uint8{}, math.MaxUint32, math.MaxUint32, math.MaxUint32), // overflows
		idx(8, []uint8{1}, math.MaxUint32, math.MaxUint32>>2),             // more than there is
	} {
		if _, err := ReadIDX(bytes.NewReader(file)); !errors.Is(err, ErrFormat) {
			t.Errorf("% x: %v", file, err)
		}
	}
}

func TestReadCIFAR(t *testing.T) {
	image := func(labels ...byte) []byte { return append(labels, bytes.Repeat([]byte{labels[0]}, cifarPixels)...) }
	images, labels, err := ReadCIFAR10(bytes.NewReader(slices.Concat(image(3), image(9))))
	if err != nil || images.Shape != loris.MakeShape(loris.U8, 2, 3, 32, 32) || images.Data[cifarPixels] != 9 ||
		!reflect.DeepEqual(labels, Of([]uint8{3, 9})) {
		t.Errorf("%v, %v, %v", images.Shape, labels, err)
	}
	images, coarse, fine, err := ReadCIFAR100(bytes.NewReader(image(3, 99)))
	if err != nil || images.Shape != loris.MakeShape(loris.U8, 1, 3, 32, 32) || coarse.Data[0] != 3 || fine.Data[0] != 99 {
		t.Errorf("%v, %v, %v, %v", images.Shape, coarse, fine, err)
	}
	if images, labels, err := ReadCIFAR10(strings.NewReader("")); err != nil || images.Shape.Dim(0) != 0 || labels.Shape.Dim(0) != 0 {
		t.Errorf("%v, %v, %v", images.Shape, labels.Shape, err)
	}
	for _, file := range [][]byte{image(10), image(1)[:100], append(image(1), 0)} {
		if _, _, err := ReadCIFAR10(bytes.NewReader(file)); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: %v", len(file), err)
		}
	}
}
