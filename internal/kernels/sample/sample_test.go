package sample

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/loris-ml/loris/internal/kernels"
	"github.com/loris-ml/loris/internal/kernels/guarded"
)

// TestLoops holds the processor's loops against those of Go, on memory that ends at a page which can't be touched, for
// parts of vectors, taps that adjoin and others, and pixels that are none.
func TestLoops(t *testing.T) {
	if use == nil {
		t.Skip("the processor has no loops")
	}
	for _, apart := range []bool{false, true} {
		for _, taps := range []int{1, 4, 6, 8} {
			for _, channels := range []int{1, 3, 16, 23, 70, 129} {
				for _, n := range []int{1, 7, 16, 50} {
					t.Run(fmt.Sprint(apart, taps, channels, n), func(t *testing.T) { checkLoops(t, apart, taps, channels, n) })
				}
			}
		}
	}
}

// floats returns n numbers behind which nothing can be touched.
func floats(n int, of func(i int) float64) []float32 {
	x := guarded.Slice[float32](n)
	for i := range x {
		x[i] = float32(of(i))
	}
	return x
}

func checkLoops(t *testing.T, apart bool, taps, channels, n int) {
	const pixels = 41
	at := guarded.Slice[int32](taps * n)
	for i := range at {
		first, tap := i%n*(i%n+3)+i/n/2*7, i/n%2
		if at[i] = int32((first + tap) % pixels); apart && i%n == n-1 {
			at[i] = int32((first + 3*tap) % pixels)
		}
		if i%7 == 5 {
			at[i] = -1
		}
	}
	wave := func(i int) float64 { return math.Sin(float64(i * i)) }
	k := NewTaps(at, floats(taps*n, wave), n, taps, n, pixels)
	planes, src := floats(channels*pixels, wave), floats(channels*n, wave)
	run := map[string]func() []float32{
		"WeighRows": func() []float32 {
			dst := floats(channels*n, wave)
			k.WeighRows(dst, planes)
			return dst
		},
		"AddRows": func() []float32 {
			rows := floats(channels*pixels, wave)
			k.AddRows(rows, src)
			return rows
		},
		"MultiplyRows": func() []float32 {
			dst := floats(taps*n, wave)
			k.MultiplyRows(dst, src, planes)
			return dst
		},
		"WeighPlanes": func() []float32 {
			dst := floats(channels*n, wave)
			k.WeighPlanes(dst, n, planes, channels, pixels)
			return dst
		},
		"MultiplyPlane": func() []float32 {
			dst := floats(taps*n, wave)
			k.MultiplyPlane(dst, src, planes[:pixels])
			return dst
		},
	}
	native := use
	defer func() { use = native }()
	for name, f := range run {
		use = native
		got := f()
		use = nil
		for i, v := range f() {
			if !(math.Abs(float64(got[i]-v)) < 1e-5*float64(channels+taps)) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], v)
			}
		}
	}
}

// TestNewTaps checks that pixels beyond the last are found.
func TestNewTaps(t *testing.T) {
	at := make([]int32, 75)
	for i := range at {
		at[i] = int32(i%5) - 1
	}
	NewTaps[float32](at, nil, 37, 2, 36, 4)
	at[37+35] = 4
	defer func() {
		var e kernels.IndexError
		if err, ok := recover().(error); !ok || !errors.As(err, &e) || e != (kernels.IndexError{Index: 4, Size: 4}) {
			t.Errorf("got %v", err)
		}
	}()
	NewTaps[float32](at, nil, 37, 2, 36, 4)
}
