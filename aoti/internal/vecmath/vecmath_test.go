//go:build linux && cgo && (amd64 || arm64)

package vecmath_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/aoti/internal/vecmath"
	"github.com/loris-ml/loris/aoti/internal/vecmath/internal/drive"
)

// long makes the accuracy tests visit a share of all floats and many more doubles, and
// print the largest errors.
var long = flag.Bool("vecmath.long", false, "measure the largest errors over many more points")

// slack is the absolute error that does not count: lgamma near its negative zeros, where
// the names promise 1e-15 only, if x is negative numbers; and hypot among subnormal ones.
func slack[T drive.Float](name string, x []T) float64 {
	var zero T
	_, double := any(zero).(float64)
	switch {
	case name == "lgamma" && x[0] < 0:
		return 1e-15
	case name == "hypot" && double:
		return math.SmallestNonzeroFloat64
	}
	return 0
}

// specials are the values that algorithms tend to get wrong.
func specials[T drive.Float]() []T {
	v := []float64{0, 1, 2, 3, 0.5, 0.25, 1.5, 2.5, 4, 8, 10, 17, 100, 1000, 1e9, 1e10, 1e22, 1e300, 1e-300,
		math.Pi, math.Pi / 2, math.Pi / 4, math.E, math.Ln2, 0.41421356, 0.9, 0.6, 6.5, 26, 27.9, 20, 40, 88.72284, 89, 103.9,
		104, 128, 127.5, 149, 150, 709.78, 709.79, 710.4, 711, 745.1, 746, 1023.5, 1024, 1074, 1075, 1e15, 1e16, 1 << 52, 1 << 53,
		0x1p-20, 0x1p-27, 0x1p-60, 0x1p60, 0x1p100, 0x1p127, 0x1p-126, 0x1p-149, 0x1p-1022, 0x1p-1074, 0x1p1023, math.MaxFloat32,
		math.MaxFloat64, math.Inf(1), math.NaN(), 2.4570247382208, 5e-324, 1e-310, 7.999999999999999, 0x1.921fb54442d18p+30}
	var out []T
	for _, x := range v {
		for _, s := range []float64{1, -1} {
			t := T(s * x)
			if s < 0 && x == 0 {
				t = T(math.Copysign(0, -1))
			}
			out = append(out, t, before(t), after(t))
		}
	}
	return out
}

func after[T drive.Float](x T) T {
	switch v := any(x).(type) {
	case float32:
		return any(math.Nextafter32(v, float32(math.Inf(1)))).(T)
	case float64:
		return any(math.Nextafter(v, math.Inf(1))).(T)
	}
	return x
}

func before[T drive.Float](x T) T { return -after(-x) }

// pattern makes a number of some random bits.
func pattern[T drive.Float](bits uint64) T {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return any(math.Float32frombits(uint32(bits >> 32))).(T)
	}
	return any(math.Float64frombits(bits)).(T)
}

// ranges are intervals where functions have their shape.
var ranges = [][2]float64{{-1, 1}, {0, 3}, {-10, 10}, {0.9, 1.1}, {-40, 40}, {-110, 110}, {-760, 760}, {0, 1e5}, {-1e9, 1e9}, {-20, 0}}

// points makes at least n numbers, a multiple of 16: random bits, random magnitudes, and
// the ranges in turn.
func points[T drive.Float](r *rand.Rand, n int) []T {
	out := specials[T]()
	for k := 0; len(out) < n || len(out)%16 != 0; k++ {
		switch k % 3 {
		case 0:
			out = append(out, pattern[T](r.Uint64()))
		case 1:
			out = append(out, T(math.Copysign(math.Ldexp(1+r.Float64(), r.IntN(40)-30), r.Float64()-0.5)))
		default:
			i := ranges[k/3%len(ranges)]
			out = append(out, T(i[0]+(i[1]-i[0])*r.Float64()))
		}
	}
	return out
}

// pairs makes operands of functions of two: every pair of specials, and pairs of points; a
// quarter of these are close together, and a quarter have a second one for which
// a power neither overflows nor vanishes.
func pairs[T drive.Float](r *rand.Rand, n int) (x, y []T) {
	s := specials[T]()
	for i := 0; i < len(s); i += 3 {
		for j := range s {
			a, b := s[i], s[j]
			if j%3 == 2 {
				a, b = b, a
			}
			x, y = append(x, a), append(y, b)
		}
	}
	a, b := points[T](r, n), points[T](r, n)
	r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
	for i := range a {
		switch i % 4 {
		case 0:
			b[i] = a[i] * T(1+(r.Float64()-0.5)*math.Ldexp(1, -r.IntN(20)))
		case 1:
			if l := math.Abs(math.Log(math.Abs(float64(a[i])))); l > 0 {
				b[i] = T((r.Float64() - 0.5) * 1500 / l)
			}
		}
	}
	x, y = append(x, a...), append(y, b...)
	for len(x)%16 != 0 {
		x, y = append(x, 1), append(y, 1)
	}
	return x, y
}

// signed returns the arguments below zero and the others, as lgamma is held to different
// errors there.
func signed[T drive.Float](x []T) (negative, others []T) {
	for _, v := range x {
		if v < 0 {
			negative = append(negative, v)
		} else {
			others = append(others, v)
		}
	}
	return negative[:len(negative)&^15], others[:len(others)&^15]
}

