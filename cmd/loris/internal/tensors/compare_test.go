package tensors

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

func f32s(v ...float32) Tensor {
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return Tensor{Name: "x", Shape: ir.MakeShape(ir.F32, len(v)), Data: data}
}

func TestCompare(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tc := range []struct {
		got, want Tensor
		diff      Difference
	}{
		{f32s(1, 2), f32s(1, 2), Difference{Exact: 2, Elements: 2, First: -1}},
		{f32s(nan, inf, -inf), f32s(nan, inf, -inf), Difference{Exact: 3, Elements: 3, First: -1}},
		{f32s(1, 2.5, 0.25), f32s(1, 2, 0), Difference{MaxAbs: 0.5, MaxRel: 0.25, Exact: 1, Elements: 3, Past: 1, First: 1}},
		{f32s(1, nan), f32s(1, 2), Difference{Exact: 1, Elements: 2, Past: 1, First: 1}},
		{f32s(-inf), f32s(inf), Difference{Elements: 1, Past: 1}},
		{f32s(3), f32s(inf), Difference{Elements: 1, Past: 1}},
		{Tensor{Shape: ir.MakeShape(ir.I8, 2), Data: []byte{0xff, 3}}, Tensor{Shape: ir.MakeShape(ir.I8, 2), Data: []byte{1, 3}},
			Difference{MaxAbs: 2, MaxRel: 2, Exact: 1, Elements: 2, Past: 1}},
	} {
		got, err := Compare(tc.got, tc.want, 0.1, 0.25)
		if err != nil || got != tc.diff {
			t.Errorf("%v against %v: %+v, %v; want %+v", tc.got, tc.want, got, err, tc.diff)
		}
	}
	if _, err := Compare(f32s(1), f32s(1, 2), 0, 0); err == nil {
		t.Error("tensors of different shapes were compared")
	}
}
