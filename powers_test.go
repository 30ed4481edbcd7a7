package loris

import (
	"context"
	"math"
	"testing"
)

// TestPowersOfPlainNumbers holds powers of a plain number against those of a tensor of exponents. They differ
// where ATen's do: -∞ and -0 to the power ±1/2 are those of the square root.
func TestPowersOfPlainNumbers(t *testing.T) {
	s, ctx := newSession(t), context.Background()
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -3, 7.25, 1e-30, 3e18, -2e19, math.Inf(1), math.Inf(-1), math.NaN()}
	units := map[DType]float64{F64: 1.0 / (1 << 51), F32: 1.0 / (1 << 22), BF16: 1.0 / (1 << 6), F16: 1.0 / (1 << 9)}
	for d, unit := range units {
		x := s.With().FromSlice(values).Cast(d)
		values, err := x.Cast(F64).Float64s(ctx) // as d has them
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []float64{2, 3, 0.5, -0.5, -1, -2, 1.5, 4, 0} {
			got, err := x.Pow(n).Cast(F64).Float64s(ctx)
			if err != nil {
				t.Fatal(err)
			}
			want, err := x.Pow(s.With().Full(n, len(values)).Cast(d)).Cast(F64).Float64s(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				if math.Abs(n) == 0.5 && (values[i] == 0 || math.IsInf(values[i], -1)) {
					if root := math.Sqrt(values[i]); g != math.Pow(root, 2*n) && !(math.IsNaN(g) && math.IsNaN(root)) {
						t.Errorf("%v: %v to the power %v is %v", d, values[i], n, g)
					}
					continue
				}
				w := want[i]
				if g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(math.Abs(g-w) <= 4*unit*math.Abs(w)) {
					t.Errorf("%v: %v to the power %v is %v, want %v", d, values[i], n, g, w)
				}
			}
		}
	}
	for _, d := range []DType{I64, I32, I16, I8, U8} {
		x := s.With().FromSlice([]int64{0, 1, 2, 3, 7, 100, 127, -5}).Cast(d)
		for _, n := range []int{0, 1, 2, 3, 4} {
			same, err := x.Pow(n).Eq(x.Pow(s.With().FromSlice([]int64{int64(n)}).Cast(d))).All().Item(ctx)
			if err != nil || same != 1 {
				t.Errorf("%v to the power %d: %v, %v", d, n, same, err)
			}
		}
		if got := x.Pow(2).DType(); got != d {
			t.Errorf("%v to the power 2 is %v", d, got)
		}
		if got := x.Pow(2.0).DType(); got != F32 {
			t.Errorf("%v to the power 2.0 is %v", d, got)
		}
	}
}

// TestPowersOfTwo holds what a plain power of 2 is recorded as, as a base, a divisor or a modulus, against the same
// number as a tensor.
func TestPowersOfTwo(t *testing.T) {
	s, ctx := newSession(t), context.Background()
	exponents := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -3, 7.25, 1e-30, 200, -200, math.Inf(1), math.Inf(-1), math.NaN()}
	for d, unit := range map[DType]float64{F64: 1.0 / (1 << 51), F32: 1.0 / (1 << 22), BF16: 1.0 / (1 << 6), F16: 1.0 / (1 << 9), I32: 1.0 / (1 << 22)} {
		list := exponents
		if d == I32 {
			list = []float64{0, 1, -1, 30, -200, 127}
		}
		x := s.With().FromSlice(list).Cast(d)
		got, err := Pow(2.0, x).Cast(F64).Float64s(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.With().Full(2.0, 1).Cast(Pow(2.0, x).DType()).Pow(x).Cast(F64).Float64s(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if g := got[i]; g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(math.Abs(g-w) <= 4*unit*math.Abs(w)) {
				t.Errorf("%v: 2 to the power %v is %v, want %v", d, list[i], g, w)
			}
		}
	}
	for _, d := range []DType{I64, I32, I16, I8, U8} {
		x := s.With().FromSlice([]int64{0, 1, 2, 63, 64, 65, 127, -1, -63, -64, -65, -128}).Cast(d)
		for _, n := range []int{1, 2, 64, 3} {
			y := s.With().FromSlice([]int64{int64(n)}).Cast(d)
			same := LogicalAnd(x.Remainder(n).Eq(x.Remainder(y)).All(), x.FloorDivide(n).Eq(x.FloorDivide(y)).All())
			if v, err := same.Item(ctx); err != nil || v != 1 {
				t.Errorf("%v by %d: %v, %v", d, n, v, err)
			}
			if x.Remainder(n).DType() != d || x.FloorDivide(n).DType() != d {
				t.Errorf("%v by %d is %v", d, n, x.Remainder(n).DType())
			}
		}
	}
}
