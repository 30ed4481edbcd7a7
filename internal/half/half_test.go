package half

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// format is the textbook description of a narrow float, from which the tests
// derive values and roundings independently of the code under test.
type format struct {
	name       string
	exp, man   int  // field widths
	infinities bool // the largest exponent is Inf and NaN; otherwise only all ones is NaN
	toF32      func(uint32) float32
	fromF32    func(float32) uint32
	fromF64    func(float64) uint32
}

var formats = []format{
	{"f16", 5, 10, true,
		func(h uint32) float32 { return F16ToF32(uint16(h)) },
		func(f float32) uint32 { return uint32(F32ToF16(f)) },
		func(f float64) uint32 { return uint32(F64ToF16(f)) }},
	{"bf16", 8, 7, true,
		func(h uint32) float32 { return BF16ToF32(uint16(h)) },
		func(f float32) uint32 { return uint32(F32ToBF16(f)) },
		func(f float64) uint32 { return uint32(F64ToBF16(f)) }},
	{"e4m3", 4, 3, false,
		func(h uint32) float32 { return E4M3ToF32(uint8(h)) },
		func(f float32) uint32 { return uint32(F32ToE4M3(f)) },
		func(f float64) uint32 { return uint32(F64ToE4M3(f)) }},
	{"e5m2", 5, 2, true,
		func(h uint32) float32 { return E5M2ToF32(uint8(h)) },
		func(f float32) uint32 { return uint32(F32ToE5M2(f)) },
		func(f float64) uint32 { return uint32(F64ToE5M2(f)) }},
}

// sign is the sign bit, and also the number of magnitudes.
func (f format) sign() uint32 { return 1 << (f.exp + f.man) }

// maxFinite is the pattern of the largest finite value.
func (f format) maxFinite() uint32 {
	if f.infinities {
		return f.sign() - 1<<f.man - 1
	}
	return f.sign() - 2
}

// value is the magnitude of the pattern mag as a real number; beyond the
// largest finite pattern it goes on as if the format had a larger exponent,
// which is what rounding to nearest compares against.
func (f format) value(mag uint32) float64 {
	bias := 1<<(f.exp-1) - 1
	e, m := int(mag>>f.man), float64(mag&(1<<f.man-1))
	if e == 0 {
		return math.Ldexp(m, 1-bias-f.man)
	}
	return math.Ldexp(m+float64(int(1)<<f.man), e-bias-f.man)
}

// overflow is the pattern of magnitudes that round above the largest finite one.
func (f format) overflow() uint32 {
	if f.infinities {
		return f.maxFinite() + 1
	}
	return f.maxFinite()
}

func TestWidenEveryPattern(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for h := range 2 * f.sign() {
				got := f.toF32(h)
				mag := h & (f.sign() - 1)
				neg := h&f.sign() != 0
				if math.Signbit(float64(got)) != neg {
					t.Fatalf("%#x: sign of %v", h, got)
				}
				abs := math.Abs(float64(got))
				switch {
				case mag <= f.maxFinite():
					if abs != f.value(mag) {
						t.Fatalf("%#x = %v, want magnitude %v", h, got, f.value(mag))
					}
				case f.infinities && mag == f.maxFinite()+1:
					if !math.IsInf(abs, 1) {
						t.Fatalf("%#x = %v, want an infinity", h, got)
					}
				case got == got:
					t.Fatalf("%#x = %v, want NaN", h, got)
				}
			}
		})
	}
}

func TestNarrowIsInverseOfWiden(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for h := range 2 * f.sign() {
				v := f.toF32(h)
				got := f.fromF32(v)
				if v != v {
					back := f.toF32(got)
					if back == back || got&f.sign() != h&f.sign() {
						t.Fatalf("NaN %#x came back as %#x", h, got)
					}
					continue
				}
				want := h
				if !f.infinities && h&(f.sign()-1) > f.maxFinite() {
					want = h - 1
				}
				if got != want {
					t.Fatalf("%#x = %v came back as %#x", h, v, got)
				}
			}
		})
	}
}

