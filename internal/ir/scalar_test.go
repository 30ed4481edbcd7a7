package ir

import (
	"errors"
	"math"
	"testing"
)

func TestWrapInt(t *testing.T) {
	for _, c := range []struct {
		d    DType
		v    int64
		want int64
	}{
		{Bool, 0, 0}, {Bool, 2, 1}, {Bool, -1, 1}, {Bool, math.MinInt64, 1},
		{U8, 256, 0}, {U8, -1, 255}, {U8, 200, 200},
		{I8, 128, -128}, {I8, -129, 127}, {I8, 127, 127},
		{I16, 1 << 15, math.MinInt16}, {I32, 1 << 31, math.MinInt32}, {I32, -1, -1},
		{I64, math.MinInt64, math.MinInt64},
	} {
		if got := WrapInt(c.d, c.v); got != c.want {
			t.Errorf("WrapInt(%v, %d) = %d, want %d", c.d, c.v, got, c.want)
		}
	}
}

// The wanted values of the conversions are PyTorch's on x86.
func TestFloatToInt(t *testing.T) {
	const lo32, lo64 = math.MinInt32, math.MinInt64
	for _, c := range []struct {
		v                     float64
		u8, i8, i16, i32, i64 int64
	}{
		{0, 0, 0, 0, 0, 0},
		{-0.9, 0, 0, 0, 0, 0},
		{1.5, 1, 1, 1, 1, 1},
		{-1.5, 255, -1, -1, -1, -1},
		{128, 128, -128, 128, 128, 128},
		{-129, 127, 127, -129, -129, -129},
		{255.9, 255, -1, 255, 255, 255},
		{300, 44, 44, 300, 300, 300},
		{65543, 7, 7, 7, 65543, 65543},
		{2147483647, 255, -1, -1, 2147483647, 2147483647},
		{2147483725, 77, 0, 0, lo32, 2147483725},
		{-2147483648.9, 0, 0, 0, lo32, -2147483648},
		{-2147483649, 255, 0, 0, lo32, -2147483649},
		{1e12 + 7, 7, 0, 0, lo32, 1e12 + 7},
		{9.3e18, 0, 0, 0, lo32, lo64},
		{-9.3e18, 0, 0, 0, lo32, lo64},
		{math.Inf(1), 0, 0, 0, lo32, lo64},
		{math.Inf(-1), 0, 0, 0, lo32, lo64},
		{math.NaN(), 0, 0, 0, lo32, lo64},
	} {
		for d, want := range map[DType]int64{U8: c.u8, I8: c.i8, I16: c.i16, I32: c.i32, I64: c.i64} {
			if got := FloatToInt(d, c.v); got != want {
				t.Errorf("FloatToInt(%v, %v) = %d, want %d", d, c.v, got, want)
			}
		}
		if got, want := FloatToInt(Bool, c.v), b2i(c.v != 0); got != want {
			t.Errorf("FloatToInt(bool, %v) = %d, want %d", c.v, got, want)
		}
	}
}

func TestFloatRounding(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v                                float64
		f8e4m3fn, f8e5m2, f16, bf16, f32 float64
	}{
		{0.1, 0.1015625, 0.09375, 0.0999755859375, 0.10009765625, 0.10000000149011612},
		{65519.99, 448, inf, 65504, 65536, 65519.98828125},
		{65520, 448, inf, inf, 65536, 65520},
		{1e39, 448, inf, inf, inf, inf},
		{-1e-50, math.Copysign(0, -1), math.Copysign(0, -1), math.Copysign(0, -1), math.Copysign(0, -1), math.Copysign(0, -1)},
		{inf, 448, inf, inf, inf, inf},
	} {
		for d, want := range map[DType]float64{F8E4M3FN: c.f8e4m3fn, F8E5M2: c.f8e5m2, F16: c.f16, BF16: c.bf16, F32: c.f32, F64: c.v} {
			if got := RoundFloat(d, c.v); got != want || math.Signbit(got) != math.Signbit(want) {
				t.Errorf("RoundFloat(%v, %v) = %v, want %v", d, c.v, got, want)
			}
		}
	}
	for _, d := range []DType{F8E4M3FN, F8E5M2, F16, BF16, F32, F64} {
		if got := RoundFloat(d, math.NaN()); !math.IsNaN(got) {
			t.Errorf("RoundFloat(%v, NaN) = %v", d, got)
		}
	}
}

func TestIntToFloat(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v                   int64
		f16, bf16, f32, f64 float64
	}{
		{-3, -3, -3, -3, -3},
		{2049, 2048, 2048, 2049, 2049},
		{65520, inf, 65536, 65520, 65520},
		{70000, inf, 70144, 70000, 70000},
		{1<<24 + 1, inf, 1 << 24, 1 << 24, 1<<24 + 1},
		{1<<53 + 1, inf, 1 << 53, 1 << 53, 1 << 53},
		{math.MaxInt64, inf, 1 << 63, 1 << 63, 1 << 63},
		{math.MinInt64, -inf, -1 << 63, -1 << 63, -1 << 63},
	} {
		for d, want := range map[DType]float64{F16: c.f16, BF16: c.bf16, F32: c.f32, F64: c.f64} {
			if got := IntToFloat(d, c.v); got != want {
				t.Errorf("IntToFloat(%v, %d) = %v, want %v", d, c.v, got, want)
			}
		}
	}
}

func TestConversionsRefuseOtherDTypes(t *testing.T) {
	for name, f := range map[string]func(){
		"WrapInt":    func() { WrapInt(F32, 1) },
		"FloatToInt": func() { FloatToInt(F32, 1) },
		"RoundFloat": func() { RoundFloat(I32, 1) },
		"IntToFloat": func() { IntToFloat(Bool, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes a dtype that is not its own", name)
				}
			}()
			f()
		}()
	}
}

// Cases that one element in a narrow golden does not reach.
func TestIntegerScalars(t *testing.T) {
	const lo = math.MinInt64
	for _, c := range []struct {
		op         Op
		x, y, want int64
	}{
		{opTruncDivide, lo, -1, lo}, {opFloorDivide, lo, -1, lo}, {opRemainder, lo, -1, 0}, {opFmod, lo, -1, 0},
		{opPow, 3, 40, 12157665459056928801 - 1<<64}, {opPow, 2, 64, 0}, {opPow, 0, -1, 0}, {opPow, 0, 0, 1}, {opPow, -1, lo, 1},
		{opBitwiseLeftShift, 1, 63, lo}, {opBitwiseLeftShift, 1, math.MaxInt64, 0}, {opBitwiseRightShift, lo, math.MaxInt64, -1},
	} {
		if got := c.op.Spec().Scalar.I2(c.x, c.y); got != c.want {
			t.Errorf("%v(%d, %d) = %d, want %d", c.op, c.x, c.y, got, c.want)
		}
	}
	for _, op := range []Op{opTruncDivide, opFloorDivide, opRemainder, opFmod} {
		err := catch(func() { op.Spec().Scalar.I2(5, 0) })
		if !errors.Is(err, ErrZeroDivision) || !errors.Is(err, ErrArg) {
			t.Errorf("%v(5, 0): %v", op, err)
		}
	}
	if got := opAbs.Spec().Scalar.I1(lo); got != lo {
		t.Errorf("abs(%d) = %d", int64(lo), got)
	}
}