// measure checks one function of every width whose lanes are T against the exact values.
func measure[T drive.Float](t *testing.T, f vecmath.Function, vectors []string, x, y []T) {
	t.Helper()
	ref, err := drive.NewReference(f.Name, x, y)
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Free()
	out := make([]T, len(x))
	for _, v := range vectors {
		call, err := drive.Lookup(f.Symbol(v), v, f.Args)
		if err != nil {
			t.Fatal(err)
		}
		drive.Call(call, x, y, out)
		ulp, at := ref.Worst(out, slack(f.Name, x))
		arg := fmt.Sprint(x[at])
		if f.Args == 2 {
			arg += fmt.Sprint(", ", y[at])
		}
		if *long {
			fmt.Printf("| %s | %.4f | %s |\n", f.Symbol(v), ulp, arg)
		}
		if !(ulp <= f.ULP) {
			t.Errorf("%s(%s) = %v, want %v: off by %.4g ulp", f.Symbol(v), arg, out[at], ref.Value(at), ulp)
		}
	}
}

// usable returns the vector types of one kind of lane that this processor has.
func usable(t *testing.T, kind byte) []string {
	var out []string
	for _, v := range vecmath.Vectors() {
		if v[0] == kind && drive.Usable(v) {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		t.Skip("this processor has none of the vector types: amd64 needs AVX2 and FMA")
	}
	return out
}

func TestAccuracyFloat32(t *testing.T) {
	n := 300_000
	if *long {
		n = 1_000_000
	}
	accuracy[float32](t, usable(t, 'f'), rand.New(rand.NewPCG(1, 2)), n)
}

func TestAccuracyFloat64(t *testing.T) {
	n := 30_000
	if *long {
		n = 400_000
	}
	accuracy[float64](t, usable(t, 'd'), rand.New(rand.NewPCG(3, 4)), n)
}

// accuracy measures all functions that there are for T, at about n points.
func accuracy[T drive.Float](t *testing.T, vectors []string, r *rand.Rand, n int) {
	x := points[T](r, n)
	a, b := pairs[T](r, n)
	_, double := any(*new(T)).(float64)
	for _, f := range vecmath.Functions() {
		switch {
		case double && f.Only32:
		case f.Args == 2:
			measure(t, f, vectors, a, b)
		case f.Name == "lgamma":
			negative, others := signed(x)
			measure(t, f, vectors, negative, nil)
			measure(t, f, vectors, others, nil)
		default:
			measure(t, f, vectors, x, nil)
		}
	}
}

// TestFloat32Patterns steps through the bit patterns of all floats, for the first usable
// vector type; TestWidthsAgree covers the others.
func TestFloat32Patterns(t *testing.T) {
	if !*long {
		t.Skip("minutes long: run with -vecmath.long")
	}
	const step, chunk = 61, 1 << 20
	v := usable(t, 'f')[0]
	x, out := make([]float32, chunk), make([]float32, chunk)
	for _, f := range vecmath.Functions() {
		if f.Args != 1 {
			continue
		}
		call, err := drive.Lookup(f.Symbol(v), v, f.Args)
		if err != nil {
			t.Fatal(err)
		}
		worst, where := 0.0, float32(0)
		for base := uint64(0); base < 1<<32; base += chunk * step {
			for i := range x {
				x[i] = math.Float32frombits(uint32(base + uint64(i)*step))
			}
			ref, err := drive.NewReference(f.Name, x, nil)
			if err != nil {
				t.Fatal(err)
			}
			drive.Call(call, x, nil, out)
			if ulp, at := ref.Worst(out, slack(f.Name, x)); ulp > worst {
				worst, where = ulp, x[at]
			}
			ref.Free()
		}
		fmt.Printf("| %s | %.4f | %v |\n", f.Symbol(v), worst, where)
		if !(worst <= f.ULP) {
			t.Errorf("%s(%v) is off by %.4g ulp", f.Symbol(v), where, worst)
		}
	}
}

// agree checks that the widths give the same bits.
func agree[T drive.Float](t *testing.T, f vecmath.Function, vectors []string, x, y []T) {
	t.Helper()
	var first []T
	for _, v := range vectors {
		call, err := drive.Lookup(f.Symbol(v), v, f.Args)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]T, len(x))
		drive.Call(call, x, y, out)
		if first == nil {
			first = out
		}
		for i := range out {
			if out[i] != first[i] && (out[i] == out[i] || first[i] == first[i]) {
				t.Errorf("%s(%v, %v) = %v, but %s = %v", f.Symbol(v), x[i], y[i], out[i], f.Symbol(vectors[0]), first[i])
				break
			}
		}
	}
}

func TestWidthsAgree(t *testing.T) {
	singles, doubles := usable(t, 'f'), usable(t, 'd')
	r := rand.New(rand.NewPCG(5, 6))
	a, b := pairs[float32](r, 100_000)
	c, d := pairs[float64](r, 100_000)
	for _, f := range vecmath.Functions() {
		agree(t, f, singles, a, b)
		if !f.Only32 {
			agree(t, f, doubles, c, d)
		}
	}
}
