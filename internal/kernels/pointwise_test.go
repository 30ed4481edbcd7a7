package kernels

import (
	"math"
	"testing"
)

var (
	nan  = math.NaN()
	inf  = math.Inf(1)
	negZ = math.Copysign(0, -1)
)

// sameBits compares bits, all NaNs being one.
func sameBits(a, b float64) bool {
	return a != a && b != b || math.Float64bits(a) == math.Float64bits(b)
}

func TestBinaryFloat(t *testing.T) {
	a := []float64{1, -2, nan, 3, inf, -inf, negZ, 0, 5}
	b := []float64{4, 0.5, 1, nan, -inf, -inf, 0, 0, negZ}
	for _, c := range []struct {
		name string
		run  func(dst, a, b []float64)
		want []float64
	}{
		{"add", Add[float64], []float64{5, -1.5, nan, nan, nan, -inf, 0, 0, 5}},
		{"sub", Sub[float64], []float64{-3, -2.5, nan, nan, inf, nan, negZ, 0, 5}},
		{"mul", Mul[float64], []float64{4, -1, nan, nan, -inf, inf, negZ, 0, negZ}},
		{"div", Div[float64], []float64{0.25, -4, nan, nan, nan, nan, nan, nan, -inf}},
		{"max", Max[float64], []float64{4, 0.5, nan, nan, inf, -inf, negZ, 0, 5}},
		{"min", Min[float64], []float64{1, -2, nan, nan, -inf, -inf, negZ, 0, negZ}},
	} {
		got := make([]float64, len(a))
		c.run(got, a, b)
		for i, w := range c.want {
			if !sameBits(got[i], w) {
				t.Errorf("%s(%v, %v) = %v, want %v", c.name, a[i], b[i], got[i], w)
			}
		}
		inPlace := append([]float64(nil), a...)
		c.run(inPlace, inPlace, b)
		for i := range got {
			if !sameBits(inPlace[i], got[i]) {
				t.Errorf("%s in place: element %d is %v, want %v", c.name, i, inPlace[i], got[i])
			}
		}
	}
}

func TestUnaryFloat(t *testing.T) {
	a := []float32{1, -2.25, float32(nan), float32(inf), float32(-inf), float32(negZ), 0}
	n, i := float32(nan), float32(inf)
	for _, c := range []struct {
		name string
		run  func(dst, a []float32)
		want []float32
	}{
		{"neg", Neg[float32], []float32{-1, 2.25, n, -i, i, 0, float32(negZ)}},
		{"abs", AbsFloat[float32], []float32{1, 2.25, n, i, i, 0, 0}},
		{"relu", Relu[float32], []float32{1, 0, n, i, 0, float32(negZ), 0}},
		{"sqrt", Sqrt[float32], []float32{1, n, n, i, n, float32(negZ), 0}},
		{"reciprocal", Reciprocal[float32], []float32{1, -1 / float32(2.25), n, 0, float32(negZ), -i, i}},
	} {
		got := make([]float32, len(a))
		c.run(got, a)
		for k, w := range c.want {
			if !sameBits(float64(got[k]), float64(w)) {
				t.Errorf("%s(%v) = %v, want %v", c.name, a[k], got[k], w)
			}
		}
	}
}

func TestIntegersWrap(t *testing.T) {
	i8 := []int8{127, -128, -128, 100}
	one := []int8{1, 1, -1, 100}
	got := make([]int8, 4)
	for _, c := range []struct {
		name string
		run  func()
		want [4]int8
	}{
		{"add", func() { Add(got, i8, one) }, [4]int8{-128, -127, 127, -56}},
		{"sub", func() { Sub(got, i8, one) }, [4]int8{126, 127, -127, 0}},
		{"mul", func() { Mul(got, i8, one) }, [4]int8{127, -128, -128, 16}},
		{"neg", func() { Neg(got, i8) }, [4]int8{-127, -128, -128, -100}},
		{"abs", func() { AbsInt(got, i8) }, [4]int8{127, -128, -128, 100}},
	} {
		if c.run(); [4]int8(got) != c.want {
			t.Errorf("%s = %v, want %v", c.name, got, c.want)
		}
	}
	u8 := []uint8{0, 255}
	Sub(u8, u8, []uint8{1, 0})
	if u8[0] != 255 || u8[1] != 255 {
		t.Errorf("0-1 and 255-0 in uint8 are %v", u8)
	}
}

func TestCompare(t *testing.T) {
	a, b := []float64{1, 2, nan, 0, 1}, []float64{2, 1, nan, negZ, nan}
	for _, c := range []struct {
		name string
		run  func(dst []uint8, a, b []float64)
		want [5]uint8
	}{
		{"eq", Eq[float64], [5]uint8{0, 0, 0, 1, 0}},
		{"ne", Ne[float64], [5]uint8{1, 1, 1, 0, 1}},
		{"lt", Lt[float64], [5]uint8{1, 0, 0, 0, 0}},
		{"le", Le[float64], [5]uint8{1, 0, 0, 1, 0}},
	} {
		got := make([]uint8, 5)
		if c.run(got, a, b); [5]uint8(got) != c.want {
			t.Errorf("%s = %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTruncate has the cases that C leaves open, with what PyTorch gives.
func TestTruncate(t *testing.T) {
	in := []float64{1.9, -1.9, 300, -1, 3e9, -3e9, 1e20, nan, inf}
	i64 := make([]int64, len(in))
	Truncate(i64, in)
	i32 := make([]int32, len(in))
	Truncate(i32, in)
	i8 := make([]int8, len(in))
	Truncate(i8, in)
	u8 := make([]uint8, len(in))
	Truncate(u8, in)
	const least64, least32 = math.MinInt64, math.MinInt32
	for i, w := range []struct {
		i64 int64
		i32 int32
		i8  int8
		u8  uint8
	}{
		{1, 1, 1, 1}, {-1, -1, -1, 255}, {300, 300, 44, 44}, {-1, -1, -1, 255}, {3e9, least32, 0, 0},
		{-3e9, least32, 0, 0}, {least64, least32, 0, 0}, {least64, least32, 0, 0}, {least64, least32, 0, 0},
	} {
		if i64[i] != w.i64 || i32[i] != w.i32 || i8[i] != w.i8 || u8[i] != w.u8 {
			t.Errorf("%v: i64 %d, i32 %d, i8 %d, u8 %d; want %+v", in[i], i64[i], i32[i], i8[i], u8[i], w)
		}
	}
}

func TestWhereAndMasks(t *testing.T) {
	got := make([]uint32, 3)
	Where(got, []uint8{1, 0, 1}, []uint32{1, 2, 3}, []uint32{7, 8, 9})
	if [3]uint32(got) != [3]uint32{1, 8, 3} {
		t.Errorf("where = %v", got)
	}
	mask := make([]uint8, 3)
	NonZero(mask, []float64{0, nan, negZ})
	if [3]uint8(mask) != [3]uint8{0, 1, 0} {
		t.Errorf("nonzero = %v", mask)
	}
	Not(mask, []float64{0, nan, negZ})
	if [3]uint8(mask) != [3]uint8{1, 0, 1} {
		t.Errorf("not = %v", mask)
	}
}

// TestMap checks that a scalar function computes in the wide type.
func TestMap(t *testing.T) {
	got := make([]uint8, 2)
	Map2(got, []int8{100, -128}, []int8{100, -128}, func(x, y int64) int64 {
		if x+y == 200 || x+y == -256 {
			return 1
		}
		return 0
	})
	if got[0] != 1 || got[1] != 1 {
		t.Errorf("the function sees wrapped sums: %v", got)
	}
}
