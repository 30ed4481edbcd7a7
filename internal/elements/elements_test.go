package elements

import (
	"bytes"
	"slices"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func TestInts(t *testing.T) {
	for _, c := range []struct {
		d         ir.DType
		in        []int64
		data      []byte
		wantWraps []int64
	}{
		{ir.U8, []int64{1, 255, 256, -1}, []byte{1, 255, 0, 255}, []int64{1, 255, 0, 255}},
		{ir.I8, []int64{1, -1, 128}, []byte{1, 255, 128}, []int64{1, -1, -128}},
		{ir.I16, []int64{-2, 1 << 15}, []byte{254, 255, 0, 128}, []int64{-2, -1 << 15}},
		{ir.I32, []int64{-2}, []byte{254, 255, 255, 255}, []int64{-2}},
		{ir.I64, []int64{-2}, []byte{254, 255, 255, 255, 255, 255, 255, 255}, []int64{-2}},
	} {
		if got := EncodeInts(c.d, c.in); !bytes.Equal(got, c.data) {
			t.Errorf("%v of %v: %v, want %v", c.d, c.in, got, c.data)
		}
		if got := DecodeInts(c.d, c.data); !slices.Equal(got, c.wantWraps) {
			t.Errorf("%v: %v, want %v", c.d, got, c.wantWraps)
		}
	}
	if got := DecodeInts(ir.Bool, []byte{0, 1, 2}); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("bools are %v", got)
	}
}

func TestFloats(t *testing.T) {
	in := []float64{0, -1.5, 0.25, 3.1415926535}
	for d, want := range map[ir.DType][]float64{
		ir.F64:      in,
		ir.F32:      {0, -1.5, 0.25, float64(float32(3.1415926535))},
		ir.F16:      {0, -1.5, 0.25, 3.140625},
		ir.BF16:     {0, -1.5, 0.25, 3.140625},
		ir.F8E4M3FN: {0, -1.5, 0.25, 3.25},
		ir.F8E5M2:   {0, -1.5, 0.25, 3},
	} {
		data := EncodeFloats(d, in)
		if got := DecodeFloats(d, data); len(data) != len(in)*d.Size() || !slices.Equal(got, want) {
			t.Errorf("%v: %v in %d bytes, want %v", d, got, len(data), want)
		}
	}
	for name, fn := range map[string]func(){
		"read":  func() { Float(ir.I32, make([]byte, 4), 0) },
		"write": func() { AppendFloat(nil, ir.C64, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic for a dtype that is no float")
				}
			}()
			fn()
		})
	}
}

func TestAppendNumber(t *testing.T) {
	for _, c := range []struct {
		d      ir.DType
		number any
		want   []byte
	}{
		{ir.I16, int64(-2), []byte{0xfe, 0xff}},
		{ir.I16, -2.9, []byte{0xfe, 0xff}},
		{ir.Bool, 0.5, []byte{1}},
		{ir.F32, int64(1), []byte{0, 0, 0x80, 0x3f}},
		{ir.BF16, 1.5, []byte{0xc0, 0x3f}},
	} {
		if got := AppendNumber([]byte{7}, c.d, c.number); !bytes.Equal(got, append([]byte{7}, c.want...)) {
			t.Errorf("%v as %v: %x, want 07%x", c.number, c.d, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		d    ir.DType
		data []byte
		want []float64
	}{
		{ir.Bool, []byte{1, 0}, []float64{1, 0}},
		{ir.I16, EncodeInts(ir.I16, []int64{-3, 300}), []float64{-3, 300}},
		{ir.BF16, EncodeFloats(ir.BF16, []float64{0.5, -2}), []float64{0.5, -2}},
		{ir.C64, EncodeFloats(ir.F32, []float64{1.5, -4}), []float64{1.5, -4}},
	} {
		for i, want := range c.want {
			if got := Number(c.d, c.data, i); got != want {
				t.Errorf("element %d of %v is %v, want %v", i, c.d, got, want)
			}
		}
	}
}