// TestNarrowRoundsToNearestEven goes over every pair of neighbouring values:
// the tie between them goes to the even pattern, the float32 on either side of
// the tie to the nearer one.
func TestNarrowRoundsToNearestEven(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			for mag := range f.maxFinite() + 1 {
				lo, hi := mag, mag+1
				tie := float32((f.value(lo) + f.value(hi)) / 2)
				if float64(tie) != (f.value(lo)+f.value(hi))/2 {
					t.Fatalf("%#x: the tie is no float32", mag)
				}
				even := lo + lo&1
				for _, c := range []struct {
					in   float32
					want uint32
				}{
					{math.Nextafter32(tie, 0), lo},
					{tie, even},
					{math.Nextafter32(tie, math.MaxFloat32), hi},
				} {
					want := c.want
					if want > f.maxFinite() {
						want = f.overflow()
					}
					if got := f.fromF32(c.in); got != want {
						t.Fatalf("%v -> %#x, want %#x", c.in, got, want)
					}
					if got := f.fromF32(-c.in); got != want|f.sign() {
						t.Fatalf("%v -> %#x, want %#x", -c.in, got, want|f.sign())
					}
				}
			}
		})
	}
}

func TestNarrowSpecials(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := math.Float32frombits
	for _, c := range []struct {
		in                  float32
		f16, bf16, e4, e5m2 uint32
	}{
		{inf, 0x7c00, 0x7f80, 0x7e, 0x7c},
		{-inf, 0xfc00, 0xff80, 0xfe, 0xfc},
		{math.MaxFloat32, 0x7c00, 0x7f80, 0x7e, 0x7c},
		{math.SmallestNonzeroFloat32, 0, 0, 0, 0},
		{float32(math.Copysign(0, -1)), 0x8000, 0x8000, 0x80, 0x80},
		{nan(0x7fc00000), 0x7e00, 0x7fc0, 0x7f, 0x7f},
		{nan(0xffc00000), 0xfe00, 0xffc0, 0xff, 0xff},
		{nan(0x7f800001), 0x7e00, 0x7fc0, 0x7f, 0x7f}, // payload lost, still a NaN
		{nan(0xffa12345), 0xff09, 0xffe1, 0xff, 0xff},
	} {
		for i, want := range []uint32{c.f16, c.bf16, c.e4, c.e5m2} {
			if got := formats[i].fromF32(c.in); got != want {
				t.Errorf("%s(%x) = %#x, want %#x", formats[i].name, math.Float32bits(c.in), got, want)
			}
		}
	}
}

// TestFloat64GoesThroughFloat32 pins the double rounding: just above a tie of
// the narrow format, but rounded to the tie by float32.
func TestFloat64GoesThroughFloat32(t *testing.T) {
	for _, f := range formats {
		one := f.fromF32(1)
		tie := (1 + f.value(one+1)) / 2
		if got := f.fromF64(tie * (1 + 0x1p-40)); got != one {
			t.Errorf("%s: %#x, want %#x", f.name, got, one)
		}
		if got := f.fromF64(tie * (1 + 0x1p-20)); got != one+1 {
			t.Errorf("%s: %#x, want %#x", f.name, got, one+1)
		}
	}
}

