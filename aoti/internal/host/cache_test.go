//go:build linux && cgo

package host

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/loris-ml/loris/internal/ir"
)

// counting returns a tensor of floats that count up from a number.
func counting(t *testing.T, from int, dims ...int) *tensor {
	t.Helper()
	x, err := newTensor(ir.MakeShape(ir.F32, dims...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(x) })
	for i, e := 0, elements[float32](x); i < len(e); i++ {
		e[i] = float32((from+i)%13 - 6)
	}
	return x
}

// What is kept with a constant is kept for each view of it.
func TestProductsOfConstants(t *testing.T) {
	const m, k, n = 5, 70, 48
	a, b := counting(t, 0, m, k), counting(t, 3, k, n)
	bias := counting(t, 1, n)
	views := []struct {
		name       string
		sizes      [2]int64
		strides    [2]int64
		offset     int
		alpha, add float64
	}{
		{"whole", [2]int64{k, n}, [2]int64{n, 1}, 0, 1, 1},
		{"some columns", [2]int64{k, n / 2}, [2]int64{n, 1}, 0, 1, 1},
		{"others", [2]int64{k, n / 2}, [2]int64{n, 1}, n / 2, 1, 1},
		{"transposed", [2]int64{k, n}, [2]int64{1, k}, 0, 1, 1},
		{"no bias", [2]int64{k, n}, [2]int64{n, 1}, 0, 1, 0},
		{"half", [2]int64{k, n}, [2]int64{n, 1}, 0, 0.5, 2},
		{"nothing", [2]int64{k, n}, [2]int64{n, 1}, 0, 0, 1},
		{"no columns", [2]int64{k, 0}, [2]int64{n, 1}, 0, 1, 1},
	}
	for round := range 2 { // the second one finds what the first one kept
		for _, constant := range []bool{false, true} {
			if constant {
				keepWith(b)
			}
			for _, v := range views {
				copy(sizesOf(b), v.sizes[:])
				copy(stridesOf(b), v.strides[:])
				*(*int64)(unsafe.Pointer(&b.offset)) = int64(v.offset)
				*(*int64)(unsafe.Pointer(&b.numel)) = v.sizes[0] * v.sizes[1]
				cols := int(v.sizes[1])
				sizesOf(bias)[0] = int64(cols)
				*(*int64)(unsafe.Pointer(&bias.numel)) = int64(cols)
				out := counting(t, 0, m, cols)
				if err := matmul(out, bias, a, b, v.add, v.alpha); err != nil {
					t.Fatalf("%s: %v", v.name, err)
				}
				if got, want := elements[float32](out), productOf(a, b, bias, v.add, v.alpha); !slices.Equal(got, want) {
					t.Errorf("round %d, constant %v, %s: %v, want %v", round, constant, v.name, got, want)
				}
			}
		}
	}
	if isConstant(a) || !isConstant(b) {
		t.Error("the wrong operand is constant")
	}
}

// productOf computes add·bias + alpha·a@b of small whole numbers, which is exact.
func productOf(a, b, bias *tensor, add, alpha float64) []float32 {
	as, bs, cs := elements[float32](a), elements[float32](b), elements[float32](bias)
	k, n := int(sizesOf(b)[0]), int(sizesOf(b)[1])
	row, col := int(stridesOf(b)[0]), int(stridesOf(b)[1])
	var out []float32
	for i := range int(sizesOf(a)[0]) {
		for j := range n {
			var sum float64
			for p := range k {
				sum += float64(as[i*k+p]) * float64(bs[p*row+j*col])
			}
			out = append(out, float32(alpha*sum+add*float64(cs[j])))
		}
	}
	return out
}

// Finding what is kept makes nothing.
func TestKeptAllocatesNothing(t *testing.T) {
	for range 300 { // more than the numbers that Go boxes without allocating
		x := counting(t, 0, 1)
		keepWith(x)
		kept(x, 0, func() int { return 1 })
	}
	x := counting(t, 0, 4)
	keepWith(x)
	made := 0
	get := func() int {
		return kept(x, linearKey{rows: 1}, func() int { made++; return 7 })
	}
	if got := get(); got != 7 {
		t.Fatalf("made %d", got)
	}
	if n := testing.AllocsPerRun(100, func() { get() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if other := kept(x, linearKey{rows: 2}, func() int { return 8 }); other != 8 || made != 1 {
		t.Errorf("another key: %d, made %d times", other, made)
	}
}
