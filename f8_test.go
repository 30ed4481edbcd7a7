package loris

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestEightBitFloats goes through what works on them: casts, moves, reads.
func TestEightBitFloats(t *testing.T) {
	ctx := t.Context()
	m := newSession(t).With()
	x := m.FromSlice([]float32{0.3, -1000, 17, float32(math.Inf(-1)), 0, 2}, 2, 3)
	for _, c := range []struct {
		d    DType
		want []float32
		text string
	}{
		{F8E4M3FN, []float32{0.3125, -448, 16, -448, 0, 2}, "f8e4m3fn[2,3]"},
		{F8E5M2, []float32{0.3125, -1024, 16, float32(math.Inf(-1)), 0, 2}, "f8e5m2[2,3]"},
	} {
		n := x.Cast(c.d)
		wantFloats(t, n, c.want...)
		wantFloats(t, n.Cast(BF16).Cast(F32), c.want...)
		if v, err := n.Float64s(ctx); err != nil || v[0] != 0.3125 {
			t.Errorf("%v as f64: %v, %v", c.d, v, err)
		}
		if s, err := n.Text(ctx); err != nil || !strings.Contains(s, "3.125e-01") || !strings.Contains(s, c.text) {
			t.Errorf("%q, %v", s, err)
		}
		wantFloats(t, Cat([]*Tensor{n.Permute(1, 0), n.Permute(1, 0).Flip(0)}, Dim(1)).Slice(SliceStart(0), SliceEnd(1)), c.want[0], c.want[3], c.want[2], c.want[5])
		wantFloats(t, m.With(As(c.d)).Zeros(2), 0, 0)
		wantFloats(t, m.With(As(c.d)).Full(17, 2), 16, 16)
		wantFloats(t, m.Ones(2).Mul(17).Cast(c.d), 16, 16)
		wantFloats(t, m.With(As(F64)).Ones(2).Cast(c.d), 1, 1) // folded
		wantFloats(t, m.With(As(c.d)).FromSlice([]int32{1, 17}), 1, 16)
		if v, err := n.Reshape(-1).Slice(SliceStart(2), SliceEnd(3)).Item(ctx); err != nil || v != 16 {
			t.Errorf("item %v, %v", v, err)
		}
		raw, err := n.Bytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantFloats(t, m.FromBytes(raw, n.Shape()), c.want...)
		for name, f := range map[string]func(){
			"add": func() { n.Add(1) }, "sum": func() { n.Sum() }, "matmul": func() { n.MatMul(n.Permute(1, 0)) }, "gelu": func() { n.Gelu() },
		} {
			if err := Try(f); !errors.Is(err, ErrDType) || !strings.Contains(err.Error(), "cast first") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestScaledMM: a layer with weights and activations of 8 bits.
func TestScaledMM(t *testing.T) {
	m := newSession(t).With()
	x, w := m.FromSlice([]float32{1, 2, 3, -4}, 2, 2).Cast(F8E4M3FN), m.FromSlice([]float32{1, 0, 1, 1}, 2, 2).Cast(F8E5M2)
	two, half := m.Scalar(2.0), m.FromSlice([]float32{0.5}, 1, 1)
	wantFloats(t, x.ScaledMM(w, two, half, OutDType(F32)), 3, 2, -1, -4)
	wantFloats(t, x.ScaledMM(w, two, two, OutDType(BF16), Bias(m.FromSlice([]float32{1, -1}))), 13, 7, -3, -17)
	row, col := m.FromSlice([]float32{1, 10}, 2, 1), m.FromSlice([]float32{1, 0.5}, 1, 2)
	wantFloats(t, x.ScaledMM(w, row, col, OutDType(F16)), 3, 1, -10, -20)
	r := x.ScaledMM(w, two, two, ScaleResult(half))
	if r.DType() != F8E4M3FN {
		t.Errorf("the result is %v", r.DType())
	}
	wantFloats(t, r, 24, 16, -8, -32)
	i := m.FromSlice([]int8{127, -128, 3, 4}, 2, 2)
	if v, err := i.IntMM(i).Int32s(t.Context()); err != nil || !reflect.DeepEqual(v, []int32{15745, -16768, 393, -368}) {
		t.Errorf("IntMM: %v, %v", v, err)
	}
}

// TestEightBitGradients: they flow through casts, rounded as the cast's own dtype
// says, and stop with an error at _scaled_mm.
func TestEightBitGradients(t *testing.T) {
	m := newSession(t).With()
	x := m.FromSlice([]float32{1, 2, 3})
	y := x.Cast(F8E4M3FN).Reshape(3, 1).Cast(F32).Reshape(3).Mul(m.FromSlice([]float32{0.3, 1.01, 500})).Sum()
	wantFloats(t, Grad(y, x)[0], 0.3125, 1, 448) // as PyTorch 2.15
	one := m.Scalar(1.0)
	n := x.Cast(F8E5M2)
	z := n.Reshape(1, 3).ScaledMM(n.Reshape(3, 1), one, one, OutDType(F32)).Sum()
	err := Try(func() { Grad(z, x) })
	if !errors.Is(err, ErrArg) || !strings.Contains(err.Error(), "_scaled_mm") || !strings.Contains(err.Error(), "product of casts") {
		t.Errorf("the gradient of _scaled_mm: %v", err)
	}
}