func TestMatchesPyTorch(t *testing.T) {
	file, err := os.Open("testdata/torch.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 500 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows[1:] {
		in, err := strconv.ParseUint(row[0], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range formats {
			want, err := strconv.ParseUint(row[i+1], 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.fromF32(math.Float32frombits(uint32(in))); uint64(got) != want {
				t.Errorf("%s(%s) = %#x, PyTorch gives %#x", f.name, row[0], got, want)
			}
		}
	}
}

// TestNarrowFrom16Bits goes over all patterns of f16 and bf16.
func TestNarrowFrom16Bits(t *testing.T) {
	data, err := os.ReadFile("testdata/narrow.csv")
	if err != nil {
		t.Fatal(err)
	}
	type run struct{ first, e4, e5 uint16 }
	runs := map[string][]run{}
	for _, line := range strings.Fields(string(data))[1:] {
		f := strings.Split(line, ",")
		var n [3]uint16
		for i := range n {
			v, err := strconv.ParseUint(f[1+i], 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			n[i] = uint16(v)
		}
		runs[f[0]] = append(runs[f[0]], run{n[0], n[1], n[2]})
	}
	for name, widen := range map[string]func(uint16) float32{"f16": F16ToF32, "bf16": BF16ToF32} {
		list := runs[name]
		if len(list) < 400 {
			t.Fatalf("%s: only %d runs", name, len(list))
		}
		at := 0
		for h := range 1 << 16 {
			if at+1 < len(list) && h == int(list[at+1].first) {
				at++
			}
			x := widen(uint16(h))
			if e4, e5 := F32ToE4M3(x), F32ToE5M2(x); uint16(e4) != list[at].e4 || uint16(e5) != list[at].e5 {
				t.Fatalf("%s %#x = %v gives %#x and %#x, want %#x and %#x", name, h, x, e4, e5, list[at].e4, list[at].e5)
			}
		}
	}
}

// every returns the patterns 0..n-1.
func every[T uint8 | uint16](n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = T(i)
	}
	return s
}

func checkSlices[T uint8 | uint16](t *testing.T, n int, widen func([]float32, []T), narrow func([]T, []float32),
	widen1 func(T) float32, narrow1 func(float32) T) {
	t.Helper()
	src := every[T](n)
	wide := make([]float32, n+1) // longer than src: the rest stays as it is
	wide[n] = 42
	widen(wide, src)
	back := make([]T, n)
	narrow(back, wide[:n])
	for i, h := range src {
		if math.Float32bits(wide[i]) != math.Float32bits(widen1(h)) || back[i] != narrow1(wide[i]) {
			t.Fatalf("%#x: slices %x, %#x", h, math.Float32bits(wide[i]), back[i])
		}
	}
	if wide[n] != 42 {
		t.Fatal("wrote past len(src)")
	}
	for name, f := range map[string]func(){
		"widen":  func() { widen(wide[:1], src[:2]) },
		"narrow": func() { narrow(back[:1], wide[:2]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s into a short slice did not panic", name)
				}
			}()
			f()
		}()
	}
}

func TestSlices(t *testing.T) {
	t.Run("f16", func(t *testing.T) { checkSlices(t, 1<<16, F16sToF32s, F32sToF16s, F16ToF32, F32ToF16) })
	t.Run("bf16", func(t *testing.T) { checkSlices(t, 1<<16, BF16sToF32s, F32sToBF16s, BF16ToF32, F32ToBF16) })
	t.Run("e4m3", func(t *testing.T) { checkSlices(t, 1<<8, E4M3sToF32s, F32sToE4M3s, E4M3ToF32, F32ToE4M3) })
	t.Run("e5m2", func(t *testing.T) { checkSlices(t, 1<<8, E5M2sToF32s, F32sToE5M2s, E5M2ToF32, F32ToE5M2) })
}

func ExampleF32ToF16() {
	h := F32ToF16(1.0 / 3)
	fmt.Printf("%#04x %v\n", h, F16ToF32(h))
	// Output: 0x3555 0.33325195
}

func BenchmarkF32sToE4M3s(b *testing.B) {
	src := make([]float32, 4096)
	for i := range src {
		src[i] = float32(i%1000)/7 - 70.3
	}
	dst := make([]uint8, len(src))
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		F32sToE4M3s(dst, src)
	}
}

func BenchmarkE4M3sToF32s(b *testing.B) {
	src := make([]uint8, 4096)
	for i := range src {
		src[i] = uint8(i)
	}
	dst := make([]float32, len(src))
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		E4M3sToF32s(dst, src)
	}
}

func BenchmarkF32sToF16s(b *testing.B) {
	src := make([]float32, 4096)
	for i := range src {
		src[i] = float32(i) - 2000.3
	}
	dst := make([]uint16, len(src))
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		F32sToF16s(dst, src)
	}
}
