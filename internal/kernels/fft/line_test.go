package fft

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAlong holds lines that are transformed one at a time against the same ones side by side, in Go.
func TestAlong(t *testing.T) {
	for i, k := range available[float32]() {
		t.Run(fmt.Sprint("f32 ", i), func(t *testing.T) { testAlong(t, k, 1e-6) })
	}
	for i, k := range available[float64]() {
		t.Run(fmt.Sprint("f64 ", i), func(t *testing.T) { testAlong(t, k, 2e-15) })
	}
}

func testAlong[T Float](t *testing.T, k *kernels[T], eps float64) {
	if k.line == nil {
		t.Skip("no kernels along lines")
	}
	// Vectors that divide a part and ones that do not, of short and of long numbers; each radix; primes, also of halves.
	for _, n := range []int{256, 320, 336, 360, 512, 1000, 1021, 1024, 1086, 1408, 2042, 2048, 2 * 2048 * 3} {
		for _, kind := range []Kind{Complex, RealToHalf, RealToAll, HalfToReal} {
			checkAlong(t, k, kind, n, 1, 1, 0, eps)
			checkAlong(t, k, kind, n, 1, 1, 3, eps)
			checkAlong(t, k, kind, n, 1, 1, -3, eps)
			if n < 1100 {
				checkAlong(t, k, kind, n, 3, 3, 0, eps)
				checkAlong(t, k, kind, n, 1, 6, 2, eps)
				checkAlong(t, k, kind, n, 37, 1, 0, eps)
			}
		}
	}
}

// checkAlong transforms lines that lack so many elements and lie beside inner others, to ones that do so with outer others.
func checkAlong[T Float](t *testing.T, k *kernels[T], kind Kind, n, inner, outer, short int, eps float64) {
	t.Helper()
	lines := inner * outer
	if lines == 1 {
		lines = Lanes[T]() + 1
	}
	in, out := Layout{inner, n - short}, Layout{outer, n}
	from, to := 2, 2
	switch kind {
	case RealToHalf:
		from, out.Len = 1, n/2+1
	case RealToAll:
		from = 1
	case HalfToReal:
		to, in.Len = 1, n/2+1-short
	}
	src := random[T](rand.New(rand.NewPCG(uint64(n), 5)), from*lines*in.Len)
	run := func(k *kernels[T]) (dst []T, line bool) {
		dst = make([]T, to*lines*out.Len+8)
		for i := range dst {
			dst[i] = 99
		}
		inverse := kind == Complex && n%3 == 0
		l := newLines(kind, n, inverse, in, out, 0.5, k)
		l.Run(dst[:len(dst)-8], src, make([]T, l.Scratch()), lines, 0, Blocks[T](lines))
		return dst, l.line != nil
	}
	got, along := run(k)
	want, _ := run(portable[T]())
	if !along {
		t.Fatalf("kind %d: lines of %d are side by side", kind, n)
	}
	worst := 0.0
	if l := newLines(kind, n, n%3 == 0, in, out, 0.5, k); l.InPlace() {
		l.Run(src, src, make([]T, l.Scratch()), lines, 0, Blocks[T](lines))
		if !slices.Equal(src, got[:len(src)]) {
			t.Errorf("%d elements beside %d are not transformed in place", n, inner)
		}
	}
	for i, v := range want {
		worst = max(worst, math.Abs(float64(got[i]-v)))
		if i >= len(want)-8 && got[i] != 99 || got[i] != got[i] {
			t.Fatalf("kind %d, %d elements beside %d, to beside %d: float %d is %v, want %v", kind, n, inner, outer, i, got[i], v)
		}
	}
	if worst > eps*math.Sqrt(float64(n)) {
		t.Fatalf("kind %d, %d elements, %d fewer, beside %d, to beside %d: off by %v", kind, n, short, inner, outer, worst)
	}
}
