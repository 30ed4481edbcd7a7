package opinfo

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

func f64s(values ...float64) Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return Tensor{"f64", []int{len(values)}, data}
}

func f32s(values ...float32) Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Tensor{"f32", []int{len(values)}, data}
}

func i64s(values ...int64) Tensor {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return Tensor{"i64", []int{len(values)}, data}
}

func TestAssertClose(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want Tensor
		dtype     DType
		ok        bool
	}{
		{"equal", f64s(1, -2), f64s(1, -2), "f64", true},
		{"within rtol", f64s(1e6 + 0.05), f64s(1e6), "f64", true},
		{"outside rtol", f64s(1e6 + 0.2), f64s(1e6), "f64", false},
		{"within atol", f64s(1e-7), f64s(0), "f64", true},
		{"outside atol", f64s(1.1e-7), f64s(0), "f64", false},
		{"looser dtype", f64s(1.015), f64s(1), "bf16", true},
		{"f16 is tighter", f64s(1.015), f64s(1), "f16", false},
		{"f32", f32s(1.000001), f32s(1), "f32", true},
		{"f32 outside", f32s(1.00002), f32s(1), "f32", false},
		{"nan", f64s(nan), f64s(nan), "f64", true},
		{"nan for a number", f64s(nan), f64s(1), "f64", false},
		{"number for a nan", f64s(1), f64s(nan), "f64", false},
		{"inf", f64s(inf, -inf), f64s(inf, -inf), "f64", true},
		{"sign of inf", f64s(inf), f64s(-inf), "f64", false},
		{"number for inf", f64s(math.MaxFloat64), f64s(inf), "f64", false},
		{"inf for a number", f64s(inf), f64s(1), "f64", false},
		{"sign of zero", f64s(math.Copysign(0, -1)), f64s(0), "f64", true},
		{"integers are exact", i64s(1 << 60), i64s(1<<60 + 1), "f64", false},
		{"equal integers", i64s(-3), i64s(-3), "i64", true},
		{"dtype", f32s(1), f64s(1), "f64", false},
		{"shape", f64s(1, 1), f64s(1), "f64", false},
		{"rank", Tensor{"u8", []int{1, 1}, []byte{1}}, Tensor{"u8", []int{1}, []byte{1}}, "u8", false},
		{"empty", f64s(), f64s(), "f64", true},
		{"missing data", Tensor{"f64", []int{1}, nil}, f64s(1), "f64", false},
	} {
		err := AssertClose(c.got, c.want, c.dtype)
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
		if err != nil && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v does not wrap ErrMismatch", c.name, err)
		}
	}
}

// The message names the worst element by its coordinates.
func TestMismatchMessage(t *testing.T) {
	got, want := f64s(1, 2, 3, 4, 5, 7), f64s(1, 2.5, 3, 4, 5, 6)
	got.Shape, want.Shape = []int{2, 3}, []int{2, 3}
	err := AssertClose(got, want, "f64")
	if err == nil || !strings.Contains(err.Error(), "2 of 6") || !strings.Contains(err.Error(), "[1 2]: got 7, want 6") {
		t.Errorf("got %v", err)
	}
	err = AssertClose(i64s(1, 5), i64s(1, 6), "i64")
	if err == nil || !strings.Contains(err.Error(), "1 of 2") || !strings.Contains(err.Error(), "[1]: got 5, want 6") {
		t.Errorf("got %v", err)
	}
}

func TestCheck(t *testing.T) {
	c := &Case{Op: "f", Outputs: []Tensor{f64s(1), i64s(2)}}
	for _, wrong := range [][]Tensor{nil, {f64s(1)}, {f64s(2), i64s(2)}, {f64s(1), i64s(3)}} {
		if err := c.Check(wrong); !errors.Is(err, ErrMismatch) {
			t.Errorf("%v: got %v", wrong, err)
		}
	}
	if err := c.Check([]Tensor{f64s(1), i64s(2)}); err != nil {
		t.Error(err)
	}
	c.ATol = 0.5
	if err := c.Check([]Tensor{f64s(1.4), i64s(2)}); err != nil {
		t.Error(err)
	}
	if err := c.Check([]Tensor{f64s(1.6), i64s(2)}); err == nil {
		t.Error("accepted an error above the case's atol")
	}
}

func TestFloat64s(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		dtype DType
		data  []byte
		want  float64
	}{
		{"bool", []byte{1}, 1},
		{"u8", []byte{255}, 255},
		{"i8", []byte{255}, -1},
		{"i16", []byte{0, 128}, -32768},
		{"i32", []byte{254, 255, 255, 255}, -2},
		{"i64", []byte{0, 0, 0, 0, 1, 0, 0, 0}, 1 << 32},
		{"f16", []byte{0x00, 0x3c}, 1},
		{"f16", []byte{0x01, 0x3c}, 1 + 1.0/1024},
		{"f16", []byte{0xff, 0xfb}, -65504},
		{"f16", []byte{0x01, 0x00}, math.Ldexp(1, -24)},
		{"f16", []byte{0x00, 0x80}, math.Copysign(0, -1)},
		{"f16", []byte{0x00, 0xfc}, -inf},
		{"f16", []byte{0x01, 0x7c}, math.NaN()},
		{"bf16", []byte{0x80, 0xbf}, -1},
		{"bf16", []byte{0x80, 0x7f}, inf},
		{"f32", []byte{0, 0, 0x80, 0x3f}, 1},
		{"f64", []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, 1},
	} {
		got := Tensor{c.dtype, nil, c.data}.Float64s()[0]
		same := math.Float64bits(got) == math.Float64bits(c.want) || math.IsNaN(got) && math.IsNaN(c.want)
		if !same {
			t.Errorf("%s % x: got %v, want %v", c.dtype, c.data, got, c.want)
		}
	}
}
