package safetensors

import (
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/half"
)

var out = flag.String("out", "", "also write the fixture's tensors to this `file`, for scripts/check_safetensors.py")

// le returns the little-endian bytes of values of a fixed size.
func le(values any) []byte {
	var buf bytes.Buffer
	if err := binary.Write(&buf, binary.LittleEndian, values); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// fixture is what scripts/make_safetensors_fixtures.py puts into dtypes.safetensors.
func fixture() []Tensor {
	inf := float32(math.Inf(1))
	negZero := float32(math.Copysign(0, -1))
	return []Tensor{
		{"bool", Bool, []int64{3}, []byte{1, 0, 1}},
		{"u8", U8, []int64{2, 2}, []byte{0, 1, 254, 255}},
		{"i8", I8, []int64{3}, le([]int8{-128, 0, 127})},
		{"i16", I16, []int64{2, 1}, le([]int16{math.MinInt16, math.MaxInt16})},
		{"i32", I32, []int64{2}, le([]int32{math.MinInt32, math.MaxInt32})},
		{"i64", I64, []int64{2}, le([]int64{math.MinInt64, math.MaxInt64})},
		{"f8_e4m3", F8E4M3, []int64{3}, []byte{half.F32ToE4M3(0), half.F32ToE4M3(1.5), half.F32ToE4M3(-448)}},
		{"f8_e5m2", F8E5M2, []int64{3}, []byte{half.F32ToE5M2(0.5), half.F32ToE5M2(-57344), half.F32ToE5M2(inf)}},
		{"f16", F16, []int64{1, 3}, le([]uint16{half.F32ToF16(1), half.F32ToF16(-2.5), half.F32ToF16(65504)})},
		{"bf16", BF16, []int64{3}, le([]uint16{half.F32ToBF16(1), half.F32ToBF16(-2.5), half.F32ToBF16(0x1p100)})},
		{"f32", F32, []int64{2, 3}, le([]float32{0, negZero, 1.25, inf, -inf, 1e-45})},
		{"f64", F64, []int64{2}, le([]float64{0.1, -1e300})},
		{"c64", C64, []int64{2}, le([]complex64{1 + 2i, complex(0, -0.5)})},
		{"scalar", F32, nil, le(float32(3.5))},
		{"empty", F32, []int64{0}, nil},
		{"empty.i64", I64, []int64{2, 0, 3}, nil},
		{"name \"quoted\"\\\né\u2028", U8, []int64{1}, []byte{7}},
	}
}

var fixtureMetadata = map[string]string{"format": "pt"}

func TestReadReference(t *testing.T) {
	f, err := Open("testdata/dtypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.Metadata(); !reflect.DeepEqual(got, fixtureMetadata) {
		t.Errorf("metadata %q", got)
	}
	want := fixture()
	if n := len(f.Tensors()); n != len(want) {
		t.Errorf("%d tensors, want %d", n, len(want))
	}
	for _, w := range want {
		info, ok := f.Lookup(w.Name)
		if !ok {
			t.Errorf("no tensor %q", w.Name)
			continue
		}
		if info.Name != w.Name || info.DType != w.DType || !slices.Equal(info.Shape, w.Shape) || info.Size != int64(len(w.Data)) {
			t.Errorf("%q: %+v", w.Name, info)
		}
		data, err := f.Bytes(w.Name)
		if err != nil || !bytes.Equal(data, w.Data) {
			t.Errorf("%q: Bytes gives %x, %v; want %x", w.Name, data, err, w.Data)
		}
		into := make([]byte, info.Size)
		if err := f.ReadInto(w.Name, into); err != nil || !bytes.Equal(into, w.Data) {
			t.Errorf("%q: ReadInto gives %x, %v", w.Name, into, err)
		}
		section, err := f.Section(w.Name)
		if err != nil {
			t.Errorf("%q: %v", w.Name, err)
			continue
		}
		if data, err := io.ReadAll(section); err != nil || !bytes.Equal(data, w.Data) {
			t.Errorf("%q: Section gives %x, %v", w.Name, data, err)
		}
	}
}

func TestWriteMatchesReference(t *testing.T) {
	want, err := os.ReadFile("testdata/dtypes.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	tensors := fixture()
	var buf bytes.Buffer
	for range 2 { // the order given does not matter
		buf.Reset()
		if err := Write(&buf, tensors, fixtureMetadata); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), want) {
			t.Fatalf("wrote\n%q\nthe reference writes\n%q", buf.Bytes(), want)
		}
		slices.Reverse(tensors)
	}
	if *out != "" {
		if err := os.WriteFile(*out, buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPackedAndUnsigned(t *testing.T) {
	f, err := Open("testdata/foreign.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := f.Bytes("f32"); err != nil || !bytes.Equal(data, le([]float32{1, 2})) {
		t.Errorf("f32: %x, %v", data, err)
	}
	for name, size := range map[string]int64{"u16": 4, "u32": 8, "u64": 8, "f4": 1} {
		info, ok := f.Lookup(name)
		if !ok || info.Size != size {
			t.Errorf("%s: %+v", name, info)
		}
		if data, err := f.Bytes(name); err != nil || int64(len(data)) != size {
			t.Errorf("%s: %x, %v", name, data, err)
		}
	}
	want, err := os.ReadFile("testdata/foreign.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if got := rewrite(t, f); !bytes.Equal(got, want) {
		t.Errorf("wrote\n%q\nthe reference writes\n%q", got, want)
	}
}
